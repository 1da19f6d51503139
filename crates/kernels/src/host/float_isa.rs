//! Instruction sets for floats.

use super::float_simd::{FloatSimd, FloatTask, WIDTH};
#[cfg(target_arch = "aarch64")]
use super::neon::Neon;
use super::portable::Portable;
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};

/// Instruction set that this processor supports.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub(super) enum FloatIsa {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
    Portable(Portable),
}

impl FloatIsa {
    /// Supported instruction sets, widest first.
    pub(super) fn available() -> Vec<Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        sets.extend(Avx512::detect().map(Self::Avx512).into_iter().chain(Avx2::detect().map(Self::Avx2)));
        #[cfg(target_arch = "aarch64")]
        sets.extend(Neon::detect().map(Self::Neon));
        sets.push(Self::Portable(Portable));
        sets
    }

    /// Widest supported instruction set.
    pub(super) fn widest() -> Self {
        Self::available()[0]
    }

    /// Name in kernel descriptions.
    pub(super) fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512f",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2+fma",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "neon",
            Self::Portable(_) => "portable code",
        }
    }

    /// Rows and columns of a tile.
    pub(super) fn tile(self) -> (usize, usize) {
        let (rows, vectors) = match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Avx512::TILE,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Avx2::TILE,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => <Neon as FloatSimd>::TILE,
            Self::Portable(_) => Portable::TILE,
        };
        (rows, vectors * WIDTH)
    }

    /// Runs a task compiled with this instruction set.
    pub(super) fn run(self, job: impl FloatTask) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(set) => set.run(job),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(set) => set.run(job),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(set) => set.run(job),
            Self::Portable(set) => job.execute(set),
        }
    }
}
