//! Isolated measurement: each arm is timed back to back, without other arms between its windows.
//!
//! The clock of a power-capped device depends on the load of the last second. Interleaved with a light arm, a heavy arm
//! ran 12 % faster on one GPU than in a loop by itself. If the device was throttled, each arm is therefore timed again
//! after a lead-in of its own load. That time is independent of the other arms.

use crate::arm_state::{ArmState, measure_burst};
use crate::calibrate::time_window;
use crate::energy;
use crate::{Arm, Observer, Options, Phase, StopRule, TimingError};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// Minimum load before the first window that counts, if the device was not throttled before. On an H200 the clock of a
/// large matmul still drops after 0.6 s, and hardly after 1 s.
const MIN_LEAD: Duration = Duration::from_secs(1);
/// Minimum load directly after another arm that was throttled: the device is hot, and only its clock changes.
const MIN_HOT_LEAD: Duration = Duration::from_millis(300);
/// Maximum lead-in if bursts do not agree earlier.
const MAX_LEAD: Duration = Duration::from_secs(3);
/// Maximum relative difference of two successive bursts at the end of the lead-in.
const LEAD_TOLERANCE: f64 = 0.01;
/// Approximate duration of a burst, the windows between two pauses: synchronizing and reading clocks takes a few
/// milliseconds.
const BURST_DURATION: Duration = Duration::from_millis(150);
/// Maximum number of windows in a burst.
const MAX_BURST_WINDOWS: u64 = 400;

/// Times each arm in isolation, in random order, if the device was throttled while any of them ran; otherwise returns
/// an empty list.
pub(crate) fn measure_isolated(
    arms: &mut [Arm<'_>],
    lanes: &mut [ArmState],
    options: &Options,
    rng: &mut ChaCha8Rng,
    observer: &mut dyn Observer,
) -> Vec<Option<ArmState>> {
    if !lanes.iter().any(ArmState::was_throttled) {
        return Vec::new();
    }
    let mut blocks: Vec<Option<ArmState>> = lanes.iter().map(|_| None).collect();
    let mut order: Vec<usize> = (0..arms.len()).filter(|&index| lanes[index].failure.is_none()).collect();
    order.shuffle(rng);
    let mut is_hot = false;
    for index in order {
        if observer.interrupted() {
            break;
        }
        let min_lead = if is_hot { MIN_HOT_LEAD } else { MIN_LEAD };
        match measure_isolated_arm(index, &mut arms[index], lanes[index].launches, min_lead, options, rng, observer) {
            Ok(block) => {
                is_hot = block.states.last().is_some_and(|state| state.throttled);
                blocks[index] = Some(block);
            }
            Err(failure) => lanes[index].failure = Some(failure),
        }
    }
    blocks
}

fn measure_isolated_arm(
    index: usize,
    arm: &mut Arm<'_>,
    launches: u32,
    min_lead: Duration,
    options: &Options,
    rng: &mut ChaCha8Rng,
    observer: &mut dyn Observer,
) -> Result<ArmState, TimingError> {
    observer.before_launch(index, Phase::Isolated);
    let window_nanos = time_window(arm.stopwatch, arm.work, launches)?.max(1);
    let windows = (BURST_DURATION.as_nanos() as u64 / window_nanos).clamp(1, MAX_BURST_WINDOWS) as usize;
    // An arm that the device does not throttle runs at the full clock from the start.
    let mut lead_in = LeadIn::run(arm, launches, windows, [Duration::ZERO, min_lead], rng, observer)?;
    let mut lane = measure_settled_arm(arm, launches, windows, options, rng, observer)?;
    let mut discarded = lead_in.discarded + lane.discarded;
    if lead_in.duration < min_lead && lane.states.iter().any(|state| state.throttled) && !observer.interrupted() {
        // The device throttled the arm after all: only a full lead-in reaches the steady clock.
        lead_in = LeadIn::run(arm, launches, windows, [min_lead; 2], rng, observer)?;
        lane = measure_settled_arm(arm, launches, windows, options, rng, observer)?;
        discarded += lead_in.discarded + lane.discarded;
    }
    lane.energy = energy::measure_energy(arm, launches, options, observer)?;
    Ok(ArmState { reached_plateau: lead_in.settled, discarded, ..lane })
}

/// Load before the windows that count.
struct LeadIn {
    duration: Duration,
    /// True if the last two bursts agree.
    settled: bool,
    /// Windows discarded because a kernel was compiled or tuned inside them.
    discarded: u32,
}

impl LeadIn {
    /// Runs bursts of `windows` windows until two successive ones agree, for at least the first minimum if the device
    /// throttled neither of them, and otherwise for the second.
    fn run(
        arm: &mut Arm<'_>,
        launches: u32,
        windows: usize,
        [min_unthrottled, min_throttled]: [Duration; 2],
        rng: &mut ChaCha8Rng,
        observer: &mut dyn Observer,
    ) -> Result<Self, TimingError> {
        let mut lane = ArmState { launches, ..ArmState::new() };
        let (start, mut previous, mut throttled_bursts) = (arm.stopwatch.now(), None, [true; 2]);
        loop {
            let first = lane.windows.len();
            measure_burst(arm, &mut lane, windows, Phase::Isolated, rng, observer)?;
            let current = arm.estimate(&lane.windows[first..]).map(|time| time.median);
            throttled_bursts = [throttled_bursts[1], lane.states.last().is_none_or(|state| state.throttled)];
            let settled = previous
                .zip(current)
                .is_some_and(|(previous, current): (f64, f64)| (current / previous - 1.0).abs() <= LEAD_TOLERANCE);
            let duration = arm.stopwatch.now().saturating_sub(start);
            let min_duration = if throttled_bursts == [false; 2] { min_unthrottled } else { min_throttled };
            if duration >= MAX_LEAD || observer.interrupted() || (settled && duration >= min_duration) {
                return Ok(Self { duration, settled, discarded: lane.discarded });
            }
            previous = current;
        }
    }
}

/// Measures an arm after its lead-in, until it is precise or its time is spent.
fn measure_settled_arm(
    arm: &mut Arm<'_>,
    launches: u32,
    windows: usize,
    options: &Options,
    rng: &mut ChaCha8Rng,
    observer: &mut dyn Observer,
) -> Result<ArmState, TimingError> {
    let mut lane = ArmState { launches, ..ArmState::new() };
    let mut rule = StopRule::new(options, 1);
    let start = arm.stopwatch.now();
    loop {
        measure_burst(arm, &mut lane, windows, Phase::Isolated, rng, observer)?;
        let (rounds, elapsed) = (lane.windows.len() as u32, arm.stopwatch.now().saturating_sub(start));
        let precise = rule.is_checkpoint(rounds, elapsed) && {
            let time = arm.estimate(&lane.windows);
            rule.is_precise(time.and_then(|time| time.relative_half_width()))
        };
        if precise || rule.is_exhausted(rounds, elapsed) || observer.interrupted() {
            return Ok(lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Arm, DeviceState, Measurement, MockClock, MockWork, Observer, Options, Phase, Script, Stopwatch, measure,
    };

    /// Sensors of a mock machine.
    struct Sensors(MockClock);

    impl Observer for Sensors {
        fn state(&mut self, _: Phase) -> Option<DeviceState> {
            Some(self.0.state())
        }

        /// Energy at a constant 700 W.
        fn joules(&mut self) -> Option<f64> {
            Some(700.0 * self.0.now().as_secs_f64())
        }
    }

    /// Measures arms with these times at the full clock and these loads; the first is the baseline of all.
    fn measured(scripts: &[(f64, f64)]) -> Vec<Measurement> {
        let script = |&(nanos, load): &(f64, f64)| Script { nanos, load, noise: 0.002, ..Script::default() };
        let first = MockClock::new(script(&scripts[0]));
        let mut pairs: Vec<(MockWork, MockClock)> = scripts
            .iter()
            .map(|of| {
                (MockWork::pair(script(of)).0, first.with_shared_machine(Script { seed: of.0 as u64, ..script(of) }))
            })
            .collect();
        let arms = pairs.iter_mut().enumerate().map(|(index, (work, clock))| {
            let arm = Arm::new(work, clock);
            if index == 0 { arm } else { arm.against(0) }
        });
        let outcome = measure(&mut arms.collect::<Vec<_>>(), &Options::default(), &mut Sensors(first.clone()));
        outcome.into_iter().map(Result::unwrap).collect()
    }

    #[test]
    fn isolated_time_is_independent_of_other_arms() {
        let (heavy, light) = ((1e6, 1.25), (3e6, 0.4));
        let steady = 1.25e6;
        let single = measured(&[heavy]).remove(0);
        let first = measured(&[heavy, light]).remove(0);
        let last = measured(&[light, light, light, heavy]).remove(3);
        for (name, arm) in [("alone", &single), ("first", &first), ("last", &last)] {
            assert!((arm.time.median / steady - 1.0).abs() < 0.005, "{name}: {:?}", arm.time);
            assert!(arm.states.iter().all(|state| state.throttled), "{name}");
            assert_eq!(arm.states.len(), arm.windows.len(), "{name}");
        }
        assert_eq!(single.interleaved, None);
        for (name, arm) in [("alone", &single), ("first", &first), ("last", &last)] {
            // Energy at the sustained clock, not at the initial one.
            let joules = arm.energy.unwrap().joules;
            assert!((joules / (700.0 * steady / 1e9) - 1.0).abs() < 0.01, "{name}: {joules}");
        }
        // Interleaved with light arms, the cap is hardly reached; that time has its own field.
        assert!(first.interleaved.unwrap().median < 1.05e6 && last.interleaved.unwrap().median < 1.05e6, "{first:?}");
        let (own, in_turns) = (last.comparison.unwrap().ratio, last.interleaved_comparison.unwrap().ratio);
        assert!((own - 3e6 / steady).abs() < 0.02 && (in_turns - 3.0).abs() < 0.15, "{own} {in_turns}");
    }

    #[test]
    fn late_throttling_lengthens_the_lead_in() {
        // After a light arm, the last of these exceeds the power limit only after 0.45 s of its own load.
        let (heavy, light, late) = ((1e6, 1.8), (3e6, 0.1), (2e6, 1.01));
        for arms in [[heavy, light, late], [light, heavy, late], [late, heavy, light], [late, light, heavy]] {
            let index = arms.iter().position(|arm| *arm == late).unwrap();
            let own = measured(&arms).remove(index);
            assert!(own.states.iter().all(|state| state.throttled), "{arms:?}: {:?}", own.time);
        }
    }

    #[test]
    fn isolated_light_arm_runs_at_full_clock() {
        let light = &measured(&[(1e6, 1.8), (1e6, 0.4)])[1];
        assert!((light.time.median / 1e6 - 1.0).abs() < 0.005, "{:?}", light.time);
        assert!(light.interleaved.unwrap().median > 1.03e6, "{:?}", light.interleaved);
    }

    /// Reports a compilation in the first windows of the isolated measurement.
    struct Late {
        sensors: Sensors,
        calls: u64,
    }

    impl Observer for Late {
        fn before_launch(&mut self, _: usize, phase: Phase) {
            self.calls = u64::from(phase == Phase::Isolated);
        }
        fn jit_events(&mut self) -> u64 {
            if self.calls == 0 {
                return 0;
            }
            self.calls += 1;
            // The second query follows the windows.
            u64::from(self.calls > 2)
        }
        fn state(&mut self, phase: Phase) -> Option<DeviceState> {
            self.sensors.state(phase)
        }
    }

    #[test]
    fn discarded_isolated_windows_are_counted() {
        let (mut work, mut clock) = MockWork::pair(Script { nanos: 1e6, load: 1.25, ..Script::default() });
        let mut late = Late { sensors: Sensors(clock.clone()), calls: 0 };
        let measured = measure(&mut [Arm::new(&mut work, &mut clock)], &Options::default(), &mut late).remove(0);
        assert!(measured.unwrap().discarded > 1);
    }

    #[test]
    fn unthrottled_arms_are_only_interleaved() {
        let cool = measured(&[(1e6, 0.7), (2e6, 0.9)]);
        for arm in &cool {
            assert_eq!((arm.interleaved, arm.interleaved_comparison), (None, None));
        }
        assert!(cool[1].comparison.is_some());
    }
}
