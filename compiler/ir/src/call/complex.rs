//! The rules of shipped functions for complex numbers.
//!
//! An array of complex numbers is a pair of real arrays, its planes, until it reaches the IR, which has no complex element types. So every op,
//! pass and kernel is one of real numbers: `docs/design/0011-complex-numbers.md` has the reasons. The rule in the signature of a function
//! says how a call with complex arguments becomes calls with real ones.

/// How a call of a function with complex arguments becomes calls with real ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComplexRule {
    /// A call for each plane: these parameters are taken by planes, all others are the same for both.
    Planes(&'static [&'static str]),
    /// A sum of products, linear in each of these parameters: the results for all pairs of planes are added up.
    Products(&'static [&'static str]),
    /// The function of the same name in `complex.spmd`, with the same parameters or the first ones of them.
    Written,
    /// The function's own code, which knows complex numbers or calls functions that do.
    Own,
    /// A conversion, which the target type decides.
    Cast,
    /// Real numbers of a complex type, as `eye(3, dtype=c64)` makes them; complex arguments are an error.
    Made,
    /// An error, for this reason.
    Refused(&'static str),
}

/// The help for functions that compare.
pub const ORDER: &str = "complex numbers have no order; compare `abs(z)`, or the planes `real(z)` and `imag(z)`";
/// The help for functions of integers.
pub const INTEGERS: &str = "its arguments are integers";
/// The help for functions of real numbers.
pub const REAL: &str = "its arguments are real numbers";
/// The help for functions whose results are indices.
pub const INDICES: &str = "its elements are indices";
/// The help for factorizations.
pub const MATRICES: &str = "factorizations of complex matrices are not supported yet";
/// The help for random numbers.
pub const DRAWS: &str = "random numbers are real; only `normal` generates complex numbers";
/// The help for derivatives of functions with complex results.
pub const DERIVATIVES: &str = "the function must return a real scalar, such as `real(z)` or `abs(z)`";
/// The help for functions without a complex form.
pub const NOT_YET: &str = "complex numbers are not supported here yet";
/// The help for functions that programs cannot call.
pub const IN_DUMPS: &str = "only dumps call it";

/// The reasons by the words for them in the prelude.
const REASONS: [(&str, &str); 8] = [
    ("order", ORDER),
    ("integers", INTEGERS),
    ("real numbers", REAL),
    ("indices", INDICES),
    ("matrices", MATRICES),
    ("random numbers", DRAWS),
    ("derivatives", DERIVATIVES),
    ("not yet", NOT_YET),
];

impl ComplexRule {
    /// The rule in the words of the prelude: ``planes of `x`, `y` ``, ``products of `a`, `b` ``, `in complex.spmd`, `as the body says`, `refused: `
    /// and a reason. None for other words.
    pub fn from_words(words: &'static str) -> Option<ComplexRule> {
        let names = |list: &'static str| -> &'static [&'static str] {
            list.split(", ").map(|name| name.trim_matches('`')).collect::<Vec<&str>>().leak()
        };
        if let Some(list) = words.strip_prefix("planes of ") {
            return Some(ComplexRule::Planes(names(list)));
        }
        if let Some(list) = words.strip_prefix("products of ") {
            return Some(ComplexRule::Products(names(list)));
        }
        if let Some(reason) = words.strip_prefix("refused: ") {
            let known = REASONS.iter().find(|(words, _)| *words == reason);
            return Some(ComplexRule::Refused(known.map_or(reason, |(_, text)| text)));
        }
        match words {
            "in complex.spmd" => Some(ComplexRule::Written),
            "as the body says" => Some(ComplexRule::Own),
            _ => None,
        }
    }

    /// Whether calls with complex arguments, or with a complex type, are defined.
    pub fn is_defined(self) -> bool {
        match self {
            ComplexRule::Planes(_)
            | ComplexRule::Products(_)
            | ComplexRule::Written
            | ComplexRule::Own
            | ComplexRule::Cast
            | ComplexRule::Made => true,
            ComplexRule::Refused(_) => false,
        }
    }
}
