//! Reductions of arrays that lie on eight devices in every way, beside the same on one device.

use crate::measure::{Clock, Loaded, fastest};

/// The mesh, and how the array lies on it.
const LAYOUTS: [(&str, &str); 10] = [
    ("X = 8", "N@X, N"),
    ("X = 8", "N, N@X"),
    ("X = 4, Y = 2", "N@X, N@Y"),
    ("X = 2, Y = 4", "N@X, N@Y"),
    ("X = 4, Y = 2", "N@Y, N@X"),
    ("X = 4, Y = 2", "N@(X, Y), N"),
    ("X = 4, Y = 2", "N, N@(X, Y)"),
    ("X = 4, Y = 2", "N@X, N"),
    ("X = 4, Y = 2", "N, N@Y"),
    ("X = 4, Y = 2", "N, N"),
];

const REDUCTIONS: [&str; 13] =
    ["sum", "prod", "max", "min", "mean", "var", "std", "argmax", "argmin", "all", "any", "logsumexp", "norm"];

fn program(reduction: &str, axis: &str, mesh: &str, layout: &str) -> String {
    format!("const N = 4096;\nmesh ({mesh});\nfn main(x: f32[{layout}]) {{ {reduction}(x{axis}) }}")
}

/// A layout that reads its blocks badly, or has all devices do what one could, stands out of its row.
pub fn layouts() {
    println!("{:<22}{:>8}  times that on eight devices, by layout of f32[N, N], N = 4096", "reduction", "1, ms");
    let short = |(mesh, layout): (&str, &str)| format!("{} {layout}", mesh.replace(" = ", "").replace(", ", ""));
    LAYOUTS.iter().enumerate().for_each(|(at, &layout)| println!("{:>32} {}: {}", "", at + 1, short(layout)));
    println!("{:<30}{}", "", (1..=LAYOUTS.len()).map(|at| format!("{at:>6}")).collect::<String>());
    for reduction in REDUCTIONS {
        for axis in ["", ", axis=0", ", axis=1"] {
            let mut one = Loaded::new(&program(reduction, axis, "X = 1", "N, N"), None);
            let mut line = String::new();
            let mut least = f64::INFINITY;
            for (mesh, layout) in LAYOUTS {
                let mut other = Loaded::new(&program(reduction, axis, mesh, layout), None);
                let [alone, together] = fastest(Clock::Wall, [&mut || one.run(), &mut || other.run()]);
                line += &format!("{:>6.2}", together / alone);
                least = least.min(alone);
            }
            println!("{:<22}{:>8.2}{line}", format!("{reduction}(x{axis})"), least * 1e3);
        }
    }
}
