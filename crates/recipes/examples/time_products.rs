//! Times layers on CUDA with CubeCL's kernels.
//!
//! `cargo run --release -p calorimeter-recipes --features full --example time_products -- [recipes] [rows] [n,k]`
//!
//! A part of each output is also compared with an f64 reference.

use burn::tensor::{Tensor, TensorData, backend::Backend};
use burn_cubecl::CubeBackend;
use calorimeter_recipes::{Dtype, FloatType, Linear, Recipe, Weight};
use calorimeter_timing::cuda::{Cupti, KernelClock};
use calorimeter_timing::{Failure, Stopwatch, Work};

type Cuda = CubeBackend<cubecl::cuda::CudaRuntime, f32, i32, u8>;
type Device = burn_cuda::CudaDevice;

/// Bytes that exceed every cache.
const BEYOND_CACHES: u64 = 256 << 20;

struct LayerCycle {
    layers: Vec<Box<dyn Linear<Cuda>>>,
    input: Tensor<Cuda, 2>,
    next: usize,
    device: Device,
}

impl Work for LayerCycle {
    fn launch(&mut self) -> Result<(), Failure> {
        drop(self.layers[self.next].forward(self.input.clone()));
        self.next = (self.next + 1) % self.layers.len();
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), Failure> {
        Cuda::sync(&self.device).map_err(|error| Failure::from(format!("{error:?}")))
    }
}

fn random_values(count: usize, dtype: Dtype) -> Vec<f32> {
    let mix = |i: usize| (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..count).map(|i| dtype.round((mix(i) >> 40) as f32 / (1u32 << 23) as f32 - 1.0)).collect()
}

/// Maximum error over sampled outputs, in units of roundoff of the largest of them.
fn max_error(output: Tensor<Cuda, 2>, input: &[f32], weight: &Weight, dtype: Dtype) -> f64 {
    let [m, n] = output.dims();
    let output = output.into_data().convert::<f32>().to_vec::<f32>().expect("the output was converted to f32");
    let places = (0..512).map(|i| (i * 7919 % m, i * 104_729 % n));
    let exact = |(row, col): (usize, usize)| -> f64 {
        let terms = input[row * weight.k()..].iter().zip(weight.row(col));
        terms.map(|(x, w)| f64::from(*x) * f64::from(*w)).sum()
    };
    let errors = places.map(|place| (exact(place), f64::from(output[place.0 * n + place.1])));
    let (error, largest) = errors.fold((0f64, 0f64), |(error, largest), (exact, found)| {
        // NaN counts as an infinite error.
        let off = (exact - found).abs();
        (if off.is_nan() { f64::INFINITY } else { error.max(off) }, largest.max(exact.abs()))
    });
    error / (largest * dtype.unit_roundoff())
}

fn list(argument: Option<String>, otherwise: &str) -> Vec<String> {
    argument.as_deref().unwrap_or(otherwise).split(',').map(str::to_owned).collect()
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let recipes = list(arguments.next(), "int8wo,int4wo-128,float8wo,int8dq");
    let rows = list(arguments.next(), "1,8,32,64,512");
    let size: Vec<usize> = list(arguments.next(), "4096,4096").iter().map(|n| n.parse().expect("a number")).collect();
    let (n, k) = (size[0], size[1]);
    let dtype = Dtype::Bf16;
    let device = Device::new(0);
    let mut clock = KernelClock::new(Cupti::load()?);
    let weight = Weight::new(n, k, random_values(n * k, dtype), dtype);
    for name in recipes {
        let config = name.parse::<Recipe>()?.quant_config(dtype, None)?;
        let prepared = config.prepare(&weight)?;
        let effective = config.effective_weight(&weight)?;
        let copies = BEYOND_CACHES.div_ceil(config.weight_bytes(n, k)).clamp(2, 64);
        let layers: Vec<_> =
            (0..copies).map(|_| config.upload_with_kernels::<Cuda>(prepared.clone(), &device)).collect();
        let mut work = LayerCycle { layers, input: Tensor::zeros([1, 1], &device), next: 0, device: device.clone() };
        for m in &rows {
            let m: usize = m.parse().expect("a number");
            let x = random_values(m * k, dtype);
            let data = TensorData::new(x.clone(), [m, k]);
            work.input = Tensor::from_data(data, (&device, burn::tensor::DType::BF16));
            let error = max_error(
                work.layers[0].forward(work.input.clone()),
                &config.effective_input(&x, k).unwrap_or(x),
                &effective,
                dtype,
            );
            let launches = if m > 64 { 20 } else { 200 };
            clock.load(&mut work, launches)?;
            let mut times = Vec::new();
            for _ in 0..5 {
                times.push(clock.window(&mut work, launches)?.resolve()? as f64 / f64::from(launches) / 1e3);
            }
            times.sort_by(f64::total_cmp);
            let ran = clock.kernels(&mut work, 1)?;
            let names: Vec<_> = ran
                .iter()
                .map(|kernel| {
                    format!("{}x{}", kernel.calls, kernel.name.split('_').take(3).collect::<Vec<_>>().join("_"))
                })
                .collect();
            println!(
                "{name:>12} m={m:<5} {:8.2} us  ({:.2} to {:.2})  error {error:.2}  {}",
                times[2],
                times[0],
                times[4],
                names.join(" ")
            );
        }
    }
    Ok(())
}
