//! Human-readable durations.

use calorimeter_sinks::log_line;

/// Commands that may take longer announce their duration, in seconds.
const LONG_SECONDS: f64 = 30.0;

/// Assumption behind the predicted duration of a plan.
pub(crate) const PLAN_ASSUMPTION: &str = ", if kernels are tuned and peaks are measured; otherwise longer";

/// Announces the predicted duration of a command in seconds on standard error, if it is long. The text ends with the
/// assumption behind the prediction.
pub(crate) fn announce_duration(min: f64, max: f64, assumption: &str) {
    if max > LONG_SECONDS {
        log_line!("expected duration: {}{assumption}", rough_range(min, max));
    }
}

/// Formats seconds in a suitable unit, rounded: `8 s`, `45 s`, `3 min`, `2 h 20 min`, `3 days`.
pub(crate) fn rough_duration(seconds: f64) -> String {
    let to = |step: f64| (seconds / step).round().max(1.0) * step;
    match seconds {
        ..19.5 => format!("{} s", to(1.0)),
        ..87.5 => format!("{} s", to(5.0)),
        ..3570.0 => format!("{} min", to(60.0) / 60.0),
        ..129_600.0 => {
            let minutes = (to(600.0) / 60.0) as u64;
            match minutes % 60 {
                0 => format!("{} h", minutes / 60),
                rest => format!("{} h {rest} min", minutes / 60),
            }
        }
        _ => format!("{} days", to(86_400.0) / 86_400.0),
    }
}

/// Formats a range, e.g. `20 s to 2 min`; a single value if both ends round to it.
pub(crate) fn rough_range(min: f64, max: f64) -> String {
    let (min, max) = (rough_duration(min), rough_duration(max));
    if min == max { min } else { format!("{min} to {max}") }
}

/// Formats seconds as a clock: `0:07`, `1:02:03`.
pub(crate) fn clock_time(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_suitable_units_and_digits() {
        for (seconds, expected) in [
            (0.2, "1 s"),
            (7.6, "8 s"),
            (43.0, "45 s"),
            (86.0, "85 s"),
            (95.0, "2 min"),
            (3569.0, "59 min"),
            (3571.0, "1 h"),
            (8_300.0, "2 h 20 min"),
            (200_000.0, "2 days"),
        ] {
            assert_eq!(rough_duration(seconds), expected);
        }
        assert_eq!((rough_range(20.0, 110.0).as_str(), rough_range(7.0, 7.2).as_str()), ("20 s to 2 min", "7 s"));
        assert_eq!([7, 62, 3723].map(clock_time), ["0:07", "1:02", "1:02:03"]);
    }
}
