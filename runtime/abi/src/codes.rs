//! The codes of errors of built programs. The table of the command (`grammar/src/codes.rs`) contains them, too.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A code such as `E0801`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum RunCode { $($(#[$doc])* $name,)* }

        impl RunCode {
            /// Every code, in order.
            pub const ALL: &'static [RunCode] = &[$(RunCode::$name,)*];

            /// The code as printed.
            pub fn name(self) -> &'static str {
                match self { $(RunCode::$name => stringify!($name),)* }
            }
        }
    };
}

codes! {
    /// An argument has the wrong type.
    E0701,
    /// The command line is wrong.
    E0702,
    /// A file cannot be read.
    E0703,
    /// A file cannot be written.
    E0704,
    /// An index is out of bounds.
    E0801,
    /// An integer division by zero.
    E0802,
    /// The memory does not suffice.
    E0803,
    /// Devices did not arrive at a barrier in time.
    E0804,
    /// The processor lacks instructions that the program was built with.
    E0805,
    /// An assertion does not hold.
    E0806,
    /// The processes of a job cannot be connected.
    E0807,
    /// The processes of a job are about to do different things.
    E0808,
    /// Another process does not answer.
    E0809,
    /// Not supported yet.
    E0901,
    /// The compiler or the runtime broke its own rules.
    E0999,
}

impl RunCode {
    /// The exit status of a program that ends with this error before it runs.
    pub fn exit_status(self) -> u8 {
        match self {
            RunCode::E0701 | RunCode::E0702 | RunCode::E0703 | RunCode::E0704 | RunCode::E0901 => 2,
            RunCode::E0801
            | RunCode::E0802
            | RunCode::E0803
            | RunCode::E0804
            | RunCode::E0805
            | RunCode::E0806
            | RunCode::E0807
            | RunCode::E0999 => 3,
            RunCode::E0808 => 65,
            RunCode::E0809 => 75,
        }
    }
}

impl fmt::Display for RunCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
