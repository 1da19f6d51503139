//! Device time of a custom CubeCL kernel in criterion, as another project would write it: saxpy, timed by timestamp
//! queries, or by the wall clock on the CPU if no graphics driver offers an adapter.

use calorimeter_timing::{Closure, DeviceTime, Failure, Stopwatch, Timestamps, WallClock, Work, bench_work};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use cubecl::client::ComputeClient;
use cubecl::future::block_on;
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::wgpu::{AutoGraphicsApi, GraphicsApi, WgpuDevice, WgpuRuntime};

const FLOATS: usize = 1 << 20;
const UNITS: u32 = 256;

#[cube(launch)]
fn saxpy<N: Size>(factor: f32, x: &Array<Vector<f32, N>>, y: &Array<Vector<f32, N>>, sum: &mut Array<Vector<f32, N>>) {
    if ABSOLUTE_POS < sum.len() {
        sum[ABSOLUTE_POS] = Vector::new(factor) * x[ABSOLUTE_POS] + y[ABSOLUTE_POS];
    }
}

struct Saxpy {
    client: ComputeClient<WgpuRuntime>,
    vector_width: usize,
    arrays: [Handle; 3],
}

impl Saxpy {
    fn is_right(&mut self) -> bool {
        self.launch().expect("the adapter launches the kernel");
        let sum = self.client.read_one(self.arrays[2].clone()).expect("the output is readable");
        f32::from_bytes(&sum).iter().enumerate().all(|(i, &sum)| sum == 3.0 * value(i))
    }
}

fn value(index: usize) -> f32 {
    (index % 1000) as f32
}

impl Work for Saxpy {
    fn launch(&mut self) -> Result<(), Failure> {
        // SAFETY: each array holds FLOATS floats; CubeCL counts scalars for vectors too.
        let [x, y, sum] = self.arrays.clone().map(|array| unsafe { ArrayArg::from_raw_parts(array, FLOATS) });
        let cubes = CubeCount::Static((FLOATS / self.vector_width) as u32 / UNITS, 1, 1);
        saxpy::launch(&self.client, cubes, CubeDim::new_1d(UNITS), self.vector_width, 2.0, x, y, sum);
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), Failure> {
        block_on(self.client.sync()).map_err(|error| format!("{error:?}").into())
    }
}

fn device_clock(criterion: &mut Criterion<DeviceTime>) {
    let values: Vec<f32> = (0..FLOATS).map(value).collect();
    if WgpuRuntime::enumerate_all_devices(&AutoGraphicsApi::backend()).is_empty() {
        return bench_cpu(criterion, &values);
    }
    let client = WgpuRuntime::client(&WgpuDevice::default());
    let mut stopwatch: Box<dyn Stopwatch> = match Timestamps::new(client.clone()) {
        Some(timestamps) => Box::new(timestamps),
        None => Box::new(WallClock::slope()),
    };
    let mut group = criterion.benchmark_group(format!("saxpy on wgpu by {}", stopwatch.name()));
    group.throughput(Throughput::BytesDecimal(3 * size_of_val(&values[..]) as u64));
    for vector_width in [1, 4] {
        let arrays = [(); 3].map(|()| client.create_from_slice(f32::as_bytes(&values)));
        let mut work = Saxpy { client: client.clone(), vector_width, arrays };
        assert!(work.is_right(), "wrong output");
        group.bench_function(BenchmarkId::new("vector width", vector_width), |bencher| {
            bench_work(bencher, &mut *stopwatch, &mut work);
        });
    }
    group.finish();
}

fn bench_cpu(criterion: &mut Criterion<DeviceTime>, values: &[f32]) {
    let mut sum = vec![0.0; values.len()];
    let mut work = Closure::new(|| sum.iter_mut().zip(values).for_each(|(sum, value)| *sum = 2.0 * value + value));
    criterion.bench_function("saxpy on the CPU by the wall clock", |bencher| {
        bench_work(bencher, &mut WallClock::synchronous(), &mut work);
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(DeviceTime).configure_from_args();
    targets = device_clock
}
criterion_main!(benches);
