//! The picture in the README: a terminal in which its command with `--explain` has run.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::root;

/// The terminal's size.
pub const COLUMNS: usize = 100;
pub const LINES: usize = 40;

/// How the README starts the command.
const FROM_SOURCE: &str = "cargo run --release -p spmdc -- ";

/// Sizes of a cell in the picture, and of the border.
const CELL: (usize, usize) = (8, 18);
const BORDER: usize = 16;

/// The lines that a terminal shows in which the README's command with `--explain` has run, typed by somebody who has installed it.
pub fn explained_run(spmdc: &Path) -> Result<Vec<String>, String> {
    let readme = std::fs::read_to_string(root().join("README.md")).map_err(|error| error.to_string())?;
    let mut commands = readme.lines().filter_map(|line| line.strip_prefix(FROM_SOURCE));
    let command = commands.find(|command| command.contains("--explain")).ok_or("the README explains nothing")?;
    let mut run = Command::new(spmdc);
    run.args(command.split_whitespace()).current_dir(root()).env("COLUMNS", COLUMNS.to_string());
    let output = run.output().map_err(|error| format!("{}: {error}", spmdc.display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let typed: Vec<char> = format!("$ spmdc {command}").chars().collect();
    let mut lines: Vec<String> = typed.chunks(COLUMNS).map(|line| line.iter().collect()).collect();
    lines.extend(String::from_utf8_lossy(&output.stdout).lines().map(str::to_string));
    Ok(lines)
}

/// The lines as a picture. Each has the width of its cells in every font, so that boxes close.
pub fn svg(lines: &[String]) -> String {
    let (width, height) = (COLUMNS * CELL.0 + 2 * BORDER, lines.len() * CELL.1 + 2 * BORDER);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#16191d\"/>\n\
         <g font-family=\"ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"13\" fill=\"#d5dae0\" \
         xml:space=\"preserve\">\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let shown = line.trim_start();
        if shown.is_empty() {
            continue;
        }
        let (indent, length) = (line.chars().count() - shown.chars().count(), shown.chars().count());
        let (x, y) = (BORDER + indent * CELL.0, BORDER + number * CELL.1 + CELL.1 * 3 / 4);
        let escaped = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let wide = length * CELL.0;
        let _ = writeln!(
            text,
            "<text x=\"{x}\" y=\"{y}\" textLength=\"{wide}\" lengthAdjust=\"spacingAndGlyphs\">{escaped}</text>"
        );
    }
    text.push_str("</g>\n</svg>\n");
    text
}
