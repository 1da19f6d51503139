//! The kernels in CubeCL, each behind a function that checks what it may touch.
//!
//! Data flow and traffic are what a probe is for: a chain of steps with no memory, a copy of pieces, a sum that reads alone.
//! Roofline: the time of a step, and the memory's.

use crate::probes::ProbeError;
use crate::probes::chain::{INCREMENT, MULTIPLIER, SHIFT};
use crate::probes::task::{ACCESS, WORDS_PER_SUM};
use cubecl::prelude::*;
use cubecl::server::Handle;

/// 32-bit words on the device.
pub(super) struct Words {
    handle: Handle,
    len: usize,
}

/// What one access moves.
type Piece = Vector<u32, Const<4>>;
const WORDS_PER_PIECE: usize = ACCESS / 4;
/// Units of a cube.
const UNITS: usize = 256;
/// Pieces that a unit copies, all loaded before the first is written: the output might overlap the input, for all that
/// compilers know.
const PIECES_TO_COPY: usize = 4;
/// Pieces that a unit adds up, so that each cube makes one sum.
const PIECES_TO_SUM: usize = WORDS_PER_SUM / WORDS_PER_PIECE / UNITS;
/// Steps of a chain in one turn of its loop: Mesa's software adapter leaves a kernel's loops after 65535 turns.
const STEPS_PER_TURN: u32 = 128;
/// Cubes in one dimension of a launch, at most.
const CUBES: usize = 65_535;

impl Words {
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
        // SAFETY: the memory was made for so many words.
        unsafe { ArrayArg::from_raw_parts(self.handle.clone(), self.len) }
    }

    /// The same memory, seen as whole pieces.
    fn pieces<R: Runtime>(&self) -> ArrayArg<R> {
        // SAFETY: the memory was made for at least so many pieces.
        unsafe { ArrayArg::from_raw_parts(self.handle.clone(), self.len / WORDS_PER_PIECE) }
    }
}

/// Takes `steps` steps of the chain.
pub(super) fn spin<R: Runtime>(client: &ComputeClient<R>, seed: &Words, end: &Words, steps: u32) {
    assert!(seed.len >= 1 && end.len >= 1, "a spin reads and writes one word");
    // SAFETY: one unit reads one word and writes one, and both are there.
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
pub(super) fn copy<R: Runtime>(client: &ComputeClient<R>, from: &Words, to: &Words) {
    assert_eq!(from.len, to.len, "a copy reads and writes as much");
    let pieces = from.len / WORDS_PER_PIECE;
    // SAFETY: the kernel looks at `pieces` before it reads or writes, and both memories hold so many.
    unsafe {
        probe_copy::launch_unchecked::<R>(
            client,
            cubes(pieces.div_ceil(UNITS * PIECES_TO_COPY)),
            CubeDim::new_1d(UNITS as u32),
            from.pieces(),
            to.pieces(),
            pieces,
        );
    }
}

/// Adds up each [`WORDS_PER_SUM`] words of `from`.
pub(super) fn sum<R: Runtime>(client: &ComputeClient<R>, from: &Words, to: &Words) {
    let (pieces, sums) = (from.len / WORDS_PER_PIECE, from.len.div_ceil(WORDS_PER_SUM));
    assert_eq!(sums, to.len, "a sum for each part");
    // SAFETY: the kernel looks at `pieces` before it reads and at `sums` before it writes, and so many are there.
    unsafe {
        probe_sum::launch_unchecked::<R>(
            client,
            cubes(sums),
            CubeDim::new_1d(UNITS as u32),
            from.pieces(),
            to.arg(),
            pieces,
            sums,
        );
    }
}

/// At least so many cubes, in a shape that every device takes.
fn cubes(count: usize) -> CubeCount {
    CubeCount::Static(count.min(CUBES) as u32, count.div_ceil(CUBES) as u32, 1)
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
fn probe_copy(from: &Array<Piece>, to: &mut Array<Piece>, pieces: usize) {
    let first = CUBE_POS * comptime!(UNITS * PIECES_TO_COPY) + UNIT_POS as usize;
    if first + comptime!(UNITS * (PIECES_TO_COPY - 1)) < pieces {
        let mut loaded = Sequence::<Piece>::new();
        #[unroll]
        for piece in 0..PIECES_TO_COPY {
            loaded.push(from[first + comptime!(piece * UNITS)]);
        }
        #[unroll]
        for piece in 0..PIECES_TO_COPY {
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
fn probe_sum(from: &Array<Piece>, to: &mut Array<u32>, pieces: usize, sums: usize) {
    let lane = UNIT_POS as usize;
    let first = CUBE_POS * comptime!(UNITS * PIECES_TO_SUM) + lane;
    let mut total = Piece::new(0u32);
    if first + comptime!(UNITS * (PIECES_TO_SUM - 1)) < pieces {
        #[unroll]
        for piece in 0..PIECES_TO_SUM {
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
