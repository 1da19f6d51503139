//! Scaling of all sizes by one factor, to run a plan on a smaller machine or in less time.

use super::units::quantity;
use calorimeter_shapes::Axes;
use std::{fmt, str::FromStr};

/// Factor such as `1/64` or `0.015`, above 0 and at most 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScaleFactor(f64);

/// Axes that are not scaled, since that would change the computation: a 1x1 convolution, or a collective of one device.
const UNSCALED_AXES: [&str; 2] = ["kernel", "devices"];

impl ScaleFactor {
    /// Scales a size to at least 1. Preserves divisibility by 128, or else by 8, if the result is large enough.
    pub fn scale(self, size: u64) -> u64 {
        let scaled = size as f64 * self.0;
        let keeps = |grain: &u64| size.is_multiple_of(*grain) && scaled >= *grain as f64;
        let grain = [128, 8].into_iter().find(keeps).unwrap_or(1);
        // A size of 0 is an error and must stay 0.
        ((scaled / grain as f64).round() as u64 * grain).max(size.min(1))
    }

    /// Scales all axes except `UNSCALED_AXES`.
    pub fn scale_axes(self, axes: &Axes) -> Axes {
        let of = |name, size| if UNSCALED_AXES.contains(&name) { size } else { self.scale(size) };
        let scaled = axes.iter().map(|(name, size)| (name.to_owned(), of(name, size)));
        Axes::new(scaled).expect("scaling preserves the axis names")
    }
}

impl FromStr for ScaleFactor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let factor = match text.split_once('/') {
            Some((above, below)) => number(above).zip(number(below)).map(|(above, below)| above / below),
            None => number(text),
        };
        factor
            .filter(|factor| *factor > 0.0 && *factor <= 1.0)
            .map(Self)
            .ok_or_else(|| format!("invalid factor {text:?}: expected a value above 0 and up to 1, e.g. 1/64 or 0.015"))
    }
}

impl fmt::Display for ScaleFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

quantity!(ScaleFactor, "a factor above 0 and up to 1, such as 1/64 or 0.015");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_sizes_keep_multiples_of_8_and_128() {
        for (factor, size, expected) in [
            ("1/64", 16384, 256),
            ("1/64", 18432, 256),
            ("1/64", 7168, 112),
            ("1/64", 4096, 64),
            ("1/64", 100, 2),
            ("1/64", 1, 1),
            ("1/1024", 4096, 4),
            ("0.5", 896, 512),
            ("0.5", 24, 16),
            ("0.5", 0, 0),
            ("1", 12345, 12345),
            ("1", u64::MAX, u64::MAX),
        ] {
            assert_eq!(factor.parse::<ScaleFactor>().unwrap().scale(size), expected, "{size} times {factor}");
        }
    }

    #[test]
    fn kernel_and_device_axes_are_not_scaled() {
        let factor: ScaleFactor = "1/64".parse().unwrap();
        let scaled =
            |axes: &[(&'static str, u64)]| factor.scale_axes(&Axes::new(axes.iter().copied()).unwrap()).to_string();
        let convolution = [("batch", 8), ("in_channels", 128), ("out_channels", 64), ("size", 64), ("kernel", 3)];
        assert_eq!(scaled(&convolution), "batch1-in_channels2-out_channels1-size1-kernel3");
        assert_eq!(scaled(&[("matrix_dim", 16384), ("devices", 2)]), "matrix_dim256-devices2");
    }

    #[test]
    fn factors_parse_as_fractions_or_numbers() {
        for text in ["", "0", "2", "-1", "1/0", "0/1", "1/2/3", "a/b", "nan"] {
            assert!(text.parse::<ScaleFactor>().is_err(), "{text}");
        }
        let factor: ScaleFactor = "1/3".parse().unwrap();
        assert_eq!(factor.to_string().parse(), Ok(factor));
    }
}
