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

const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
const ENERGIES: [(&str, f64); 4] = [("nJ", 1e-9), ("µJ", 1e-6), ("mJ", 1e-3), ("J", 1.0)];
const BYTES: [(&str, f64); 5] =
    [("B", 1.0), ("KiB", 1024.0), ("MiB", 1048576.0), ("GiB", 1073741824.0), ("TiB", 1099511627776.0)];
const SI_PREFIXES: [(&str, f64); 6] = [("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15)];

impl NumberFormat {
    pub(super) fn write(self, value: f64) -> String {
        match self {
            Self::Ratio => format_ratio(value),
            Self::Time => scaled(value, &TIMES),
            Self::Bytes => scaled(value, &BYTES),
            Self::Percent => format!("{} %", digits(value, 3)),
            Self::Share => Self::Percent.write(100.0 * value),
            Self::Operations => scaled(value, &SI_PREFIXES) + "FLOP/s",
            Self::Gflops => Self::Operations.write(value * 1e9),
            Self::Tflops => Self::Operations.write(value * 1e12),
            Self::Gbps => scaled(value * 1e9, &SI_PREFIXES) + "B/s",
            Self::Size => scaled(value, &SI_PREFIXES).trim().to_owned(),
            Self::Intensity => digits(value, 2),
            Self::Plain => digits(value, 3),
            Self::Decibels => format!("{} dB", digits(value, 3)),
            Self::Megahertz => format!("{} MHz", digits(value, 4)),
            Self::Watts => format!("{} W", digits(value, 3)),
            Self::Celsius => format!("{} °C", digits(value, 3)),
            Self::Joules => scaled(value, &ENERGIES),
        }
    }
}

/// Formats at most `count` significant digits without trailing zeros.
fn digits(value: f64, count: usize) -> String {
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

/// Formats a ratio with three significant digits, including zeros, so that columns align.
fn format_ratio(ratio: f64) -> String {
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
        use NumberFormat::*;
        for (format, value, expected) in [
            (Time, 1500.0, "1.5 µs"),
            (Time, 999_900.0, "1 ms"),
            (Bytes, 3.0 * 1024.0 * 1024.0, "3 MiB"),
            (Tflops, 12.5, "12.5 TFLOP/s"),
            (Gbps, 0.5e-9, "0.5 B/s"),
            (Percent, 12.345, "12.3 %"),
            (Ratio, 2.0, "2.00×"),
            (Ratio, 0.051_23, "0.0512×"),
            (Ratio, 1234.0, "1234×"),
            (Size, 4096.0, "4.1 k"),
            (Joules, 2.5e-3, "2.5 mJ"),
            (Plain, 0.000_001_25, "1.25e-6"),
        ] {
            assert_eq!(format.write(value), expected);
        }
    }
}
