//! Text formatting of values and sentences.

use super::escape::is_interpreted;
use calorimeter_case::record::finite;

/// Formats bytes with four digits and a binary unit.
pub(super) fn memory(bytes: u64) -> String {
    let rounded = |scale: u64| format!("{:.3e}", bytes as f64 / scale as f64).parse().unwrap_or(f64::INFINITY);
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(scale, _)| rounded(*scale) >= 1.0) {
        Some((scale, unit)) => format!("{} {unit}", four_digits(bytes as f64 / scale as f64)),
        None => format!("{bytes} B"),
    }
}

/// Formats operations per second with four digits and an SI prefix.
pub fn operations(tflops: f64) -> String {
    let rate = 1e12 * tflops;
    let rounded = format!("{rate:.3e}").parse().unwrap_or(rate);
    let (scale, letter) = match rounded {
        ..1e3 => (1.0, ""),
        ..1e6 => (1e3, " k"),
        ..1e9 => (1e6, " M"),
        ..1e12 => (1e9, " G"),
        ..1e15 => (1e12, " T"),
        _ => (1e15, " P"),
    };
    format!("{}{letter}", four_digits(rounded / scale))
}

pub(super) fn interval(middle: f64, lo: Option<f64>, hi: Option<f64>) -> Option<String> {
    let percent = finite(100.0 * (hi? - lo?) / 2.0 / middle)?;
    if percent >= 999.5 {
        return Some("±>999%".into());
    }
    let decimals = match percent {
        ..0.095 => 2,
        ..9.95 => 1,
        _ => 0,
    };
    Some(format!("±{percent:.decimals$}%"))
}

/// Formats a time with four digits and its unit.
pub fn nanoseconds(nanos: f64) -> String {
    // Rounded first, so that 999.96 ns is 1.000 µs.
    let rounded = format!("{nanos:.3e}").parse().unwrap_or(nanos);
    let (scale, unit) = match rounded {
        ..1e3 => (1.0, "ns"),
        ..1e6 => (1e3, "µs"),
        ..1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", four_digits(rounded / scale))
}

/// Formats four significant digits; more if the integer part has more, fewer below a thousandth.
pub fn four_digits(value: f64) -> String {
    let scientific = format!("{value:.3e}");
    let exponent: i32 = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let decimals = (3 - exponent).clamp(0, 6) as usize;
    format!("{value:.decimals$}")
}

/// Formats a ratio of a sentence with two decimals; without, from 10 on.
pub(super) fn rounded_ratio(ratio: f64) -> String {
    let decimals = if ratio < 10.0 { 2 } else { 0 };
    format!("{ratio:.decimals$}")
}

pub(super) fn indented(text: &str, indent: usize, width: usize) -> String {
    let margin = " ".repeat(indent);
    let lines: Vec<String> = wrap(text, width - indent).iter().map(|line| format!("{margin}{line}")).collect();
    lines.join("\n")
}

/// Wraps text at blanks to `width` characters; longer words are split.
///
/// Line feeds, control characters and bidirectional overrides become blanks, because a reason may quote terminal output
/// of a driver.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut room = 0;
    for word in text.split(|c: char| c.is_whitespace() || is_interpreted(c)).filter(|word| !word.is_empty()) {
        let letters: Vec<char> = word.chars().collect();
        for (index, piece) in letters.chunks(width).enumerate() {
            let piece_text: String = piece.iter().collect();
            match lines.last_mut() {
                Some(line) if index == 0 && piece.len() < room => {
                    line.push(' ');
                    line.push_str(&piece_text);
                    room -= piece.len() + 1;
                }
                _ => {
                    lines.push(piece_text);
                    room = width - piece.len();
                }
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_four_digits_and_a_unit() {
        for (value, text) in [
            (0.25, "0.2500 ns"),
            (1.0, "1.000 ns"),
            (999.94, "999.9 ns"),
            (999.96, "1.000 µs"),
            (12_346.0, "12.35 µs"),
            (999_960.0, "1.000 ms"),
            (123_456_789.0, "123.5 ms"),
            (4.2e9, "4.200 s"),
            (3.2e12, "3200 s"),
            (0.0, "0.000 ns"),
        ] {
            assert_eq!(nanoseconds(value), text);
        }
        for (value, text) in [(9.9996, "10.00"), (99.996, "100.0"), (0.04321, "0.04321"), (0.00000123, "0.000001")] {
            assert_eq!(four_digits(value), text);
        }
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (8192, "8.000 KiB"),
            ((1 << 20) - 1, "1.000 MiB"),
            (2 << 20, "2.000 MiB"),
            (1 << 40, "1.000 TiB"),
        ] {
            assert_eq!(memory(bytes), text);
        }
        for (tflops, text) in [(723.44, "723.4 T"), (0.000_025, "25.00 M"), (0.999_96, "1.000 T"), (3e-11, "30.00")] {
            assert_eq!(operations(tflops), text);
        }
    }

    #[test]
    fn intervals_are_half_widths_in_percent() {
        for (lo, hi, text) in [
            (99.9, 100.1, "±0.1%"),
            (0.0, 5000.0, "±>999%"),
            (99.99, 100.01, "±0.01%"),
            (90.0, 110.0, "±10%"),
            (100.0, 100.0, "±0.00%"),
        ] {
            assert_eq!(interval(100.0, Some(lo), Some(hi)).as_deref(), Some(text));
        }
        assert_eq!(interval(0.0, Some(0.0), Some(1.0)), None);
        assert_eq!(interval(1.0, None, Some(1.0)), None);
    }

    #[test]
    fn text_is_wrapped_without_control_characters() {
        assert_eq!(wrap("a\u{1b}[33mbc\r\n  de ü", 6), ["a", "[33mbc", "de ü"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("", 3), Vec::<String>::new());
    }
}
