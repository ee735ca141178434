//! Pictures of results, from `--plot`. Their types are checked before the program runs, so that no computed result is lost.

use std::path::PathBuf;

use spmdc_abi::{Binding, DType};
use spmdc_plot::{Content, MAX_PANELS, Panel, png, svg};
use spmdc_runtime::data::array::HostArray;
use spmdc_runtime::data::results::{WholeResult, list, named, whole};
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::io::{check_writable, resolve, write_file};
use spmdc_runtime::run::start::Viewer;

/// The pictures of a run.
pub struct Plots<'a> {
    /// The texts after `--plot`: `loss.svg`, `p.w=w.png`.
    requests: &'a [String],
    pictures: Vec<Picture>,
}

/// A file and its panels.
struct Picture {
    path: PathBuf,
    format: PictureFormat,
    panels: Vec<PlannedPanel>,
}

#[derive(Clone, Copy)]
enum PictureFormat {
    Svg,
    Png,
}

/// A panel, with the numbers of its arrays.
struct PlannedPanel {
    title: String,
    drawing: Drawing,
}

enum Drawing {
    Line(usize),
    Image(usize, [usize; 2]),
    /// Two vectors, and their names.
    Points([usize; 2], [String; 2]),
}

impl<'a> Plots<'a> {
    /// The pictures of these requests; None without any.
    pub fn of(requests: &'a [String]) -> Option<Plots<'a>> {
        (!requests.is_empty()).then_some(Plots { requests, pictures: Vec::new() })
    }
}

impl Viewer for Plots<'_> {
    fn plan(&mut self, results: &[Binding], is_writer: bool) -> Result<Vec<usize>, RunError> {
        for request in self.requests {
            let picture = Picture::plan(results, request)?;
            if self.pictures.iter().any(|earlier| resolve(&earlier.path) == resolve(&picture.path)) {
                let message = format!("`{}` would be written twice", picture.path.display());
                return Err(RunError::new(RunCode::E0702, message));
            }
            if is_writer {
                check_writable(&picture.path)?;
            }
            self.pictures.push(picture);
        }
        let panels = self.pictures.iter().flat_map(|picture| &picture.panels);
        Ok(panels.flat_map(|panel| panel.drawing.arrays()).collect())
    }

    fn view(&self, _: &[Binding], arrays: &[Option<HostArray>]) -> Result<(), RunError> {
        self.pictures.iter().try_for_each(|picture| picture.write(arrays))
    }
}

impl Picture {
    fn plan(results: &[Binding], request: &str) -> Result<Picture, RunError> {
        let (name, path) = match request.split_once('=') {
            Some((name, path)) => (Some(name.trim()), PathBuf::from(path.trim())),
            None => (None, PathBuf::from(request.trim())),
        };
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let format = match extension.to_ascii_lowercase().as_str() {
            "svg" => PictureFormat::Svg,
            "png" => PictureFormat::Png,
            _ => {
                let message = format!("`--plot {request}` does not name a .svg or .png file");
                let help = "write --plot FILE.svg, --plot FILE.png or --plot NAME=FILE.svg";
                return Err(RunError::new(RunCode::E0702, message).with_help(help));
            }
        };
        let leaves = Leaves::of(results);
        let (title, chosen) = leaves.chosen(name)?;
        let panels = leaves.panels(&title, &chosen)?;
        if panels.len() > MAX_PANELS {
            let message = format!("the results have {} parts, but a picture has at most {MAX_PANELS}", panels.len());
            return Err(RunError::new(RunCode::E0702, message).with_help("draw one of them with --plot NAME=FILE.svg"));
        }
        Ok(Picture { path, format, panels })
    }

    fn write(&self, arrays: &[Option<HostArray>]) -> Result<(), RunError> {
        let unwritable = |why: &str| {
            let message = format!("cannot draw `{}`: {why}", self.path.display());
            RunError::new(RunCode::E0704, message)
        };
        let panels: Option<Vec<Panel>> = self.panels.iter().map(|panel| panel.drawn(arrays)).collect();
        let panels = panels.ok_or_else(|| RunError::internal("a result to draw was not gathered"))?;
        if !panels.iter().any(|panel| panel.content.is_drawable()) {
            return Err(unwritable("there are no finite elements").with_help("print them without --plot"));
        }
        let bytes = match self.format {
            PictureFormat::Svg => svg(&panels).map(String::into_bytes),
            PictureFormat::Png => png(&panels),
        };
        let bytes = bytes.map_err(|error| unwritable(&error.to_string()))?;
        write_file(&self.path, |out| out.write_all(&bytes))
    }
}

impl Drawing {
    fn arrays(&self) -> Vec<usize> {
        match self {
            Drawing::Line(array) | Drawing::Image(array, _) => vec![*array],
            Drawing::Points(arrays, _) => arrays.to_vec(),
        }
    }
}

impl PlannedPanel {
    /// The panel with its elements; None if an array is missing.
    fn drawn(&self, arrays: &[Option<HostArray>]) -> Option<Panel> {
        let values = |array: usize| Some(arrays.get(array)?.as_ref()?.numbers().collect::<Vec<f64>>());
        let content = match &self.drawing {
            Drawing::Line(array) => Content::Line(values(*array)?),
            Drawing::Image(array, [rows, columns]) => {
                Content::Image { rows: *rows, columns: *columns, values: values(*array)? }
            }
            Drawing::Points([x, y], names) => Content::Points { x: values(*x)?, y: values(*y)?, names: names.clone() },
        };
        Some(Panel { title: self.title.clone(), content })
    }
}

/// The results of a program, which are the leaves of its tuple or struct.
struct Leaves<'a> {
    results: Vec<WholeResult>,
    bindings: &'a [Binding],
}

/// A leaf, with its path in the struct or tuple of which it is a part; empty for a single array.
type Leaf = (String, usize);

impl Leaves<'_> {
    fn of(bindings: &[Binding]) -> Leaves<'_> {
        Leaves { results: whole(bindings), bindings }
    }

    /// The title of the results with a name, or of all, and these results.
    fn chosen(&self, name: Option<&str>) -> Result<(String, Vec<Leaf>), RunError> {
        let Some(name) = name else {
            let all = self.results.iter().enumerate().map(|(index, result)| (result.name.clone(), index)).collect();
            return match self.results.as_slice() {
                [one] if one.name == "0" => Ok((String::new(), vec![(String::new(), 0)])),
                [] => Err(RunError::new(RunCode::E0702, "the program has no result to draw")
                    .with_help("end `main` with the value")),
                _ => Ok((String::new(), all)),
            };
        };
        Ok(match named(&self.results, name, "write --plot FILE.svg")? {
            (Some(exact), _) => (name.to_string(), vec![(String::new(), exact)]),
            (None, parts) => (name.to_string(), parts),
        })
    }

    /// The panels of these leaves: one for each that can be drawn, and for two vectors of one length.
    fn panels(&self, title: &str, leaves: &[Leaf]) -> Result<Vec<PlannedPanel>, RunError> {
        let mut panels = Vec::new();
        self.add(title, leaves, &mut panels);
        // A scalar beside arrays, such as a number of steps, needs no panel.
        let is_scalar = |panel: &PlannedPanel| {
            panel.drawing.arrays().iter().all(|&array| self.bindings[array].layout.dims.is_empty())
        };
        if !panels.iter().all(is_scalar) {
            panels.retain(|panel| !is_scalar(panel));
        }
        if panels.is_empty() {
            let reasons = leaves.iter().find_map(|leaf| self.drawing(leaf.1).err());
            return Err(reasons.unwrap_or_else(|| RunError::internal("a result is neither drawn nor refused")));
        }
        Ok(panels)
    }

    fn add(&self, title: &str, leaves: &[Leaf], panels: &mut Vec<PlannedPanel>) {
        if let Some(drawing) = self.pair(leaves) {
            panels.push(PlannedPanel { title: title.to_string(), drawing });
            return;
        }
        let first = |leaf: &Leaf| leaf.0.split('.').next().unwrap_or_default().to_string();
        for group in leaves.chunk_by(|a, b| first(a) == first(b)) {
            let field = first(&group[0]);
            let joined = [title, &field].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(".");
            match group {
                [(path, index)] if *path == field => {
                    panels.extend(self.drawing(*index).ok().map(|drawing| PlannedPanel { title: joined, drawing }));
                }
                _ => {
                    let inner =
                        |(path, index): &Leaf| (path[field.len()..].trim_start_matches('.').to_string(), *index);
                    self.add(&joined, &group.iter().map(inner).collect::<Vec<_>>(), panels);
                }
            }
        }
    }

    /// The points of two vectors of one length that are a struct or tuple.
    fn pair(&self, leaves: &[Leaf]) -> Option<Drawing> {
        let [x, y] = leaves else { return None };
        let vector = |leaf: &Leaf| match self.drawing(leaf.1) {
            Ok(Drawing::Line(array)) if !leaf.0.contains('.') => {
                self.bindings[array].layout.dims.first().map(|dim| (array, dim.size))
            }
            Ok(Drawing::Line(_) | Drawing::Image(..) | Drawing::Points(..)) | Err(_) => None,
        };
        let ((x_array, length), (y_array, other)) = (vector(x)?, vector(y)?);
        let name =
            |leaf: &Leaf| if leaf.0.starts_with(|c: char| c.is_ascii_digit()) { "" } else { &leaf.0 }.to_string();
        (length == other).then(|| Drawing::Points([x_array, y_array], [name(x), name(y)]))
    }

    /// The drawing of a result by itself, or the reason why there is none.
    fn drawing(&self, index: usize) -> Result<Drawing, RunError> {
        let WholeResult { name, ty, array, imaginary, .. } = &self.results[index];
        let refused = |why: &str, help: &str| {
            let of = if self.results.len() == 1 { "the result".to_string() } else { list([name.as_str()].into_iter()) };
            let message = format!("{of} cannot be drawn: `{ty}` {why}");
            Err(RunError::new(RunCode::E0702, message).with_help(help))
        };
        let layout = &self.bindings[*array].layout;
        let sizes: Vec<usize> = layout.dims.iter().map(|dim| dim.size).collect();
        if imaginary.is_some() {
            return refused("is complex", "return `abs(z)` or `real(z)`");
        }
        if layout.dtype == DType::Key {
            return refused("is a key of random numbers", "return numbers, such as `uniform(k, f32[100])`");
        }
        if sizes.contains(&0) {
            return refused("has no elements", "return an array with elements");
        }
        match sizes.as_slice() {
            [] | [_] => Ok(Drawing::Line(*array)),
            [rows, columns] => Ok(Drawing::Image(*array, [*rows, *columns])),
            _ => refused(
                &format!("has rank {}", sizes.len()),
                "return a part of rank 1 or 2, such as `x[0]`, or write it with --out FILE.npy",
            ),
        }
    }
}
