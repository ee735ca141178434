//! Turns arguments of the command line into the sources of the program's parameters.
//!
//! `--arg x=@x.npy`, `--arg x=[1,2,3]`, `--arg x=uniform:7`; a leaf of a struct by its path, `--arg p.w=@w.npy`, or the whole
//! struct from an archive, `--arg p=@p.npz` or `--arg p=@p.safetensors`; all parameters from one archive, `--args all.npz`. Shape and
//! element type must match the parameter's.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::data::archive::{Archive, check_members, holds, is_below, unknown_parameter};
use crate::data::array::BlockSource;
use crate::data::literal::Literal;
use crate::data::process_files::{LocalBlocks, Placeholder, ProcessFile, ProcessFilesSource};
use crate::data::random::{self, Distribution, RandomSource};
use crate::data::second_names::{dotted, under_second_names};
use crate::errors::suggest;
use crate::errors::trap::{RunCode, RunError};
use crate::io::generated::{GeneratedPattern, GeneratedSource};
use crate::io::in_file::ElementsInFile;
use crate::io::npy::NpySource;
use spmdc_abi::{Binding, DType, Plane};

/// One `--arg`: `path=value`.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// A parameter, or a path into one: `p.w`.
    pub path: String,
    /// The value as it was written, for messages.
    pub text: String,
    value: ArgumentValue,
}

#[derive(Clone, Debug, PartialEq)]
enum ArgumentValue {
    File { path: PathBuf, member: Option<String> },
    Literal(Literal),
    Zeros,
    Ones,
    Iota,
    Full(Literal),
    Random(Distribution, i64),
}

const FORMS: &str = "write @FILE.npy, @FILE.npz:KEY, @FILE.safetensors:KEY, a number, true, false, a list such as \
                     [1,2,3], or one of zeros, ones, iota, full:VALUE, uniform:SEED, normal:SEED";

impl Argument {
    /// Reads `NAME=VALUE`. An error (E0702) for text without a name or with an unknown value.
    pub fn parse(text: &str) -> Result<Argument, RunError> {
        let (path, value) = text.split_once('=').filter(|(path, _)| !path.trim().is_empty()).ok_or_else(|| {
            RunError::new(RunCode::E0702, format!("`--arg {text}` does not name a parameter"))
                .with_help("write --arg NAME=VALUE")
        })?;
        let (path, value) = (path.trim(), value.trim());
        let parsed = ArgumentValue::parse(value).map_err(|why| {
            RunError::new(RunCode::E0702, format!("`--arg {text}` has an invalid value: {why}")).with_help(FORMS)
        })?;
        Ok(Argument { path: path.to_string(), text: value.to_string(), value: parsed })
    }

    /// The file of the value, if it is in one.
    pub fn file(&self) -> Option<&Path> {
        match &self.value {
            ArgumentValue::File { path, .. } => Some(path),
            ArgumentValue::Literal(_)
            | ArgumentValue::Zeros
            | ArgumentValue::Ones
            | ArgumentValue::Iota
            | ArgumentValue::Full(_)
            | ArgumentValue::Random(..) => None,
        }
    }

    /// `--arg NAME=@FILE:NAME`.
    fn of_member(file: &Path, name: &str) -> Argument {
        let value = ArgumentValue::File { path: file.to_path_buf(), member: Some(name.to_string()) };
        Argument { path: name.to_string(), text: format!("@{}:{name}", file.display()), value }
    }
}

impl ArgumentValue {
    fn parse(text: &str) -> Result<ArgumentValue, String> {
        if let Some(file) = text.strip_prefix('@') {
            return ArgumentValue::parse_file(file);
        }
        let (word, rest) = match text.split_once(':') {
            Some((word, rest)) => (word, Some(rest)),
            None => (text, None),
        };
        let seed = || {
            let seed: Result<i64, _> = rest.unwrap_or_default().parse();
            seed.map_err(|_| format!("`{word}` requires an integer seed, as in {word}:42"))
        };
        match (word, rest) {
            ("zeros", None) => Ok(ArgumentValue::Zeros),
            ("ones", None) => Ok(ArgumentValue::Ones),
            ("iota", None) => Ok(ArgumentValue::Iota),
            ("full", Some(value)) => match Literal::parse(value)? {
                literal if literal.shape.is_empty() => Ok(ArgumentValue::Full(literal)),
                _ => Err("`full` requires a single number, as in full:1.5".to_string()),
            },
            ("full", None) => Err("`full` requires a number, as in full:1.5".to_string()),
            ("uniform", _) => Ok(ArgumentValue::Random(Distribution::Uniform, seed()?)),
            ("normal", _) => Ok(ArgumentValue::Random(Distribution::Normal, seed()?)),
            _ => Literal::parse(text).map(ArgumentValue::Literal).map_err(|why| {
                match suggest::nearest(word, ["zeros", "ones", "iota", "full", "uniform", "normal"]) {
                    Some(near) => format!("{why}; did you mean `{near}`?"),
                    None => why,
                }
            }),
        }
    }

    fn parse_file(file: &str) -> Result<ArgumentValue, String> {
        for ending in [".npz", ".safetensors"] {
            if let Some(at) = file.rfind(&format!("{ending}:")) {
                let (path, member) = file.split_at(at + ending.len());
                return Ok(ArgumentValue::File { path: PathBuf::from(path), member: Some(member[1..].to_string()) });
            }
        }
        if file.is_empty() {
            return Err("expected the name of a file after `@`".to_string());
        }
        Ok(ArgumentValue::File { path: PathBuf::from(file), member: None })
    }

    /// The value as the source of one parameter, which must have the parameter's type.
    fn source(&self, argument: &Argument, param: &Binding) -> Result<Source, RunError> {
        let dtype = param.layout.dtype;
        let shape: Vec<usize> = param.layout.dims.iter().map(|dim| dim.size).collect();
        let refused =
            |why: String| RunError::new(RunCode::E0701, format!("`{}` has type {}, but {why}", param.name, param.ty));
        let generated = |pattern| -> Source { Box::new(GeneratedSource { dtype, shape: shape.clone(), pattern }) };
        let constant = |literal: &Literal| match literal.to_array(dtype) {
            Ok(element) => Ok(generated(GeneratedPattern::Constant(element.bytes))),
            Err(why) => Err(refused(why)),
        };
        match self {
            ArgumentValue::File { path, member } => read_file(path, member.as_deref(), param),
            ArgumentValue::Literal(literal) => {
                let array = literal.to_array(dtype).map_err(refused)?;
                check_shape(array, &argument.text, param).map_err(|error| {
                    if !literal.shape.is_empty() {
                        return error;
                    }
                    let (name, text) = (&param.name, &argument.text);
                    error.with_help(format!("for an array of equal numbers, write --arg {name}=full:{text}"))
                })
            }
            ArgumentValue::Zeros if dtype == DType::Key => {
                Err(refused("a key is written as a seed, as in --arg k=42".to_string()))
            }
            ArgumentValue::Zeros => Ok(generated(GeneratedPattern::Constant(vec![0; dtype.size()]))),
            ArgumentValue::Ones if dtype == DType::Bool => constant(&Literal::parse("true").map_err(refused)?),
            ArgumentValue::Ones => constant(&Literal::parse("1").map_err(refused)?),
            ArgumentValue::Iota if matches!(dtype, DType::Bool | DType::Key) => {
                Err(refused(format!("`iota` cannot generate values of type {}", dtype.name())))
            }
            ArgumentValue::Iota => Ok(generated(GeneratedPattern::Iota)),
            ArgumentValue::Full(literal) => constant(literal),
            ArgumentValue::Random(distribution, seed) if dtype.is_float() => {
                Ok(Box::new(RandomSource { key: random::key(*seed), distribution: *distribution, dtype, shape }))
            }
            ArgumentValue::Random(..) => Err(refused(format!("`{}` generates floats only", argument.text))),
        }
    }
}

impl ArgumentValue {
    /// The value as the sources of both planes of a complex parameter.
    fn planes(&self, argument: &Argument, param: &Binding) -> Result<[Source; 2], RunError> {
        let dtype = param.layout.dtype;
        let shape: Vec<usize> = param.layout.dims.iter().map(|dim| dim.size).collect();
        let refused =
            |why: String| RunError::new(RunCode::E0701, format!("`{}` has type {}, but {why}", param.name, param.ty));
        let generated = |pattern| -> Source { Box::new(GeneratedSource { dtype, shape: shape.clone(), pattern }) };
        let zeros = || generated(GeneratedPattern::Constant(vec![0; dtype.size()]));
        let constant = |literal: &Literal| -> Result<[Source; 2], RunError> {
            let planes = literal.to_planes(dtype).map_err(&refused)?;
            Ok(planes.map(|plane| generated(GeneratedPattern::Constant(plane.bytes))))
        };
        match self {
            ArgumentValue::File { path, member } => {
                let (source, shown) = open_file(path, member.as_deref(), param)?;
                if !source.is_complex() {
                    return Err(wrong_type(&source, false, &shown, param));
                }
                check_sizes(&source, &shown, param)?;
                let whole = Arc::new(Mutex::new(source));
                Ok(Plane::BOTH.map(|plane| -> Source {
                    Box::new(PlaneSource { whole: Arc::clone(&whole), dtype, shape: shape.clone(), plane })
                }))
            }
            ArgumentValue::Literal(literal) => {
                let planes = literal.to_planes(dtype).map_err(refused)?;
                if literal.shape != shape {
                    let name = param.layout.dtype.complex_name().unwrap_or_default();
                    let given = sized(name, &literal.shape);
                    let why = format!("`{}` has type {}, but `{}` is {given}", param.name, param.ty, argument.text);
                    return Err(RunError::new(RunCode::E0701, why));
                }
                Ok(planes.map(|plane| -> Source { Box::new(plane) }))
            }
            ArgumentValue::Zeros => Ok([zeros(), zeros()]),
            ArgumentValue::Ones => constant(&Literal::parse("1").map_err(refused)?),
            ArgumentValue::Full(literal) => constant(literal),
            ArgumentValue::Iota => Ok([generated(GeneratedPattern::Iota), zeros()]),
            ArgumentValue::Random(Distribution::Normal, seed) => {
                // As JAX draws them: each part under a key of its own, so that the mean of the squared magnitudes is 1.
                let part = |key| -> Source {
                    let normal = RandomSource { key, distribution: Distribution::Normal, dtype, shape: shape.clone() };
                    Box::new(HalvedVariance(normal))
                };
                Ok(random::split(random::key(*seed)).map(part))
            }
            ArgumentValue::Random(Distribution::Uniform, _) => Err(refused(format!(
                "`{}` generates real numbers only; `normal` generates complex numbers",
                argument.text
            ))),
        }
    }
}

/// The source of a parameter's elements.
pub type Source = Box<dyn BlockSource + Send>;

/// The sources of all parameters, in their order.
pub fn bind(params: &[Binding], arguments: &[Argument]) -> Result<Vec<Source>, RunError> {
    bind_all(params, arguments, None, None)
}

/// As [`bind_all`], for a program without parameters. It reads no file, so it refuses any archive.
pub(crate) fn bind_none(arguments: &[Argument], archive: Option<&Path>) -> Result<Vec<Source>, RunError> {
    check_names(arguments)?;
    if let Some(argument) = arguments.first() {
        return Err(unknown_parameter(&[], &argument.path));
    }
    match archive {
        None => Ok(Vec::new()),
        Some(file) => {
            let why = format!("the program has no parameters for the arrays of `{}`", file.display());
            Err(RunError::new(RunCode::E0702, why).with_help("leave out `--args`"))
        }
    }
}

/// As [`bind`]. Parameters without an argument are read from the archive, each from the array with its name. Files of one process or device
/// have these blocks.
pub fn bind_all(
    params: &[Binding],
    arguments: &[Argument],
    archive: Option<&Path>,
    blocks: Option<&LocalBlocks>,
) -> Result<Vec<Source>, RunError> {
    let mut sources: Vec<Option<Source>> = params.iter().map(|_| None).collect();
    check_names(arguments)?;
    let second = under_second_names(params);
    // Each argument with the parameters under the names of which it has one.
    let mut named: Vec<(Argument, &[Binding])> = Vec::new();
    for argument in arguments {
        let has = |params: &[Binding], path: &str| {
            params.iter().any(|param| param.name == path || is_below(&param.name, path))
        };
        let path = dotted(&argument.path);
        if has(params, &argument.path) {
            named.push((argument.clone(), params));
        } else if has(params, &path) {
            named.push((Argument { path: path.into_owned(), ..argument.clone() }, params));
        } else if has(&second, &path) {
            named.push((Argument { path: path.into_owned(), ..argument.clone() }, &second));
        } else {
            return Err(unknown_parameter(params, &argument.path));
        }
    }
    // Whole structs first: a leaf with an argument of its own overrides them.
    for (argument, params) in &named {
        let leaves: Vec<usize> = (0..params.len())
            .filter(|&i| is_below(&params[i].name, &argument.path) && params[i].plane != Some(Plane::Imaginary))
            .collect();
        bind_struct(params, &leaves, (argument, blocks), &mut sources)?;
    }
    let mut given: Vec<Option<&str>> = vec![None; params.len()];
    for ((argument, params), asked) in named.iter().zip(arguments) {
        if let Some(i) = params.iter().position(|param| param.name == argument.path) {
            if let Some(earlier) = given[i].replace(&asked.path) {
                let why = format!("`{}` is given twice, also as `{earlier}`", asked.path);
                return Err(RunError::new(RunCode::E0702, why));
            }
            give((argument, blocks), params, i, &mut sources)?;
        }
    }
    if let Some(file) = archive {
        bind_rest([params, &second], file, blocks, &mut sources)?;
    }
    let missing: Vec<String> = params
        .iter()
        .zip(&sources)
        .filter(|(param, source)| source.is_none() && param.plane != Some(Plane::Imaginary))
        .map(|(param, _)| format!("`{}: {}`", param.name, param.ty))
        .collect();
    if let Some(first) = params.iter().zip(&sources).find(|(_, source)| source.is_none()) {
        let verb = if missing.len() == 1 { "argument is" } else { "arguments are" };
        let name = &first.0.name;
        let place = archive.map_or_else(String::new, |file| format!(" from `{}`", file.display()));
        let why = format!("{} {verb} missing{place}: {}", missing.len(), missing.join(", "));
        return Err(RunError::new(RunCode::E0702, why).with_help(format!(
            "pass a value with --arg {name}=VALUE, such as --arg {name}=@FILE.npy or --arg {name}=zeros"
        )));
    }
    debug_assert!(sources.len() == params.len() && sources.iter().all(Option::is_some), "every parameter has a value");
    Ok(sources.into_iter().flatten().collect())
}

/// Checks that no name is given twice.
fn check_names(arguments: &[Argument]) -> Result<(), RunError> {
    for (i, argument) in arguments.iter().enumerate() {
        if arguments[..i].iter().any(|earlier| earlier.path == argument.path) {
            return Err(RunError::new(RunCode::E0702, format!("`{}` is given twice", argument.path)));
        }
    }
    Ok(())
}

/// Sets the source of a parameter, or of both planes of a complex one.
fn give(
    (argument, blocks): (&Argument, Option<&LocalBlocks>),
    params: &[Binding],
    at: usize,
    sources: &mut [Option<Source>],
) -> Result<(), RunError> {
    if let ArgumentValue::File { path, member } = &argument.value
        && let (Some(which), Some(blocks)) = (Placeholder::of(path), blocks)
    {
        let files = blocks.of_param(at, &params[at], path, which);
        return give_pieces((argument, member.as_ref()), files, params, at, sources);
    }
    if params[at].plane.is_none() {
        sources[at] = Some(argument.value.source(argument, &params[at])?);
        return Ok(());
    }
    debug_assert_eq!(params.get(at + 1).and_then(|other| other.plane), Some(Plane::Imaginary), "planes come in pairs");
    for (source, plane) in sources[at..].iter_mut().zip(argument.value.planes(argument, &params[at])?) {
        *source = Some(plane);
    }
    Ok(())
}

/// As [`give`], from the files of this process.
fn give_pieces(
    (argument, member): (&Argument, Option<&String>),
    files: Vec<ProcessFile>,
    params: &[Binding],
    at: usize,
    sources: &mut [Option<Source>],
) -> Result<(), RunError> {
    let planes = if params[at].plane.is_none() { 1 } else { 2 };
    let own = &params[at..at + planes];
    if own.iter().any(|param| param.place.is_none()) {
        let why = format!("the stream `{}` must be read from a single file", params[at].name);
        return Err(
            RunError::new(RunCode::E0702, why).with_help("every process reads only the rows that its devices use")
        );
    }
    let mut pieces: Vec<Vec<(ProcessFile, Source)>> = own.iter().map(|_| Vec::new()).collect();
    for file in files {
        let value = ArgumentValue::File { path: file.path.clone(), member: member.cloned() };
        let argument = Argument { value, ..argument.clone() };
        let part: Vec<Binding> = own.iter().map(|param| file.param(param)).collect();
        let mut found: Vec<Option<Source>> = part.iter().map(|_| None).collect();
        give((&argument, None), &part, 0, &mut found)?;
        for (pieces, source) in pieces.iter_mut().zip(found) {
            let source = source.ok_or_else(|| RunError::internal("a file holds no array"))?;
            pieces.push((file.clone(), source));
        }
    }
    for ((source, pieces), param) in sources[at..].iter_mut().zip(pieces).zip(own) {
        let shape = param.layout.dims.iter().map(|dim| dim.size).collect();
        *source = Some(Box::new(ProcessFilesSource { dtype: param.layout.dtype, shape, pieces }));
    }
    Ok(())
}

fn bind_struct(
    params: &[Binding],
    leaves: &[usize],
    (argument, blocks): (&Argument, Option<&LocalBlocks>),
    sources: &mut [Option<Source>],
) -> Result<(), RunError> {
    if leaves.is_empty() {
        return Ok(());
    }
    let path = &argument.path;
    match &argument.value {
        ArgumentValue::File { path: file, member: None } if Archive::is_one(file) => {
            let which = Placeholder::of(file).filter(|_| blocks.is_some());
            let piece =
                which.zip(blocks).map(|(which, blocks)| blocks.of_param(leaves[0], &params[leaves[0]], file, which));
            let shown = piece.as_ref().and_then(|files| Some(files.first()?.path.clone()));
            // A process without devices of the array reads nothing.
            let Some(shown) = (if piece.is_some() { shown } else { Some(file.clone()) }) else {
                return leaves.iter().try_for_each(|&leaf| give((argument, blocks), params, leaf, sources));
            };
            let archive = Archive::open(&shown)?;
            let names = archive.members_of(params, leaves, path, &shown)?;
            debug_assert_eq!(names.len(), leaves.len(), "every leaf has an array");
            for (&leaf, name) in leaves.iter().zip(&names) {
                match which {
                    None => give_member((&archive, file), name, params, leaf, sources)?,
                    Some(_) => give((&Argument::of_member(file, name), blocks), params, leaf, sources)?,
                }
            }
        }
        ArgumentValue::Zeros | ArgumentValue::Ones | ArgumentValue::Full(_) => {
            for &leaf in leaves {
                give((argument, blocks), params, leaf, sources)?;
            }
        }
        ArgumentValue::File { .. } | ArgumentValue::Literal(_) | ArgumentValue::Iota | ArgumentValue::Random(..) => {
            let fields: Vec<String> = leaves.iter().map(|&leaf| format!("`{}`", params[leaf].name)).collect();
            return Err(RunError::new(RunCode::E0701, format!("`{path}` has several parts: {}", fields.join(", ")))
                .with_help(format!("pass each part by itself, or all of them with --arg {path}=@FILE.npz")));
        }
    }
    Ok(())
}

/// Sets the source of a parameter to an array of an open archive.
fn give_member(
    (archive, file): (&Archive, &Path),
    name: &str,
    params: &[Binding],
    at: usize,
    sources: &mut [Option<Source>],
) -> Result<(), RunError> {
    if params[at].plane.is_some() {
        return give((&Argument::of_member(file, name), None), params, at, sources);
    }
    let absent = || RunError::internal(format!("`{}` lost its array `{name}`", file.display()));
    let source = archive.array(name)?.ok_or_else(absent)?;
    sources[at] = Some(check_type(source, &format!("{}:{name}", file.display()), &params[at])?);
    Ok(())
}

/// Sets the sources of all parameters that have none to the arrays with their names, or their second names, in an archive. A parameter
/// without an array keeps no source. E0702 if an array has the name of no parameter.
fn bind_rest(
    [params, second]: [&[Binding]; 2],
    file: &Path,
    blocks: Option<&LocalBlocks>,
    sources: &mut [Option<Source>],
) -> Result<(), RunError> {
    let rest: Vec<usize> =
        (0..params.len()).filter(|&at| sources[at].is_none() && params[at].plane != Some(Plane::Imaginary)).collect();
    debug_assert_eq!(sources.len(), params.len(), "every parameter has a place for its source");
    let Some((which, blocks)) = Placeholder::of(file).zip(blocks) else {
        let archive = Archive::open(file)?;
        check_members([params, second], &archive, file)?;
        let names = archive.names();
        let by_name: BTreeMap<&str, &String> = names.iter().map(|name| (name.as_str(), name)).collect();
        let by_path: BTreeMap<Cow<'_, str>, &String> = names.iter().map(|name| (dotted(name), name)).collect();
        for at in rest {
            let own = by_name.get(params[at].name.as_str());
            let path = || by_path.get(params[at].name.as_str()).or_else(|| by_path.get(second[at].name.as_str()));
            if let Some(name) = own.or_else(path) {
                give_member((&archive, file), name, params, at, sources)?;
            }
        }
        return Ok(());
    };
    // A file of one device has only the parameters of its mesh.
    let mut files = BTreeSet::new();
    for at in rest {
        files.extend(blocks.of_param(at, &params[at], file, which).into_iter().map(|piece| piece.path));
        give((&Argument::of_member(file, &params[at].name), Some(blocks)), params, at, sources)?;
    }
    files.iter().try_for_each(|file| check_members([params, second], &Archive::open(file)?, file))
}

fn read_file(path: &Path, member: Option<&str>, param: &Binding) -> Result<Source, RunError> {
    let (source, shown) = open_file(path, member, param)?;
    check_type(source, &shown, param)
}

/// The array in a file for this parameter, and its name for messages.
fn open_file(path: &Path, member: Option<&str>, param: &Binding) -> Result<(NpySource, String), RunError> {
    let shown = path.display();
    if !Archive::is_one(path) {
        return Ok((NpySource::open(path)?, shown.to_string()));
    }
    let archive = Archive::open(path)?;
    let names = archive.names();
    let name = match (member, names.as_slice()) {
        (Some(member), _) => member,
        (None, [only]) => only,
        (None, names) if names.contains(&param.name) => &param.name,
        (None, _) => {
            return Err(RunError::new(
                RunCode::E0702,
                format!("`{shown}` is an archive; name the array for `{}`", param.name),
            )
            .with_help(format!("write @{shown}:KEY; {}", holds(&archive))));
        }
    };
    let source = archive.array(name)?.ok_or_else(|| {
        let error = RunError::new(RunCode::E0703, format!("`{shown}` has no array `{name}`"));
        match suggest::nearest(name, names.iter().map(String::as_str)) {
            Some(near) => error.with_help(format!("did you mean `{near}`?")),
            None => error.with_help(holds(&archive)),
        }
    })?;
    let shown = format!("{shown}:{name}");
    Ok((source, shown))
}

/// Checks that the source has the parameter's type. Keys are stored as pairs of `u32`.
fn check_type(source: NpySource, shown: &str, param: &Binding) -> Result<Source, RunError> {
    if source.is_complex() {
        return Err(wrong_type(&source, false, shown, param));
    }
    let is_key = param.layout.dtype == DType::Key && source.dtype() == DType::U32 && source.shape().last() == Some(&2);
    if is_key {
        let shape = source.shape()[..source.shape().len() - 1].to_vec();
        return check_shape(KeySource { words: source, shape }, shown, param);
    }
    check_shape(source.taken_for(param.layout.dtype), shown, param)
}

fn check_shape<S: BlockSource + Send + 'static>(source: S, shown: &str, param: &Binding) -> Result<Source, RunError> {
    let sizes = || param.layout.dims.iter().map(|dim| dim.size);
    if source.dtype() == param.layout.dtype && sizes().eq(source.shape().iter().copied()) {
        return Ok(Box::new(source));
    }
    let given = type_text(source.dtype(), source.shape());
    Err(other_type(&given, source.dtype() == param.layout.dtype, shown, param))
}

/// E0701 for a file with an array of another type.
fn other_type(given: &str, has_dtype: bool, shown: &str, param: &Binding) -> RunError {
    let help = match has_dtype {
        true => format!("declare `{}: {given}`, or change constants in its sizes by `--set`", param.name),
        false => format!("declare `{}: {given}`, or convert the array before it is saved", param.name),
    };
    let message = format!("`{}` has type {}, but `{shown}` is {given}", param.name, param.ty);
    RunError::new(RunCode::E0701, message).with_help(help)
}

/// E0701 for an array of another type than the parameter, or of the same element type and another shape.
fn wrong_type(source: &NpySource, has_dtype: bool, shown: &str, param: &Binding) -> RunError {
    let complex = if source.is_complex() { source.dtype().complex_name() } else { None };
    let given = sized(complex.unwrap_or(source.dtype().name()), source.shape());
    other_type(&given, has_dtype, shown, param)
}

/// Checks that an array of complex numbers has the element type and the shape of the parameter.
fn check_sizes(source: &NpySource, shown: &str, param: &Binding) -> Result<(), RunError> {
    let sizes = param.layout.dims.iter().map(|dim| dim.size);
    match source.dtype() == param.layout.dtype && sizes.eq(source.shape().iter().copied()) {
        true => Ok(()),
        false => Err(wrong_type(source, source.dtype() == param.layout.dtype, shown, param)),
    }
}

/// A type without its sharding, as the language writes it: `f32[2, 3]`.
fn type_text(dtype: DType, shape: &[usize]) -> String {
    sized(dtype.name(), shape)
}

/// An element type with sizes, as the language writes it: `f32[2, 3]`.
pub(crate) fn sized(name: &str, shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    if sizes.is_empty() { name.to_string() } else { format!("{name}[{}]", sizes.join(", ")) }
}

/// A plane of an array of complex numbers, which both planes read.
struct PlaneSource {
    whole: Arc<Mutex<NpySource>>,
    dtype: DType,
    shape: Vec<usize>,
    plane: Plane,
}

impl BlockSource for PlaneSource {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read_block(&mut self, start: &[usize], len: &[usize], out: &mut [u8]) -> Result<(), RunError> {
        let size = self.dtype.size();
        let mut pairs = vec![0; 2 * out.len()];
        self.whole.lock().unwrap_or_else(PoisonError::into_inner).read_block(start, len, &mut pairs)?;
        let first = match self.plane {
            Plane::Real => 0,
            Plane::Imaginary => size,
        };
        for (part, pair) in out.chunks_exact_mut(size).zip(pairs.chunks_exact(2 * size)) {
            part.copy_from_slice(&pair[first..first + size]);
        }
        Ok(())
    }
}

/// Normal numbers divided by the square root of 2; by its reciprocal, as XLA does.
struct HalvedVariance(RandomSource);

impl BlockSource for HalvedVariance {
    fn dtype(&self) -> DType {
        self.0.dtype()
    }

    fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    fn read_block(&mut self, start: &[usize], len: &[usize], out: &mut [u8]) -> Result<(), RunError> {
        self.0.read_block(start, len, out)?;
        if self.0.dtype == DType::F64 {
            for element in out.as_chunks_mut::<8>().0 {
                *element = (f64::from_ne_bytes(*element) * (1.0 / std::f64::consts::SQRT_2)).to_ne_bytes();
            }
        } else {
            for element in out.as_chunks_mut::<4>().0 {
                *element = (f32::from_ne_bytes(*element) * (1.0 / std::f32::consts::SQRT_2)).to_ne_bytes();
            }
        }
        Ok(())
    }
}

/// An array of keys that is stored as `u32` words, two for each key.
struct KeySource {
    words: NpySource,
    shape: Vec<usize>,
}

impl BlockSource for KeySource {
    fn dtype(&self) -> DType {
        DType::Key
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read_block(&mut self, start: &[usize], len: &[usize], out: &mut [u8]) -> Result<(), RunError> {
        debug_assert_eq!(self.words.shape().last(), Some(&2), "a key is two words");
        self.words.read_block(&[start, &[0]].concat(), &[len, &[2]].concat(), out)
    }

    fn in_file(&mut self) -> Result<Option<ElementsInFile>, RunError> {
        // The words of a key are its bytes in order on every machine that reads words as they are.
        self.words.in_file()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::data::array::HostArray;
    use crate::io::npz::write_npz;
    use spmdc_abi::{Layout, LayoutDim, Place};

    fn param(name: &str, dtype: DType, shape: &[usize]) -> Binding {
        let dims = shape.iter().map(|&size| LayoutDim { size, axes: Vec::new() }).collect();
        let ty = type_text(dtype, shape);
        Binding {
            name: name.to_string(),
            second_name: None,
            ty,
            plane: None,
            layout: Layout { dtype, dims },
            place: Some(Place { arena: 0, offset: 0 }),
        }
    }

    fn bind_texts(params: &[Binding], texts: &[&str]) -> Result<Vec<Source>, RunError> {
        let arguments: Result<Vec<Argument>, RunError> = texts.iter().map(|text| Argument::parse(text)).collect();
        bind(params, &arguments?)
    }

    fn refusal(params: &[Binding], texts: &[&str]) -> RunError {
        bind_texts(params, texts).err().unwrap()
    }

    fn whole(source: &mut Source) -> Vec<u8> {
        let shape = source.shape().to_vec();
        let mut bytes = HostArray::zeros(source.dtype(), &shape).bytes;
        source.read_block(&vec![0; shape.len()], &shape, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn every_form_of_value_binds() {
        let params = [
            param("a", DType::U8, &[2]),
            param("b", DType::U8, &[2]),
            param("c", DType::U8, &[2]),
            param("d", DType::U8, &[2]),
            param("e", DType::F32, &[2]),
            param("k", DType::Key, &[]),
        ];
        let texts = ["e=uniform:42", "b=[7,8]", "a=iota", "c=full:9", "d=ones", "k=5"];
        let mut sources = bind_texts(&params, &texts).unwrap();
        let bytes: Vec<Vec<u8>> = sources.iter_mut().map(whole).collect();
        assert_eq!(bytes[..4], [[0, 1], [7, 8], [9, 9], [1, 1]]);
        assert_eq!(bytes[4][..4], 0.48870957f32.to_ne_bytes());
        assert_eq!(bytes[5], [0, 0, 0, 0, 5, 0, 0, 0]);
    }

    #[test]
    fn both_planes_of_complex_numbers_have_one_argument() {
        let planes = Plane::BOTH.map(|plane| Binding {
            ty: "c64[2]".to_string(),
            plane: Some(plane),
            ..param("z", DType::F32, &[2])
        });
        let numbers = |texts: &[&str]| -> [Vec<f32>; 2] {
            let mut sources = bind_texts(&planes, texts).unwrap();
            [0, 1].map(|plane| {
                whole(&mut sources[plane]).chunks_exact(4).map(|x| f32::from_ne_bytes(x.try_into().unwrap())).collect()
            })
        };
        assert_eq!(numbers(&["z=[1-2j,3]"]), [[1.0, 3.0], [-2.0, 0.0]]);
        assert_eq!(numbers(&["z=full:2j"]), [[0.0, 0.0], [2.0, 2.0]]);
        assert_eq!(numbers(&["z=iota"]), [[0.0, 1.0], [0.0, 0.0]]);
        // `jax.random.normal(jax.random.key(3), (2,), jnp.complex64)`
        assert_eq!(numbers(&["z=normal:3"]), [[-1.6817402, -1.206442], [-1.3740652, 0.07411618]]);
        for (text, why) in [
            ("z=uniform:3", "but `uniform:3` generates real numbers only"),
            ("z=1+2j", "`z` has type c64[2], but `1+2j` is c64"),
            ("z=[true,1]", "true is not an f32"),
        ] {
            let error = refusal(&planes, &[text]);
            assert!(error.code == RunCode::E0701 && error.message.contains(why), "{}", error.message);
        }
        assert_eq!(refusal(&planes, &[]).message, "1 argument is missing: `z: c64[2]`");
    }

    #[test]
    fn a_struct_comes_from_an_archive_and_a_leaf_may_differ() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.npz");
        let w = HostArray { dtype: DType::U8, shape: vec![2], bytes: vec![1, 2] };
        let b = HostArray { dtype: DType::U8, shape: vec![], bytes: vec![3] };
        write_npz(&path, &[("w", &w), ("layer.b", &b)]).unwrap();
        let params = [param("p.layer.b", DType::U8, &[]), param("p.w", DType::U8, &[2])];
        let archive = format!("p=@{}", path.display());
        let mut sources = bind_texts(&params, &["p.layer.b=4", &archive]).unwrap();
        assert_eq!(sources.iter_mut().map(whole).collect::<Vec<_>>(), [vec![4], vec![1, 2]]);
        let member = format!("x=@{}:layer.b", path.display());
        assert!(bind_texts(&[param("x", DType::U8, &[])], &[&member]).is_ok());

        let params = [param("p.w", DType::U8, &[2]), param("p.v", DType::U8, &[2])];
        let error = refusal(&params, &[&archive]);
        assert!(error.message.contains("`p.v: u8[2]` is missing"), "{}", error.message);
        assert_eq!(error.help.unwrap(), "it holds `w`, `layer.b`");
        for (leaf, code, message, help) in [
            ("p.layer.a", RunCode::E0702, "`p.layer.a: u8` is missing", "did you mean `layer.b`? it holds"),
            (
                "p.w",
                RunCode::E0702,
                "arrays that `p` does not have: `layer.b`",
                "the parts of `p` are `w`; to read only some",
            ),
        ] {
            let params = [param(leaf, DType::U8, if leaf == "p.w" { &[2] } else { &[] })];
            let error = refusal(&params, &[&archive]);
            assert!(error.code == code && error.message.contains(message), "{}", error.message);
            assert!(error.help.as_ref().unwrap().contains(help), "{:?}", error.help);
        }
        assert!(bind_texts(&[param("w", DType::U8, &[2])], &[&archive.replacen('p', "w", 1)]).is_ok());
        let error = refusal(&[param("x", DType::U8, &[2])], &[&archive.replacen('p', "x", 1)]);
        assert!(error.message.contains("is an archive; name the array for `x`"), "{}", error.message);
    }

    #[test]
    fn the_parameters_without_an_argument_come_from_an_archive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.npz");
        let w = HostArray { dtype: DType::U8, shape: vec![2], bytes: vec![1, 2] };
        let n = HostArray { dtype: DType::U8, shape: vec![], bytes: vec![3] };
        write_npz(&path, &[("p.w", &w), ("n", &n)]).unwrap();
        let bound = |params: &[Binding], texts: &[&str]| {
            let arguments: Vec<Argument> = texts.iter().map(|text| Argument::parse(text).unwrap()).collect();
            let sources = bind_all(params, &arguments, Some(&path), None);
            sources.map(|mut sources| sources.iter_mut().map(whole).collect::<Vec<_>>())
        };
        let params = [param("n", DType::U8, &[]), param("p.w", DType::U8, &[2])];
        assert_eq!(bound(&params, &[]).unwrap(), [vec![3], vec![1, 2]]);
        assert_eq!(bound(&params, &["p=zeros"]).unwrap(), [vec![3], vec![0, 0]]);
        let more = [&params[..], &[param("p.b", DType::U8, &[])]].concat();
        assert_eq!(bound(&more, &["p.b=4"]).unwrap(), [vec![3], vec![1, 2], vec![4]]);
        let missing = bound(&more, &[]).unwrap_err();
        assert_eq!(missing.message, format!("1 argument is missing from `{}`: `p.b: u8`", path.display()));
        // An array has the name of its parameter, the path of the parameter in JAX, or its position.
        let named = |name: &str, path: &str| Binding { second_name: Some(path.into()), ..param(name, DType::U8, &[]) };
        let w = HostArray { dtype: DType::U8, shape: vec![], bytes: vec![1] };
        write_npz(&path, &[("p['w'][0]", &w), ("arg1", &n), ("arg2", &n)]).unwrap();
        let params = [named("arg0", "p['w'][0]"), named("arg1", "q"), param("r", DType::U8, &[])];
        assert_eq!(bound(&params, &[]).unwrap(), [vec![1], vec![3], vec![3]]);
        write_npz(&path, &[("p.w", &HostArray { shape: vec![2], bytes: vec![1, 2], ..w }), ("n", &n)]).unwrap();
        let params = [param("n", DType::U8, &[]), param("p.w", DType::U8, &[2])];
        let extra = bound(&params[..1], &[]).unwrap_err();
        let words = "has arrays that are not parameters of the program: `p.w`";
        assert!(extra.code == RunCode::E0702 && extra.message.contains(words), "{}", extra.message);
        assert!(bind_none(&[], Some(&path)).is_err_and(|error| error.help.unwrap() == "leave out `--args`"));
    }

    #[test]
    fn a_wrong_type_shows_both() {
        let param = param("x", DType::F32, &[4, 8]);
        for (text, code, message) in [
            ("x=[1,2,3]", RunCode::E0701, "`x` has type f32[4, 8], but `[1,2,3]` is f32[3]"),
            ("x=2.5", RunCode::E0701, "`x` has type f32[4, 8], but `2.5` is f32"),
            ("x=true", RunCode::E0701, "`x` has type f32[4, 8], but true is not an f32"),
            ("x=full:1e50", RunCode::E0701, "`x` has type f32[4, 8], but 1e50 does not fit into f32"),
            ("x=@absent.npy", RunCode::E0703, "cannot read `absent.npy`: No such file or directory"),
            ("x=@a.safetensors:w", RunCode::E0703, "cannot read `a.safetensors`: No such file"),
        ] {
            let error = refusal(std::slice::from_ref(&param), &[text]);
            assert_eq!(error.code, code, "{text}");
            assert!(error.message.contains(message), "{}", error.message);
        }
    }

    #[test]
    fn missing_and_unknown_arguments_are_named() {
        let params = [param("weight", DType::F32, &[2]), param("p.b", DType::I32, &[]), param("x", DType::I32, &[])];
        let error = refusal(&params, &["x=1"]);
        assert_eq!(error.message, "2 arguments are missing: `weight: f32[2]`, `p.b: i32`");
        assert!(error.help.unwrap().contains("--arg weight=VALUE"));
        let error = refusal(&params, &["wieght=1"]);
        assert_eq!(error.help.as_deref(), Some("did you mean `weight`?"));
        assert!(refusal(&params, &["x=1", "x=2"]).message.contains("given twice"));
        assert!(refusal(&params, &["p=iota"]).message.contains("several parts: `p.b`"));
    }
}
