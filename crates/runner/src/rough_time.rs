//! Times of waiting, as people say them.

/// So many seconds in the unit that suits them, as finely as anybody can wait: `8 s`, `45 s`, `3 min`, `2 h 20 min`, `3 days`.
pub fn rough(seconds: f64) -> String {
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

/// Two ends, `20 s to 2 min`, or what both are.
pub fn between(least: f64, most: f64) -> String {
    let (least, most) = (rough(least), rough(most));
    if least == most { least } else { format!("{least} to {most}") }
}

/// What a clock shows of so many seconds: `0:07`, `1:02:03`.
pub fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_unit_and_the_digits_that_somebody_who_waits_can_use() {
        for (seconds, said) in [
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
            assert_eq!(rough(seconds), said);
        }
        assert_eq!((between(20.0, 110.0).as_str(), between(7.0, 7.2).as_str()), ("20 s to 2 min", "7 s"));
        assert_eq!([7, 62, 3723].map(clock), ["0:07", "1:02", "1:02:03"]);
    }
}
