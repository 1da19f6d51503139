//! Text of the progress line.

use crate::rough_time::{clock, rough};
use crate::worker::Stage;

/// Content of the progress line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told<'a> {
    /// Number of finished cases.
    pub done: u64,
    /// Number of all cases.
    pub of: u64,
    /// Number of busy devices.
    pub devices: usize,
    /// Seconds since the start.
    pub gone: f64,
    /// Estimate of the remaining seconds, if available.
    pub left: Option<f64>,
    /// Current stage, its case, and its duration in seconds.
    pub doing: Option<(Stage, &'a str, f64)>,
}

/// Minimum width for a bar.
const WIDE: usize = 110;
const BAR: usize = 20;
/// Minimum width for an id; a shorter one is not recognizable.
const LEAST_ID: usize = 12;

impl Told<'_> {
    /// Formats the line for a width. The stage is always complete; parts are dropped in the order id, bar, remaining
    /// time, elapsed time, counts.
    pub fn line(&self, width: usize) -> String {
        let bar = if width >= WIDE { self.bar() + " " } else { String::new() };
        let devices = if self.devices > 1 { format!(" on {} devices", self.devices) } else { String::new() };
        let counts = format!("{}/{} cases{devices}", self.done, self.of);
        let elapsed = format!(", {}", clock(self.gone as u64));
        let remaining = self.left.map(|seconds| format!(", about {} left", rough(seconds))).unwrap_or_default();
        let stage = self.doing.map(|(stage, _, lasted)| {
            let lasted = if lasted < 1.0 { String::new() } else { format!(" {} s", lasted as u64) };
            format!("  {stage}{lasted}")
        });
        let mut parts = [bar, counts, elapsed, remaining, stage.unwrap_or_default()];
        for part in [0, 3, 2, 1] {
            if parts.iter().map(|part| length(part)).sum::<usize>() > width {
                parts[part].clear();
            }
        }
        let line = parts.concat();
        let id = self.doing.map(|(_, id, _)| shortened(id, width.saturating_sub(length(&line)))).unwrap_or_default();
        (line + &id).trim_start().to_owned()
    }

    fn bar(&self) -> String {
        let full = (BAR as u64 * self.done).checked_div(self.of).unwrap_or(0) as usize;
        "█".repeat(full.min(BAR)) + &"░".repeat(BAR - full.min(BAR))
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Shortens an id to a width, after two spaces. Its first parts are dropped, because most cases share them.
fn shortened(id: &str, width: usize) -> String {
    let width = width.saturating_sub(2);
    if width < LEAST_ID || id.is_empty() {
        return String::new();
    }
    if length(id) <= width {
        return format!("  {id}");
    }
    let parts = id.match_indices('/').map(|(at, _)| &id[at..]);
    let fitting = parts.into_iter().find(|rest| length(rest) < width);
    let shortened = match fitting {
        Some(rest) => format!("…{rest}"),
        None => id.chars().take(width - 1).chain(['…']).collect(),
    };
    format!("  {shortened}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "inference/linear/int8wo/native/cpu/f32/m1-k2048-n2048";

    fn told() -> Told<'static> {
        let doing = Some((Stage::Tune, ID, 12.4));
        Told { done: 3, of: 8, devices: 1, gone: 62.0, left: Some(43.0), doing }
    }

    #[test]
    fn the_line_fits_and_the_stage_is_never_cut() {
        for (width, expected) in [
            (
                200,
                "███████░░░░░░░░░░░░░ 3/8 cases, 1:02, about 45 s left  tuning 12 s  inference/linear/int8wo/native/cpu/f32/m1-k2048-n2048",
            ),
            (80, "3/8 cases, 1:02, about 45 s left  tuning 12 s  …/native/cpu/f32/m1-k2048-n2048"),
            (70, "3/8 cases, 1:02, about 45 s left  tuning 12 s  …/f32/m1-k2048-n2048"),
            (50, "3/8 cases, 1:02, about 45 s left  tuning 12 s"),
            (40, "3/8 cases, 1:02  tuning 12 s"),
            (24, "3/8 cases  tuning 12 s"),
            (15, "tuning 12 s"),
        ] {
            assert_eq!(told().line(width), expected);
        }
        let two = Told { devices: 2, ..told() };
        assert_eq!(two.line(60), "3/8 cases on 2 devices, 1:02, about 45 s left  tuning 12 s");
        for width in 13..220 {
            let line = told().line(width);
            assert!(line.chars().count() <= width && line.contains("tuning 12 s"), "{width}: {line}");
        }
    }

    #[test]
    fn nothing_is_said_of_what_is_left_before_it_is_known() {
        let started = Told { left: None, doing: Some((Stage::Peaks, "", 0.3)), ..told() };
        assert_eq!(started.line(60), "3/8 cases, 1:02  finding the device's peaks");
        assert_eq!(Told { doing: None, left: None, ..told() }.line(80), "3/8 cases, 1:02");
        assert_eq!(Told { done: 0, of: 0, ..Told::default() }.line(120).chars().count(), 36);
    }
}
