//! The measuring measured: computations whose times, or differences, are known beforehand.

mod checks;
mod rig;

pub use rig::{Lies, MockRig, RealRig, Rig};

use serde::Serialize;

/// One thing that must hold if times are to be believed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What.
    pub name: &'static str,
    /// Whether it holds; absent where it does not apply to the device.
    pub passed: Option<bool>,
    /// The figure that was found, or why it does not apply.
    pub found: String,
    /// What it should be.
    pub wanted: &'static str,
}

/// Every check in turn; `show` hears of each. A check that cannot be made, because the device fails, does not hold.
pub fn run(rig: &mut dyn Rig, show: &mut dyn FnMut(&Check)) -> Vec<Check> {
    let mut done = Vec::new();
    for &(name, wanted, check) in checks::ALL {
        let (passed, found) = match check(rig) {
            Ok(Some((passed, found))) => (Some(passed), found),
            Ok(None) => (None, "does not apply to this device".into()),
            Err(error) => (Some(false), error.to_string()),
        };
        let check = Check { name, passed, found, wanted };
        show(&check);
        done.push(check);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(lies: Lies) -> Vec<(&'static str, Option<bool>)> {
        run(&mut MockRig::new(lies), &mut |_| ()).into_iter().map(|check| (check.name, check.passed)).collect()
    }

    #[test]
    fn everything_holds_on_a_clock_that_tells_the_truth() {
        for (name, passed) in on(Lies::default()) {
            assert_eq!(passed, Some(true), "{name}");
        }
    }

    #[test]
    fn a_clock_or_device_that_lies_is_found_out() {
        let failing = |lies: Lies| -> Vec<&'static str> {
            on(lies).into_iter().filter(|(_, passed)| *passed == Some(false)).map(|(name, _)| name).collect()
        };
        assert!(failing(Lies { hidden_nanos: 50_000.0, ..Lies::default() }).contains(&"linear"));
        assert!(failing(Lies { noise: 0.5, ..Lies::default() }).contains(&"a 5 % slower kernel"));
        assert_eq!(failing(Lies { copy_gbps: 5_000.0, ..Lies::default() }), ["copy"]);
        assert_eq!(failing(Lies { cached_share: 2.0, ..Lies::default() }), ["cold and hot"]);
        assert_eq!(failing(Lies { graph_share: 0.9, ..Lies::default() }), ["graph"]);
    }
}
