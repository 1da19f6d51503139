//! Text of the progress line.

use crate::rough_time::{clock_time, rough_duration};
use crate::worker::Stage;

/// Content of the progress line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProgressState<'a> {
    /// Number of finished cases.
    pub done: u64,
    /// Number of all cases.
    pub total: u64,
    /// Number of busy devices.
    pub devices: usize,
    /// Seconds since the start.
    pub elapsed: f64,
    /// Estimate of the remaining seconds, if available.
    pub remaining: Option<f64>,
    /// Current stage, its case, and its duration in seconds.
    pub current: Option<(Stage, &'a str, f64)>,
}

/// Minimum width for a bar.
const MIN_WIDTH_FOR_BAR: usize = 110;
const BAR_WIDTH: usize = 20;
/// Minimum width for an id; a shorter one is not recognizable.
const MIN_ID_WIDTH: usize = 12;

impl ProgressState<'_> {
    /// Formats the line for a width. The stage is always complete; parts are dropped in the order id, bar, remaining
    /// time, elapsed time, counts.
    pub(crate) fn line(&self, width: usize) -> String {
        let bar = if width >= MIN_WIDTH_FOR_BAR { self.bar() + " " } else { String::new() };
        let devices = if self.devices > 1 { format!(" on {} devices", self.devices) } else { String::new() };
        let counts = format!("{}/{} cases{devices}", self.done, self.total);
        let elapsed = format!(", {}", clock_time(self.elapsed as u64));
        let remaining =
            self.remaining.map(|seconds| format!(", about {} left", rough_duration(seconds))).unwrap_or_default();
        let stage = self.current.map(|(stage, _, lasted)| {
            let lasted = if lasted < 1.0 { String::new() } else { format!(" {} s", lasted as u64) };
            format!("  {stage}{lasted}")
        });
        let mut parts = [bar, counts, elapsed, remaining, stage.unwrap_or_default()];
        for part in [0, 3, 2, 1] {
            if parts.iter().map(|part| char_count(part)).sum::<usize>() > width {
                parts[part].clear();
            }
        }
        let line = parts.concat();
        let id = self
            .current
            .map(|(_, id, _)| shortened_id(id, width.saturating_sub(char_count(&line))))
            .unwrap_or_default();
        (line + &id).trim_start().to_owned()
    }

    fn bar(&self) -> String {
        let full = (BAR_WIDTH as u64 * self.done).checked_div(self.total).unwrap_or(0) as usize;
        "█".repeat(full.min(BAR_WIDTH)) + &"░".repeat(BAR_WIDTH - full.min(BAR_WIDTH))
    }
}

fn char_count(text: &str) -> usize {
    text.chars().count()
}

/// Shortens an id to a width, after two spaces. Its first parts are dropped, because most cases share them.
fn shortened_id(id: &str, width: usize) -> String {
    let width = width.saturating_sub(2);
    if width < MIN_ID_WIDTH || id.is_empty() {
        return String::new();
    }
    if char_count(id) <= width {
        return format!("  {id}");
    }
    let parts = id.match_indices('/').map(|(at, _)| &id[at..]);
    let fitting = parts.into_iter().find(|rest| char_count(rest) < width);
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

    fn state() -> ProgressState<'static> {
        let doing = Some((Stage::Tune, ID, 12.4));
        ProgressState { done: 3, total: 8, devices: 1, elapsed: 62.0, remaining: Some(43.0), current: doing }
    }

    #[test]
    fn line_fits_and_keeps_the_stage() {
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
            assert_eq!(state().line(width), expected);
        }
        let two = ProgressState { devices: 2, ..state() };
        assert_eq!(two.line(60), "3/8 cases on 2 devices, 1:02, about 45 s left  tuning 12 s");
        for width in 13..220 {
            let line = state().line(width);
            assert!(line.chars().count() <= width && line.contains("tuning 12 s"), "{width}: {line}");
        }
    }

    #[test]
    fn unknown_remaining_time_is_omitted() {
        let started = ProgressState { remaining: None, current: Some((Stage::Peaks, "", 0.3)), ..state() };
        assert_eq!(started.line(60), "3/8 cases, 1:02  finding the device's peaks");
        assert_eq!(ProgressState { current: None, remaining: None, ..state() }.line(80), "3/8 cases, 1:02");
        assert_eq!(ProgressState { done: 0, total: 0, ..ProgressState::default() }.line(120).chars().count(), 36);
    }
}
