//! Duration of `run --dry-run --format jsonl`, from the text of a file to the last line; the limits are 50 ms for 512
//! shapes with 6 recipes, and 1 s for 100,000 cases.

use calorimeter_runner::dialects::ConfigSource;
use calorimeter_runner::run::{Request, RunError};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

const SWEEP: &str = "
device: mock
recipes: [baseline, int8wo, int8dq, int4wo-128, float8wo, float8dq]
implementations: [eager]
models: [{shapes: [{name: sweep}]}]
";

/// 1,000 shapes, 5 recipes, 4 implementations, 5 models.
const LARGE: &str = "
device: mock
recipes: [baseline, int8wo, int8dq, int4wo-128, float8wo]
implementations: [eager, fused, cube, native]
models:
  - {model: linear, shapes: [{name: sweep, min_power: 6}]}
  - {model: ln_linear_relu, shapes: [{name: sweep, min_power: 6}]}
  - {model: ln_linear_gelu, shapes: [{name: sweep, min_power: 6}]}
  - {model: ln_linear_silu, shapes: [{name: sweep, min_power: 6}]}
  - {model: transformer_block, shapes: [{name: sweep, min_power: 6}]}
";

fn plan(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("plan");
    group.sample_size(20);
    for (name, text, cases) in [("512 shapes, 6 recipes", SWEEP, 3072), ("100,000 cases", LARGE, 100_000)] {
        group.throughput(Throughput::Elements(cases));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let lines = lines(black_box(text)).expect("the file is valid");
                assert_eq!(lines, cases);
            });
        });
    }
    group.finish();
}

/// Serializes every case of the plan as a line of JSON and returns the number of lines.
fn lines(text: &str) -> Result<u64, RunError> {
    let source = ConfigSource { path: "inline.yml".into(), text: text.into() };
    let prepared = Request { sources: vec![source], ..Request::default() }.prepare()?;
    let (mut line, mut lines) = (Vec::new(), 0);
    for (case, supported) in prepared.plan().cases() {
        line.clear();
        serde_json::to_writer(&mut line, &(case, supported.err())).expect("a case is plain data");
        black_box(&line);
        lines += 1;
    }
    Ok(lines)
}

criterion_group!(benches, plan);
criterion_main!(benches);
