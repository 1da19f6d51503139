//! State of an arm during its measurement, and the timing of its windows.

use crate::{Arm, DeviceState, Failure, LaunchEnergy, Observer, Overhead, Phase, TimingError, Window, Work};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// State of an arm during its measurement.
pub(crate) struct ArmState {
    pub launches: u32,
    pub reached_plateau: bool,
    pub energy: Option<LaunchEnergy>,
    pub windows: Vec<Window>,
    /// True if the device was throttled while the arm warmed up.
    pub throttled_in_warm_up: bool,
    /// Device state at the end of each window, if available.
    pub states: Vec<DeviceState>,
    /// Duration of each window including gaps, if the clock excludes them.
    pub spans: Vec<u64>,
    /// Lengths of the windows of a cycle, in order.
    pub lengths: [u32; WINDOW_LENGTHS.len()],
    pub discarded: u32,
    pub failure: Option<TimingError>,
    /// Time spent on the arm in all rounds.
    pub time_spent: Duration,
    /// True if the arm is precise enough or its time is spent: it is measured further only as a baseline of other arms.
    pub retired: bool,
}

impl ArmState {
    /// Removes the last window.
    pub(crate) fn pop_window(&mut self) {
        self.windows.pop();
        self.states.truncate(self.windows.len());
        self.spans.truncate(self.windows.len());
    }

    /// True if the device was throttled during warm-up, or in more windows than by chance.
    pub(crate) fn was_throttled(&self) -> bool {
        let throttled = self.states.iter().filter(|state| state.throttled).count();
        self.throttled_in_warm_up || throttled as f64 > MAX_CHANCE_SHARE * self.states.len() as f64
    }

    /// Creates an empty state.
    pub(crate) fn new() -> Self {
        Self {
            launches: 1,
            reached_plateau: false,
            energy: None,
            windows: vec![],
            throttled_in_warm_up: false,
            states: vec![],
            spans: vec![],
            lengths: WINDOW_LENGTHS,
            discarded: 0,
            failure: None,
            time_spent: Duration::ZERO,
            retired: false,
        }
    }
}

/// Share of throttled windows up to which the device does not count as throttled.
const MAX_CHANCE_SHARE: f64 = 0.1;
/// Multiples of the calibrated length; windows of several lengths separate a fixed cost from the launches.
pub(crate) const WINDOW_LENGTHS: [u32; 4] = [1, 2, 3, 4];
/// Launches that prime an arm again after a window with compilation.
const PRIMING_LAUNCHES: u32 = 3;

/// Times one window of an arm, interleaved with other arms.
pub(crate) fn measure_interleaved_window(
    arm: &mut Arm<'_>,
    lane: &mut ArmState,
    single: bool,
    rng: &mut ChaCha8Rng,
    observer: &mut dyn Observer,
) -> Result<(), TimingError> {
    if !single {
        // An untimed launch absorbs the cost of switching arms.
        arm.work.launch()?;
        arm.work.synchronize()?;
    }
    measure_burst(arm, lane, 1, Phase::Measure, rng, observer)
}

/// Times a burst of windows without pauses. If a kernel is compiled or tuned in one, all are discarded and repeated
/// once.
pub(crate) fn measure_burst(
    arm: &mut Arm<'_>,
    lane: &mut ArmState,
    windows: usize,
    phase: Phase,
    rng: &mut ChaCha8Rng,
    observer: &mut dyn Observer,
) -> Result<(), TimingError> {
    let overhead = arm.stopwatch.overhead();
    let first = lane.windows.len();
    let lengths: Vec<u32> = (first..first + windows).map(|at| window_length(overhead, lane, at, rng)).collect();
    let launches: Vec<u32> = lengths.into_iter().map(|length| lane.launches.saturating_mul(length)).collect();
    let mut primed = false;
    loop {
        let before = observer.jit_events();
        let nanos = arm.stopwatch.windows(arm.work, &launches)?;
        let events = observer.jit_events() - before;
        if events == 0 {
            if let Some(tracing) = arm.stopwatch.kernel_tracing() {
                lane.spans.extend_from_slice(tracing.window_spans());
            }
            lane.windows.extend(launches.into_iter().zip(nanos).map(|(launches, nanos)| Window { launches, nanos }));
            if let Some(state) = observer.state(phase) {
                lane.states.resize(lane.windows.len(), state);
            }
            return Ok(());
        }
        lane.discarded += windows as u32;
        if primed {
            return Err(TimingError::CompiledInWindow { events });
        }
        prime(arm.work)?;
        primed = true;
    }
}

fn prime(work: &mut dyn Work) -> Result<(), Failure> {
    for _ in 0..PRIMING_LAUNCHES {
        work.launch()?;
    }
    work.synchronize()
}

/// Length of a window as a multiple of the shortest. Only retained windows count: a window discarded with its round is
/// repeated at its length.
fn window_length(overhead: Overhead, lane: &mut ArmState, window: usize, rng: &mut ChaCha8Rng) -> u32 {
    if overhead == Overhead::Excluded {
        return 1;
    }
    let position = window % WINDOW_LENGTHS.len();
    if position == 0 {
        lane.lengths.shuffle(rng);
    }
    lane.lengths[position]
}
