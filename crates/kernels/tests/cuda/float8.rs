//! e4m3 matmuls against 64-bit arithmetic, and the times of matmuls and quantization.

use std::sync::Arc;

use calorimeter_kernels::{
    Dtype,
    native::{
        CudaDevice, CudaKernel, DeviceBuffer, ElementwiseFunction, Float8Accumulation, Float8LinearPlan,
        Float8MatmulPlan, Float8Output, LinearShape, NativeError, ScaleSource,
    },
    rowwise,
};
use cudarc::driver::sys::CUevent_flags;

use super::{assert_close, decode, encode, epsilon, gpu, poisoned, values};

const OUTPUTS: [Float8Output; 5] = [
    Float8Output::Plain(Dtype::Bf16),
    Float8Output::Plain(Dtype::F32),
    Float8Output::Scaled(Dtype::Bf16),
    Float8Output::Scaled(Dtype::F32),
    Float8Output::ScaledAdded,
];

/// Random e4m3 values between -1 and 1.
fn random_e4m3(count: usize, seed: u64) -> Vec<u8> {
    values(count, seed, Dtype::F32).into_iter().map(|x| rowwise::to_e4m3(x as f32)).collect()
}

/// Random scales between 0.5 and 1.5.
fn scales(count: usize, seed: u64) -> Vec<f64> {
    values(count, seed, Dtype::F32).into_iter().map(|x| f64::from((1.0 + 0.5 * x) as f32)).collect()
}

/// Indices of the checked elements: all of a small output, a sample of a large one that covers all rows and columns.
fn sampled_elements(m: usize, n: usize) -> Vec<(usize, usize)> {
    let step = (m * n / 20_000).max(1) | 1;
    (0..m * n).step_by(step).map(|at| (at / n, at % n)).collect()
}

#[test]
#[ignore = "needs CUDA"]
fn float8_gemm_matches_with_scales_and_addend() {
    let (device, _guard) = gpu();
    // The third from last has several waves of tiles.
    let sizes = [
        (16, 32, 48),
        (128, 256, 64),
        (33, 512, 144),
        (130, 1104, 176),
        (300, 288, 16400),
        (1024, 4096, 512),
        (2048, 1024, 2048),
    ];
    for (m, k, n) in sizes {
        check(&device, LinearShape { m, k, n });
    }
    let shape = LinearShape { m: 16, k: 32, n: 16 };
    let linear = Float8LinearPlan::new(&device, shape, Float8Output::ScaledAdded, Float8Accumulation::Fast).unwrap();
    let x = poisoned(&device, 1024);
    let mut y = poisoned(&device, 1024);
    let error = linear.enqueue(&[&x, &x, &x, &x], &mut y).unwrap_err();
    assert_eq!(error, NativeError::InputCount { needed: 5, found: 4 });
    let short = poisoned(&device, 63);
    let error = linear.enqueue(&[&x, &x, &short, &x, &x], &mut y).unwrap_err();
    assert_eq!(error, NativeError::BufferSize { what: "row scales", needed: 64, found: 63 });
}

/// Small enough for compute-sanitizer: more k steps than stages, and partial tiles.
#[test]
#[ignore = "needs CUDA"]
fn float8_gemm_matches_on_two_shapes() {
    let (device, _guard) = gpu();
    for (m, k, n) in [(16, 32, 48), (130, 1104, 176)] {
        check(&device, LinearShape { m, k, n });
    }
}

/// Checks every implementation, with and without scales and addend.
fn check(device: &Arc<CudaDevice>, shape: LinearShape) {
    let LinearShape { m, k, n } = shape;
    let (x, w) = (random_e4m3(m * k, 1), random_e4m3(n * k, 2));
    let (rows, columns, added) = (scales(m, 3), scales(n, 4), values(m * n, 5, Dtype::F32));
    let upload = |x: &[f64]| device.upload(&encode(x, Dtype::F32)).unwrap();
    let inputs =
        [device.upload(&x).unwrap(), device.upload(&w).unwrap(), upload(&rows), upload(&columns), upload(&added)];
    let turned: Vec<u8> = (0..k * n).map(|at| w[at % n * k + at / n]).collect();
    let turned = device.upload(&turned).unwrap();
    let numbers = |codes: &[u8]| codes.iter().map(|&code| f64::from(rowwise::e4m3_to_f32(code))).collect::<Vec<_>>();
    let (x, w) = (numbers(&x), numbers(&w));
    // Accumulators, and Euclidean norms of their terms.
    let exact: Vec<(usize, usize, f64, f64)> = sampled_elements(m, n)
        .into_iter()
        .map(|(i, j)| {
            let terms = x[i * k..][..k].iter().zip(&w[j * k..][..k]).map(|(a, b)| a * b);
            let (sum, squares) = terms.fold((0.0, 0.0), |(sum, squares), term| (sum + term, squares + term * term));
            (i, j, sum, squares.sqrt())
        })
        .collect();
    let sums_of = [Float8Accumulation::Fast, Float8Accumulation::Promoted];
    let made = [Float8LinearPlan::new, Float8LinearPlan::with_scale_kernel];
    let mut found: Vec<(Float8Output, Float8Accumulation, String, DeviceBuffer)> = Vec::new();
    for output in OUTPUTS {
        let mut inputs: Vec<&DeviceBuffer> = inputs[..output.inputs()].iter().collect();
        for (sums, make) in sums_of.into_iter().flat_map(|sums| made.map(|make| (sums, make))) {
            let linear = make(device, shape, output, sums).unwrap();
            let mut y = poisoned(device, linear.y_bytes());
            linear.enqueue(&inputs, &mut y).unwrap();
            found.push((output, sums, linear.algorithm(), y));
        }
        let mut product = Float8MatmulPlan::new(device, shape, output).unwrap();
        let mut y = poisoned(device, m * n * output.kind().width());
        inputs[1] = &turned;
        product.enqueue(&inputs, &mut y).unwrap();
        found.push((output, Float8Accumulation::Promoted, product.algorithm(), y));
    }
    for (output, sums, algorithm, y) in found {
        let place = format!("{shape} {output:?} {sums:?}: {algorithm}");
        let y = decode(&y.download().unwrap(), output.kind());
        // Each step of 32 along k truncates below 13 bits; promoted accumulators restart every four steps.
        let cuts = match sums {
            Float8Accumulation::Fast => (k as f64 / 32.0).max(1.0),
            Float8Accumulation::Promoted => 4.0 * (k as f64 / 128.0).max(1.0).sqrt(),
        };
        let mut worst = 0f64;
        for &(i, j, sum, length) in &exact {
            let scale = if output.inputs() > 2 { rows[i] * columns[j] } else { 1.0 };
            let of_added = if output == Float8Output::ScaledAdded { added[i * n + j] } else { 0.0 };
            let exact = sum * scale + of_added;
            let found = y[i * n + j];
            worst = worst.max((found - exact).abs() / (length * scale));
            let tolerance = epsilon(output.kind()) * exact.abs() + cuts * 2f64.powi(-12) * length * scale;
            assert_close(found, exact, tolerance, || format!("{place} at [{i}, {j}]"));
        }
        println!("{place}: maximum error {worst:.1e} relative to the norm of the terms");
    }
}

#[test]
#[ignore = "needs CUDA"]
fn rowwise_quantized_matmul_approximates_the_product() {
    let (device, _guard) = gpu();
    let (m, k, n) = (256, 2048, 512);
    let (a, b) = (values(m * k, 1, Dtype::Bf16), values(k * n, 2, Dtype::Bf16));
    let mut chain = RowwiseChain::new(&device, LinearShape { m, k, n }, true);
    chain.a.upload(&encode(&a, Dtype::Bf16)).unwrap();
    chain.b.upload(&encode(&b, Dtype::Bf16)).unwrap();
    chain.enqueue();
    let y = decode(&chain.y.download().unwrap(), Dtype::Bf16);
    for (i, j) in sampled_elements(m, n) {
        let terms = (0..k).map(|l| a[i * k + l] * b[l * n + j]);
        let squares: f64 = terms.clone().map(|term| term * term).sum();
        // The relative error of an e4m3 value is at most 1/16. The RMS error of a sum is 0.04 of the norm of its terms.
        let tolerance = 0.3 * squares.sqrt();
        assert_close(y[i * n + j], terms.sum(), tolerance, || format!("at [{i}, {j}]"));
    }
}

/// Row-wise quantization of a[m, k], column-wise quantization of b[k, n], and their matmul to bf16.
struct RowwiseChain {
    quantize_a: CudaKernel,
    quantize_b: CudaKernel,
    linear: Float8LinearPlan,
    inputs: usize,
    a: DeviceBuffer,
    b: DeviceBuffer,
    /// Quantized a and b, and their scales: the inputs of the matmul.
    quantized: [DeviceBuffer; 4],
    y: DeviceBuffer,
}

impl RowwiseChain {
    fn new(device: &Arc<CudaDevice>, shape: LinearShape, scaled: bool) -> Self {
        let LinearShape { m, k, n } = shape;
        let quantize_a = CudaKernel::quantize_rows(device, ScaleSource::Amax, m, k).unwrap();
        let quantize_b = CudaKernel::quantize_columns(device, ScaleSource::Amax, k, n).unwrap();
        let bf16 = Dtype::Bf16;
        let output = if scaled { Float8Output::Scaled(bf16) } else { Float8Output::Plain(bf16) };
        let linear = Float8LinearPlan::new(device, shape, output, Float8Accumulation::Fast).unwrap();
        let quantized = [
            quantize_a.output_bytes(0),
            quantize_b.output_bytes(0),
            quantize_a.output_bytes(1),
            quantize_b.output_bytes(1),
        ];
        Self {
            a: device.allocate(quantize_a.input_bytes(0)).unwrap(),
            b: device.allocate(quantize_b.input_bytes(0)).unwrap(),
            quantized: quantized.map(|bytes| device.allocate(bytes).unwrap()),
            y: device.allocate(linear.y_bytes()).unwrap(),
            quantize_a,
            quantize_b,
            linear,
            inputs: output.inputs(),
        }
    }

    fn enqueue(&mut self) {
        let [a_codes, b_codes, a_scales, b_scales] = &mut self.quantized;
        self.quantize_a.enqueue([&self.a], [&mut *a_codes, &mut *a_scales]).unwrap();
        self.quantize_b.enqueue([&self.b], [&mut *b_codes, &mut *b_scales]).unwrap();
        let inputs = [&*a_codes, b_codes, a_scales, b_scales];
        self.linear.enqueue(&inputs[..self.inputs], &mut self.y).unwrap();
    }
}

/// Prints the median time of each operation at sizes that other tools measure, for manual inspection.
#[test]
#[ignore = "needs CUDA"]
fn times_of_quantizing_and_multiplying() {
    let (device, _guard) = gpu();
    // Repeated, because generating gigabytes takes longer than everything else here.
    let repeat = |some: &[u8], bytes: usize| {
        let bytes: Vec<u8> = some.iter().copied().cycle().take(bytes).collect();
        device.upload(&bytes).unwrap()
    };
    let some_bf16 = encode(&values(1 << 20, 7, Dtype::Bf16), Dtype::Bf16);
    let some_f32 = encode(&scales(1 << 20, 8), Dtype::F32);
    let some_codes = random_e4m3(1 << 20, 9);
    let random = |count: usize| repeat(&some_bf16, 2 * count);
    let show = |what: &str, bytes: usize, operations: f64, enqueue: &mut dyn FnMut()| {
        let millis = median(&device, enqueue);
        let (bandwidth, rate) = (bytes as f64 / millis / 1e6, operations / millis / 1e9);
        println!("{what}: {millis:.4} ms, {bandwidth:.0} GB/s, {rate:.0} TFLOP/s");
    };

    for scales in [ScaleSource::Amax, ScaleSource::Static] {
        let (rows, columns) = (16384, 16384);
        let plan = CudaKernel::quantize_rows(&device, scales, rows, columns).unwrap();
        let x = random(rows * columns);
        let mut codes = device.allocate(plan.output_bytes(0)).unwrap();
        let mut found = device.allocate(plan.output_bytes(1)).unwrap();
        show(&format!("rows of {rows}x{columns} {scales:?}"), 3 * rows * columns, 0.0, &mut || {
            plan.enqueue([&x], [&mut codes, &mut found]).unwrap();
        });
        for (rows, columns) in [(16384, 4096), (4096, 16384), (16384, 16384), (8192, 8192)] {
            let plan = CudaKernel::quantize_columns(&device, scales, rows, columns).unwrap();
            let mut found = device.allocate(4 * columns).unwrap();
            show(&format!("columns of {rows}x{columns} {scales:?}"), 3 * rows * columns, 0.0, &mut || {
                plan.enqueue([&x], [&mut codes, &mut found]).unwrap();
            });
        }
    }

    let length = 4096 * 16384;
    let (a, b, mut y) = (random(length), random(length), device.allocate(2 * length).unwrap());
    use ElementwiseFunction::{Add, Copy, Scale, Triad};
    for function in [Copy, Scale(3.0), Add, Triad(3.0)] {
        let plan = CudaKernel::elementwise(&device, Dtype::Bf16, function, length).unwrap();
        let inputs = &[&a, &b][..function.inputs()];
        let bytes = (function.inputs() + 1) * plan.output_bytes(0);
        show(&format!("{function} of 4096x16384 bf16"), bytes, 0.0, &mut || {
            plan.enqueue(inputs.iter().copied(), [&mut y]).unwrap()
        });
    }

    let flops = |m: usize, k: usize, n: usize| 2.0 * m as f64 * k as f64 * n as f64;
    for (m, k, n) in [(128, 32768, 8192), (512, 32768, 8192), (512, 4096, 4096)] {
        let (x, w) = (repeat(&some_codes, m * k), repeat(&some_codes, k * n));
        let scales = repeat(&some_f32, 4 * n.max(m));
        let added = repeat(&some_f32, 4 * m * n);
        let mut y = device.allocate(4 * m * n).unwrap();
        let shape = LinearShape { m, k, n };
        let mut product = Float8MatmulPlan::new(&device, shape, Float8Output::ScaledAdded).unwrap();
        show(&format!("{shape}: {}", product.algorithm()), 0, flops(m, k, n), &mut || {
            product.enqueue(&[&x, &w, &scales, &scales, &added], &mut y).unwrap();
        });
        let turn = CudaKernel::transpose_bytes(&device, k, n).unwrap();
        let mut turned = device.allocate(k * n).unwrap();
        let linear =
            Float8LinearPlan::new(&device, shape, Float8Output::ScaledAdded, Float8Accumulation::Promoted).unwrap();
        show(&format!("{shape}, transposed first: {}", linear.algorithm()), 0, flops(m, k, n), &mut || {
            turn.enqueue([&w], [&mut turned]).unwrap();
            linear.enqueue(&[&x, &turned, &scales, &scales, &added], &mut y).unwrap();
        });
    }

    let (m, k, n) = (8192, 8192, 8192);
    let turn = CudaKernel::transpose_bytes(&device, k, n).unwrap();
    let (x, w) = (repeat(&some_codes, m * k), repeat(&some_codes, k * n));
    let mut turned = device.allocate(k * n).unwrap();
    show("transpose of 8192x8192 bytes", 2 * k * n, 0.0, &mut || turn.enqueue([&w], [&mut turned]).unwrap());
    let [rows, columns, added] = [m, n, m * n].map(|count| repeat(&some_f32, 4 * count));
    let mut y = device.allocate(4 * m * n).unwrap();
    for sums in [Float8Accumulation::Fast, Float8Accumulation::Promoted] {
        for output in OUTPUTS {
            for make in [Float8LinearPlan::new, Float8LinearPlan::with_scale_kernel] {
                let linear = make(&device, LinearShape { m, k, n }, output, sums).unwrap();
                let what = format!("transpose and matmul of 8192³ {output:?} {sums:?} by {}", linear.algorithm());
                show(&what, 0, flops(m, k, n), &mut || {
                    turn.enqueue([&w], [&mut turned]).unwrap();
                    let inputs = [&x, &turned, &rows, &columns, &added];
                    linear.enqueue(&inputs[..output.inputs()], &mut y).unwrap();
                });
            }
        }
    }

    for (m, k, n) in [(16384, 16384, 4096), (16384, 4096, 16384)] {
        for scaled in [false, true] {
            let mut chain = RowwiseChain::new(&device, LinearShape { m, k, n }, scaled);
            chain.a = random(m * k);
            chain.b = random(k * n);
            let what = format!("quantize both and multiply, m={m} k={k} n={n}, scaled: {scaled}");
            show(&what, 0, flops(m, k, n), &mut || chain.enqueue());
        }
    }
}

/// Median milliseconds of a launch between events.
fn median(device: &CudaDevice, enqueue: &mut dyn FnMut()) -> f64 {
    let event = || device.stream().record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
    for _ in 0..3 {
        enqueue();
    }
    let mut times: Vec<f64> = (0..15)
        .map(|_| {
            let start = event();
            enqueue();
            let end = event();
            end.synchronize().unwrap();
            f64::from(start.elapsed_ms(&end).unwrap())
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}
