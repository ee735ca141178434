//! Factorizations.

mod reference;
