//! Probes of the CPU in plain Rust, on rayon's thread pool.

use super::pattern::{self, POISON};
use super::rotating_probe::{ProbeEngine, RotatingProbe};
use super::task::{ProbeTask, WORDS_PER_SUM};
use super::{Probe, ProbeError, Probes, chain};
use rayon::prelude::*;
use std::borrow::Cow;
use std::hint::black_box;

/// Probes of the CPU and its memory. A launch is synchronous.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostProbes;

/// Largest possible allocation.
const MAX_BUFFER_BYTES: u64 = isize::MAX as u64;

impl Probes for HostProbes {
    fn spin(&mut self, steps: u64) -> Result<Box<dyn Probe>, ProbeError> {
        probe(ProbeTask::Spin { steps }, 1)
    }

    fn copy(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        probe(ProbeTask::copy(bytes, MAX_BUFFER_BYTES)?, sets)
    }

    fn read(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        probe(ProbeTask::read(bytes, MAX_BUFFER_BYTES)?, sets)
    }
}

fn probe(task: ProbeTask, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
    Ok(Box::new(RotatingProbe::new(HostEngine { task }, task, sets)?))
}

struct HostEngine {
    task: ProbeTask,
}

impl ProbeEngine for HostEngine {
    type Memory = Vec<u32>;

    fn input(&self, words: Vec<u32>) -> Result<Vec<u32>, ProbeError> {
        Ok(words)
    }

    fn output(&self, words: usize) -> Result<Vec<u32>, ProbeError> {
        pattern::fill_words(words, |_| POISON)
    }

    fn poison(&self, output: &mut Vec<u32>) -> Result<(), ProbeError> {
        output.par_iter_mut().for_each(|word| *word = POISON);
        Ok(())
    }

    fn words<'a>(&self, output: &'a Vec<u32>) -> Result<Cow<'a, [u32]>, ProbeError> {
        Ok(output.into())
    }

    fn launch(&self, input: &Vec<u32>, output: &mut Vec<u32>) -> Result<(), ProbeError> {
        match self.task {
            // Hides the seed and the use of the result from the optimizer.
            ProbeTask::Spin { steps } => output[0] = black_box(chain::chain_value(black_box(input[0]), steps)),
            ProbeTask::Copy { words } => {
                let share = words_per_thread(words);
                let pieces = output.par_chunks_mut(share).zip(input.par_chunks(share));
                pieces.for_each(|(to, from)| to.copy_from_slice(from));
            }
            ProbeTask::Read { .. } => {
                let sum = |(to, from): (&mut u32, &[u32])| *to = from.iter().copied().fold(0, u32::wrapping_add);
                output.par_iter_mut().zip(input.par_chunks(WORDS_PER_SUM)).for_each(sum);
            }
        }
        Ok(())
    }

    fn synchronize(&self) -> Result<(), ProbeError> {
        Ok(())
    }
}

/// Contiguous words per thread, rounded up to whole pages: memory functions bypass the caches for large copies.
fn words_per_thread(words: usize) -> usize {
    const WORDS_IN_A_PAGE: usize = 1024;
    words.div_ceil(rayon::current_num_threads()).next_multiple_of(WORDS_IN_A_PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn every_probe_passes_its_check() {
        for steps in [0, 1, 1000] {
            HostProbes.spin(steps).unwrap().check().unwrap();
        }
        // The last size leaves pages, threads and sums partially filled.
        for bytes in [16, 4096, 3 * (1 << 20) + 16] {
            HostProbes.copy(bytes, 3).unwrap().check().unwrap();
            HostProbes.read(bytes, 3).unwrap().check().unwrap();
        }
    }

    #[test]
    fn unavailable_memory_is_an_error() {
        let error = HostProbes.copy(1 << 60, 1).err();
        assert_eq!(error, Some(ProbeError::OutOfHostMemory { bytes: 1 << 60 }));
    }

    /// The only timing assertion here, and a coarse one: it detects a chain that the compiler shortened. Interference
    /// only lengthens single times, so the minimum over many launches is reliable.
    #[test]
    fn spin_time_is_proportional_to_steps() {
        let mut spins = [20_000, 160_000].map(|steps| (HostProbes.spin(steps).unwrap(), Duration::MAX));
        let mut ratio = 0.0;
        for _ in 0..1000 {
            for (spin, least) in &mut spins {
                let start = Instant::now();
                spin.launch().unwrap();
                *least = start.elapsed().min(*least);
            }
            ratio = spins[1].1.as_secs_f64() / spins[0].1.as_secs_f64();
            if (7.0..9.0).contains(&ratio) {
                return;
            }
        }
        panic!("{ratio}");
    }
}
