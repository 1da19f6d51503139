//! Throughput of one operator of each kind in each implementation, on the device of `CALORIMETER_BENCH_DEVICE`.

mod device;

use calorimeter_recipes::RecipeVariant;
use calorimeter_timing::{DeviceTime, bench_work};
use calorimeter_zoo::{Implementation, NativeDevices};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Operators with axes small enough for a CPU.
const OPERATORS: [(&str, &[(&str, u64)]); 8] = [
    ("stream_triad", &[("elements", 1 << 20)]),
    ("layer_norm", &[("batch", 4), ("sequence", 128), ("dimension", 512)]),
    ("rms_norm", &[("batch", 4), ("sequence", 128), ("dimension", 512)]),
    ("softmax", &[("batch", 4), ("sequence", 128), ("dimension", 512)]),
    ("gelu", &[("batch", 4), ("sequence", 128), ("dimension", 512)]),
    ("matmul", &[("m", 256), ("k", 256), ("n", 256)]),
    ("attention", &[("batch", 1), ("heads", 4), ("sequence", 128), ("head_dim", 64)]),
    ("linear_bias_relu", &[("m", 128), ("k", 512), ("n", 512)]),
];

fn operators(criterion: &mut Criterion<DeviceTime>) {
    let device = device::device();
    let (mut machines, mut clock) = (NativeDevices::default(), device::clock(device));
    for (name, axes) in OPERATORS {
        let task = device::task(name, &axes.iter().copied().collect(), "f32");
        let mut group = criterion.benchmark_group(format!("{name} on {device}"));
        group.throughput(Throughput::Elements(task.flops().expect("operators declare their flops")));
        for implementation in Implementation::ALL {
            match device::open_case(&task, RecipeVariant::BASELINE, implementation, &mut machines) {
                Ok(mut job) => {
                    group.bench_function(BenchmarkId::from_parameter(implementation), |bencher| {
                        bench_work(bencher, &mut *clock, &mut job);
                    });
                }
                Err(why) => println!("{name}: {implementation} is not supported on {device}: {why}"),
            }
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = device::device_criterion();
    targets = operators
}
criterion_main!(benches);
