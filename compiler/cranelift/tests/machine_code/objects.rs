//! Object files link with C, and code for every level of processors does the same.

use super::{CRANELIFT, bytes, elements, elementwise};
use spmdc_abi::{Component, DType, EncodedProgram, ReduceOp};
use spmdc_kernel::backend::{Backend, CodegenError, Cpu, Destination, Entry, TextForm};
use spmdc_kernel::interpret;
use spmdc_kernel::loops::{Affine, Elem, Inst};
use spmdc_kernel::scalar::{BinaryOp, UnaryOp};
use spmdc_math::MathFn;

/// A C program that replaces the runtime: it prints the contents of an image, and the results of kernels.
const MAIN: &str = r#"
    #include <stdio.h>
    #include <stdint.h>
    struct image {
        const char *program;
        uint64_t len;
        int64_t (*const *kernels)(void **, int64_t *, int64_t, int64_t);
        uint64_t count, features;
        int64_t (*const *wide_kernels)(void **, int64_t *, int64_t, int64_t);
        uint64_t wide_features;
    };
    int spmd_main(const struct image *image) {
        printf("%.*s %d %d\n", (int)image->len, image->program, (int)image->count, image->features != 0);
        static float x[75], y[75];
        static uint32_t z[75];
        for (int i = 0; i < 75; i++) { x[i] = (float)(i - 30) * 1e4f; y[i] = 0.7f; }
        void *buffers[] = { x, y, z };
        for (uint64_t k = 0; k < image->count; k++) {
            image->kernels[k](buffers, 0, 0, 75);
            for (int i = 0; i < 75; i++) printf("%08x ", z[i]);
    #ifdef __x86_64__
            if (!image->wide_features || !__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl")
                || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq"))
                continue;
            static uint32_t wide[75];
            buffers[2] = wide;
            image->wide_kernels[k](buffers, 0, 0, 75);
            buffers[2] = z;
            for (int i = 0; i < 75; i++) if (wide[i] != z[i]) printf("wide %d: %08x ", i, wide[i]);
    #endif
        }
        return 7;
    }
    int spmd_call(const struct image *image, void **inputs, void **outputs) {
        printf("%d %s %s %s\n", (int)image->count, (char *)inputs[0], (char *)inputs[7], (char *)outputs[0]);
        return 5;
    }"#;

/// A C program that prints the features that an image needs.
const FEATURES: &str = r#"
    #include <stdio.h>
    #include <stdint.h>
    struct image { uint64_t program, len, kernels, count, features; };
    int spmd_main(const struct image *image) {
        printf("%llu", (unsigned long long)image->features);
        return 0;
    }"#;

/// The bytes of a program that needs these components.
fn program(components: &[Component]) -> EncodedProgram {
    EncodedProgram { bytes: b"program".to_vec(), components: components.iter().copied().collect() }
}

/// Links an object with these C sources, and returns the program's output.
fn run(name: &str, object: &[u8], sources: &[&str], status: i32) -> String {
    let directory = std::env::temp_dir().join(format!("spmd-object-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("program.o"), object).unwrap();
    std::fs::write(directory.join("main.c"), sources.concat()).unwrap();
    // The compiler of the machine for which the tests are built, which may be emulated.
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let cc = |args: &[&str]| std::process::Command::new(&compiler).current_dir(&directory).args(args).output().unwrap();
    let linked = cc(&["-o", "main", "main.c", "program.o", "-lm"]);
    assert!(linked.status.success() && linked.stderr.is_empty(), "{}", String::from_utf8_lossy(&linked.stderr));
    let output = std::process::Command::new(directory.join("main")).output().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(output.status.code(), Some(status));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn objects_link_and_run() {
    let unary = |op| move |x: &[Elem]| vec![Inst::Unary { op, dtype: DType::F32, arg: x[0] }];
    let remainder =
        |x: &[Elem]| vec![Inst::Binary { op: BinaryOp::Rem, dtype: DType::F32, lhs: x[0], rhs: x[1], site: None }];
    let inputs = [DType::F32, DType::F32];
    let kernels = [
        elementwise(75, &inputs, DType::F32, unary(UnaryOp::Math(MathFn::Sin))),
        elementwise(75, &inputs, DType::F32, unary(UnaryOp::Math(MathFn::Tanh))),
        elementwise(75, &inputs, DType::F32, remainder),
        elementwise(75, &inputs, DType::F32, unary(UnaryOp::Math(MathFn::Sin))),
    ];
    let x: Vec<u64> = (0..75).map(|i| u64::from(((i as f32 - 30.0) * 1e4).to_bits())).collect();
    let y = vec![u64::from(0.7f32.to_bits()); 75];
    let mut expected = Vec::new();
    for kernel in &kernels {
        let mut buffers = vec![bytes(DType::F32, &x), bytes(DType::F32, &y), vec![0; 300]];
        interpret::run(kernel, &mut buffers, &[], 0, 75);
        expected.extend(elements(DType::F32, &buffers[2]));
    }
    for (name, cpu) in [("floor", Cpu::FLOOR), ("native", Cpu::Native)] {
        let object = CRANELIFT.object(&program(&[]), &kernels, cpu, Entry::Main).unwrap();
        let text = run(name, &object, &[MAIN], 7);
        let (first, words) = text.split_once('\n').unwrap();
        let (count, has_needs) = first.rsplit_once(' ').unwrap();
        assert_eq!(count, "program 4");
        // Every processor for aarch64 has what its code needs at least.
        assert!(has_needs == "1" || cfg!(target_arch = "aarch64"), "{name}: {has_needs}");
        let found: Vec<u64> = words.split_whitespace().map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
        assert_eq!(found, expected, "{name}");
    }
}

/// The runtime's function, in which the bits of a counter are the counter and a part of the key.
#[test]
fn random_bits_are_drawn_by_the_runtime() {
    const RUNTIME: &str = r#"
        void spmd_random_bits(uint32_t *to, uint64_t key, uint64_t first, uint64_t count, uint64_t form) {
            for (uint64_t i = 0; i < count; i++) to[i] = (uint32_t)(key >> 32) + (uint32_t)(first + i) + (form << 16);
        }"#;
    let kernel = elementwise(75, &[DType::F32, DType::F32], DType::U32, |_| {
        let at = Affine { constant: 5, ..Affine::dim(0) };
        let bits = Inst::RandomBits { dtype: DType::U32, key: Elem(2), at };
        vec![Inst::Const { dtype: DType::Key, bits: 0x700 }, bits]
    });
    let object = CRANELIFT.object(&program(&[]), &[kernel], Cpu::FLOOR, Entry::Main).unwrap();
    let text = run("draws", &object, &[MAIN, RUNTIME], 7);
    let words: Vec<u32> = text.split_whitespace().skip(3).map(|word| u32::from_str_radix(word, 16).unwrap()).collect();
    let form = spmdc_threefry::BitsForm::U32 as u32;
    assert_eq!(words, (0..75).map(|i| 0x700 + 5 + i + (form << 16)).collect::<Vec<u32>>());
}

#[test]
fn objects_refer_to_the_components_of_their_programs() {
    const COMPONENTS: &str = r#"
        #include <stdio.h>
        #include <stdint.h>
        struct image { uint64_t others[7]; const int *const *components; uint64_t component_count; };
        const int spmd_sorts = 1, spmd_reductions_f32_sum = 2;
        int spmd_main(const struct image *image) {
            for (uint64_t i = 0; i < image->component_count; i++) printf("%d ", *image->components[i]);
            return 0;
        }"#;
    let object =
        |components: &[Component]| CRANELIFT.object(&program(components), &[], Cpu::FLOOR, Entry::Main).unwrap();
    // In the order of the components, not in that of the list.
    let two = object(&[Component::Sorts, Component::Reductions(DType::F32, ReduceOp::Sum)]);
    assert_eq!(run("components", &two, &[COMPONENTS], 0), "2 1 ");
    assert_eq!(run("component", &object(&[Component::Sorts]), &[COMPONENTS], 0), "1 ");
    assert_eq!(run("no_components", &object(&[]), &[COMPONENTS], 0), "");
}

#[test]
fn functions_hand_on_their_arrays() {
    const CALLER: &str = r#"
        int heat(const char *, const char *, const char *, const char *, const char *, const char *, const char *,
                 const char *, char *, char *);
        int main(void) { return heat("a", "b", "c", "d", "e", "f", "g", "h", "out", ""); }"#;
    let entry = Entry::Function { name: "heat", inputs: 8, outputs: 2 };
    let object = CRANELIFT.object(&program(&[]), &[], Cpu::FLOOR, entry).unwrap();
    assert_eq!(run("function", &object, &[MAIN, CALLER], 5), "0 a h out\n");
}

/// Every type of elements has vectors of 256 bits in executables for AVX2.
#[cfg(target_arch = "x86_64")]
#[test]
fn executables_have_wide_vectors_of_every_type() {
    for dtype in DType::ALL.into_iter().filter(|&dtype| dtype != DType::Key) {
        let op = if dtype == DType::Bool { BinaryOp::And } else { BinaryOp::Maximum };
        let kernel = elementwise(1000, &[dtype, dtype], dtype, |x| {
            vec![Inst::Binary { op, dtype, lhs: x[0], rhs: x[1], site: None }]
        });
        let text = CRANELIFT.text(&kernel, TextForm::Assembly, Destination::Object(Cpu::X86_64V3)).unwrap();
        assert!(text.contains("ymm") && !text.contains("zmm") && !text.contains("{k"), "{}: {text}", dtype.name());
    }
}

/// Instructions differ, results do not: a product and a sum are never contracted, and fused operations are exact.
#[cfg(target_arch = "x86_64")]
#[test]
fn every_level_has_code_for_every_operation() {
    let features = |name, cpu| -> u64 {
        let object = CRANELIFT.object(&program(&[]), &[], cpu, Entry::Main).unwrap();
        run(name, &object, &[FEATURES], 0).parse().unwrap()
    };
    assert_eq!(features("needed-by-baseline", Cpu::X86_64), 0);
    assert_eq!(features("needed-by-floor", Cpu::X86_64V3), (1 << 11) - 1);
    assert_eq!(features("needed-by-host", Cpu::Native) & 0b1100_0000, 0b1100_0000);
    // F16C counts only where kernels use it.
    let long = elementwise(1000, &[DType::F16], DType::F16, |x| {
        vec![Inst::Binary { op: BinaryOp::Mul, dtype: DType::F16, lhs: x[0], rhs: x[0], site: None }]
    });
    let object = CRANELIFT.object(&program(&[]), &[long], Cpu::X86_64V3, Entry::Main).unwrap();
    assert_eq!(run("needed-by-vectors", &object, &[FEATURES], 0), ((1 << 25) + (1 << 11) - 1).to_string());
    let multiply_add = elementwise(64, &[DType::F32], DType::F32, |x| {
        vec![
            Inst::Binary { op: BinaryOp::Mul, dtype: DType::F32, lhs: x[0], rhs: x[0], site: None },
            Inst::Binary { op: BinaryOp::Add, dtype: DType::F32, lhs: Elem(x[0].0 + 1), rhs: x[0], site: None },
        ]
    });
    let asm = |cpu| CRANELIFT.text(&multiply_add, TextForm::Assembly, Destination::Object(cpu)).unwrap();
    assert!(asm(Cpu::X86_64V3).contains("vmulps") && !asm(Cpu::X86_64V3).contains("vfm"));
    assert!(asm(Cpu::X86_64).contains("mulps") && !asm(Cpu::X86_64).contains("vmulps"));
    let in_memory = CRANELIFT.text(&multiply_add, TextForm::Assembly, Destination::Memory).unwrap();
    assert_eq!(in_memory, asm(Cpu::Native), "code in memory has the features of the host");
    let arm = CRANELIFT.object(&program(&[]), &[], Cpu::Armv8A, Entry::Main);
    assert!(matches!(arm, Err(CodegenError::Machine(_))));
}
