//! Values that move between random meshes, in random layouts, arrive as they were, in one process and in several, and each device that
//! sends has no more than its block.
//!
//! Values that move inside of manual functions, text and streams there give what the same program gives on one mesh; so do loops in which meshes
//! work ahead while they wait for answers.
//!
//! `TRANSFERS=N` draws so many programs of each kind, `TRANSFER=I` only number I.

use spmdc_abi::CollectiveKind;
use spmdc_compiler::report::plan;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::{Module, Stage};
use spmdc_tests::engine::{self, Loaded};
use spmdc_tests::processes::same_in_processes;
use spmdc_tests::random::Draw;
use std::fmt::Write as _;

/// A mesh of random axes over random devices, and the names of its axes with their sizes.
fn mesh(draw: &mut Draw, name: &str, axes: &[&str]) -> (String, Vec<(String, usize)>) {
    let count = draw.below(axes.len() + 1);
    let kind = draw.pick(&["", "", ": explicit"]);
    let sizes: Vec<(String, usize)> = axes[..count].iter().map(|axis| (axis.to_string(), 1 + draw.below(4))).collect();
    let devices: usize = sizes.iter().map(|(_, size)| size).product();
    let mut numbers: Vec<usize> = (0..devices + 3).collect();
    for at in (1..numbers.len()).rev() {
        numbers.swap(at, draw.below(at + 1));
    }
    let listed: Vec<String> = numbers[..devices].iter().map(usize::to_string).collect();
    let axes: Vec<String> = sizes.iter().map(|(axis, size)| format!("{axis}{kind} = {size}")).collect();
    (format!("mesh {name} ({}) devices [{}];\n", axes.join(", "), listed.join(", ")), sizes)
}

/// A layout over some of these axes, for a value of this rank.
fn layout(draw: &mut Draw, axes: &[(String, usize)], rank: usize) -> Vec<String> {
    let mut dims: Vec<Vec<&str>> = vec![Vec::new(); rank];
    for (axis, _) in axes {
        let dim = draw.below(rank + 1);
        if dim < rank {
            dims[dim].push(axis);
        }
    }
    let text = |axes: Vec<&str>| match axes.as_slice() {
        [] => "_".to_string(),
        [axis] => axis.to_string(),
        axes => format!("({})", axes.join(", ")),
    };
    dims.into_iter().map(text).collect()
}

/// A program that moves its parameter there and back, or around, perhaps in a loop.
fn program(draw: &mut Draw) -> String {
    let (mut text, first) = mesh(draw, "first", &["a", "b"]);
    let (second_text, second) = mesh(draw, "second", &["c", "d"]);
    text += &second_text;
    let rank = draw.below(4);
    let shape: Vec<usize> = (0..rank).map(|_| draw.below(8)).collect();
    let dtype = draw.pick(&["f32", "i8", "f64", "bf16", "u16"]);
    let own = layout(draw, &first, rank);
    let dims: Vec<String> = shape.iter().zip(&own).map(|(size, axes)| format!("{size}@{axes}")).collect();
    let ty = if rank == 0 { dtype.to_string() } else { format!("{dtype}[{}]", dims.join(", ")) };
    let place = |draw: &mut Draw, axes: &[(String, usize)]| match draw.below(3) {
        0 => String::new(),
        _ => format!(", P({})", layout(draw, axes, rank).join(", ")),
    };
    let (there, back) = (place(draw, &second), place(draw, &first));
    let _ = writeln!(text, "fn main(x: {ty} on first) {{");
    if draw.below(3) == 0 {
        let _ = writeln!(text, "  let mut y = transfer(x, second{there});");
        let _ = writeln!(text, "  for i in 0..3 {{ y = transfer(transfer(y, first{back}), second{there}); }}");
    } else {
        let _ = writeln!(text, "  let y = transfer(x, second{there});");
    }
    let _ = writeln!(text, "  let z = transfer(y, first{back});\n  (y, z)\n}}");
    text
}

/// The problem with a program, if there is one.
fn problem(at: u64, text: &str) -> Option<String> {
    let compilation = match engine::compiled("transfer.spmd", text, "", None) {
        Ok(compilation) => compilation,
        Err(failures) => return Some(format!("{failures:?}")),
    };
    let inputs = engine::inputs(&compilation, &[], &spmdc_tests::root()).unwrap();
    let loaded = match Loaded::new(&compilation) {
        Ok(loaded) => loaded,
        Err(failure) => return Some(format!("{failure:?}")),
    };
    for workers in [None, Some(1)] {
        let outcome = match loaded.run(&inputs, workers) {
            Ok(outcome) => outcome,
            Err(failure) => return Some(format!("{failure:?}")),
        };
        for (index, result) in outcome.results.iter().enumerate() {
            if *result != inputs[0].clone().with_one_nan() {
                return Some(format!("result {index} is {result:?}, not {:?}", inputs[0]));
            }
        }
        if workers.is_none()
            && at.is_multiple_of(2)
            && let Err(text) = same_in_processes(&loaded, &inputs, Ok(&outcome), at as usize / 2)
        {
            return Some(text);
        }
    }
    // A small value of a loop may be kept whole, as that saves barriers.
    if text.contains("for ") {
        return None;
    }
    // Nothing else is moved: a value is sent and received in the layouts that it has.
    let moved = compilation
        .of_meshes()
        .into_iter()
        .flat_map(|of_mesh| plan::collectives(of_mesh.stage(Stage::Partitioned).unwrap()));
    let others: Vec<CollectiveKind> =
        moved.map(|each| each.kind).filter(|&kind| kind != CollectiveKind::Transfer).collect();
    (!others.is_empty()).then(|| format!("devices of one mesh exchange data: {others:?}"))
}

/// The statements of a manual function, and its values with the mesh on which each is.
struct Body {
    text: String,
    values: Vec<&'static str>,
    dtype: &'static str,
    axes: String,
    axis: String,
}

impl Body {
    /// A value, by its number, and its mesh.
    fn pick(&self, draw: &mut Draw) -> (usize, &'static str) {
        let at = draw.below(self.values.len());
        (at, self.values[at])
    }

    /// A value as an operand on this mesh.
    fn operand(&self, draw: &mut Draw, on: &str) -> String {
        let (at, own) = self.pick(draw);
        if own == on { format!("v{at}") } else { format!("transfer(v{at}, {on})") }
    }

    fn stmt(&mut self, draw: &mut Draw) {
        let (at, on) = self.pick(draw);
        let new = self.values.len();
        let (dtype, axis, axes) = (self.dtype, self.axis.clone(), self.axes.clone());
        let other = self.operand(draw, on);
        let line = match draw.below(9) {
            0 | 1 => {
                let to = if on == "first" { "second" } else { "first" };
                self.values.push(to);
                format!("let v{new} = transfer(v{at}, {to});")
            }
            2 => format!("print(\"v{at} {{}}\", v{at});"),
            3 => format!("assert(all(v{at} == v{at}) && v{at}[0, 0] > -9, \"{{}} in v{at}\", v{at}[0]);"),
            kind => {
                self.values.push(on);
                match kind {
                    4 => format!("let v{new} = v{at} + {other} + data[1 : 1 + v{at}.shape[0]];"),
                    5 => format!("let v{new} = v{at} + cast(axis_index({axis}), {dtype}) - psum({other}, {axis});"),
                    6 => format!(
                        "let mut v{new} = v{at};\n  for t in 0..{} {{ v{new} = v{new} * 2 - {other}; print(\"{{}} {{}}\", t, sum(v{new})); }}",
                        draw.below(4)
                    ),
                    7 => format!(
                        "let mut v{new} = v{at};\n  if psum(sum(v{at}), {axes}) > {} {{ v{new} = {other}; print(\"then\"); }} else {{ v{new} = v{new} + 1; }}",
                        draw.below(9)
                    ),
                    _ => format!(
                        "let mut v{new} = v{at};\n  if sum(v{new}) > {} {{ v{new} = v{new} - 3; }}\n  show_sharding(v{new});",
                        draw.below(9)
                    ),
                }
            }
        };
        let _ = writeln!(self.text, "  {line}");
    }
}

/// A program with a manual function whose values move between meshes, and the same program on one mesh.
fn manual_programs(draw: &mut Draw) -> (String, String) {
    let sizes = [1 + draw.below(3), 1 + draw.below(2)];
    let devices = |draw: &mut Draw, count: usize| {
        let mut numbers: Vec<usize> = (0..count + 2).collect();
        for at in (1..numbers.len()).rev() {
            numbers.swap(at, draw.below(at + 1));
        }
        numbers[..count].iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
    };
    let mesh = |draw: &mut Draw, name: &str, own: &str| {
        let kind = draw.pick(&["", ": explicit"]);
        let more = 1 + draw.below(2);
        let mut axes = vec![format!("m = {}", sizes[0]), format!("n = {}", sizes[1])];
        axes.insert(draw.below(3), format!("{own}{kind} = {more}"));
        if draw.below(2) == 0 {
            axes.swap(0, 2);
        }
        let devices = devices(draw, sizes[0] * sizes[1] * more);
        format!("mesh {name} ({}) devices [{devices}];\n", axes.join(", "))
    };
    let (first, second) = (mesh(draw, "first", "a"), mesh(draw, "second", "c"));
    let are_both = draw.below(2) == 0;
    let (axes, rows_over) = if are_both { ("m, n", draw.pick(&["m", "n", "(m, n)", "(n, m)"])) } else { ("m", "m") };
    let blocks: usize =
        sizes.iter().zip(["m", "n"]).filter(|(_, axis)| rows_over.contains(axis)).map(|(size, _)| size).product();
    let (rows, columns) = (1 + draw.below(3), 1 + draw.below(4));
    let dtype = draw.pick(&["i32", "i64", "i16"]);
    let ty = format!("{dtype}[{}@{rows_over}, {columns}]", blocks * rows);
    let stream = format!("stream {dtype}[{}, {columns}]", rows + 3);
    let axis = if rows_over.contains('m') { "m" } else { "n" };
    let mut body = Body {
        text: String::new(),
        values: vec!["first", "second"],
        dtype,
        axes: if are_both { "(m, n)".to_string() } else { "m".to_string() },
        axis: axis.to_string(),
    };
    for _ in 0..3 + draw.below(5) {
        body.stmt(draw);
    }
    let last = body.values.len() - 1;
    let text = format!(
        "manual({axes}) fn inside(v0: {ty} on first, v1: {ty} on second, data: {stream}) -> ({ty}, {ty}) {{\n{}  (v{}, v{last})\n}}\n\
         fn main(x: {ty} on first, data: {stream}) {{\n  let y = transfer(x, second);\n  let (u, v) = inside(x, y + 1, data);\n  \
         (u, v, y + data[2], x - data[0])\n}}\n",
        body.text,
        last - 1
    );
    let on_one = text.replace("second", "first");
    (format!("{first}{second}{text}"), format!("{first}{on_one}"))
}

/// The problem with a program that must do the same as the other.
fn difference(at: u64, (text, on_one): &(String, String)) -> Option<String> {
    let run = |text: &str| {
        let compilation =
            engine::compiled("transfer.spmd", text, "", None).map_err(|failures| format!("{failures:?}"))?;
        let inputs = engine::inputs(&compilation, &[], &spmdc_tests::root())?;
        let loaded = Loaded::new(&compilation).map_err(|failure| format!("{failure:?}"))?;
        Ok::<_, String>((loaded.run(&inputs, None), loaded, inputs))
    };
    let ((outcome, loaded, inputs), (wanted, ..)) = match (run(text), run(on_one)) {
        (Ok(found), Ok(wanted)) => (found, wanted),
        (Err(problem), _) | (_, Err(problem)) => return Some(problem),
    };
    if at.is_multiple_of(2)
        && let Err(text) = same_in_processes(&loaded, &inputs, outcome.as_ref(), at as usize / 2)
    {
        return Some(text);
    }
    match (outcome, wanted) {
        (Ok(found), Ok(wanted)) => {
            // A layout names the devices and axes of its mesh.
            let lines = |text: &str| {
                text.lines()
                    .filter(|line| !line.contains(['│', '┌', '├', '└', '@', '[']))
                    .map(str::to_string)
                    .collect::<Vec<_>>()
            };
            if found.results != wanted.results {
                return Some(format!("gives {:?}, not {:?}", found.results, wanted.results));
            }
            let (found, wanted) = (lines(&found.printed), lines(&wanted.printed));
            (!text.contains("show_sharding") && found != wanted).then(|| format!("prints {found:?}, not {wanted:?}"))
        }
        (Err(found), Err(wanted)) if (&found.code, &found.message) == (&wanted.code, &wanted.message) => None,
        (found, wanted) => Some(format!("ends with {found:?}, not {wanted:?}")),
    }
}

/// A program whose stages send values forward and back in each trip of a loop, and the same program on one mesh. All numbers are small
/// integers, so sums are exact in any order.
fn pipelines(draw: &mut Draw) -> (String, String) {
    let stages = 2 + draw.below(3);
    let (trips, rows, columns) = (draw.below(9), 1 + draw.below(4), 1 + draw.below(3));
    let (mut meshes, mut forward, mut params, mut names) = (String::new(), String::new(), String::new(), Vec::new());
    let mut at = draw.below(2);
    for stage in 0..stages {
        let size = 1 + draw.below(3);
        let devices: Vec<String> = (at..at + size).map(|device| device.to_string()).collect();
        // Neighbours may have a device in common.
        at += if draw.below(4) == 0 { size - 1 } else { size };
        let _ = writeln!(meshes, "mesh s{stage} (a{stage} = {size}) devices [{}];", devices.join(", "));
        let _ = write!(params, ", w{stage}: f64[{columns}, {columns}] on s{stage}");
        names.push(format!("round(w{stage})"));
        let moved = if stage == 0 { "h".to_string() } else { format!("transfer(h, s{stage})") };
        let line = match draw.below(4) {
            0 => format!("let g = {moved}; let h = if sum(g) > 2.0 {{ g @ p.{stage} }} else {{ g - p.{stage}[0] }};"),
            1 => format!("let h = {moved} * p.{stage}[0] - 1;"),
            _ => format!("let h = {moved} @ p.{stage};"),
        };
        let _ = writeln!(forward, "  {line}");
    }
    let last = stages - 1;
    let skip = match draw.below(3) {
        0 => format!(" * transfer(sum(x), s{last})"),
        _ => String::new(),
    };
    let (collect, print) = (draw.below(2) == 0, draw.below(3) == 0);
    let steps = 1 + draw.below(2);
    let print = if print { "print(\"{}: {}\", i, l); " } else { "" };
    let counted = draw.pick(&["", "n = n * 3 - i; ", "n = n + i32(transfer(l, s0)); "]);
    let uses = if draw.below(2) == 0 { "x[i] + f64(n % 3)" } else { "x[i]" };
    let (head, tail) = if collect { ("let c = ", " collect") } else { ("", "") };
    let value = if collect { "(l, g.0[0])" } else { "" };
    let result = if collect { ", c.0, c.1" } else { "" };
    let text = format!(
        "fn loss(p, x) {{\n  let h = x;\n{forward}  sum(square(h)){skip}\n}}\n\
         fn main(batches: f64[{trips}, {rows}, {columns}] on s0{params}) {{\n  let x = round(batches);\n  let p = ({});\n  \
         let mut total = tree_map(|w| zeros_like(w), p);\n  let mut n = 1;\n  for step in 0..{steps} {{\n    \
         for i in 0..{trips} {{ let (l, g) = value_and_grad(loss)(p, {uses}); {counted}{print}\
         total = tree_map(|t, d| t + d, total, g); }}\n  }}\n  \
         {head}for i in 0..{trips}{tail} {{ let (l, g) = value_and_grad(loss)(p, x[i]); \
         total = tree_map(|t, d| t - 2 * d, total, g); {value} }}{}\n  (total, n{result})\n}}\n",
        names.join(", "),
        if collect { ";" } else { "" },
    );
    let mut on_one = text.clone();
    (1..stages).for_each(|stage| on_one = on_one.replace(&format!("s{stage}"), "s0"));
    let first = meshes.lines().next().expect("there is a stage").to_string();
    (format!("{meshes}{text}"), format!("{first}\n{on_one}"))
}

/// The number of loops of each mesh.
fn loops(text: &str) -> Vec<usize> {
    let compilation = engine::compiled("transfer.spmd", text, "", Some(Stage::Propagated)).unwrap();
    let count = |module: &Module| {
        let mut count = 0;
        module.func.body.walk(&mut |stmt| count += usize::from(matches!(stmt.control(), Some(Control::For(_)))));
        count
    };
    compilation.parts.iter().map(|part| count(part.compilation.stages.last().unwrap())).collect()
}

#[test]
fn loops_in_which_meshes_work_ahead_mean_the_same() {
    let (mut wrong, mut ahead) = (Vec::new(), 0);
    for at in numbers().filter(|at| at % 16 == 0 || std::env::var("TRANSFER").is_ok()) {
        let programs = pipelines(&mut Draw::new("pipelines", at));
        match difference(at / 8, &programs) {
            Some(problem) => wrong.push(format!("number {at}: {problem}\n{}", programs.0)),
            None => ahead += usize::from(loops(&programs.0).iter().any(|&count| count > 3)),
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong[..wrong.len().min(3)].join("\n"));
    assert!(ahead > 0 || numbers().count() < 500, "no mesh works ahead");
}

fn numbers() -> std::ops::Range<u64> {
    crate::only_or_all("TRANSFER", "TRANSFERS", 2000)
}

#[test]
fn manual_functions_mean_the_same_on_several_meshes() {
    let mut wrong = Vec::new();
    for at in numbers().filter(|at| at % 4 == 0 || std::env::var("TRANSFER").is_ok()) {
        let programs = manual_programs(&mut Draw::new("transfers in manual functions", at));
        if let Some(problem) = difference(at, &programs) {
            wrong.push(format!("number {at}: {problem}\n{}", programs.0));
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong[..wrong.len().min(3)].join("\n"));
}

#[test]
fn values_arrive_as_they_were() {
    let mut wrong = Vec::new();
    for at in numbers() {
        let text = program(&mut Draw::new("transfers", at));
        if let Some(problem) = problem(at, &text) {
            wrong.push(format!("number {at}: {problem}\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong[..wrong.len().min(3)].join("\n"));
}
