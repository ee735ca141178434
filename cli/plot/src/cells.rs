//! Images as cells of colours, which the drawing library would write as one rectangle each.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use plotters::style::RGBColor;
use plotters::style::colors::colormaps::ViridisRGB;

/// Cells that fill a rectangle of the picture.
pub struct Cells {
    /// The rectangle, in units of the picture.
    pub across: Range<i32>,
    pub down: Range<i32>,
    pub columns: usize,
    /// The shades of the cells, row by row; None where nothing is drawn.
    pub shades: Vec<Option<u8>>,
}

/// The colour of a shade. Viridis looks equally spaced to the eye, also without colours.
fn color(shade: u8) -> RGBColor {
    ViridisRGB::get_color(f32::from(shade) / 255.0)
}

impl Cells {
    /// A path for each colour: cells of one row that follow each other are a line, as wide as a row is high.
    pub fn svg(&self) -> String {
        let mut paths: BTreeMap<u8, String> = BTreeMap::new();
        for (row, shades) in self.shades.chunks(self.columns).enumerate() {
            let mut column = 0;
            for run in shades.chunk_by(|a, b| a == b) {
                if let Some(shade) = run[0] {
                    let path = paths.entry(shade).or_default();
                    let _ = write!(path, "M{column} {row}h{}", run.len());
                }
                column += run.len();
            }
        }
        let rows = self.shades.len() / self.columns;
        let scale = |range: &Range<i32>, count: usize| f64::from(range.end - range.start) / count as f64;
        let (x, y) = (scale(&self.across, self.columns), scale(&self.down, rows));
        let mut text = format!(
            "<g transform=\"translate({} {}) scale({x:.6} {y:.6}) translate(0 .5)\" shape-rendering=\"crispEdges\">\n",
            self.across.start, self.down.start
        );
        for (shade, path) in paths {
            let RGBColor(red, green, blue) = color(shade);
            let _ = writeln!(text, "<path stroke=\"#{red:02x}{green:02x}{blue:02x}\" d=\"{path}\"/>");
        }
        text + "</g>\n"
    }

    /// Fills the rectangle in the pixels of a picture with this width, three bytes each.
    pub fn fill(&self, pixels: &mut [u8], width: usize) {
        let rows = self.shades.len() / self.columns;
        let size = |range: &Range<i32>| (range.end - range.start) as usize;
        let (down, across) = (size(&self.down), size(&self.across));
        for y in 0..down {
            for x in 0..across {
                let Some(shade) = self.shades[y * rows / down * self.columns + x * self.columns / across] else {
                    continue;
                };
                let RGBColor(red, green, blue) = color(shade);
                let at = 3 * ((self.down.start as usize + y) * width + self.across.start as usize + x);
                pixels[at..at + 3].copy_from_slice(&[red, green, blue]);
            }
        }
    }
}
