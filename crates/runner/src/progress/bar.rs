//! The line of progress on standard error, where that is a terminal.

use super::Told;
use crate::print::width_of;
use crate::shown::shown;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// How often the line changes.
const REDRAW: Duration = Duration::from_millis(100);

/// One line below all others.
pub struct Bar {
    bar: ProgressBar,
    drawn: Option<Instant>,
}

impl Bar {
    /// One that nothing is drawn of yet.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { bar, drawn: None }
    }

    /// Whether anybody sees it.
    pub fn is_seen(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Shows what is told, unless it was drawn just now.
    pub fn draw<'a>(&mut self, told: impl FnOnce() -> Told<'a>) {
        if self.is_seen() && self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW) {
            self.drawn = Some(Instant::now());
            // What reaches the last column may wrap.
            let line = told().line(width_of(std::io::stderr()).saturating_sub(1));
            self.bar.set_message(shown(&line).into_owned());
        }
    }

    /// Does something while the line is away.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
