//! Draws arrays as pictures: lines, images with a scale of colours, and points, in SVG or PNG.
//!
//! ```
//! use spmdc_plot::{Content, Panel, svg};
//! let panel = Panel { title: "loss".to_string(), content: Content::Line(vec![2.0, 1.0, 0.5]) };
//! assert!(svg(&[panel])?.contains("<polyline"));
//! # Ok::<(), spmdc_plot::PlotError>(())
//! ```
//!
//! The same panels give the same bytes on every machine: a PNG has its text in a font of this crate, and an SVG names a generic font. Arrays
//! are reduced to the resolution of the picture, so that files stay small.
#![warn(missing_docs)]

mod axis;
mod chart;
mod overlay;
mod reduce;

use std::fmt;

use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::prelude::IntoDrawingArea;
use plotters::style::{FontStyle, register_font};

use crate::chart::PictureKind;
use crate::overlay::PictureOverlay;

/// The maximum number of panels of a picture.
pub const MAX_PANELS: usize = 25;

/// A part of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its title; may be empty.
    pub title: String,
    /// The drawing.
    pub content: Content,
}

/// The elements that a panel draws. Those that are not finite are left out.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// The elements over their indices.
    Line(Vec<f64>),
    /// The elements as colours, with a scale. The first row is on top.
    Image {
        /// The number of rows.
        rows: usize,
        /// The number of columns.
        columns: usize,
        /// `rows * columns` elements, row by row.
        values: Vec<f64>,
    },
    /// A point for each pair of elements.
    Points {
        /// The horizontal positions.
        x: Vec<f64>,
        /// The vertical positions, as many.
        y: Vec<f64>,
        /// The names of both.
        names: [String; 2],
    },
}

impl Content {
    /// Whether there is anything to draw.
    pub fn is_drawable(&self) -> bool {
        match self {
            Content::Line(values) | Content::Image { values, .. } => values.iter().any(|value| value.is_finite()),
            Content::Points { x, y, .. } => x.iter().zip(y).any(|(x, y)| x.is_finite() && y.is_finite()),
        }
    }
}

/// The reason why a picture cannot be drawn: an error of the drawing library or of this crate.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotError(pub String);

impl fmt::Display for PlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PlotError {}

/// The panels as an SVG.
pub fn svg(panels: &[Panel]) -> Result<String, PlotError> {
    let (width, height) = chart::size(panels.len());
    let scale = PictureKind::Vectors.scale();
    let scaled = (width * scale, height * scale);
    let mut text = String::new();
    let overlays = {
        let area = SVGBackend::with_string(&mut text, scaled).into_drawing_area();
        prepare_text()?;
        let overlays = chart::draw(&area, panels, PictureKind::Vectors)?;
        area.present().map_err(chart::failed)?;
        overlays
    };
    let header = |(width, height)| format!("<svg width=\"{width}\" height=\"{height}\"");
    let text = text.replacen(&header(scaled), &header((width, height)), 1);
    let body = text.trim_end().strip_suffix("</svg>");
    let body = body.ok_or_else(|| PlotError("the drawing library wrote an incomplete SVG".to_string()))?;
    Ok(format!("{body}{}</svg>\n", overlays.iter().map(PictureOverlay::svg).collect::<String>()))
}

/// The panels as the bytes of a PNG.
pub fn png(panels: &[Panel]) -> Result<Vec<u8>, PlotError> {
    let (width, height) = chart::size(panels.len());
    let scale = PictureKind::Pixels.scale();
    let (width, height) = (width * scale, height * scale);
    let mut pixels = vec![255; (width * height * 3) as usize];
    let overlays = {
        let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
        prepare_text()?;
        let overlays = chart::draw(&area, panels, PictureKind::Pixels)?;
        area.present().map_err(chart::failed)?;
        overlays
    };
    for overlay in &overlays {
        match overlay {
            PictureOverlay::Cells(cells) => cells.fill(&mut pixels, width as usize),
            PictureOverlay::Dots(_) => return Err(PlotError("points are drawn with their chart".to_string())),
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&pixels)?;
        writer.finish()
    });
    written.map_err(|error| PlotError(error.to_string()))?;
    Ok(bytes)
}

/// Gives the library the font of this crate, for the pixels of texts and for their sizes.
fn prepare_text() -> Result<(), PlotError> {
    let font = include_bytes!("../fonts/DejaVuSans-ASCII.ttf");
    let registered = register_font(chart::FONT, FontStyle::Normal, font);
    registered.map_err(|_| PlotError("the drawing library does not read the font".to_string()))
}
