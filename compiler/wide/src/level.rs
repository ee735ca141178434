//! The vectors of a processor.

/// The width of vectors, and the form of their instructions.
///
/// | | EVEX | VEX |
/// |---|---|---|
/// | registers | 32 | 16 |
/// | masks | in registers of their own | vectors: all bits of a lane, or none |
/// | constants in memory | one element, which the instruction broadcasts | a whole vector |
/// | lanes that are not accessed | all element types | 32 and 64 bits; elements of 8 and 16 bits go one by one |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VectorLevel {
    /// Bits of a vector: 128, 256 or 512.
    pub bits: u32,
    /// Whether instructions have the EVEX form.
    pub evex: bool,
}

impl VectorLevel {
    /// AVX-512 with vectors of 512 bits: `avx512f`, `avx512bw`, `avx512dq` and `avx512vl`.
    pub const V4: VectorLevel = VectorLevel { bits: 512, evex: true };
    /// The same instructions with vectors of 256 bits.
    pub const V4_256: VectorLevel = VectorLevel { bits: 256, evex: true };
    /// The same instructions with vectors of 128 bits.
    pub const V4_128: VectorLevel = VectorLevel { bits: 128, evex: true };
    /// AVX2 with vectors of 256 bits.
    pub const V3: VectorLevel = VectorLevel { bits: 256, evex: false };

    /// All levels, widest first.
    pub const ALL: [VectorLevel; 4] = [VectorLevel::V4, VectorLevel::V4_256, VectorLevel::V4_128, VectorLevel::V3];

    /// The features that code of this level needs.
    pub fn features(self) -> &'static [&'static str] {
        if self.evex {
            &["avx2", "fma", "bmi1", "bmi2", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl"]
        } else {
            &["avx2", "fma", "bmi1", "f16c"]
        }
    }

    /// The best level of this processor, if it has one.
    pub fn of_host() -> Option<VectorLevel> {
        [VectorLevel::V4, VectorLevel::V3].into_iter().find(|level| level.is_here())
    }

    /// Whether this processor has it.
    pub fn is_here(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        let is_here = std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("fma")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("f16c")
            && (!self.evex
                || std::is_x86_feature_detected!("bmi2")
                    && std::is_x86_feature_detected!("avx512f")
                    && std::is_x86_feature_detected!("avx512bw")
                    && std::is_x86_feature_detected!("avx512dq")
                    && std::is_x86_feature_detected!("avx512vl"));
        #[cfg(not(target_arch = "x86_64"))]
        let is_here = false;
        is_here
    }

    /// The number of vector registers.
    pub fn registers(self) -> usize {
        if self.evex { 32 } else { 16 }
    }

    /// Lanes of 32 bits in a register: the lanes of a *group*.
    pub fn lanes(self) -> u32 {
        self.bits / 32
    }

    /// Bytes of a register.
    pub fn bytes(self) -> u32 {
        self.bits / 8
    }
}
