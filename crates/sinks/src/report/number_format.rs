//! Number formats of figures.

use serde::Serialize;

/// Number format; the page has a function of each name.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NumberFormat {
    /// Ratio with three significant digits.
    Ratio,
    /// Nanoseconds.
    Time,
    Bytes,
    Percent,
    /// Share of 1 in percent.
    Share,
    /// Operations per second.
    Operations,
    /// 10⁹ operations per second.
    Gflops,
    /// 10¹² operations per second.
    Tflops,
    /// 10⁹ bytes per second.
    Gbps,
    /// Number with an SI prefix.
    Size,
    Intensity,
    Plain,
    Decibels,
    Megahertz,
    Watts,
    Celsius,
    Joules,
}

impl NumberFormat {
    pub(super) fn write(self, value: f64) -> String {
        match self {
            Self::Ratio => format_ratio(value),
            Self::Time => time(value),
            Self::Bytes => bytes(value),
            Self::Percent => percent(value),
            Self::Share => percent(100.0 * value),
            Self::Operations => operations(value),
            Self::Gflops => operations(value * 1e9),
            Self::Tflops => operations(value * 1e12),
            Self::Gbps => bytes_per_second(value * 1e9),
            Self::Size => with_si_prefix(value).trim().to_owned(),
            Self::Intensity => digits(value, 2),
            Self::Plain => digits(value, 3),
            Self::Decibels => format!("{} dB", digits(value, 3)),
            Self::Megahertz => format!("{} MHz", digits(value, 4)),
            Self::Watts => format!("{} W", digits(value, 3)),
            Self::Celsius => format!("{} °C", digits(value, 3)),
            Self::Joules => scaled(value * 1e9, &[("nJ", 1.0), ("µJ", 1e3), ("mJ", 1e6), ("J", 1e9)]),
        }
    }
}

/// Formats at most `count` significant digits without trailing zeros.
pub(super) fn digits(value: f64, count: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let size = value.abs().log10().floor() as i32;
    if size < -4 {
        return format!("{value:.*e}", count - 1);
    }
    let decimals = (count as i32 - 1 - size).max(0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn scaled(value: f64, units: &[(&str, f64)]) -> String {
    // A value that rounds up to the next unit is written in that unit.
    let fitting = units.iter().rev().find(|(_, unit)| value.abs() >= unit * 0.9995).unwrap_or(&units[0]);
    format!("{} {}", digits(value / fitting.1, 3), fitting.0)
}

pub(super) fn bytes(value: f64) -> String {
    const KIB: f64 = 1024.0;
    let units =
        [("B", 1.0), ("KiB", KIB), ("MiB", KIB * KIB), ("GiB", KIB * KIB * KIB), ("TiB", KIB * KIB * KIB * KIB)];
    scaled(value, &units)
}

pub(super) fn time(nanos: f64) -> String {
    scaled(nanos, &[("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)])
}

/// Formats a value with an SI prefix.
pub(super) fn with_si_prefix(value: f64) -> String {
    scaled(value, &[("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15)])
}

pub(super) fn operations(per_second: f64) -> String {
    with_si_prefix(per_second) + "FLOP/s"
}

pub(super) fn bytes_per_second(value: f64) -> String {
    with_si_prefix(value) + "B/s"
}

pub(super) fn percent(value: f64) -> String {
    format!("{} %", digits(value, 3))
}

/// Formats a ratio with three significant digits, including zeros, so that columns align.
pub(super) fn format_ratio(ratio: f64) -> String {
    let size = ratio.abs().log10().floor();
    if !(-4.0..3.0).contains(&size) {
        return format!("{}×", digits(ratio, 3));
    }
    format!("{ratio:.*}×", (2 - size as i32).max(0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_few_digits() {
        let written = [
            time(1500.0),
            time(999_900.0),
            bytes(3.0 * 1024.0 * 1024.0),
            operations(1.25e13),
            bytes_per_second(0.5),
            percent(12.345),
            format_ratio(2.0),
            format_ratio(0.051_23),
            format_ratio(1234.0),
            with_si_prefix(4096.0),
            digits(0.000_001_25, 3),
        ];
        let expected = [
            "1.5 µs",
            "1 ms",
            "3 MiB",
            "12.5 TFLOP/s",
            "0.5 B/s",
            "12.3 %",
            "2.00×",
            "0.0512×",
            "1234×",
            "4.1 k",
            "1.25e-6",
        ];
        assert_eq!(written, expected);
    }
}
