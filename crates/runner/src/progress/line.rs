//! The one line that says how far a run is.

use crate::rough_time::{clock, rough};
use crate::worker::Stage;

/// What there is to say.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told<'a> {
    /// Cases that have ended, of so many.
    pub done: u64,
    /// All cases.
    pub of: u64,
    /// Devices that are at work.
    pub devices: usize,
    /// Seconds since it began.
    pub gone: f64,
    /// Seconds that are left, where that can be told.
    pub left: Option<f64>,
    /// What is being done, to which case, and for how many seconds.
    pub doing: Option<(Stage, &'a str, f64)>,
}

/// Where a bar is worth its room.
const WIDE: usize = 110;
const BAR: usize = 20;
/// An id in less room tells nothing.
const LEAST_ID: usize = 12;

impl Told<'_> {
    /// The line in so many characters. What is being done is never cut: what is left, and then the time that is gone, give
    /// way to it, and the id of the case to all of them.
    pub fn line(&self, width: usize) -> String {
        let bar = if width >= WIDE { self.bar() + " " } else { String::new() };
        let devices = if self.devices > 1 { format!(" on {} devices", self.devices) } else { String::new() };
        let counts = format!("{}/{} cases{devices}", self.done, self.of);
        let gone = format!(", {}", clock(self.gone as u64));
        let left = self.left.map(|left| format!(", about {} left", rough(left))).unwrap_or_default();
        let stage = self.doing.map(|(stage, _, lasted)| {
            let lasted = if lasted < 1.0 { String::new() } else { format!(" {} s", lasted as u64) };
            format!("  {stage}{lasted}")
        });
        let mut parts = [bar, counts, gone, left, stage.unwrap_or_default()];
        for giving_way in [0, 3, 2, 1] {
            if parts.iter().map(|part| length(part)).sum::<usize>() > width {
                parts[giving_way].clear();
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

/// As much of an id as there is room for, after two blanks: its first parts are what most cases have in common.
fn shortened(id: &str, room: usize) -> String {
    let room = room.saturating_sub(2);
    if room < LEAST_ID || id.is_empty() {
        return String::new();
    }
    if length(id) <= room {
        return format!("  {id}");
    }
    let parts = id.match_indices('/').map(|(at, _)| &id[at..]);
    let fitting = parts.into_iter().find(|rest| length(rest) < room);
    let shortened = match fitting {
        Some(rest) => format!("…{rest}"),
        None => id.chars().take(room - 1).chain(['…']).collect(),
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
        let begun = Told { left: None, doing: Some((Stage::Peaks, "", 0.3)), ..told() };
        assert_eq!(begun.line(60), "3/8 cases, 1:02  finding the device's peaks");
        assert_eq!(Told { doing: None, left: None, ..told() }.line(80), "3/8 cases, 1:02");
        assert_eq!(Told { done: 0, of: 0, ..Told::default() }.line(120).chars().count(), 36);
    }
}
