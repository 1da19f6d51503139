//! Numbers formatted as in Python.

/// Formats a float as Python's `repr`: the shortest digits that parse to an equal value.
pub fn format_float(value: f64) -> String {
    let scientific = format!("{value:e}");
    // `{:e}` always has an exponent, and Rust and Python agree on the shortest digits.
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => {
            let plain = value.to_string();
            if plain.contains('.') { plain } else { format!("{plain}.0") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_formatted_like_python() {
        for (value, text) in [
            (1.0, "1.0"),
            (0.0, "0.0"),
            (1.73, "1.73"),
            (0.1 + 0.2, "0.30000000000000004"),
            (0.0001, "0.0001"),
            (0.00001234, "1.234e-05"),
            (5e-324, "5e-324"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
        ] {
            assert_eq!(format_float(value), text);
        }
    }
}
