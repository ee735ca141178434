//! How fast compiled programs are, each figure beside its limit: what the same memory traffic takes in a plain loop, or the product
//! alone.
//!
//! `cargo bench --workspace --bench speed` measures everything, `-- matmul rows` these sections. `docs/benchmarks.md` says how to
//! read the tables.

mod compile;
mod layouts;
mod limits;
mod matmul;
mod measure;
mod streams;

fn main() {
    // Cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let sections: [(&str, fn()); 9] = [
        ("compile", compile::compile_times),
        ("long", compile::long_programs),
        ("elementwise", streams::elementwise),
        ("functions", streams::functions),
        ("moves", streams::moves),
        ("reduction", streams::reductions),
        ("layouts", layouts::layouts),
        ("rows", streams::rows),
        ("matmul", matmul::products),
    ];
    if let Some(unknown) = wanted.iter().find(|word| sections.iter().all(|(name, _)| name != word)) {
        eprintln!("there is no section `{unknown}`; there are {}", sections.map(|(name, _)| name).join(", "));
        std::process::exit(2);
    }
    for (name, section) in sections {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            section();
            println!();
        }
    }
}
