//! Lists of a record whose length depends on the measurement.

use super::{Record, TelemetrySample, WindowRecord};

/// Lists of a record that grow with the duration of its measurement. Long runs leave them on disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordSeries {
    windows: Vec<WindowRecord>,
    iterations_ns: Vec<u64>,
    samples: Vec<TelemetrySample>,
}

impl Record {
    /// Removes the lists from the record and returns them.
    pub fn take_series(&mut self) -> RecordSeries {
        RecordSeries {
            windows: std::mem::take(&mut self.time.windows),
            iterations_ns: std::mem::take(&mut self.time.iterations_ns),
            samples: self
                .telemetry
                .as_mut()
                .map(|telemetry| std::mem::take(&mut telemetry.samples))
                .unwrap_or_default(),
        }
    }

    /// Restores the lists removed by [`take_series`](Self::take_series).
    pub fn restore_series(&mut self, series: RecordSeries) {
        self.time.windows = series.windows;
        self.time.iterations_ns = series.iterations_ns;
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.samples = series.samples;
        }
    }
}
