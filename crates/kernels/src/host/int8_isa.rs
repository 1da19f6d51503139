//! Instruction sets for int8 dot products.

use super::int8_simd::{Int8Simd, Int8Task};
use super::portable::Portable;
#[cfg(target_arch = "x86_64")]
use super::{avx_vnni::AvxVnni, avx2::Avx2, avx512_vnni::Avx512Vnni};
#[cfg(target_arch = "aarch64")]
use super::{neon::Neon, neon_dot::NeonDot};

/// Instruction set that this processor supports.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub(super) enum Int8Isa {
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni(Avx512Vnni),
    #[cfg(target_arch = "x86_64")]
    AvxVnni(AvxVnni),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "aarch64")]
    NeonDot(NeonDot),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
    Portable(Portable),
}

impl Int8Isa {
    /// Supported instruction sets, fastest first.
    pub(super) fn available() -> Vec<Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            sets.extend(Avx512Vnni::detect().map(Self::Avx512Vnni));
            sets.extend(AvxVnni::detect().map(Self::AvxVnni));
            sets.extend(Avx2::detect().map(Self::Avx2));
        }
        #[cfg(target_arch = "aarch64")]
        sets.extend(NeonDot::detect().map(Self::NeonDot).into_iter().chain(Neon::detect().map(Self::Neon)));
        sets.push(Self::Portable(Portable));
        sets
    }

    /// Fastest supported instruction set.
    pub(super) fn fastest() -> Self {
        Self::available()[0]
    }

    /// Name in kernel descriptions.
    pub(super) fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni(_) => "avx512vnni",
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni(_) => "avxvnni",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot(_) => "neon+dotprod",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "neon",
            Self::Portable(_) => "portable code",
        }
    }

    /// Rows and columns of a tile.
    pub(super) fn tile(self) -> (usize, usize) {
        let (rows, vectors) = match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni(_) => Avx512Vnni::TILE,
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni(_) => AvxVnni::TILE,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => <Avx2 as Int8Simd>::TILE,
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot(_) => NeonDot::TILE,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => <Neon as Int8Simd>::TILE,
            Self::Portable(_) => <Portable as Int8Simd>::TILE,
        };
        (rows, vectors * 16)
    }

    /// Offset that is added to every byte of the weight.
    pub(super) fn weight_offset(self) -> u8 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni(_) => Avx512Vnni::WEIGHT_OFFSET,
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni(_) => AvxVnni::WEIGHT_OFFSET,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Avx2::WEIGHT_OFFSET,
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot(_) => NeonDot::WEIGHT_OFFSET,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => Neon::WEIGHT_OFFSET,
            Self::Portable(_) => Portable::WEIGHT_OFFSET,
        }
    }

    /// Runs a task compiled with this instruction set.
    pub(super) fn run(self, job: impl Int8Task) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni(set) => set.run(job),
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni(set) => set.run(job),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(set) => set.run_bytes(job),
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot(set) => set.run(job),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(set) => set.run_bytes(job),
            Self::Portable(set) => job.execute(set),
        }
    }
}
