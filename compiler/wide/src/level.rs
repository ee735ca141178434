//! The vectors of a processor.

/// The width of vectors, and the form of their instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VectorLevel {
    /// Bits of a vector: 128, 256 or 512.
    pub bits: u32,
    /// Whether instructions have the EVEX form: 32 registers, masks in registers of their own, and constants that memory operands
    /// broadcast.
    pub evex: bool,
}

impl VectorLevel {
    /// AVX-512 with vectors of 512 bits: `avx512f`, `avx512bw`, `avx512dq` and `avx512vl`.
    pub const V4: VectorLevel = VectorLevel { bits: 512, evex: true };
    /// The same instructions with vectors of 256 bits.
    pub const V4_256: VectorLevel = VectorLevel { bits: 256, evex: true };
    /// The same instructions with vectors of 128 bits.
    pub const V4_128: VectorLevel = VectorLevel { bits: 128, evex: true };

    /// All levels, widest first.
    pub const ALL: [VectorLevel; 3] = [VectorLevel::V4, VectorLevel::V4_256, VectorLevel::V4_128];

    /// The features that code of these levels needs beyond those of x86-64-v3.
    pub const FEATURES: [&'static str; 4] = ["avx512f", "avx512bw", "avx512dq", "avx512vl"];

    /// The widest level of this processor; None if it has none.
    pub fn of_host() -> Option<VectorLevel> {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512dq")
            && std::is_x86_feature_detected!("avx512vl")
        {
            return Some(VectorLevel::V4);
        }
        None
    }

    /// Whether this processor has it.
    pub fn is_here(self) -> bool {
        VectorLevel::of_host().is_some()
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
