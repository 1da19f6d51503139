//! Probe kernels in CubeCL, each behind a safe function that checks its buffers.
//!
//! Data flow and traffic: a chain of steps without memory traffic, a copy, and a reading sum. Roofline: latency of a
//! step, and memory bandwidth.

use crate::probes::ProbeError;
use crate::probes::chain::{INCREMENT, MULTIPLIER, SHIFT};
use crate::probes::task::{ACCESS, WORDS_PER_SUM};
use cubecl::prelude::*;
use cubecl::server::Handle;

/// Buffer of 32-bit words on the device.
pub(super) struct WordBuffer {
    handle: Handle,
    len: usize,
}

/// Vector of one access.
type WordVector = Vector<u32, Const<4>>;
const WORDS_PER_VECTOR: usize = ACCESS / 4;
/// Units per cube.
const UNITS: usize = 256;
/// Vectors that a unit copies, all loaded before the first is written: the compiler must assume that output and input
/// overlap.
const COPY_VECTORS_PER_UNIT: usize = 4;
/// Vectors that a unit adds, so that each cube computes one sum.
const SUM_VECTORS_PER_UNIT: usize = WORDS_PER_SUM / WORDS_PER_VECTOR / UNITS;
/// Steps per loop iteration: Mesa's software adapter terminates loops after 65535 iterations.
const STEPS_PER_TURN: u32 = 128;
/// Maximum cubes in one grid dimension.
const MAX_CUBES: usize = 65_535;

impl WordBuffer {
    pub(super) fn upload<R: Runtime>(client: &ComputeClient<R>, words: &[u32]) -> Self {
        Self { handle: client.create_from_slice(u32::as_bytes(words)), len: words.len() }
    }

    pub(super) fn allocate<R: Runtime>(client: &ComputeClient<R>, len: usize) -> Self {
        Self { handle: client.empty(4 * len), len }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn download<R: Runtime>(&self, client: &ComputeClient<R>) -> Result<Vec<u32>, ProbeError> {
        let bytes = client
            .read_one(self.handle.clone())
            .map_err(|error| ProbeError::Cube { doing: "reading a result", status: format!("{error:?}") })?;
        Ok(u32::from_bytes(&bytes).to_vec())
    }

    fn arg<R: Runtime>(&self) -> ArrayArg<R> {
        // SAFETY: the memory was allocated for `len` words.
        unsafe { ArrayArg::from_raw_parts(self.handle.clone(), self.len) }
    }

    /// Returns the memory as an array of vectors.
    fn vectors<R: Runtime>(&self) -> ArrayArg<R> {
        // SAFETY: the memory was allocated for at least this many vectors.
        unsafe { ArrayArg::from_raw_parts(self.handle.clone(), self.len / WORDS_PER_VECTOR) }
    }
}

/// Runs `steps` steps of the chain.
pub(super) fn spin<R: Runtime>(client: &ComputeClient<R>, seed: &WordBuffer, end: &WordBuffer, steps: u32) {
    assert!(seed.len >= 1 && end.len >= 1, "a spin reads and writes one word");
    // SAFETY: a single unit reads one word and writes one word, and both buffers hold at least one.
    unsafe {
        probe_spin::launch_unchecked::<R>(
            client,
            CubeCount::new_single(),
            CubeDim::new_single(),
            seed.arg(),
            end.arg(),
            steps,
        );
    }
}

/// Copies all of `from`.
pub(super) fn copy<R: Runtime>(client: &ComputeClient<R>, from: &WordBuffer, to: &WordBuffer) {
    assert_eq!(from.len, to.len, "buffers of a copy have equal sizes");
    let pieces = from.len / WORDS_PER_VECTOR;
    // SAFETY: the kernel checks `pieces` before it reads or writes, and both buffers hold `pieces` vectors.
    unsafe {
        probe_copy::launch_unchecked::<R>(
            client,
            cubes(pieces.div_ceil(UNITS * COPY_VECTORS_PER_UNIT)),
            CubeDim::new_1d(UNITS as u32),
            from.vectors(),
            to.vectors(),
            pieces,
        );
    }
}

/// Adds each [`WORDS_PER_SUM`] words of `from`.
pub(super) fn sum<R: Runtime>(client: &ComputeClient<R>, from: &WordBuffer, to: &WordBuffer) {
    let (pieces, sums) = (from.len / WORDS_PER_VECTOR, from.len.div_ceil(WORDS_PER_SUM));
    assert_eq!(sums, to.len, "one sum per part");
    // SAFETY: the kernel checks `pieces` before it reads and `sums` before it writes, and the buffers hold these
    // numbers.
    unsafe {
        probe_sum::launch_unchecked::<R>(
            client,
            cubes(sums),
            CubeDim::new_1d(UNITS as u32),
            from.vectors(),
            to.arg(),
            pieces,
            sums,
        );
    }
}

/// Returns a grid of at least `count` cubes in a shape that every device supports.
fn cubes(count: usize) -> CubeCount {
    CubeCount::Static(count.min(MAX_CUBES) as u32, count.div_ceil(MAX_CUBES) as u32, 1)
}

#[cube(launch_unchecked)]
fn probe_spin(seed: &Array<u32>, end: &mut Array<u32>, steps: u32) {
    let mut value = seed[0];
    for _ in 0..steps / STEPS_PER_TURN {
        #[unroll]
        for _ in 0..STEPS_PER_TURN {
            value = step(value);
        }
    }
    for _ in 0..steps % STEPS_PER_TURN {
        value = step(value);
    }
    end[0] = value;
}

#[cube]
fn step(value: u32) -> u32 {
    (value ^ (value >> SHIFT)) * MULTIPLIER + INCREMENT
}

#[cube(launch_unchecked)]
fn probe_copy(from: &Array<WordVector>, to: &mut Array<WordVector>, pieces: usize) {
    let first = CUBE_POS * comptime!(UNITS * COPY_VECTORS_PER_UNIT) + UNIT_POS as usize;
    if first + comptime!(UNITS * (COPY_VECTORS_PER_UNIT - 1)) < pieces {
        let mut loaded = Sequence::<WordVector>::new();
        #[unroll]
        for piece in 0..COPY_VECTORS_PER_UNIT {
            loaded.push(from[first + comptime!(piece * UNITS)]);
        }
        #[unroll]
        for piece in 0..COPY_VECTORS_PER_UNIT {
            to[first + comptime!(piece * UNITS)] = *loaded.index(piece);
        }
    } else {
        let mut at = first;
        while at < pieces {
            to[at] = from[at];
            at += UNITS;
        }
    }
}

#[cube(launch_unchecked)]
fn probe_sum(from: &Array<WordVector>, to: &mut Array<u32>, pieces: usize, sums: usize) {
    let lane = UNIT_POS as usize;
    let first = CUBE_POS * comptime!(UNITS * SUM_VECTORS_PER_UNIT) + lane;
    let mut total = WordVector::new(0u32);
    if first + comptime!(UNITS * (SUM_VECTORS_PER_UNIT - 1)) < pieces {
        #[unroll]
        for piece in 0..SUM_VECTORS_PER_UNIT {
            total += from[first + comptime!(piece * UNITS)];
        }
    } else {
        let mut at = first;
        while at < pieces {
            total += from[at];
            at += UNITS;
        }
    }
    let mut shared = SharedMemory::<u32>::new(UNITS);
    shared[lane] = total[0] + total[1] + total[2] + total[3];
    sync_cube();
    let mut width = comptime!(UNITS / 2).runtime();
    while width > 0 {
        if lane < width {
            shared[lane] += shared[lane + width];
        }
        sync_cube();
        width /= 2;
    }
    if lane == 0 && CUBE_POS < sums {
        to[CUBE_POS] = shared[0];
    }
}
