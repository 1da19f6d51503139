//! Overhead of an eager matmul on the CPU relative to `gemm`, the crate that burn-flex calls; the limit is 10 %.
//!
//! All arms read identical values in an identical layout, the weight as `[n, k]`, with the same number of threads. A
//! launch allocates its output, as a forward pass must, so the baseline is the arm that allocates too. The arm that
//! reuses its output shows the cost of the allocation.

mod device;

use calorimeter_recipes::{Dtype, QuantConfig};
use calorimeter_shapes::Shape;
use calorimeter_timing::{Options, compare};
use calorimeter_zoo::{Device, Implementation, NativeDevices, Problem, Setup, Tensors, Workload, open};
use criterion::{Criterion, Throughput};
use gemm::{Parallelism, gemm};
use std::error::Error;
use std::time::Duration;

const SIDE: usize = 1024;
const MAX_SLOWDOWN: f64 = 0.10;

fn main() -> Result<(), Box<dyn Error>> {
    let shape = Shape::new(SIDE as u64, SIDE as u64, SIDE as u64)?;
    let problem = Problem { model: "linear".parse()?, shape, dtype: Dtype::F32, seed: 42 };
    let tensors = problem.tensors();
    let mut eager = open(
        &problem,
        &tensors,
        &QuantConfig::unquantized(problem.dtype),
        Setup { implementation: Implementation::Eager, device: Device::Cpu, sets: 1 },
        &mut NativeDevices::default(),
    )?;
    assert_eq!(eager.output()?.values, reference_gemm(&tensors, Vec::new()), "all arms compute equal outputs");

    let mut criterion = device::host_criterion();
    bench_isolated(&mut criterion, &mut *eager, &tensors, problem.flops());
    criterion.final_summary();
    if std::env::args().any(|argument| argument == "--bench") {
        bench_interleaved(&mut *eager, &tensors)?;
    }
    Ok(())
}

fn bench_isolated(criterion: &mut Criterion, eager: &mut dyn Workload, tensors: &Tensors, flops: u64) {
    let mut group = criterion.benchmark_group("f32 1024x1024x1024");
    group.throughput(Throughput::Elements(flops));
    group.bench_function("eager", |bencher| bencher.iter(|| pass(eager)));
    group.bench_function("gemm, new output", |bencher| bencher.iter(|| reference_gemm(tensors, Vec::new())));
    let mut output = Vec::new();
    group.bench_function("gemm, reused output", |bencher| {
        bencher.iter(|| output = reference_gemm(tensors, std::mem::take(&mut output)));
    });
    group.finish();
}

/// Interleaved measurement: on a shared machine, drift between two arms exceeds the limit.
fn bench_interleaved(eager: &mut dyn Workload, tensors: &Tensors) -> Result<(), Box<dyn Error>> {
    let options = Options { margin: MAX_SLOWDOWN, max_time: Duration::from_secs(3), ..Options::default() };
    let compared = compare(|| reference_gemm(tensors, Vec::new()), || pass(eager), &options)?;
    println!("interleaved: gemm  {}", compared.baseline.time);
    println!("interleaved: eager {}", compared.candidate.time);
    println!("interleaved: eager relative to gemm: {}, limit {} %", compared.comparison, MAX_SLOWDOWN * 100.0);
    Ok(())
}

fn pass(eager: &mut dyn Workload) {
    eager.launch().and_then(|()| eager.synchronize()).expect("a matmul in f32 runs on every CPU");
}

/// Multiplies the input by the transposed weight into the memory of `output`, if its capacity suffices.
fn reference_gemm(tensors: &Tensors, mut output: Vec<f32>) -> Vec<f32> {
    let (input, weight) = (&tensors.input.values, tensors.weights[0].values());
    assert!(input.len() == SIDE * SIDE && weight.len() == SIDE * SIDE);
    output.clear();
    output.reserve_exact(SIDE * SIDE);
    let row = SIDE as isize;
    // SAFETY: all three matrices have SIDE rows of SIDE values, and the matmul writes every value of the output.
    unsafe {
        let (out, input, weight) = (output.as_mut_ptr(), input.as_ptr(), weight.as_ptr());
        let threads = Parallelism::Rayon(0);
        gemm(
            SIDE, SIDE, SIDE, out, 1, row, false, input, 1, row, weight, row, 1, 0.0, 1.0, false, false, false, threads,
        );
        output.set_len(SIDE * SIDE);
    }
    output
}
