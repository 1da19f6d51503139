//! Progress line on standard error, if that is a terminal.

use super::ProgressState;
use crate::print::width_or_default;
use calorimeter_sinks::terminal::escape;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// Minimum time between redraws.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Progress line below all other output.
pub(crate) struct Bar {
    bar: ProgressBar,
    drawn: Option<Instant>,
}

impl Bar {
    /// Creates a line that is not drawn yet.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { bar, drawn: None }
    }

    /// True if standard error is a terminal.
    pub(crate) fn is_visible(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Draws the line, unless it was drawn within the redraw interval.
    pub(crate) fn draw<'a>(&mut self, state: impl FnOnce() -> ProgressState<'a>) {
        if self.is_visible() && self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW_INTERVAL) {
            self.drawn = Some(Instant::now());
            // Text in the last column may wrap.
            let line = state().line(width_or_default(std::io::stderr()).saturating_sub(1));
            self.bar.set_message(escape(&line).into_owned());
        }
    }

    /// Runs `print` while the line is hidden.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
