//! The C header of a library: one function, with an input array for each parameter and an output array for each result.

use std::fmt;
use std::path::Path;

use spmdc_abi::{Binding, Plane, Program};

/// The contents of a header, which `Display` writes.
pub struct LibraryHeader<'a> {
    pub program: &'a Program,
    pub source: &'a Path,
    pub library: &'a Path,
    pub function: &'a str,
}

impl fmt::Display for LibraryHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LibraryHeader { program, source, library, function } = self;
        let file_name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let guard = format!("SPMD_{}_H", function.to_uppercase());
        let mut names = UniqueNames::default();
        let params: Vec<String> = program.params.iter().map(|param| names.add(&of_plane(&param.name, param))).collect();
        let results: Vec<String> = program.results.iter().map(|result| names.add_result(result, program)).collect();
        writeln!(f, "/* `{}` of {}, compiled by spmdc. */", program.entry, file_name(source))?;
        writeln!(f, "#ifndef {guard}\n#define {guard}\n")?;
        writeln!(f, "#include <stdbool.h>\n#include <stdint.h>\n")?;
        writeln!(f, "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n")?;
        writeln!(f, "/*")?;
        writeln!(f, " * Runs the program once, on all of its devices:")?;
        writeln!(f, " *")?;
        for (name, binding) in params.iter().zip(&program.params) {
            writeln!(f, " *   {name}: {}{}", part_of(binding), binding.ty)?;
        }
        for (name, binding) in results.iter().zip(&program.results) {
            writeln!(f, " *   {name}, which is filled: {}{}", part_of(binding), binding.ty)?;
        }
        writeln!(f, " *")?;
        writeln!(
            f,
            " * Arrays are whole and row-major; floats of less than 32 bits are their bits, a key is two words. Returns 0, or another"
        )?;
        writeln!(
            f,
            " * number after an error, which spmd_error() describes. The first call loads the program, which stays"
        )?;
        writeln!(f, " * loaded; calls from several threads take turns. To be linked with")?;
        writeln!(f, " *")?;
        writeln!(f, " *   cc ... {} -lpthread -ldl -lm", file_name(library))?;
        writeln!(f, " */")?;
        let inputs = params.iter().zip(&program.params).map(|(name, param)| format!("const {} *{name}", c_type(param)));
        let outputs = results.iter().zip(&program.results).map(|(name, result)| format!("{} *{name}", c_type(result)));
        let all: Vec<String> = inputs.chain(outputs).collect();
        let list = if all.is_empty() { String::from("void") } else { all.join(", ") };
        writeln!(f, "int {function}({list});\n")?;
        writeln!(f, "/* What went wrong in the last call of this thread, or an empty text. */")?;
        writeln!(f, "const char *spmd_error(void);\n")?;
        writeln!(f, "#ifdef __cplusplus\n}}\n#endif\n\n#endif")
    }
}

/// The part of an array of complex numbers that a binding is.
fn part_of(binding: &Binding) -> &'static str {
    match binding.plane {
        None => "",
        Some(Plane::Real) => "the real parts of ",
        Some(Plane::Imaginary) => "the imaginary parts of ",
    }
}

/// The type of an element.
fn c_type(binding: &Binding) -> &'static str {
    binding.layout.dtype.in_c()
}

/// Distinct names for the parameters of one function.
#[derive(Default)]
struct UniqueNames(Vec<String>);

impl UniqueNames {
    fn add(&mut self, name: &str) -> String {
        let mut name = identifier(name);
        while self.0.contains(&name) {
            name.push('_');
        }
        self.0.push(name.clone());
        name
    }

    /// Results of a tuple are numbered, and a single one may have no name.
    fn add_result(&mut self, result: &Binding, program: &Program) -> String {
        match &result.name {
            _ if program.results.iter().all(|other| other.name == "0") => self.add(&of_plane("result", result)),
            name if name.starts_with(|first: char| first.is_ascii_digit()) => {
                self.add(&of_plane(&format!("result_{name}"), result))
            }
            name => self.add(&of_plane(name, result)),
        }
    }
}

/// The name of an array, which for a plane of complex numbers says which one it is.
fn of_plane(name: &str, binding: &Binding) -> String {
    binding.plane.map_or_else(|| name.to_string(), |plane| format!("{name}_{}", plane.name()))
}

/// The nearest identifier of C and C++.
pub fn identifier(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = name.chars().map(plain).collect();
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        name.insert(0, '_');
    }
    // The symbols of the runtime have this prefix.
    if RESERVED.contains(&name.as_str()) || name.starts_with("spmd_") {
        name.push('_');
    }
    name
}

/// Keywords of C and C++, and names that a program already uses.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "constexpr",
    "continue",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "main",
    "mutable",
    "namespace",
    "new",
    "not",
    "nullptr",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_c() {
        let made = ["x", "p.w", "float", "2d", "größe", "main", "spmd_sorts"].map(identifier);
        assert_eq!(made, ["x", "p_w", "float_", "_2d", "gr__e", "main_", "spmd_sorts_"]);
        let mut names = UniqueNames::default();
        assert_eq!([names.add("a.b"), names.add("a_b")], ["a_b", "a_b_"]);
    }
}
