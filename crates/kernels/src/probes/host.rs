//! Probes of the processor: plain Rust on the threads of rayon's pool.

use super::pattern::{self, POISON};
use super::rotation::{Engine, Rotation};
use super::task::{Task, WORDS_PER_SUM};
use super::{Probe, ProbeError, Probes, chain};
use rayon::prelude::*;
use std::borrow::Cow;
use std::hint::black_box;

/// The probes of the processor and its memory. A launch has run when it returns.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostProbes;

/// The largest object there can be in memory.
const LARGEST: u64 = isize::MAX as u64;

impl Probes for HostProbes {
    fn spin(&mut self, steps: u64) -> Result<Box<dyn Probe>, ProbeError> {
        probe(Task::Spin { steps }, 1)
    }

    fn copy(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        probe(Task::copy(bytes, LARGEST)?, sets)
    }

    fn read(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        probe(Task::read(bytes, LARGEST)?, sets)
    }
}

fn probe(task: Task, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
    Ok(Box::new(Rotation::new(Host { task }, task, sets)?))
}

struct Host {
    task: Task,
}

impl Engine for Host {
    type Memory = Vec<u32>;

    fn input(&self, words: Vec<u32>) -> Result<Vec<u32>, ProbeError> {
        Ok(words)
    }

    fn output(&self, words: usize) -> Result<Vec<u32>, ProbeError> {
        pattern::filled(words, |_| POISON)
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
            // The compiler must neither know the seed nor see that nobody may ask for the result.
            Task::Spin { steps } => output[0] = black_box(chain::after(black_box(input[0]), steps)),
            Task::Copy { words } => {
                let share = share(words);
                let pieces = output.par_chunks_mut(share).zip(input.par_chunks(share));
                pieces.for_each(|(to, from)| to.copy_from_slice(from));
            }
            Task::Read { .. } => {
                let sum = |(to, from): (&mut u32, &[u32])| *to = from.iter().copied().fold(0, u32::wrapping_add);
                output.par_iter_mut().zip(input.par_chunks(WORDS_PER_SUM)).for_each(sum);
            }
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), ProbeError> {
        Ok(())
    }
}

/// Words for each thread, in one piece: libraries copy large pieces past the caches. No page belongs to two threads.
fn share(words: usize) -> usize {
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
        // The last leaves pages, threads and sums unevenly filled.
        for bytes in [16, 4096, 3 * (1 << 20) + 16] {
            HostProbes.copy(bytes, 3).unwrap().check().unwrap();
            HostProbes.read(bytes, 3).unwrap().check().unwrap();
        }
    }

    #[test]
    fn memory_that_cannot_be_had_is_an_error() {
        let error = HostProbes.copy(1 << 60, 1).err();
        assert_eq!(error, Some(ProbeError::OutOfHostMemory { bytes: 1 << 60 }));
    }

    /// The only claim about time here, and a coarse one: a folded chain would take no longer for being longer. Whatever
    /// else the machine does makes single times longer, so that the least of enough is right.
    #[test]
    fn a_spin_of_eight_times_the_steps_takes_about_eight_times_as_long() {
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
