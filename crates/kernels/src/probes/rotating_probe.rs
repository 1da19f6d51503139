//! Probe with rotating buffer sets, which defeat the caches; generic over the device.

use super::task::ProbeTask;
use super::{Probe, ProbeError};
use rayon::prelude::*;
use std::borrow::Cow;

/// Device-specific part of a probe.
pub(super) trait ProbeEngine: Send {
    type Memory: Send;
    /// Allocates memory with these words.
    fn input(&self, words: Vec<u32>) -> Result<Self::Memory, ProbeError>;
    /// Allocates memory for `words` words.
    fn output(&self, words: usize) -> Result<Self::Memory, ProbeError>;
    /// Fills an output with [`super::pattern::POISON`].
    fn poison(&self, output: &mut Self::Memory) -> Result<(), ProbeError>;
    /// Returns the content of an output after all launches.
    fn words<'a>(&self, output: &'a Self::Memory) -> Result<Cow<'a, [u32]>, ProbeError>;
    /// See [`Probe::launch`].
    fn launch(&self, input: &Self::Memory, output: &mut Self::Memory) -> Result<(), ProbeError>;
    /// See [`Probe::synchronize`].
    fn synchronize(&self) -> Result<(), ProbeError>;
}

/// Probe with its engine and buffer sets.
pub(super) struct RotatingProbe<E: ProbeEngine> {
    engine: E,
    task: ProbeTask,
    sets: Vec<ProbeBuffers<E::Memory>>,
    next: usize,
}

struct ProbeBuffers<M> {
    input: M,
    output: M,
}

impl<E: ProbeEngine> RotatingProbe<E> {
    pub(super) fn new(engine: E, task: ProbeTask, sets: u32) -> Result<Self, ProbeError> {
        if sets == 0 {
            return Err(ProbeError::NoSets);
        }
        let set =
            |set| Ok(ProbeBuffers { input: engine.input(task.input(set)?)?, output: engine.output(task.results())? });
        let sets = (0..sets).map(set).collect::<Result<_, ProbeError>>()?;
        Ok(Self { engine, task, sets, next: 0 })
    }

    fn compare(&self, set: u32, output: &E::Memory) -> Result<(), ProbeError> {
        let (task, found) = (self.task, self.engine.words(output)?);
        let wrong = found.par_iter().enumerate().position_first(|(index, &word)| word != task.result(set, index));
        wrong.map_or(Ok(()), |word| {
            let (found, expected) = (found[word], task.result(set, word));
            Err(ProbeError::WrongResult { probe: task.name(), set, word, found, expected })
        })
    }
}

impl<E: ProbeEngine> Probe for RotatingProbe<E> {
    fn launch(&mut self) -> Result<(), ProbeError> {
        let turn = self.next;
        self.next = (turn + 1) % self.sets.len();
        let ProbeBuffers { input, output } = &mut self.sets[turn];
        self.engine.launch(input, output)
    }

    fn synchronize(&mut self) -> Result<(), ProbeError> {
        self.engine.synchronize()
    }

    fn check(&mut self) -> Result<(), ProbeError> {
        self.sets.iter_mut().try_for_each(|set| self.engine.poison(&mut set.output))?;
        for _ in 0..self.sets.len() {
            self.launch()?;
        }
        (0..).zip(&self.sets).try_for_each(|(number, set)| self.compare(number, &set.output))
    }

    fn bytes(&self) -> u64 {
        self.task.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::POISON;
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Copying engine with injectable faults.
    #[derive(Default)]
    struct Copier {
        launches: AtomicU32,
        skips: Option<u32>,
        flips: Option<usize>,
    }

    impl ProbeEngine for Copier {
        type Memory = Vec<u32>;

        fn input(&self, words: Vec<u32>) -> Result<Vec<u32>, ProbeError> {
            Ok(words)
        }

        fn output(&self, words: usize) -> Result<Vec<u32>, ProbeError> {
            Ok(vec![0; words])
        }

        fn poison(&self, output: &mut Vec<u32>) -> Result<(), ProbeError> {
            output.fill(POISON);
            Ok(())
        }

        fn words<'a>(&self, output: &'a Vec<u32>) -> Result<Cow<'a, [u32]>, ProbeError> {
            Ok(output.into())
        }

        fn launch(&self, input: &Vec<u32>, output: &mut Vec<u32>) -> Result<(), ProbeError> {
            if self.skips != Some(self.launches.fetch_add(1, Ordering::Relaxed)) {
                output.copy_from_slice(input);
            }
            if let Some(at) = self.flips {
                output[at] ^= 1;
            }
            Ok(())
        }

        fn synchronize(&self) -> Result<(), ProbeError> {
            Ok(())
        }
    }

    const WORDS: usize = 1000;

    fn rotation(copier: Copier) -> RotatingProbe<Copier> {
        RotatingProbe::new(copier, ProbeTask::Copy { words: WORDS }, 3).unwrap()
    }

    #[test]
    fn launches_rotate_through_all_buffer_sets() {
        let mut probe = rotation(Copier::default());
        for done in [[true, false, false], [true, true, false], [true, true, true]] {
            probe.launch().unwrap();
            assert_eq!(probe.sets.iter().map(|set| set.input == set.output).collect::<Vec<_>>(), done);
        }
        probe.engine.poison(&mut probe.sets[0].output).unwrap();
        probe.launch().unwrap();
        assert!(probe.sets[0].input == probe.sets[0].output);
        assert!(probe.sets[0].input != probe.sets[1].input && probe.sets[1].input != probe.sets[2].input);
    }

    #[test]
    fn skipped_launch_fails_the_check() {
        for set in 0..3 {
            let error = rotation(Copier { skips: Some(set), ..Copier::default() }).check().unwrap_err();
            let expected = ProbeTask::Copy { words: WORDS }.result(set, 0);
            assert_eq!(error, ProbeError::WrongResult { probe: "copy", set, word: 0, found: POISON, expected });
        }
    }

    #[test]
    fn stale_results_fail_the_check() {
        let mut probe = rotation(Copier { skips: Some(4), ..Copier::default() });
        assert_eq!(probe.check(), Ok(()));
        assert!(matches!(probe.check(), Err(ProbeError::WrongResult { set: 1, found: POISON, .. })));
    }

    #[test]
    fn single_wrong_bit_fails_the_check() {
        let error = rotation(Copier { flips: Some(777), ..Copier::default() }).check().unwrap_err();
        assert!(matches!(error, ProbeError::WrongResult { set: 0, word: 777, .. }), "{error}");
    }

    #[test]
    fn zero_buffer_sets_are_rejected() {
        assert_eq!(
            RotatingProbe::new(Copier::default(), ProbeTask::Spin { steps: 1 }, 0).err(),
            Some(ProbeError::NoSets)
        );
    }
}
