//! Times a custom kernel with `calorimeter-timing`: does loading four floats at a time pay off? Two variants of a
//! CubeCL kernel, timed by the device clock if there is one.
//!
//! `cargo run -p calorimeter-kernels --features full --example time_a_kernel`

use calorimeter_timing::{Arm, Failure, Options, Stopwatch, Timestamps, WallClock, Work, compare_arms};
use cubecl::client::ComputeClient;
use cubecl::future::block_on;
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::wgpu::{AutoGraphicsApi, GraphicsApi, WgpuDevice, WgpuRuntime};

#[cube(launch)]
fn saxpy<N: Size>(factor: f32, x: &Array<Vector<f32, N>>, y: &Array<Vector<f32, N>>, sum: &mut Array<Vector<f32, N>>) {
    if ABSOLUTE_POS < sum.len() {
        sum[ABSOLUTE_POS] = Vector::new(factor) * x[ABSOLUTE_POS] + y[ABSOLUTE_POS];
    }
}

const FLOATS: usize = 1 << 22;
const UNITS: u32 = 256;

/// Kernel with its arguments.
struct Saxpy {
    client: ComputeClient<WgpuRuntime>,
    vector_width: usize,
    x: Handle,
    y: Handle,
    sum: Handle,
}

impl Saxpy {
    fn new(client: &ComputeClient<WgpuRuntime>, vector_width: usize) -> Self {
        let values: Vec<f32> = (0..FLOATS).map(|i| (i % 1000) as f32).collect();
        let values = || client.create_from_slice(f32::as_bytes(&values));
        let (x, y, sum) = (values(), values(), client.empty(size_of::<f32>() * FLOATS));
        Self { client: client.clone(), vector_width, x, y, sum }
    }

    fn result(&mut self) -> Result<Vec<u8>, Failure> {
        self.launch()?;
        let bytes = self.client.read_one(self.sum.clone()).map_err(|error| format!("{error:?}"))?;
        Ok(bytes.to_vec())
    }
}

impl Work for Saxpy {
    fn launch(&mut self) -> Result<(), Failure> {
        // SAFETY: each buffer holds `FLOATS` floats; CubeCL counts elements, also for vectors.
        let array = |handle: &Handle| unsafe { ArrayArg::from_raw_parts(handle.clone(), FLOATS) };
        let (x, y, sum) = (array(&self.x), array(&self.y), array(&self.sum));
        let cubes = CubeCount::Static((FLOATS / self.vector_width) as u32 / UNITS, 1, 1);
        saxpy::launch(&self.client, cubes, CubeDim::new_1d(UNITS), self.vector_width, 2.0, x, y, sum);
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), Failure> {
        block_on(self.client.sync()).map_err(|error| format!("{error:?}").into())
    }
}

fn main() -> Result<(), Failure> {
    if WgpuRuntime::enumerate_all_devices(&AutoGraphicsApi::backend()).is_empty() {
        return Err("no graphics adapter found".into());
    }
    let client = WgpuRuntime::client(&WgpuDevice::default());
    let (mut single, mut fourfold) = (Saxpy::new(&client, 1), Saxpy::new(&client, 4));
    assert!(single.result()? == fourfold.result()?, "both variants must compute equal results");
    let (mut clock, mut other_clock) = (stopwatch(&client), stopwatch(&client));
    println!("on {}, by `{}`", WgpuRuntime::name(&client), clock.name());
    if clock.name() != "timestamps" {
        println!(
            "the adapter has no timestamps: using the host clock, with the slope over window lengths to cancel the overhead"
        );
    }

    let (single, fourfold) = (Arm::new(&mut single, &mut *clock), Arm::new(&mut fourfold, &mut *other_clock));
    let compared = compare_arms(single, fourfold, &Options::default())?;
    let bytes = (3 * size_of::<f32>() * FLOATS) as f64;
    for (name, time) in [("scalar", compared.baseline.time), ("vector of 4", compared.candidate.time)] {
        println!("{name:12} {time}, {:6.1} GB/s", bytes / time.median);
    }
    println!("vector of 4 is {}", compared.comparison);
    if !compared.converged() {
        println!("the requested precision was not reached: the machine is too busy");
    }
    Ok(())
}

fn stopwatch(client: &ComputeClient<WgpuRuntime>) -> Box<dyn Stopwatch> {
    match Timestamps::new(client.clone()) {
        Some(timestamps) => Box::new(timestamps),
        None => Box::new(WallClock::slope()),
    }
}
