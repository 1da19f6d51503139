//! Stopwatches as a criterion measurement, so that `cargo bench` reports device time.

use crate::{Failure, Overhead, Stopwatch, TimeEstimate, Window, Work};
use criterion::Bencher;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use std::convert::Infallible;

/// Nanoseconds of a [`Stopwatch`], for `Criterion::default().with_measurement(DeviceTime)` and [`bench_work`].
///
/// ```no_run
/// use calorimeter_timing::{DeviceTime, MockWork, Script, bench_work};
/// use criterion::Criterion;
///
/// let mut criterion = Criterion::default().with_measurement(DeviceTime);
/// let (mut work, mut stopwatch) = MockWork::pair(Script::default());
/// criterion.bench_function("kernel", |bencher| bench_work(bencher, &mut stopwatch, &mut work));
/// ```
pub struct DeviceTime;

/// Benchmarks a work with the time of a stopwatch.
///
/// If the stopwatch's windows contain [a fixed cost](Overhead::Inside), each sample consists of four windows of one to
/// four times the launches that criterion requests, and the cost is removed as in [`crate::measure`]. Such a benchmark
/// launches ten times as often as its number of iterations.
///
/// # Panics
///
/// If the work or the stopwatch fails: criterion has no way to return errors.
pub fn bench_work(bencher: &mut Bencher<'_, DeviceTime>, stopwatch: &mut dyn Stopwatch, work: &mut dyn Work) {
    bencher.iter_custom(|iterations| match time_iterations(stopwatch, work, iterations) {
        Ok(nanos) => nanos,
        Err(failure) => panic!("`{}` could not time the work: {failure}", stopwatch.name()),
    });
}

/// Nanoseconds of `iterations` launches.
fn time_iterations(stopwatch: &mut dyn Stopwatch, work: &mut dyn Work, iterations: u64) -> Result<f64, Failure> {
    let lengths: &[u32] = match stopwatch.overhead() {
        Overhead::Excluded => &[1],
        Overhead::Included => &[1, 2, 3, 4],
    };
    let unit = stopwatch.launch_multiple();
    let max_launches = u32::MAX / 4 / unit * unit;
    let launches = u32::try_from(iterations.next_multiple_of(unit.into())).unwrap_or(max_launches).min(max_launches);
    let mut window = |length| -> Result<Window, Failure> {
        let launches = launches * length;
        Ok(Window { launches, nanos: stopwatch.window(work, launches)?.resolve()? })
    };
    let windows = lengths.iter().map(|&length| window(length)).collect::<Result<Vec<_>, _>>()?;
    let time = TimeEstimate::from_windows(&windows, stopwatch.overhead()).ok_or("no window was timed")?;
    Ok(time.median * iterations as f64)
}

impl Measurement for DeviceTime {
    type Intermediate = Infallible;
    type Value = f64;

    /// # Panics
    ///
    /// Always: device time cannot be read before and after code that criterion runs itself.
    fn start(&self) -> Infallible {
        panic!("DeviceTime is measured by `bench_work`, not by the `iter` methods of a bencher");
    }

    fn end(&self, started: Infallible) -> f64 {
        match started {}
    }

    fn add(&self, a: &f64, b: &f64) -> f64 {
        a + b
    }

    fn zero(&self) -> f64 {
        0.0
    }

    fn to_f64(&self, nanos: &f64) -> f64 {
        *nanos
    }

    /// Criterion's formatter of wall time, which chooses a suitable unit.
    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MockClock, MockWork, Reading, Script};
    use criterion::{Criterion, Throughput};
    use std::time::Duration;

    #[test]
    fn sample_excludes_window_overhead() {
        for fixed in [0.0, 40_000.0] {
            let (mut work, mut clock) = MockWork::pair(Script { nanos: 250.0, fixed, ..Script::default() });
            for iterations in [1, 7, 10_000] {
                let nanos = time_iterations(&mut clock, &mut work, iterations).unwrap();
                assert!((nanos / (250.0 * iterations as f64) - 1.0).abs() < 1e-9, "{fixed}: {nanos}");
            }
        }
    }

    /// A clock whose windows are multiples of eight launches, as with a graph.
    struct ByEights(MockClock);

    impl Stopwatch for ByEights {
        fn name(&self) -> &'static str {
            "eights"
        }
        fn overhead(&self) -> Overhead {
            Overhead::Excluded
        }
        fn launch_multiple(&self) -> u32 {
            8
        }
        fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
            assert!(launches > 0 && launches.is_multiple_of(8), "{launches}");
            self.0.window(work, launches)
        }
    }

    #[test]
    fn launches_are_rounded_to_the_unit() {
        let (mut work, clock) = MockWork::pair(Script { nanos: 100.0, ..Script::default() });
        let mut clock = ByEights(clock);
        for (iterations, nanos) in [(1, 100.0), (8, 800.0), (9, 900.0)] {
            assert_eq!(time_iterations(&mut clock, &mut work, iterations).unwrap(), nanos);
        }
    }

    #[test]
    #[should_panic = "`mock`"]
    fn failed_work_stops_the_benchmark() {
        let script = Script { fails_after: Some(3), ..Script::default() };
        let (mut work, mut clock) = MockWork::pair(script);
        criterion(&tempfile::tempdir().unwrap()).bench_function("fails", |b| bench_work(b, &mut clock, &mut work));
    }

    #[test]
    #[should_panic = "bench_work"]
    fn iter_is_rejected() {
        criterion(&tempfile::tempdir().unwrap()).bench_function("iter", |bencher| bencher.iter(|| 1));
    }

    fn criterion(folder: &tempfile::TempDir) -> Criterion<DeviceTime> {
        let criterion = Criterion::default().with_measurement(DeviceTime).output_directory(folder.path());
        let short = Duration::from_millis(20);
        criterion.without_plots().sample_size(10).warm_up_time(short).measurement_time(short)
    }

    #[test]
    fn criterion_reports_stopwatch_time() {
        let folder = tempfile::tempdir().unwrap();
        let script = Script { nanos: 12_500.0, fixed: 900_000.0, ..Script::default() };
        let (mut work, mut clock) = MockWork::pair(script);
        criterion(&folder).bench_function("kernel", |bencher| bench_work(bencher, &mut clock, &mut work));
        let estimates = std::fs::read(folder.path().join("kernel/new/estimates.json")).unwrap();
        let estimates: serde_json::Value = serde_json::from_slice(&estimates).unwrap();
        let median = estimates["median"]["point_estimate"].as_f64().unwrap();
        assert!((median / 12_500.0 - 1.0).abs() < 1e-6, "{median}");
        let formatter = DeviceTime.formatter();
        assert_eq!(formatter.format_value(median), "12.500 µs");
        assert_eq!(formatter.format_throughput(&Throughput::BytesDecimal(25_000), median), "2.0000 GB/s");
    }
}
