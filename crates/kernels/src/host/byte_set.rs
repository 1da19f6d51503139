//! The sets of instructions for products of bytes that this processor has.

use super::bytes::{ByteJob, Bytes};
use super::portable::Portable;
#[cfg(target_arch = "x86_64")]
use super::{avx_vnni::AvxVnni, avx2::Avx2, avx512_vnni::Avx512Vnni};
#[cfg(target_arch = "aarch64")]
use super::{neon::Neon, neon_dot::NeonDot};

/// A set that this processor has.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ByteSet {
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

impl ByteSet {
    /// Those that are here, the fastest first.
    pub fn here() -> Vec<Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            sets.extend(Avx512Vnni::here().map(Self::Avx512Vnni));
            sets.extend(AvxVnni::here().map(Self::AvxVnni));
            sets.extend(Avx2::here().map(Self::Avx2));
        }
        #[cfg(target_arch = "aarch64")]
        sets.extend(NeonDot::here().map(Self::NeonDot).into_iter().chain(Neon::here().map(Self::Neon)));
        sets.push(Self::Portable(Portable));
        sets
    }

    /// The fastest.
    pub fn fastest() -> Self {
        Self::here()[0]
    }

    /// What a record calls it.
    pub fn name(self) -> &'static str {
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

    /// Rows and columns of its tiles.
    pub fn tile(self) -> (usize, usize) {
        let (rows, vectors) = match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni(_) => Avx512Vnni::TILE,
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni(_) => AvxVnni::TILE,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => <Avx2 as Bytes>::TILE,
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot(_) => NeonDot::TILE,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => <Neon as Bytes>::TILE,
            Self::Portable(_) => <Portable as Bytes>::TILE,
        };
        (rows, vectors * 16)
    }

    /// What it wants each byte of a weight to have on it.
    pub fn added(self) -> u8 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni(_) => Avx512Vnni::ADDED,
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni(_) => AvxVnni::ADDED,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Avx2::ADDED,
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot(_) => NeonDot::ADDED,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => Neon::ADDED,
            Self::Portable(_) => Portable::ADDED,
        }
    }

    /// Runs something with it.
    pub fn run(self, job: impl ByteJob) {
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
            Self::Portable(set) => job.on(set),
        }
    }
}
