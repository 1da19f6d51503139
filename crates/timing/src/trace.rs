//! Trace of one case: host and device activities over time, as a file for ui.perfetto.dev or chrome://tracing, and the
//! table of its kernels.
//!
//! ```
//! use calorimeter_timing::trace::{Span, Trace, Track};
//!
//! let mut trace = Trace::new("int8wo 1x4096x4096");
//! let (host, device) = (Track::Host("main".into()), Track::Device("stream 7".into()));
//! let correlation = Some(1);
//! let call = Span { track: host, name: "cuLaunchKernel".into(), start_ns: 100, nanos: 3_000, correlation, args: vec![] };
//! let kernel = Span { track: device, name: "gemm".into(), start_ns: 5_400, nanos: 21_250, correlation, args: vec![] };
//! trace.add_span(call);
//! trace.add_span(kernel);
//! trace.add_counter_value("power", "W", 6_000, 312.5);
//! assert_eq!(trace.kernel_table()[0].total_ns, 21_250);
//! trace.write_to(std::io::sink())?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod kernels;
mod rows;
mod write;

pub use kernels::KernelRow;

use std::sync::Arc;

/// Events of one case on one time axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    title: String,
    spans: Vec<Span>,
    marks: Vec<TraceMark>,
    samples: Vec<CounterSample>,
}

/// An activity with a duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Track on which it is shown.
    pub track: Track,
    /// Name.
    pub name: Arc<str>,
    /// Start in nanoseconds.
    pub start_ns: u64,
    /// Duration in nanoseconds.
    pub nanos: u64,
    /// Correlation id: an arrow leads from the host span to the device spans with this id.
    pub correlation: Option<u32>,
    /// Details shown when the span is selected.
    pub args: Vec<(String, String)>,
}

/// A row of spans.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Track {
    /// Host thread, by name.
    Host(Arc<str>),
    /// Stream or queue of the device, by name.
    Device(Arc<str>),
}

#[derive(Debug, Clone, PartialEq)]
struct TraceMark {
    name: String,
    at_ns: u64,
}

#[derive(Debug, Clone, PartialEq)]
struct CounterSample {
    name: Arc<str>,
    unit: &'static str,
    at_ns: u64,
    value: f64,
}

impl Trace {
    /// Creates an empty trace.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), spans: vec![], marks: vec![], samples: vec![] }
    }

    /// Adds a span, in any order.
    pub fn add_span(&mut self, span: Span) {
        self.spans.push(span);
    }

    /// Marks a moment.
    pub fn add_mark(&mut self, name: impl Into<String>, at_ns: u64) {
        self.marks.push(TraceMark { name: name.into(), at_ns });
    }

    /// Adds a value of a counter such as memory or power, valid until the next value. Infinities and NaN are omitted:
    /// JSON has none.
    pub fn add_counter_value(&mut self, name: impl Into<Arc<str>>, unit: &'static str, at_ns: u64, value: f64) {
        if value.is_finite() {
            self.samples.push(CounterSample { name: name.into(), unit, at_ns, value });
        }
    }

    /// End of the last span.
    pub fn end_ns(&self) -> u64 {
        self.spans.iter().map(Span::end_ns).max().unwrap_or(0)
    }

    fn start_ns(&self) -> u64 {
        let moments = self.marks.iter().map(|mark| mark.at_ns).chain(self.samples.iter().map(|sample| sample.at_ns));
        self.spans.iter().map(|span| span.start_ns).chain(moments).min().unwrap_or(0)
    }
}

impl Span {
    fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.nanos)
    }
}
