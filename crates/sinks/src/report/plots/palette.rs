//! Colors and markers of the page's light theme.

use plotters::style::RGBColor;
use serde::Serialize;

const fn color(hex: u32) -> RGBColor {
    RGBColor((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

pub(super) const GROUND: RGBColor = color(0xffffff);
pub(super) const INK: RGBColor = color(0x1b1f24);
pub(super) const FAINT: RGBColor = color(0x57606a);
pub(super) const RULE: RGBColor = color(0xd4d9df);
pub(super) const FASTER: RGBColor = color(0x2b7bba);
pub(super) const SLOWER: RGBColor = color(0xd9822b);

/// Colors of recipes and operators; implementations have different markers.
const SERIES_COLORS: [RGBColor; 8] = [
    color(0x0072b2),
    color(0xc2500a),
    color(0x008560),
    color(0xb0568d),
    color(0xa67800),
    color(0x3d8fc4),
    color(0x6a4fb0),
    color(0x7a3b1d),
];
/// Color of the baseline.
const BASELINE_COLOR: RGBColor = color(0x5c6670);

/// Style of a series: color by recipe or operator, marker by implementation. The colors repeat after eight, with hollow
/// markers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(in crate::report) struct SeriesStyle {
    /// Index of the recipe or operator; the baseline has none.
    pub(in crate::report) item: Option<usize>,
    /// Index of the implementation.
    pub(in crate::report) marker: usize,
}

impl SeriesStyle {
    pub(super) fn color(self) -> RGBColor {
        self.item.map_or(BASELINE_COLOR, |item| SERIES_COLORS[item % 8])
    }

    pub(super) fn is_hollow(self) -> bool {
        self.item.is_some_and(|item| item % 16 >= 8)
    }

    /// Corners of the marker around a point; a size of 4 is about as large as a letter.
    pub(super) fn corners(self, size: f64) -> Vec<(i32, i32)> {
        let corners: Vec<(f64, f64)> = match self.marker % 5 {
            0 => (0..12).map(|step| (f64::from(step) / 6.0 * std::f64::consts::PI).sin_cos()).collect(),
            1 => vec![(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            2 => vec![(0.0, -1.25), (1.15, 0.75), (-1.15, 0.75)],
            3 => vec![(0.0, -1.35), (1.35, 0.0), (0.0, 1.35), (-1.35, 0.0)],
            _ => {
                let (arm, end) = (0.4, 1.2);
                vec![
                    (-arm, -end),
                    (arm, -end),
                    (arm, -arm),
                    (end, -arm),
                    (end, arm),
                    (arm, arm),
                    (arm, end),
                    (-arm, end),
                    (-arm, arm),
                    (-end, arm),
                    (-end, -arm),
                    (-arm, -arm),
                ]
            }
        };
        corners.into_iter().map(|(x, y)| ((x * size).round() as i32, (y * size).round() as i32)).collect()
    }
}

/// Interpolates between two colors.
pub(super) fn interpolate(from: RGBColor, to: RGBColor, share: f64) -> RGBColor {
    let mixed = |from: u8, to: u8| (f64::from(from) + (f64::from(to) - f64::from(from)) * share).round() as u8;
    RGBColor(mixed(from.0, to.0), mixed(from.1, to.1), mixed(from.2, to.2))
}
