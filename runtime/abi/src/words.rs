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

/// `640 bytes`, `1.5 MiB`.
pub fn bytes(count: u64) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| count >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", count as f64 / *unit as f64),
        None => format!("{count} bytes"),
    }
}
