//! The picture of the page on meshes: the simulated timeline of `examples/pipeline.spmd`.

use std::fmt::Write as _;

use spmdc_compiler::report::timeline::{MeshTimeline, Timeline, timeline};

use crate::{engine, root};

/// The example.
const EXAMPLE: &str = "examples/pipeline.spmd";

/// Sizes in the picture: its width, what stands left of the lanes, a lane, and the text below.
const WIDTH: f64 = 832.0;
const LEFT: f64 = 56.0;
const LANE: f64 = 34.0;
const BELOW: f64 = 34.0;
const BORDER: f64 = 16.0;

/// The timeline of the example.
pub fn of_example() -> Result<Timeline, String> {
    let path = root().join(EXAMPLE);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let compilation = engine::compiled(EXAMPLE, &text, "", None).map_err(|failures| format!("{failures:?}"))?;
    let program = compilation.program.ok_or("no program was made")?;
    timeline(&program, None).ok_or_else(|| "the example has no timeline".to_string())
}

/// A lane for each stage, with the number of the microbatch in each time that it works.
pub fn svg(timeline: &Timeline) -> String {
    // What only prints takes no time.
    let stages: Vec<&MeshTimeline> = timeline.meshes.iter().filter(|mesh| mesh.busy > 0.01 * timeline.total).collect();
    let height = 2.0 * BORDER + stages.len() as f64 * LANE + BELOW;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" fill=\"#16191d\"/>\n\
         <g font-family=\"ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"13\" fill=\"#d5dae0\">\n"
    );
    let x = |time: f64| LEFT + (WIDTH - LEFT - BORDER) * time / timeline.total;
    for (lane, stage) in stages.iter().enumerate() {
        let top = BORDER + lane as f64 * LANE;
        let middle = top + LANE / 2.0;
        let _ = writeln!(text, "<text x=\"{BORDER}\" y=\"{:.1}\">{}</text>", middle + 4.0, stage.mesh);
        for span in &stage.spans {
            let (left, right, high) = (x(span.begin), x(span.end), LANE - 6.0);
            let fill = if span.trip.is_some() { "#3b6ea5" } else { "#4a5058" };
            let _ = writeln!(
                text,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{high:.1}\" rx=\"3\" fill=\"{fill}\"/>",
                left + 0.5,
                top + 3.0,
                (right - left - 1.0).max(0.5)
            );
            let label = span.trip.map_or("weights".to_string(), |trip| trip.to_string());
            if right - left > 8.0 * label.len() as f64 {
                let (at, base) = ((left + right) / 2.0, middle + 4.0);
                let _ = writeln!(text, "<text x=\"{at:.1}\" y=\"{base:.1}\" text-anchor=\"middle\">{label}</text>");
            }
        }
    }
    let base = height - BORDER;
    let rounds = timeline.loops.first().map_or(0.0, |found| found.rounds());
    let trips = timeline.loops.first().map_or(0, |found| found.trips);
    let _ = writeln!(
        text,
        "<text x=\"{LEFT}\" y=\"{base:.1}\">{trips} microbatches through {} stages: {rounds:.1} rounds</text>",
        stages.len()
    );
    text.push_str("</g>\n</svg>\n");
    text
}
