//! The charts of the panels, for any back end of the drawing library.

use std::ops::Range;

use plotters::chart::{ChartBuilder, LabelAreaPosition};
use plotters::coord::Shift;
use plotters::coord::ranged1d::Ranged;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::element::{Circle, PathElement};
use plotters::prelude::DrawingBackend;
use plotters::style::{BLACK, Color, IntoFont, RGBColor, ShapeStyle, TextStyle, WHITE};

use crate::axis::ChartAxis;
use crate::overlay::{Cells, Dots, PictureOverlay};
use crate::{Content, MAX_PANELS, Panel, PlotError, reduce};

/// The family of all texts.
pub const FONT: &str = "sans-serif";

/// Width and height of a picture with one panel, and of each of several panels.
const SINGLE: (u32, u32) = (640, 400);
const OF_SEVERAL: (u32, u32) = (480, 320);

/// Height of the text, width of one of its characters, margins of a panel, and the width of a scale of colours.
const TEXT: u32 = 12;
const CHARACTER: u32 = 8;
const MARGIN: u32 = 14;
const SCALE_WIDTH: u32 = 14;

/// The number of marks on an axis.
const MARKS: usize = 6;

/// Resolutions: intervals of a line, blocks of an image along each dimension, points.
const INTERVALS: usize = 1000;
const BLOCKS: usize = 256;
const POINTS: usize = 5000;

/// The maximum number of elements of a line that are also drawn as dots.
const DOTS: usize = 50;

/// Part of the length of an axis that stays free on both sides of a line and of points.
const FREE: f64 = 0.05;

/// How opaque points are: lines of the grid show through.
const OPACITY: f64 = 0.6;

const BLUE: RGBColor = RGBColor(31, 119, 180);
const GREY: RGBColor = RGBColor(225, 225, 225);

/// The number of panels in a row, and of rows.
fn grid(panels: usize) -> (usize, usize) {
    let across = (1..).find(|across| across * across >= panels).unwrap_or(1);
    (across, panels.div_ceil(across).max(1))
}

/// Width and height of a picture.
pub fn size(panels: usize) -> (u32, u32) {
    let (across, down) = grid(panels);
    let (width, height) = if panels > 1 { OF_SEVERAL } else { SINGLE };
    (width * across as u32, height * down as u32)
}

/// The error of the library as ours.
pub fn failed<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> PlotError {
    PlotError(error.to_string())
}

/// Draws all panels, except for the cells of images and the points of an SVG, which are returned.
pub fn draw<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    panels: &[Panel],
    kind: PictureKind,
) -> Result<Vec<PictureOverlay>, PlotError> {
    if panels.is_empty() || panels.len() > MAX_PANELS {
        return Err(PlotError(format!("a picture has 1 to {MAX_PANELS} panels")));
    }
    area.fill(&WHITE).map_err(failed)?;
    let (across, down) = grid(panels.len());
    let mut overlays = Vec::new();
    for (area, panel) in area.split_evenly((down, across)).iter().zip(panels) {
        let canvas = Canvas { area, kind, scale: kind.scale() };
        let title = panel.title.as_str();
        if !panel.content.is_drawable() {
            let title = format!("{title} (no finite elements)");
            canvas.chart(
                title.trim_start(),
                [ChartAxis::of_indices(2), ChartAxis::of_indices(2)],
                ["", ""],
                Marks::Without,
            )?;
            continue;
        }
        match &panel.content {
            Content::Line(values) => canvas.line(title, values)?,
            Content::Points { x, y, names } => {
                overlays.extend(canvas.points(title, [x, y], names)?.map(PictureOverlay::Dots));
            }
            Content::Image { rows, columns, values } => {
                overlays.extend(canvas.image(title, (*rows, *columns), values)?.map(PictureOverlay::Cells));
            }
        }
    }
    Ok(overlays)
}

/// The kind of picture.
#[derive(Clone, Copy, PartialEq)]
pub enum PictureKind {
    Vectors,
    /// Lines are drawn one by one: where thick ones meet, the library would continue their edges without bound.
    Pixels,
}

impl PictureKind {
    /// Units per point of the size of a picture. The library rounds the coordinates of an SVG to whole units.
    pub fn scale(self) -> u32 {
        match self {
            PictureKind::Vectors => 4,
            PictureKind::Pixels => 2,
        }
    }
}

/// A panel's part of the picture, with its units per point.
struct Canvas<'a, DB: DrawingBackend> {
    area: &'a DrawingArea<DB, Shift>,
    kind: PictureKind,
    scale: u32,
}

/// The shapes of a chart: circles with these centres and this radius, or lines through these points.
enum Shapes<'a> {
    Circles(&'a [(f64, f64)], u32, ShapeStyle),
    Line(&'a [(f64, f64)], ShapeStyle),
}

/// The marks of a chart.
#[derive(Clone, Copy, PartialEq)]
enum Marks {
    /// Lines of a grid with labels to the left and below.
    Grid,
    /// Labels only.
    Labels,
    /// Labels to the right, of the vertical axis only.
    Right,
    Without,
}

impl<DB: DrawingBackend> Canvas<'_, DB> {
    fn line(&self, title: &str, values: &[f64]) -> Result<(), PlotError> {
        let axes = [ChartAxis::of_indices(values.len()), ChartAxis::of_values(values, FREE)];
        let parts = reduce::line(values, INTERVALS);
        let style = BLUE.stroke_width(self.scale * 3 / 2);
        let mut shapes: Vec<Shapes<'_>> = parts.iter().map(|part| Shapes::Line(part, style)).collect();
        // An element without neighbours has no line.
        let dotted = parts.iter().filter(|part| part.len() == 1 || values.len() <= DOTS);
        shapes.extend(dotted.map(|part| Shapes::Circles(part, 2 * self.scale, BLUE.filled())));
        self.shapes(title, axes, ["", ""], &shapes)
    }

    fn points(&self, title: &str, [x, y]: [&[f64]; 2], names: &[String; 2]) -> Result<Option<Dots>, PlotError> {
        let both = || x.iter().copied().zip(y.iter().copied()).filter(|(x, y)| x.is_finite() && y.is_finite());
        let of = |part: fn((f64, f64)) -> f64| ChartAxis::of_values(&both().map(part).collect::<Vec<_>>(), FREE);
        let [across, up] = [of(|point| point.0), of(|point| point.1)];
        let kept = reduce::points(both(), |(x, y)| (across.position(x), up.position(y)), POINTS);
        let radius = 5 * self.scale / 2;
        let names = [names[0].as_str(), &names[1]];
        if self.kind == PictureKind::Pixels {
            let shapes = [Shapes::Circles(&kept, radius, BLUE.mix(OPACITY).filled())];
            self.shapes(title, [across, up], names, &shapes)?;
            return Ok(None);
        }
        let (columns, rows) = self.chart_with(title, [across, up], names, Marks::Grid, &[])?;
        let place = |(x, y)| (across.map(&x, (columns.start, columns.end)), up.map(&y, (rows.end, rows.start)));
        let centres = kept.into_iter().map(place).collect();
        Ok(Some(Dots { centres, radius, color: BLUE, opacity: OPACITY }))
    }

    fn image(&self, title: &str, (rows, columns): (usize, usize), values: &[f64]) -> Result<[Cells; 2], PlotError> {
        let Canvas { kind, scale, .. } = *self;
        let (down, across, means) = reduce::image(rows, columns, values, BLOCKS);
        let colors = ChartAxis::of_values(&means, 0.0);
        let shade = |value: f64| value.is_finite().then(|| (colors.position(value) * 255.0).round() as u8);
        let axes = [ChartAxis::of_cells(columns, false), ChartAxis::of_cells(rows, true)];
        // The scale is on the right, with its labels; cells are squares if the image is not much longer than wide.
        let margin = MARGIN * scale;
        let (width, height) = self.area.dim_in_pixel();
        let beside = self.label_width(&colors) + SCALE_WIDTH * scale + 2 * margin;
        let (left, top, bottom) = (self.label_width(&axes[1]), self.title_height(title), self.label_height());
        let room = (width.saturating_sub(left + beside + margin), height.saturating_sub(top + bottom + 2 * margin));
        let ratio = (columns as f64 / rows as f64).clamp(0.25, 8.0);
        let fitted = (room.0.min((f64::from(room.1) * ratio) as u32), room.1.min((f64::from(room.0) / ratio) as u32));
        let drawn = (fitted.0 + left + 2 * margin, fitted.1 + top + bottom + 2 * margin);
        let start = ((width - (drawn.0 + beside).min(width)) / 2, (height - drawn.1.min(height)) / 2);
        let part = |x: u32, width: u32| self.area.clone().shrink((start.0 + x, start.1), (width, drawn.1));
        let (picture, bar) = (part(0, drawn.0), part(drawn.0, beside));
        let within = Canvas { area: &picture, kind, scale }.chart(title, axes, ["", ""], Marks::Labels)?;
        let of_bar = [ChartAxis::of_cells(1, false), colors];
        // The scale begins as high as the picture, which has a title.
        let title = if title.is_empty() { "" } else { " " };
        let within_bar = Canvas { area: &bar, kind, scale }.chart(title, of_bar, ["", ""], Marks::Right)?;
        let cells = |(x, y): (Range<i32>, Range<i32>), columns, shades| Cells { across: x, down: y, columns, shades };
        debug_assert_eq!(means.len(), down * across, "the image has all its blocks");
        Ok([
            cells(within, across, means.into_iter().map(shade).collect()),
            cells(within_bar, 1, (0..=255).rev().map(Some).collect()),
        ])
    }

    fn label_width(&self, axis: &ChartAxis) -> u32 {
        let longest = axis.marks(MARKS).iter().map(|&mark| axis.label(mark, MARKS).len()).max().unwrap_or(1);
        (longest as u32 * CHARACTER + TEXT) * self.scale
    }

    fn label_height(&self) -> u32 {
        2 * TEXT * self.scale
    }

    fn title_height(&self, title: &str) -> u32 {
        if title.is_empty() { 0 } else { 2 * TEXT * self.scale }
    }

    fn text(&self, size: u32) -> TextStyle<'static> {
        (FONT, size * self.scale).into_font().color(&BLACK)
    }

    /// Draws axes, and returns the rectangle inside of them.
    fn chart(
        &self,
        title: &str,
        axes: [ChartAxis; 2],
        names: [&str; 2],
        marks: Marks,
    ) -> Result<(Range<i32>, Range<i32>), PlotError> {
        self.chart_with(title, axes, names, marks, &[])
    }

    fn shapes(
        &self,
        title: &str,
        axes: [ChartAxis; 2],
        names: [&str; 2],
        shapes: &[Shapes<'_>],
    ) -> Result<(), PlotError> {
        self.chart_with(title, axes, names, Marks::Grid, shapes).map(|_| ())
    }

    fn chart_with(
        &self,
        title: &str,
        [across, up]: [ChartAxis; 2],
        names: [&str; 2],
        marks: Marks,
        shapes: &[Shapes<'_>],
    ) -> Result<(Range<i32>, Range<i32>), PlotError> {
        let scale = self.scale;
        let mut builder = ChartBuilder::on(self.area);
        builder.margin(MARGIN * scale);
        if !title.is_empty() {
            builder.caption(title, self.text(TEXT * 7 / 6));
        }
        let named = |name: &str| if name.is_empty() { 0 } else { 3 * TEXT / 2 * scale };
        if marks == Marks::Right {
            builder.margin_left(0).set_label_area_size(LabelAreaPosition::Right, self.label_width(&up));
            builder.set_label_area_size(LabelAreaPosition::Bottom, self.label_height());
        } else {
            builder.set_label_area_size(LabelAreaPosition::Left, self.label_width(&up) + named(names[1]));
            builder.set_label_area_size(LabelAreaPosition::Bottom, self.label_height() + named(names[0]));
        }
        let mut chart = builder.build_cartesian_2d(across, up).map_err(failed)?;
        let across_label =
            |value: &f64| if marks == Marks::Right { String::new() } else { across.label(*value, MARKS) };
        let up_label = |value: &f64| up.label(*value, MARKS);
        let count = if marks == Marks::Without { 0 } else { MARKS };
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(count).y_labels(count).max_light_lines(0).label_style(self.text(TEXT));
        mesh.x_label_formatter(&across_label).y_label_formatter(&up_label).axis_style(BLACK.stroke_width(scale));
        mesh.set_all_tick_mark_size(4 * scale).bold_line_style(GREY.stroke_width(scale));
        // The library also draws faint lines, at the places of the others.
        mesh.light_line_style(BLACK.mix(0.0)).axis_desc_style(self.text(TEXT));
        if !names[0].is_empty() {
            mesh.x_desc(names[0]).y_desc(names[1]);
        }
        if marks != Marks::Grid {
            mesh.disable_mesh();
        }
        if marks == Marks::Right {
            mesh.disable_x_axis();
            mesh.set_tick_mark_size(LabelAreaPosition::Bottom, 0);
        }
        mesh.draw().map_err(failed)?;
        for shape in shapes {
            match *shape {
                Shapes::Line(points, style) if self.kind == PictureKind::Pixels => {
                    let lines = points.windows(2).map(|ends| PathElement::new(ends.to_vec(), style));
                    chart.draw_series(lines).map_err(failed)?;
                }
                Shapes::Line(points, style) => {
                    chart.draw_series([PathElement::new(points.to_vec(), style)]).map_err(failed)?;
                }
                Shapes::Circles(points, radius, style) => {
                    let circles = points.iter().map(|point| Circle::new(*point, radius, style));
                    chart.draw_series(circles).map_err(failed)?;
                }
            }
        }
        Ok(chart.plotting_area().get_pixel_range())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_fill_a_grid() {
        assert_eq!([1, 2, 3, 5, 25].map(grid), [(1, 1), (2, 1), (2, 2), (3, 2), (5, 5)]);
    }
}
