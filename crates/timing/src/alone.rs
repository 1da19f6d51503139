//! Isolated measurement: each arm is timed back to back, without other arms between its windows.
//!
//! The clock of a power-capped device depends on the load of the last second. Interleaved with a light arm, a heavy arm
//! ran 12 % faster on one GPU than in a loop by itself. If the device was throttled, each arm is therefore timed again
//! after a lead-in of its own load. That time is independent of the other arms.

use crate::calibrate::timed;
use crate::energy;
use crate::lane::{Lane, stretch};
use crate::{Arm, Observer, Options, Phase, StopRule, TimingError};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// Minimum load before the first window that counts. On an H200 the clock of a large matmul still drops after 0.6 s,
/// and hardly after 1 s.
const LEAD: Duration = Duration::from_secs(1);
/// Maximum lead-in if bursts do not agree earlier.
const LONGEST_LEAD: Duration = Duration::from_secs(3);
/// Maximum relative difference of two successive bursts at the end of the lead-in.
const WITHIN: f64 = 0.01;
/// Approximate duration of a burst, the windows between two pauses: synchronizing and reading clocks takes a few
/// milliseconds.
const STRETCH: Duration = Duration::from_millis(400);
/// Maximum number of windows in a burst.
const MOST: u64 = 400;

/// Times each arm in isolation, in random order, if the device was throttled while any of them ran; otherwise returns
/// an empty list.
pub fn blocks(
    arms: &mut [Arm<'_>],
    lanes: &mut [Lane],
    options: &Options,
    rng: &mut ChaCha8Rng,
    observer: &mut dyn Observer,
) -> Vec<Option<Lane>> {
    if !lanes.iter().any(Lane::held_back) {
        return Vec::new();
    }
    let mut blocks: Vec<Option<Lane>> = lanes.iter().map(|_| None).collect();
    let mut order: Vec<usize> = (0..arms.len()).filter(|&index| lanes[index].failure.is_none()).collect();
    order.shuffle(rng);
    for index in order {
        if observer.interrupted() {
            break;
        }
        match block(index, &mut arms[index], lanes[index].launches, options, rng, observer) {
            Ok(block) => blocks[index] = Some(block),
            Err(failure) => lanes[index].failure = Some(failure),
        }
    }
    blocks
}

fn block(
    index: usize,
    arm: &mut Arm<'_>,
    launches: u32,
    options: &Options,
    rng: &mut ChaCha8Rng,
    observer: &mut dyn Observer,
) -> Result<Lane, TimingError> {
    observer.touch(index, Phase::Alone);
    let mut lead_in = Lane { launches, ..Lane::new() };
    let window_nanos = timed(arm.stopwatch, arm.work, launches)?.max(1);
    let windows = (STRETCH.as_nanos() as u64 / window_nanos).clamp(1, MOST) as usize;
    let (mut start, mut previous) = (arm.stopwatch.now(), None);
    let settled = loop {
        let first = lead_in.windows.len();
        stretch(arm, &mut lead_in, windows, Phase::Alone, rng, observer)?;
        let current = arm.estimate(&lead_in.windows[first..]).map(|time| time.median);
        let agree = previous
            .zip(current)
            .is_some_and(|(previous, current): (f64, f64)| (current / previous - 1.0).abs() <= WITHIN);
        let elapsed = arm.stopwatch.now().saturating_sub(start);
        if elapsed >= LONGEST_LEAD || observer.interrupted() {
            break agree;
        }
        if agree && elapsed >= LEAD {
            break true;
        }
        previous = current;
    };
    let mut lane = Lane { launches, settled, discarded: lead_in.discarded, ..Lane::new() };
    let mut rule = StopRule::new(options, 1);
    start = arm.stopwatch.now();
    loop {
        stretch(arm, &mut lane, windows, Phase::Alone, rng, observer)?;
        let (rounds, elapsed) = (lane.windows.len() as u32, arm.stopwatch.now().saturating_sub(start));
        let precise = rule.looks(rounds, elapsed) && {
            let time = arm.estimate(&lane.windows);
            rule.narrow(time.and_then(|time| time.relative_half_width()))
        };
        if precise || rule.exhausted(rounds, elapsed) || observer.interrupted() {
            lane.energy = energy::follow(arm, launches, options, observer)?;
            return Ok(lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Arm, Measurement, MockClock, MockWork, Observer, Options, Phase, Script, State, Stopwatch, measure};

    /// Sensors of a mock machine.
    struct Sensors(MockClock);

    impl Observer for Sensors {
        fn state(&mut self, _: Phase) -> Option<State> {
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
            .map(|of| (MockWork::pair(script(of)).0, first.beside(Script { seed: of.0 as u64, ..script(of) })))
            .collect();
        let arms = pairs.iter_mut().enumerate().map(|(index, (work, clock))| {
            let arm = Arm::new(work, clock);
            if index == 0 { arm } else { arm.against(0) }
        });
        let outcome = measure(&mut arms.collect::<Vec<_>>(), &Options::default(), &mut Sensors(first.clone()));
        outcome.into_iter().map(Result::unwrap).collect()
    }

    #[test]
    fn an_arm_under_a_power_cap_has_one_time_alone_and_in_any_company() {
        let (heavy, light) = ((1e6, 1.25), (3e6, 0.4));
        let steady = 1.25e6;
        let single = measured(&[heavy]).remove(0);
        let first = measured(&[heavy, light]).remove(0);
        let last = measured(&[light, light, light, heavy]).remove(3);
        for (name, arm) in [("alone", &single), ("first", &first), ("last", &last)] {
            assert!((arm.time.median / steady - 1.0).abs() < 0.005, "{name}: {:?}", arm.time);
            assert!(arm.states.iter().all(|state| state.held_back), "{name}");
            assert_eq!(arm.states.len(), arm.windows.len(), "{name}");
        }
        assert_eq!(single.in_turns, None);
        for (name, arm) in [("alone", &single), ("first", &first), ("last", &last)] {
            // Energy at the sustained clock, not at the initial one.
            let joules = arm.energy.unwrap().joules;
            assert!((joules / (700.0 * steady / 1e9) - 1.0).abs() < 0.01, "{name}: {joules}");
        }
        // Interleaved with light arms, the cap is hardly reached; that time has its own field.
        assert!(first.in_turns.unwrap().median < 1.05e6 && last.in_turns.unwrap().median < 1.05e6, "{first:?}");
        let (own, in_turns) = (last.comparison.unwrap().ratio, last.comparison_in_turns.unwrap().ratio);
        assert!((own - 3e6 / steady).abs() < 0.02 && (in_turns - 3.0).abs() < 0.15, "{own} {in_turns}");
    }

    #[test]
    fn a_light_arm_is_not_slowed_down_by_the_heat_of_its_neighbor() {
        let light = &measured(&[(1e6, 1.8), (1e6, 0.4)])[1];
        assert!((light.time.median / 1e6 - 1.0).abs() < 0.005, "{:?}", light.time);
        assert!(light.in_turns.unwrap().median > 1.03e6, "{:?}", light.in_turns);
    }

    /// Reports a compilation in the first windows of the isolated measurement.
    struct Late {
        sensors: Sensors,
        calls: u64,
    }

    impl Observer for Late {
        fn touch(&mut self, _: usize, phase: Phase) {
            self.calls = u64::from(phase == Phase::Alone);
        }
        fn disturbances(&mut self) -> u64 {
            if self.calls == 0 {
                return 0;
            }
            self.calls += 1;
            // The second query follows the windows.
            u64::from(self.calls > 2)
        }
        fn state(&mut self, phase: Phase) -> Option<State> {
            self.sensors.state(phase)
        }
    }

    #[test]
    fn windows_thrown_away_alone_are_counted_too() {
        let (mut work, mut clock) = MockWork::pair(Script { nanos: 1e6, load: 1.25, ..Script::default() });
        let mut late = Late { sensors: Sensors(clock.clone()), calls: 0 };
        let measured = measure(&mut [Arm::new(&mut work, &mut clock)], &Options::default(), &mut late).remove(0);
        assert!(measured.unwrap().discarded > 1);
    }

    #[test]
    fn arms_that_nothing_holds_back_are_timed_in_turns_alone() {
        let cool = measured(&[(1e6, 0.7), (2e6, 0.9)]);
        for arm in &cool {
            assert_eq!((arm.in_turns, arm.comparison_in_turns), (None, None));
        }
        assert!(cool[1].comparison.is_some());
    }
}
