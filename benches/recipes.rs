//! Throughput of a linear layer with one recipe of each family, for one row and for a batch, on the device of
//! `CALORIMETER_BENCH_DEVICE`.

mod device;

use calorimeter_recipes::Recipe;
use calorimeter_shapes::Shape;
use calorimeter_timing::{DeviceTime, bench_work};
use calorimeter_zoo::{Implementation, NativeDevices};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const RECIPES: [&str; 6] = ["baseline", "int8wo", "int8dq", "int4wo-128", "float8dq", "mxfp8"];
const SHAPES: [[u64; 3]; 2] = [[1, 1024, 1024], [64, 512, 512]];

fn recipes(criterion: &mut Criterion<DeviceTime>) {
    let device = device::device();
    let (mut machines, mut clock) = (NativeDevices::default(), device::clock(device));
    for [m, k, n] in SHAPES {
        let shape = Shape::new(m, k, n).expect("no size is zero");
        let task = device::task("linear", &shape.into(), "f32");
        let mut group = criterion.benchmark_group(format!("linear {shape} on {device}"));
        group.throughput(Throughput::Elements(task.flops().expect("models declare their flops")));
        for name in RECIPES {
            let recipe: Recipe = name.parse().expect("a known recipe");
            match device::open_case(&task, recipe.into(), Implementation::Eager, &mut machines) {
                Ok(mut job) => {
                    group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                        bench_work(bencher, &mut *clock, &mut job);
                    });
                }
                Err(why) => println!("{name} is not supported on {device}: {why}"),
            }
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = device::device_criterion();
    targets = recipes
}
criterion_main!(benches);
