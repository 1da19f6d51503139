//! Self-test of the measurement: computations whose times or ratios are known in advance, and checks of the machine's
//! settings.

mod check;
mod checks;
mod isolation;
mod measurement;
mod mock_rig;
mod rig;
mod settings;

pub use check::Check;
pub use mock_rig::{MockFaults, MockRig};
pub use rig::{RealRig, Rig};

use std::time::Duration;

/// Predicted minimum and maximum seconds of the comparisons that take most of the time. A measurement ends when its
/// interval is narrow enough, or at its time limit.
pub fn predicted_seconds() -> (f64, f64) {
    let options = measurement::options();
    let arms = f64::from(checks::COMPARED_ARMS + isolation::COMPARED_ARMS);
    let seconds = |warm_up: Duration, time: Duration| arms * (warm_up + time).as_secs_f64();
    (seconds(options.warm_up, options.min_time), seconds(options.max_warm_up, options.max_time))
}

/// Runs every check and calls `show` after each. A check that fails with an error counts as not passed.
pub fn run(rig: &mut dyn Rig, show: &mut dyn FnMut(&Check)) -> Vec<Check> {
    let mut done = settings::check_settings(rig);
    done.iter().for_each(&mut *show);
    for &(name, wanted, check) in checks::ALL {
        let (passed, found) = check(rig).unwrap_or_else(|error| (Some(false), error.to_string()));
        let check = Check { name, passed, found, wanted, advice: None };
        show(&check);
        done.push(check);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn on(lies: MockFaults) -> Vec<Check> {
        run(&mut MockRig::new(lies), &mut |_| ())
    }

    fn names_of(checks: Vec<Check>, wanted: impl Fn(&Check) -> bool) -> Vec<&'static str> {
        checks.into_iter().filter(wanted).map(|check| check.name).collect()
    }

    #[test]
    fn every_check_passes_on_an_accurate_clock() {
        for check in on(MockFaults::default()) {
            assert_eq!(check.passed, Some(true), "{check:?}");
        }
    }

    #[test]
    fn prediction_covers_most_measurements() {
        let before = measurement::measured_arms();
        on(MockFaults::default());
        let measured = measurement::measured_arms() - before;
        let predicted = checks::COMPARED_ARMS + isolation::COMPARED_ARMS;
        assert!(predicted <= measured && measured <= predicted * 5 / 4, "{measured} measured, {predicted} predicted");
    }

    #[test]
    fn wrong_clocks_and_devices_fail() {
        let failing = |lies: MockFaults| names_of(on(lies), |check| check.passed == Some(false));
        assert!(failing(MockFaults { extra_launch_nanos: 50_000.0, ..MockFaults::default() }).contains(&"linear"));
        assert!(failing(MockFaults { rounding_base: 1.15, ..MockFaults::default() }).contains(&"a 5 % slower kernel"));
        assert!(failing(MockFaults { second_share: 1.05, ..MockFaults::default() }).contains(&"order"));
        assert_eq!(failing(MockFaults { copy_gbps: 5_000.0, ..MockFaults::default() }), ["copy"]);
        assert_eq!(failing(MockFaults { cached_share: 2.0, ..MockFaults::default() }), ["cold and hot"]);
        assert_eq!(failing(MockFaults { cold_share: 0.5, ..MockFaults::default() }), ["cold and hot"]);
        assert_eq!(failing(MockFaults { graph_share: 0.9, ..MockFaults::default() }), ["clocks"]);
        assert_eq!(failing(MockFaults { other_clock_share: 1.02, ..MockFaults::default() }), ["clocks"]);
        assert_eq!(failing(MockFaults { hides_throttling: true, ..MockFaults::default() }), ["isolation"]);
    }

    #[test]
    fn noisy_machine_is_inconclusive() {
        let open = names_of(on(MockFaults { noise: 0.5, ..MockFaults::default() }), |check| check.passed.is_none());
        assert!(open.contains(&"a 5 % slower kernel") && open.contains(&"order"), "{open:?}");
    }

    #[test]
    fn bad_settings_give_advice_only() {
        let advised = |lies: MockFaults| {
            let checks = settings::check_settings(&mut MockRig::new(lies));
            assert!(checks.iter().all(|check| check.passed != Some(false)), "{checks:?}");
            names_of(checks, |check| check.passed.is_none() && check.advice.is_some())
        };
        let with = |fact: &str, value: Value| {
            let mut lies = MockFaults::default();
            lies.facts[fact] = value;
            lies
        };
        for (fact, value, name) in [
            ("persistence_mode", json!(false), "persistence mode"),
            ("mig", json!(true), "MIG"),
            ("ecc", json!(false), "ECC"),
            ("application_clocks", json!("1200/2619 MHz"), "application clocks"),
            ("clock_offsets", json!("100/0 MHz"), "clock offsets"),
            ("power_limit_w", json!(500), "power limit"),
            ("governor", json!("powersave"), "governor"),
            ("turbo", json!(true), "turbo"),
            ("smt", json!(true), "SMT"),
            ("virtual_machine", json!(true), "machine"),
        ] {
            assert_eq!(advised(with(fact, value)), [name]);
        }
        assert_eq!(
            advised(MockFaults { other_users: vec!["process 7".into()], ..MockFaults::default() }),
            ["other users"]
        );
    }
}
