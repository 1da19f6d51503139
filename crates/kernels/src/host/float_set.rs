//! The sets of instructions for floats that this processor has.

use super::lanes::{FloatJob, Lanes, WIDTH};
#[cfg(target_arch = "aarch64")]
use super::neon::Neon;
use super::portable::Portable;
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};

/// A set that this processor has.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum FloatSet {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
    Portable(Portable),
}

impl FloatSet {
    /// Those that are here, the widest first.
    pub fn here() -> Vec<Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        sets.extend(Avx512::here().map(Self::Avx512).into_iter().chain(Avx2::here().map(Self::Avx2)));
        #[cfg(target_arch = "aarch64")]
        sets.extend(Neon::here().map(Self::Neon));
        sets.push(Self::Portable(Portable));
        sets
    }

    /// The widest.
    pub fn widest() -> Self {
        Self::here()[0]
    }

    /// What a record calls it.
    pub fn name(self) -> &'static str {
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

    /// Rows and columns of its tiles.
    pub fn tile(self) -> (usize, usize) {
        let (rows, vectors) = match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Avx512::TILE,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Avx2::TILE,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => <Neon as Lanes>::TILE,
            Self::Portable(_) => Portable::TILE,
        };
        (rows, vectors * WIDTH)
    }

    /// Runs something with it.
    pub fn run(self, job: impl FloatJob) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(set) => set.run(job),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(set) => set.run(job),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(set) => set.run(job),
            Self::Portable(set) => job.on(set),
        }
    }
}
