//! Random numbers that are the same for the same seed on every machine.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Values drawn block by block, each block from its own stream, so that threads may share the work. A draw is told the
/// index of its value.
pub fn drawn(seed: u64, count: u64, draw: impl Fn(u64, &mut ChaCha8Rng) -> f32 + Sync) -> Vec<f32> {
    const BLOCK: usize = 1 << 16;
    let mut values = vec![0.0; count as usize];
    values.par_chunks_mut(BLOCK).enumerate().for_each(|(block, values)| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(block as u64);
        let first = (block * BLOCK) as u64;
        values.iter_mut().zip(first..).for_each(|(value, index)| *value = draw(index, &mut rng));
    });
    values
}
