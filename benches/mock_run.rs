//! Overhead of the runner: 1,000 cases of the mock device with scripted times, through a worker process, the journal
//! and all result files; the limit is 5 s.

use calorimeter_runner::dialects::ConfigSource;
use calorimeter_runner::run::{OutputDirs, PreparedRun, Request, RunError, RunEvent, RunListener};
use calorimeter_runner::worker::{Subprocess, WorkerCaches, serve_if_worker};
use criterion::{BatchSize, Criterion, Throughput};
use tempfile::TempDir;

const CASES: u64 = 1000;

/// 125 shapes, 2 recipes, 4 implementations.
const TEXT: &str = "
device: mock
recipes: [baseline, int8wo]
implementations: [eager, fused, cube, native]
mock: [{noise: 0.01}]
models: [{shapes: [{name: sweep, min_power: 6, max_power: 10}]}]
";

struct Silent;
impl RunListener for Silent {
    fn on_event(&mut self, _: RunEvent) {}
}

fn mock_run(criterion: &mut Criterion) -> Result<(), RunError> {
    let source = ConfigSource { path: "inline.yml".into(), text: TEXT.into() };
    let prepared = Request { sources: vec![source], ..Request::default() }.prepare()?;
    let mut group = criterion.benchmark_group("mock run");
    group.sample_size(10).throughput(Throughput::Elements(CASES));
    group.bench_function("1,000 cases", |bencher| {
        let folder = || tempfile::tempdir().expect("the temporary folder is writable");
        bencher.iter_batched_ref(folder, |folder| run(&prepared, folder), BatchSize::PerIteration);
    });
    group.finish();
    Ok(())
}

fn run(prepared: &PreparedRun, folder: &TempDir) {
    let place = OutputDirs { dir: folder.path().to_owned(), output_dir: folder.path().to_owned() };
    let outcome = prepared
        .start(&place, &mut Subprocess::new(WorkerCaches::default()), &mut Silent)
        .expect("the mock device is always available");
    assert!(outcome.records.len() as u64 == CASES && outcome.errors.is_empty(), "{:?}", outcome.errors);
}

fn main() -> Result<(), RunError> {
    // The runner starts this program again as its worker, which rules out criterion's main macro.
    serve_if_worker();
    let mut criterion = Criterion::default().configure_from_args();
    mock_run(&mut criterion)?;
    criterion.final_summary();
    Ok(())
}
