//! The table of diagnostic codes: each one once, with its short title.
//!
//! `spmdc explain <CODE>` prints `docs/errors/<CODE>.md`; a test runs its example, which must raise the code.

use std::fmt;

macro_rules! codes {
    ($($name:ident $title:literal,)*) => {
        /// A stable diagnostic code such as `E0201`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $(#[doc = $title] $name,)* }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The code as printed, such as `E0201`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$name => stringify!($name),)* }
            }

            /// The title of the code, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// The code with this name in upper or lower case, if there is one.
            pub fn from_name(name: &str) -> Option<Code> {
                Code::ALL.iter().copied().find(|code| code.name().eq_ignore_ascii_case(name))
            }
        }
    };
}

// E00xx syntax · E01xx names and items · E02xx types and shapes · E03xx shardings · E04xx indices and values ·
// E05xx manual functions · E06xx meshes · E07xx the command's arguments · E08xx while running · E09xx not there yet ·
// E10xx lints and budgets.
codes! {
    E0001 "invalid character or literal",
    E0002 "syntax error",
    E0003 "nesting too deep",
    E0004 "a limit of the language is exceeded",
    E0101 "unknown name",
    E0102 "a name is defined twice",
    E0103 "a function calls itself",
    E0104 "an import cannot be read",
    E0105 "the program has no entry function",
    E0106 "assignment to a name that is not mutable",
    E0107 "unknown constant in --set",
    E0108 "a form that is allowed in dumps only",
    E0109 "a dump that violates the invariants of its stage",
    E0110 "malformed StableHLO text",
    E0111 "an operation of StableHLO that the language cannot express",
    E0112 "a program that StableHLO cannot express",
    E0113 "a statement that an exported program leaves out",
    E0201 "wrong number of arguments",
    E0202 "unknown or repeated keyword argument",
    E0203 "types do not match",
    E0204 "shapes do not broadcast",
    E0205 "shapes do not fit this operation",
    E0206 "an axis is out of range or repeated",
    E0207 "a size is not a constant",
    E0208 "a size division leaves a remainder",
    E0209 "a size parameter cannot be inferred",
    E0210 "an expression of the wrong kind",
    E0211 "unknown field",
    E0212 "a loop changes the type of a loop-carried variable",
    E0213 "the branches of an `if` have different types",
    E0214 "a condition is not a scalar bool",
    E0215 "this operation is not defined for the element type",
    E0216 "malformed einsum specification",
    E0217 "a pattern does not match its value",
    E0218 "a constant does not fit its type",
    E0219 "an unused value",
    E0220 "no derivative",
    E0222 "a loop cannot be differentiated in reverse mode",
    E0223 "a stream is used as an array",
    E0224 "an argument is not known at compile time",
    E0225 "an argument has an invalid value",
    E0226 "a function returns a value that its transformation cannot use",
    E0227 "a malformed operation of a dump",
    E0228 "malformed format text",
    E0301 "the layout of a result is ambiguous",
    E0302 "operands disagree on an explicit axis",
    E0303 "an axis is used twice in one type",
    E0304 "unknown mesh axis",
    E0305 "an annotation contradicts an explicit axis",
    E0306 "partial sums are used where the whole sum is required",
    E0307 "a value has no layout on an explicit axis",
    E0401 "a static index is out of bounds",
    E0402 "a slice step is zero",
    E0501 "a result that is declared unvarying varies",
    E0502 "a collective under a condition that varies over its axis",
    E0503 "a dimension does not divide evenly over manual axes",
    E0504 "a collective outside of a manual function",
    E0505 "malformed permutation",
    E0506 "an axis is not a manual axis of the function",
    E0507 "a sum of gradients is used as the gradient of each device",
    E0601 "the mesh does not fit the program",
    E0602 "a value is on another mesh",
    E0701 "an argument has the wrong type",
    E0702 "an argument is missing or unknown",
    E0703 "a file is malformed or cannot be read",
    E0704 "a result cannot be written",
    E0801 "an index was out of bounds while running",
    E0802 "integer division by zero",
    E0803 "the program does not fit into memory",
    E0804 "a wait for other devices took too long",
    E0805 "the processor lacks features that the program needs",
    E0806 "an assertion does not hold",
    E0807 "the processes of a job cannot be connected",
    E0808 "the processes of a job run different programs",
    E0809 "another process does not answer",
    E0901 "not supported yet",
    E0999 "internal error",
    E1001 "communication that the program does not ask for",
    E1002 "a whole array is gathered",
    E1003 "a large array is on every device",
    E1004 "a dimension does not divide evenly over its axes",
    E1005 "the program communicates more than its budget",
    E1006 "a collective that is not allowed",
    E1007 "a mesh axis splits nothing",
    E1008 "a loop reduces over the mesh in every trip instead of once",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
