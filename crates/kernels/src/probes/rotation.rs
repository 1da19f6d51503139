//! A task with its sets of buffers, which take turns so that caches do not help, on any device.

use super::task::Task;
use super::{Probe, ProbeError};
use rayon::prelude::*;
use std::borrow::Cow;

/// One task on one device.
pub(super) trait Engine: Send {
    type Memory: Send;
    /// Memory that holds these words.
    fn input(&self, words: Vec<u32>) -> Result<Self::Memory, ProbeError>;
    /// Memory for so many words.
    fn output(&self, words: usize) -> Result<Self::Memory, ProbeError>;
    /// Fills an output with [`super::pattern::POISON`].
    fn poison(&self, output: &mut Self::Memory) -> Result<(), ProbeError>;
    /// What an output holds after everything launched so far.
    fn words<'a>(&self, output: &'a Self::Memory) -> Result<Cow<'a, [u32]>, ProbeError>;
    /// See [`Probe::launch`].
    fn launch(&self, input: &Self::Memory, output: &mut Self::Memory) -> Result<(), ProbeError>;
    /// See [`Probe::settle`].
    fn settle(&self) -> Result<(), ProbeError>;
}

/// A probe on an engine.
pub(super) struct Rotation<E: Engine> {
    engine: E,
    task: Task,
    sets: Vec<Set<E::Memory>>,
    next: usize,
}

struct Set<M> {
    input: M,
    output: M,
}

impl<E: Engine> Rotation<E> {
    pub(super) fn new(engine: E, task: Task, sets: u32) -> Result<Self, ProbeError> {
        if sets == 0 {
            return Err(ProbeError::NoSets);
        }
        let set = |set| Ok(Set { input: engine.input(task.input(set)?)?, output: engine.output(task.results())? });
        let sets = (0..sets).map(set).collect::<Result<_, ProbeError>>()?;
        Ok(Self { engine, task, sets, next: 0 })
    }

    fn compare(&self, set: u32, output: &E::Memory) -> Result<(), ProbeError> {
        let (task, found) = (self.task, self.engine.words(output)?);
        let wrong = found.par_iter().enumerate().position_first(|(index, &word)| word != task.result(set, index));
        wrong.map_or(Ok(()), |word| {
            let (found, expected) = (found[word], task.result(set, word));
            Err(ProbeError::Wrong { probe: task.name(), set, word, found, expected })
        })
    }
}

impl<E: Engine> Probe for Rotation<E> {
    fn launch(&mut self) -> Result<(), ProbeError> {
        let turn = self.next;
        self.next = (turn + 1) % self.sets.len();
        let Set { input, output } = &mut self.sets[turn];
        self.engine.launch(input, output)
    }

    fn settle(&mut self) -> Result<(), ProbeError> {
        self.engine.settle()
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

    /// Copies all but what it is told to spoil.
    #[derive(Default)]
    struct Copier {
        launches: AtomicU32,
        skips: Option<u32>,
        flips: Option<usize>,
    }

    impl Engine for Copier {
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

        fn settle(&self) -> Result<(), ProbeError> {
            Ok(())
        }
    }

    const WORDS: usize = 1000;

    fn rotation(copier: Copier) -> Rotation<Copier> {
        Rotation::new(copier, Task::Copy { words: WORDS }, 3).unwrap()
    }

    #[test]
    fn launches_take_every_set_in_turn() {
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
    fn a_launch_that_did_not_run_fails_the_check() {
        for set in 0..3 {
            let error = rotation(Copier { skips: Some(set), ..Copier::default() }).check().unwrap_err();
            let expected = Task::Copy { words: WORDS }.result(set, 0);
            assert_eq!(error, ProbeError::Wrong { probe: "copy", set, word: 0, found: POISON, expected });
        }
    }

    #[test]
    fn results_of_an_earlier_launch_do_not_pass_a_check() {
        let mut probe = rotation(Copier { skips: Some(4), ..Copier::default() });
        assert_eq!(probe.check(), Ok(()));
        assert!(matches!(probe.check(), Err(ProbeError::Wrong { set: 1, found: POISON, .. })));
    }

    #[test]
    fn a_single_wrong_bit_fails_the_check() {
        let error = rotation(Copier { flips: Some(777), ..Copier::default() }).check().unwrap_err();
        assert!(error.to_string().contains("at word 777 of set 0"), "{error}");
    }

    #[test]
    fn no_sets_are_refused() {
        assert_eq!(Rotation::new(Copier::default(), Task::Spin { steps: 1 }, 0).err(), Some(ProbeError::NoSets));
    }
}
