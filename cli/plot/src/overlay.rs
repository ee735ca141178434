//! Images as cells of colours, and points. The drawing library would write each of them as an element of its own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use plotters::style::RGBColor;
use plotters::style::colors::colormaps::ViridisRGB;

/// A part of a picture that is drawn over its charts.
pub enum PictureOverlay {
    Cells(Cells),
    Dots(Dots),
}

impl PictureOverlay {
    /// The elements of an SVG.
    pub fn svg(&self) -> String {
        match self {
            PictureOverlay::Cells(cells) => cells.svg(),
            PictureOverlay::Dots(dots) => dots.svg(),
        }
    }
}

/// Points of an SVG.
pub struct Dots {
    /// Their centres, in units of the picture.
    pub centres: Vec<(i32, i32)>,
    pub radius: u32,
    pub color: RGBColor,
    pub opacity: f64,
}

impl Dots {
    /// A point is a line without length and with round ends. Circles would take ten times the bytes.
    fn svg(&self) -> String {
        let RGBColor(red, green, blue) = self.color;
        let mut text = format!(
            "<path stroke=\"#{red:02x}{green:02x}{blue:02x}\" stroke-opacity=\"{}\" stroke-width=\"{}\" stroke-linecap=\"round\" d=\"",
            self.opacity,
            2 * self.radius
        );
        for (x, y) in &self.centres {
            let _ = write!(text, "M{x} {y}h0");
        }
        text + "\"/>\n"
    }
}

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
    fn svg(&self) -> String {
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
