//! Words of messages that the compiler and the runtime share.

/// `1 process`, `2 processes`, `1 device`, `0 devices`: a number of things; `one` is the singular.
pub fn counted(count: usize, one: &str) -> String {
    let ending = match (count, one.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {one}{ending}")
}
