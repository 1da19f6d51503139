//! Time to quantize a weight on the host, relative to copying it. Both process its 64 MiB with an equal number of
//! threads; the copy writes to existing memory, the quantization allocates its output.
//!
//! [`MAX_COPIES`] lists the limits of the recipes in copies. Half-quadratic quantization is also measured on normally
//! distributed values: at their magnitude it has outliers, and computes a power of each value in each iteration.

mod device;

use calorimeter_recipes::format::Format;
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::{Dtype, Recipe};
use calorimeter_shapes::Shape;
use calorimeter_timing::{Options, compare};
use calorimeter_zoo::Problem;
use criterion::{Criterion, Throughput};
use rayon::prelude::*;
use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

const SIDE: usize = 4096;

/// Limits of quantizing an f32 weight, in copies of it.
const MAX_COPIES: [(&str, f64); 6] =
    [("int8wo", 2.0), ("float8wo", 2.0), ("int4wo-128", 3.0), ("mxfp8", 4.0), ("nvfp4", 4.0), (HQQ, 120.0)];
const HQQ: &str = "int4wo-128-hqq";

/// Values and a format to quantize them to.
struct QuantizeCase<'a> {
    name: String,
    values: &'a [f32],
    format: Format,
    max_copies: Option<f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let side = SIDE as u64;
    let shape = Shape::new(side, side, side)?;
    let [full, half] = [Dtype::F32, Dtype::Bf16]
        .map(|dtype| Problem { model: "linear".parse().expect("a known model"), shape, dtype, seed: 42 }.tensors());
    let mut cases = Vec::new();
    for (name, bar) in MAX_COPIES {
        cases.push(case(name, Dtype::F32, full.weights[0].values(), Some(bar))?);
    }
    cases.push(QuantizeCase {
        name: format!("{HQQ}, normal"),
        ..case(HQQ, Dtype::F32, &full.input.values, Some(120.0))?
    });
    // The formats of the other recipes do not depend on the dtype.
    for name in ["int8wo", "float8wo", "int4wo-128"] {
        let case = case(name, Dtype::Bf16, half.weights[0].values(), None)?;
        cases.push(QuantizeCase { name: format!("{name}, bf16"), ..case });
    }

    let mut criterion = device::host_criterion();
    bench_isolated(&mut criterion, full.weights[0].values(), &cases);
    criterion.final_summary();
    if std::env::args().any(|argument| argument == "--bench") {
        bench_interleaved(&cases)?;
    }
    Ok(())
}

fn case<'a>(
    recipe: &str,
    dtype: Dtype,
    values: &'a [f32],
    bar: Option<f64>,
) -> Result<QuantizeCase<'a>, Box<dyn Error>> {
    let config = recipe.parse::<Recipe>()?.quant_config(dtype, None)?;
    let format = config.weight.expect("these recipes quantize weights");
    Ok(QuantizeCase { name: recipe.to_owned(), values, format, max_copies: bar })
}

fn bench_isolated(criterion: &mut Criterion, weight: &[f32], cases: &[QuantizeCase]) {
    let mut group = criterion.benchmark_group("quantize 4096x4096");
    group.sample_size(10).throughput(Throughput::Bytes(size_of_val(weight) as u64));
    let mut memory = vec![0.0; weight.len()];
    group.bench_function("copy", |bencher| bencher.iter(|| copy(weight, &mut memory)));
    for QuantizeCase { name, values, format, .. } in cases {
        group.bench_function(name, |bencher| bencher.iter(|| quantize(values, SIDE, *format)));
    }
    group.finish();
}

/// Interleaved measurement with the copy: on a shared machine times drift between two arms.
fn bench_interleaved(cases: &[QuantizeCase]) -> Result<(), Box<dyn Error>> {
    let mut memory = vec![0.0; SIDE * SIDE];
    let (max_time, max_warm_up) = (Duration::from_secs(2), Duration::from_millis(500));
    let options = Options { max_time, max_warm_up, ..Options::default() };
    for QuantizeCase { name, values, format, max_copies: bar } in cases {
        let compared = compare(|| copy(values, &mut memory), || quantize(values, SIDE, *format), &options)?;
        let (copied, quantized, times) =
            (compared.baseline.time, compared.candidate.time, 1.0 / compared.comparison.ratio);
        let bar = bar.map_or_else(String::new, |bar| format!(", at most {bar:.0}"));
        println!("interleaved: {name:22} {quantized}, {times:.2} copies of {copied}{bar}");
    }
    Ok(())
}

fn copy(values: &[f32], memory: &mut [f32]) {
    memory.par_chunks_mut(SIDE).zip(values.par_chunks(SIDE)).for_each(|(to, from)| to.copy_from_slice(from));
    black_box(memory);
}
