//! Warnings for readers of a record, each with a stable code.

use super::column::{Column, Field, columns, fields, join_nonempty};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display};
use std::iter::repeat;
use std::ops::Deref;

/// Defines every warning by its code, its constructor, which is also the name of the code, and its text.
macro_rules! define_warnings {
    ($($code:ident $name:ident($($part:ident),*) $text:literal;)*) => {
        /// Stable code of a warning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum WarningCode {
            $(#[doc = $text] $code,)*
            /// Warning without a code, or with one of another version.
            #[serde(other)]
            Other,
        }

        impl WarningCode {
            /// Names of all codes, each with the text of its warnings.
            const TEXTS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($name), $text),)* ("other", "warning without a code, or with one of another version")];
        }

        impl Warning {
            $(#[doc = $text] pub fn $name($($part: impl Display),*) -> Self {
                Self { code: WarningCode::$code, text: format!($text) }
            })*
        }
    };
}

define_warnings! {
    Drift drift() "drift: the times rose or fell during the measurement, so the interval may not cover their long-run \
        median; speed-ups are not affected";
    Bimodal bimodal() "bimodal times: possibly two clock speeds, or two kernels";
    Autocorrelation autocorrelation() "successive windows are correlated: something changes slowly";
    Outliers outliers() "more than 5 % of the times are far from the median";
    SlowDrift slow_drift() "the times drift too slowly for the measurement: their interval covers the measurement, but possibly not the \
        long-run median";
    SlowSpeedupDrift slow_speedup_drift() "the speed-up drifts too slowly for the measurement: its interval covers the measurement, \
        but possibly not the long-run ratio";
    NoPlateau no_plateau() "the times still moved when the warm-up had to end";
    Throttled throttled(rounds) "throttled: power or temperature limited the device in {rounds} rounds";
    DiscardedWindows discarded_windows(windows) "{windows} windows were discarded: kernels were compiled or tuned during them";
    EarlyWindows early_windows(windows) "{windows} windows were started by the device before they were fully enqueued: \
        their times may be launch-bound";
    InterruptedBursts interrupted_bursts(bursts) "{bursts} bursts of windows had pauses, in which clocks rise: launches \
        ran different numbers of kernels";
    FallbackClock fallback_clock(reason, clock) "{reason}; times are {clock}";
    MixedClocks mixed_clocks(clock, baseline) "the speed-up compares two clocks: {clock}, and {baseline} for the baseline";
    MissingSpeedup missing_speedup(reason) "no speed-up: {reason}";
    BusyDevices busy_devices(device, factor) "other devices of this host were busy, which changes the time of the probe \
        of {device} by a factor of {factor}";
    LaunchBound launch_bound() "launch-bound while the host also launched for other devices: gaps may be longer than in \
        isolation";
    InterleavedSpeedup interleaved_speedup() "the speed-up compares interleaved times: only one of the two cases is \
        launch-bound, so that the clocks of the isolated times differ; the regime graph has no pauses between launches";
    CachedOperands cached_operands(times) "operands may be cached: the buffer sets total at most {times}x the cache size";
    Tf32 tf32() "f32 operands were rounded to TF32 (10-bit mantissas) for tensor cores: not comparable with full f32";
    DenseKernel dense_kernel() "semi-sparse: the pruned weight is stored compressed and multiplied dense, because its \
        kernel does not use sparse tensor cores; the time is not that of sparsity";
    UncheckedOutput unchecked_output(reason) "output not checked: {reason}";
    IgnoredPeaks ignored_peaks(reason) "cached peaks are ignored: {reason}";
    MissingPeak missing_peak(limit, reason) "cannot measure the peak of {limit}: {reason}";
    MissingProbe missing_probe() "no share of a compute peak: matmuls of this dtype have no probe";
    AbovePeak above_peak() "above the measured peak, but not when interleaved with a probe: use with caution";
    DoubtfulRate doubtful_rate(limit, reason) "rate above the measured peak of {limit}, possibly wrong: {reason}";
    UnsustainedPeak unsustained_peak(reason) "a matmul faster than the peak could not be sustained: {reason}";
    ExceededPeak exceeded_peak(limit, reason) "faster than the peak of {limit}, which could not be measured again: {reason}";
    SingleLaunches single_launches(warning) "while single launches were timed: {warning}";
    AveragedLaunches averaged_launches(launches, clock) "iterations_ns are means of {launches} launches each: {clock} \
        cannot time fewer";
    LaunchOverhead launch_overhead(clock) "iterations_ns include the fixed overhead of a window, which {clock} subtracts \
        from time_ns";
    MissingLaunches missing_launches(reason) "no times of single launches, so no row in its table: {reason}";
    MissingPercentiles missing_percentiles(reason) "no percentiles of single launches: {reason}";
    MissingTrace missing_trace(reason) "no trace: {reason}";
    TraceOfLaunches trace_of_launches(reason) "the trace shows launches, not kernels: {reason}";
    MissingTraffic missing_traffic(reason) "memory traffic not counted: {reason}";
    MissingFusionState missing_fusion_state(reason) "fusion state unknown: {reason}";
    NotUnfused not_unfused(kernels, steps) "{kernels} kernels ran for {steps} steps: the eager case is not unfused";
    MissingMemory missing_memory(reason) "memory use was not recorded: {reason}";
    MissingPhases missing_phases(reason) "the memory page does not show phases: {reason}";
    MissingMemoryProfile missing_memory_profile(reason) "cannot write the memory profile: {reason}";
    DroppedSeries dropped_series(size, limit) "windows and samples dropped: the journal line had {size} MiB, more than \
        the maximum of {limit} MiB";
}

impl WarningCode {
    /// True for warnings about times that drift or scatter; a quieter machine or a longer measurement helps.
    pub fn is_noise(self) -> bool {
        matches!(
            self,
            Self::Drift
                | Self::Bimodal
                | Self::Autocorrelation
                | Self::Outliers
                | Self::SlowDrift
                | Self::SlowSpeedupDrift
                | Self::NoPlateau
        )
    }

    /// Reference of all codes, as a Markdown table.
    pub fn markdown() -> String {
        let row = |(name, text): &(&str, &str)| format!("| `{name}` | {text} |\n");
        Self::TEXTS.iter().map(row).fold("| code | warning |\n|---|---|\n".to_owned(), |table, row| table + &row)
    }
}

/// Warning for readers of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Warning {
    /// Stable code.
    pub code: WarningCode,
    text: String,
}

impl Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// Creates a warning without a code.
impl<T: Into<String>> From<T> for Warning {
    fn from(text: T) -> Self {
        Self { code: WarningCode::Other, text: text.into() }
    }
}

/// Warnings of a record, without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "WarningFields", into = "WarningFields")]
pub struct Warnings(Vec<Warning>);

impl Warnings {
    /// Adds a warning, unless an equal one exists.
    pub fn push(&mut self, warning: Warning) {
        if !self.contains(&warning) {
            self.0.push(warning);
        }
    }

    /// Texts of the warnings.
    pub fn texts(&self) -> Vec<&str> {
        self.iter().map(|warning| &*warning.text).collect()
    }

    /// True if a warning has this code.
    pub fn has(&self, code: WarningCode) -> bool {
        self.iter().any(|warning| warning.code == code)
    }

    /// Column in tables.
    pub const COLUMNS: &'static [Column<Self>] = columns! { |warnings|
        "warnings": Written(join_nonempty(&warnings.texts())),
            "warnings for readers of the record; a list in the record, joined by `; ` in the column";
    };

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = fields! {
        "warning_codes": "list of text",
            "[code](warnings.md) of each warning, in the order of `warnings`; absent in early journals";
    };
}

impl Deref for Warnings {
    type Target = [Warning];

    fn deref(&self) -> &[Warning] {
        &self.0
    }
}

impl Extend<Warning> for Warnings {
    fn extend<I: IntoIterator<Item = Warning>>(&mut self, warnings: I) {
        warnings.into_iter().for_each(|warning| self.push(warning));
    }
}

impl FromIterator<Warning> for Warnings {
    fn from_iter<I: IntoIterator<Item = Warning>>(warnings: I) -> Self {
        let mut unique = Self::default();
        unique.extend(warnings);
        unique
    }
}

/// Warnings in the JSON: readers of early versions know the texts only.
#[derive(Serialize, Deserialize)]
struct WarningFields {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warning_codes: Vec<WarningCode>,
}

impl From<WarningFields> for Warnings {
    fn from(WarningFields { warnings, warning_codes }: WarningFields) -> Self {
        let codes = warning_codes.into_iter().chain(repeat(WarningCode::Other));
        warnings.into_iter().zip(codes).map(|(text, code)| Warning { code, text }).collect()
    }
}

impl From<Warnings> for WarningFields {
    fn from(Warnings(warnings): Warnings) -> Self {
        let (warning_codes, warnings) = warnings.into_iter().map(|warning| (warning.code, warning.text)).unzip();
        Self { warnings, warning_codes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn warnings_are_texts_with_codes_beside_them() {
        let warnings: Warnings = [Warning::throttled(3), Warning::tf32(), Warning::throttled(3)].into_iter().collect();
        let written = serde_json::to_value(&warnings).unwrap();
        assert_eq!(written["warning_codes"], json!(["throttled", "tf32"]));
        assert_eq!(written["warnings"][0], "throttled: power or temperature limited the device in 3 rounds");
        assert_eq!(serde_json::from_value::<Warnings>(written).unwrap(), warnings);
    }

    #[test]
    fn unknown_and_missing_codes_are_read() {
        for journal in
            [json!({ "warnings": ["hot"] }), json!({ "warnings": ["hot"], "warning_codes": ["of_tomorrow"] })]
        {
            assert_eq!(*serde_json::from_value::<Warnings>(journal).unwrap(), ["hot".into()]);
        }
    }

    #[test]
    fn documented_names_are_those_in_the_json() {
        for (name, _) in WarningCode::TEXTS {
            assert_eq!(json!(serde_json::from_value::<WarningCode>(json!(name)).unwrap()), *name);
        }
    }
}
