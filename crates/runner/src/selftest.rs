//! Self-test of the measurement: computations whose times or ratios are known in advance, and checks of the machine's
//! settings.

mod check;
mod checks;
mod company;
mod mock_rig;
mod rig;
mod settings;
mod together;

pub use check::Check;
pub use mock_rig::{Lies, MockRig};
pub use rig::{RealRig, Rig};

/// Runs every check and calls `show` after each. A check that fails with an error counts as not passed.
pub fn run(rig: &mut dyn Rig, show: &mut dyn FnMut(&Check)) -> Vec<Check> {
    let mut done = settings::look(rig);
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

    fn on(lies: Lies) -> Vec<Check> {
        run(&mut MockRig::new(lies), &mut |_| ())
    }

    fn named(checks: Vec<Check>, wanted: impl Fn(&Check) -> bool) -> Vec<&'static str> {
        checks.into_iter().filter(wanted).map(|check| check.name).collect()
    }

    #[test]
    fn everything_holds_on_a_clock_that_tells_the_truth() {
        for check in on(Lies::default()) {
            assert_eq!(check.passed, Some(true), "{check:?}");
        }
    }

    #[test]
    fn a_clock_or_device_that_lies_is_found_out() {
        let failing = |lies: Lies| named(on(lies), |check| check.passed == Some(false));
        assert!(failing(Lies { hidden_nanos: 50_000.0, ..Lies::default() }).contains(&"linear"));
        assert!(failing(Lies { coarseness: 1.15, ..Lies::default() }).contains(&"a 5 % slower kernel"));
        assert!(failing(Lies { second_share: 1.05, ..Lies::default() }).contains(&"order"));
        assert_eq!(failing(Lies { copy_gbps: 5_000.0, ..Lies::default() }), ["copy"]);
        assert_eq!(failing(Lies { cached_share: 2.0, ..Lies::default() }), ["cold and hot"]);
        assert_eq!(failing(Lies { cold_share: 0.5, ..Lies::default() }), ["cold and hot"]);
        assert_eq!(failing(Lies { graph_share: 0.9, ..Lies::default() }), ["clocks"]);
        assert_eq!(failing(Lies { other_clock_share: 1.02, ..Lies::default() }), ["clocks"]);
        assert_eq!(failing(Lies { hushed: true, ..Lies::default() }), ["isolation"]);
    }

    #[test]
    fn a_machine_that_scatters_is_told_from_one_that_lies() {
        let open = named(on(Lies { noise: 0.5, ..Lies::default() }), |check| check.passed.is_none());
        assert!(open.contains(&"a 5 % slower kernel") && open.contains(&"order"), "{open:?}");
    }

    #[test]
    fn a_setting_that_is_not_as_wanted_has_advice_and_fails_nothing() {
        let advised = |lies: Lies| {
            let checks = settings::look(&mut MockRig::new(lies));
            assert!(checks.iter().all(|check| check.passed != Some(false)), "{checks:?}");
            named(checks, |check| check.passed.is_none() && check.advice.is_some())
        };
        let with = |fact: &str, value: Value| {
            let mut lies = Lies::default();
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
        assert_eq!(advised(Lies { others: vec!["process 7".into()], ..Lies::default() }), ["other users"]);
    }
}
