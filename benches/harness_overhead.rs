//! Overhead of the measurement per launch on the host; the limit is 2 µs.
//!
//! All arms do one addition. The result is the time per launch, including the overhead of the window.

use calorimeter_runner::mock::{MockRule, MockWorkload};
use calorimeter_timing::{Closure, Failure, Stopwatch, WallClock, Work};
use calorimeter_zoo::Workload;
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Launches per window.
const LAUNCHES: u32 = 10_000;

/// Adapter between stopwatch and workload, as in a worker.
struct MockAdapter(Box<dyn Workload>);

impl Work for MockAdapter {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(self.0.launch()?)
    }

    fn synchronize(&mut self) -> Result<(), Failure> {
        Ok(self.0.synchronize()?)
    }
}

fn overhead(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("overhead per launch");
    let mut count = 0u64;
    group.bench_function("plain loop", |bencher| {
        bencher.iter_custom(|launches| {
            time_per_launch(launches, || {
                for _ in 0..LAUNCHES {
                    count = black_box(count.wrapping_add(1));
                }
            })
        });
    });
    let mut closure = Closure::new(|| {
        count = black_box(count.wrapping_add(1));
        count
    });
    group.bench_function("closure in windows", |bencher| {
        bencher.iter_custom(|launches| time_per_launch(launches, || window(&mut closure)));
    });
    let mut job = MockAdapter(Box::new(MockWorkload::new(MockRule::default())));
    group.bench_function("workload in windows", |bencher| {
        bencher.iter_custom(|launches| time_per_launch(launches, || window(&mut job)));
    });
    group.finish();
}

fn window(work: &mut dyn Work) {
    let reading = WallClock::synchronous().window(work, LAUNCHES).and_then(|reading| reading.resolve());
    black_box(reading.expect("counting cannot fail"));
}

/// Time of `launches` launches, scaled from whole windows.
fn time_per_launch(launches: u64, mut window: impl FnMut()) -> Duration {
    let windows = launches.div_ceil(u64::from(LAUNCHES));
    let start = Instant::now();
    for _ in 0..windows {
        window();
    }
    start.elapsed().mul_f64(launches as f64 / (windows * u64::from(LAUNCHES)) as f64)
}

criterion_group!(benches, overhead);
criterion_main!(benches);
