//! What is known of an arm while it is measured, and its next window.

use crate::{Arm, Energy, Failure, Observer, Overhead, Phase, State, TimingError, Window, Work};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// What the rounds know of an arm.
pub struct Lane {
    pub launches: u32,
    pub settled: bool,
    pub energy: Option<Energy>,
    pub windows: Vec<Window>,
    /// Whether the device was held back while the arm warmed up.
    pub held_back_warming_up: bool,
    /// What the device said at the end of each window, if it says anything.
    pub states: Vec<State>,
    /// How long each window took with its gaps, where the clock leaves them out.
    pub spans: Vec<u64>,
    /// The lengths of every four windows in a row, in their order.
    pub lengths: [u32; LENGTHS.len()],
    pub discarded: u32,
    pub failure: Option<TimingError>,
    /// Time that its turns took.
    pub spent: Duration,
    /// Whether it is told precisely enough, or its time is up: it goes on only as somebody's baseline.
    pub retired: bool,
}

impl Lane {
    /// Takes the last window back.
    pub fn pop(&mut self) {
        self.windows.pop();
        self.states.truncate(self.windows.len());
        self.spans.truncate(self.windows.len());
    }

    /// Whether the device was held back, while it warmed up or in more windows than by chance.
    pub fn held_back(&self) -> bool {
        let held = self.states.iter().filter(|state| state.held_back).count();
        self.held_back_warming_up || held as f64 > BY_CHANCE * self.states.len() as f64
    }

    /// Nothing yet.
    pub fn new() -> Self {
        Self {
            launches: 1,
            settled: false,
            energy: None,
            windows: vec![],
            held_back_warming_up: false,
            states: vec![],
            spans: vec![],
            lengths: LENGTHS,
            discarded: 0,
            failure: None,
            spent: Duration::ZERO,
            retired: false,
        }
    }
}

/// A device that was held back in no larger share of the windows was not held back.
const BY_CHANCE: f64 = 0.1;
/// Windows of these multiples of the calibrated length separate a fixed cost from the launches.
pub const LENGTHS: [u32; 4] = [1, 2, 3, 4];
/// Launches that prime an arm again after a disturbed window.
const PRIMING: u32 = 3;

/// Times one window of an arm in turns with others.
pub fn round(
    arm: &mut Arm<'_>,
    lane: &mut Lane,
    alone: bool,
    rng: &mut ChaCha8Rng,
    observer: &mut dyn Observer,
) -> Result<(), TimingError> {
    if !alone {
        // One untimed launch takes the cost of switching arms.
        arm.work.launch()?;
        arm.work.settle()?;
    }
    stretch(arm, lane, 1, Phase::Measure, rng, observer)
}

/// Times some windows of an arm with no rest between them. Should a kernel be compiled or tuned in one, all are thrown away,
/// once.
pub fn stretch(
    arm: &mut Arm<'_>,
    lane: &mut Lane,
    windows: usize,
    phase: Phase,
    rng: &mut ChaCha8Rng,
    observer: &mut dyn Observer,
) -> Result<(), TimingError> {
    let overhead = arm.stopwatch.overhead();
    let first = lane.windows.len();
    let lengths: Vec<u32> = (first..first + windows).map(|at| length(overhead, lane, at, rng)).collect();
    let launches: Vec<u32> = lengths.into_iter().map(|length| lane.launches.saturating_mul(length)).collect();
    let mut primed = false;
    loop {
        let before = observer.disturbances();
        let nanos = arm.stopwatch.windows(arm.work, &launches)?;
        let events = observer.disturbances() - before;
        if events == 0 {
            lane.spans.extend_from_slice(arm.stopwatch.spans_of_windows());
            lane.windows.extend(launches.into_iter().zip(nanos).map(|(launches, nanos)| Window { launches, nanos }));
            if let Some(state) = observer.state(phase) {
                lane.states.resize(lane.windows.len(), state);
            }
            return Ok(());
        }
        lane.discarded += windows as u32;
        if primed {
            return Err(TimingError::NotSilent { events });
        }
        prime(arm.work)?;
        primed = true;
    }
}

fn prime(work: &mut dyn Work) -> Result<(), Failure> {
    for _ in 0..PRIMING {
        work.launch()?;
    }
    work.settle()
}

/// The length of a window, as a multiple of the shortest. Counted by the windows that are kept: one that a spoilt round threw
/// away is measured again at its length.
fn length(overhead: Overhead, lane: &mut Lane, window: usize, rng: &mut ChaCha8Rng) -> u32 {
    if overhead == Overhead::Outside {
        return 1;
    }
    let place = window % LENGTHS.len();
    if place == 0 {
        lane.lengths.shuffle(rng);
    }
    lane.lengths[place]
}
