//! Native kernels against 64-bit arithmetic on the host.
//!
//! Tests that need a GPU are ignored by default; `cargo test -- --include-ignored` runs them on the first one.
//! `--nocapture` prints times.
#![cfg(feature = "cuda")]

mod block_sparse;
mod buffers;
mod convolutions;
mod dynamic;
mod elementwise;
mod float8;
mod gradients;
mod int4;
mod layers;
mod line_rotation;
mod packed;
mod quantize;
mod reductions;
mod rows;
mod sparse_2to4;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use calorimeter_kernels::{
    Activation as ActivationFunction, Dtype,
    native::{
        CudaDevice, CudaKernel, DeviceBuffer, Epilogue, LAYER_NORM_EPSILON, LinearPlan, LinearShape, LinearSpec,
        NativeError, WeightLayout, libraries, list_gpus,
    },
    probes::{NativeProbes, Probe, ProbeError, Probes},
};
use cudarc::driver::sys::CUevent_flags;
use half::{bf16, f16};

/// Opens the GPU exclusively: tests print times, and one of them fills the memory.
fn gpu() -> (Arc<CudaDevice>, MutexGuard<'static, ()>) {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let device = CudaDevice::open(0).unwrap_or_else(|error| panic!("this test needs an NVIDIA GPU: {error}"));
    println!("running on {} ({})", device.name(), device.uuid());
    (device, turn)
}

/// Microseconds per launch over rounds through all buffer sets: minimum of five runs.
fn micros(device: &CudaDevice, sets: usize, mut launch: impl FnMut(usize)) -> f64 {
    const ROUNDS: usize = 20;
    let mut rounds = || mean_micros(device, ROUNDS * sets, |at| launch(at % sets));
    (0..5).map(|_| rounds()).fold(f64::INFINITY, f64::min)
}

/// Mean microseconds per launch of `many` launches.
fn mean_micros(device: &CudaDevice, many: usize, launch: impl FnMut(usize)) -> f64 {
    let timed = Some(CUevent_flags::CU_EVENT_DEFAULT);
    let start = device.stream().record_event(timed).unwrap();
    (0..many).for_each(launch);
    let end = device.stream().record_event(timed).unwrap();
    end.synchronize().unwrap();
    f64::from(start.elapsed_ms(&end).unwrap()) * 1e3 / many as f64
}

#[test]
#[ignore = "needs CUDA"]
fn algorithm_choice_is_cached() {
    let (_machine, _guard) = gpu();
    let folder = tempfile::tempdir().unwrap();
    let opened = || CudaDevice::open_with_cache(0, folder.path()).unwrap();
    let planned = |device: &Arc<CudaDevice>, shape| {
        let start = std::time::Instant::now();
        let algorithm = LinearPlan::new(device, Dtype::Bf16, shape).unwrap().algorithm();
        println!("{shape}: {:?} for {algorithm}", start.elapsed());
        algorithm
    };
    for shape in [(32, 4096, 4096), (1000, 520, 264), (4096, 4096, 4096)].map(|(m, k, n)| LinearShape { m, k, n }) {
        let first = opened();
        let tried = planned(&first, shape);
        assert!(tried.contains("all of them tried"), "{tried}");
        assert_eq!(planned(&first, shape), tried, "cached within the device");
        let kept = planned(&opened(), shape);
        assert_eq!(kept.replace("kept from an earlier trial", "all of them tried"), tried);
        assert!(kept.contains("kept from an earlier trial"), "{kept}");
    }
    std::fs::write(folder.path().join("cublaslt.txt"), "broken").unwrap();
    let again = planned(&opened(), LinearShape { m: 32, k: 4096, n: 4096 });
    assert!(again.contains("all of them tried"), "{again}");
}

#[test]
#[ignore = "needs CUDA"]
fn compiled_kernels_are_cached() {
    let (_machine, _guard) = gpu();
    let folder = tempfile::tempdir().unwrap();
    let opened = || {
        let device = CudaDevice::open_with_cache(0, folder.path()).unwrap();
        let start = std::time::Instant::now();
        let plan = CudaKernel::softmax(&device, Dtype::Bf16, 3, 1000).unwrap();
        println!("opened in {:?}", start.elapsed());
        let x = device.upload(&[0; 6000]).unwrap();
        let mut y = device.allocate(6000).unwrap();
        plan.enqueue([&x], [&mut y]).unwrap();
        y.download().unwrap()
    };
    let files = || {
        let entries = std::fs::read_dir(folder.path().join("kernels")).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> =
            entries.map(|entry| (entry.path(), entry.metadata().unwrap().modified().unwrap())).collect();
        files.sort();
        files
    };
    let first = opened();
    let written = files();
    assert!(!written.is_empty());
    assert_eq!(opened(), first);
    assert_eq!(files(), written, "no cache entry was written");
    for (path, _) in &written {
        std::fs::write(path, "broken").unwrap();
    }
    assert_eq!(opened(), first);
    assert_ne!(files(), written, "corrupt entries are compiled again");
}

#[test]
fn missing_libraries_are_errors_with_advice() {
    for library in libraries() {
        println!("{}: {}", library.name, library.problem.as_deref().unwrap_or("found"));
        assert_eq!(library.loaded, library.problem.is_none());
    }
    let has_driver = libraries()[0].loaded;
    match list_gpus() {
        Ok(gpus) => {
            println!("the driver lists {} GPUs: {gpus:#?}", gpus.len());
            assert!(has_driver);
            let error = CudaDevice::open(gpus.len()).unwrap_err();
            assert_eq!(error, NativeError::NoSuchDevice { ordinal: gpus.len(), count: gpus.len() });
        }
        Err(error) => {
            println!("the driver lists no GPUs: {error}");
            assert_eq!(CudaDevice::open(0).unwrap_err(), error);
            if !has_driver {
                assert!(matches!(error, NativeError::LibraryMissing { .. }), "{error}");
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn device_reports_its_gpu() {
    let (device, _guard) = gpu();
    println!("{:#?}", device.info());
    assert_eq!(device.uuid().len(), "GPU-00112233-4455-6677-8899-aabbccddeeff".len());
    assert!(device.free_memory().unwrap() < device.total_memory());
    assert!(device.l2_bytes() > 0);
    assert_eq!(device.info(), &list_gpus().unwrap()[0]);
}

#[test]
#[ignore = "needs CUDA"]
fn buffer_keeps_bytes_and_frees_memory() {
    let (device, _guard) = gpu();
    let bytes: Vec<u8> = (0..100_003u32).map(|i| (i % 251) as u8).collect();
    let mut buffer = device.upload(&bytes).unwrap();
    assert_eq!(buffer.download().unwrap(), bytes);
    buffer.fill(0xa5).unwrap();
    assert!(buffer.download().unwrap().iter().all(|&byte| byte == 0xa5));
    assert!(matches!(buffer.upload(&bytes[1..]), Err(NativeError::BufferSize { .. })));
    assert!(matches!(device.allocate(0), Err(NativeError::InvalidSize { .. })));

    let large = device.allocate(1 << 30).unwrap();
    let with = device.free_memory().unwrap();
    drop(large);
    assert!(device.free_memory().unwrap() >= with + (1 << 30));
}

#[test]
#[ignore = "needs CUDA"]
fn large_buffer_downloads_match_uploads() {
    let (device, _guard) = gpu();
    for bytes in [(32 << 20) - 1, 32 << 20, (40 << 20) + 1, (100 << 20) + 4097] {
        let content: Vec<u8> = (0..bytes).map(|at: usize| (at ^ (at >> 8) ^ (at >> 21)) as u8).collect();
        let start = std::time::Instant::now();
        let found = device.upload(&content).unwrap().download().unwrap();
        println!("{bytes} bytes there and back in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
        assert!(found == content, "{bytes}");
    }
}

#[test]
#[ignore = "needs CUDA"]
fn buffers_of_other_devices_or_sizes_are_rejected() {
    let (device, _guard) = gpu();
    let other = CudaDevice::open(0).unwrap();
    let linear = LinearPlan::new(&device, Dtype::F32, LinearShape { m: 16, k: 16, n: 16 }).unwrap();
    let x = device.allocate(linear.x_bytes()).unwrap();
    let foreign = other.allocate(linear.w_bytes()).unwrap();
    let mut y = device.allocate(linear.y_bytes()).unwrap();
    assert_eq!(linear.enqueue(&x, &foreign, &mut y).unwrap_err(), NativeError::DeviceMismatch { what: "w" });
    let mut short = device.allocate(linear.y_bytes() - 1).unwrap();
    assert_eq!(
        linear.enqueue(&x, &x, &mut short).unwrap_err(),
        NativeError::BufferSize { what: "y", needed: 1024, found: 1023 }
    );
    let norm = CudaKernel::layer_norm(&device, Dtype::F32, 16, 17).unwrap();
    assert!(matches!(norm.enqueue([&x], [&mut y]), Err(NativeError::BufferSize { what: "x", .. })));
}

#[test]
#[ignore = "needs CUDA"]
fn linear_is_within_f32_accumulation_error() {
    let (device, _guard) = gpu();
    let shapes = [
        (1, 4096, 4096),
        (512, 512, 512),
        (127, 256, 129),
        // Rows that are not multiples of 16 bytes: supported, or rejected with a reason.
        (64, 33, 17),
        (17, 1025, 33),
        (1, 1, 1),
    ];
    for kind in Dtype::ALL {
        for (m, k, n) in shapes {
            let shape = LinearShape { m, k, n };
            let linear = match LinearPlan::new(&device, kind, shape) {
                Ok(linear) => linear,
                Err(error @ NativeError::NoAlgorithm { .. }) if !(k * kind.width()).is_multiple_of(16) => {
                    println!("{kind} {shape}: {error}");
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            println!("{kind} {shape}: {}", linear.algorithm());
            let x = values(m * k, 1, kind);
            let w = values(n * k, 2, kind);
            let mut y = poisoned(&device, linear.y_bytes());
            linear
                .enqueue(&device.upload(&encode(&x, kind)).unwrap(), &device.upload(&encode(&w, kind)).unwrap(), &mut y)
                .unwrap();
            let y = decode(&y.download().unwrap(), kind);
            // Tensor cores truncate partial sums instead of rounding. TF32 would exceed the f32 tolerance.
            let roundings = if kind == Dtype::F32 { 8.0 } else { 16.0 };
            let sums = roundings * f64::from(f32::EPSILON) * (k as f64).sqrt();
            for i in 0..m {
                for j in 0..n {
                    let (row, column) = (&x[i * k..(i + 1) * k], &w[j * k..(j + 1) * k]);
                    let (mut exact, mut squares) = (0.0, 0.0);
                    for (a, b) in row.iter().zip(column) {
                        let term = a * b;
                        exact += term;
                        squares += term * term;
                    }
                    let tolerance = epsilon(kind) * exact.abs() + sums * squares.sqrt();
                    assert_close(y[i * n + j], exact, tolerance, || format!("{kind} {shape} at [{i}, {j}]"));
                }
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn linear_supports_layouts_output_dtypes_and_bias() {
    let (device, _guard) = gpu();
    let shape = LinearShape { m: 33, k: 256, n: 80 };
    let LinearShape { m, k, n } = shape;
    let layouts = [WeightLayout::AlongK, WeightLayout::AlongN];
    let epilogues = [Epilogue::None, Epilogue::Bias, Epilogue::Relu, Epilogue::BiasRelu];
    let outputs = Dtype::ALL.into_iter().flat_map(|kind| Dtype::ALL.map(|output| (kind, output)));
    for (kind, output) in outputs {
        let (x, w, bias) = (values(m * k, 1, kind), values(n * k, 2, kind), values(n, 3, output));
        let [x_buffer, w_buffer] = [&x, &w].map(|some| device.upload(&encode(some, kind)).unwrap());
        let bias_buffer = device.upload(&encode(&bias, output)).unwrap();
        for (weight, epilogue) in layouts.into_iter().flat_map(|weight| epilogues.map(|epilogue| (weight, epilogue))) {
            let spec = LinearSpec { output, weight, epilogue, ..LinearSpec::plain(kind) };
            let linear = match LinearPlan::with_spec(&device, spec, shape) {
                Ok(linear) => linear,
                Err(NativeError::NoAlgorithm { .. }) if epilogue != Epilogue::None && kind != output => continue,
                Err(error) => panic!("{spec:?}: {error}"),
            };
            println!("{spec:?}: {}", linear.algorithm());
            let mut y = poisoned(&device, linear.y_bytes());
            match epilogue {
                Epilogue::None | Epilogue::Relu => linear.enqueue(&x_buffer, &w_buffer, &mut y).unwrap(),
                _ => linear.enqueue_with_bias(&x_buffer, &w_buffer, &bias_buffer, &mut y).unwrap(),
            }
            let y = decode(&y.download().unwrap(), output);
            for (at, &found) in y.iter().enumerate() {
                let (i, j) = (at / n, at % n);
                let of_w = |l: usize| if weight == WeightLayout::AlongK { w[j * k + l] } else { w[l * n + j] };
                let terms = (0..k).map(|l| x[i * k + l] * of_w(l));
                let squares: f64 = terms.clone().map(|term| term * term).sum();
                let sum: f64 = terms.sum();
                let exact = match epilogue {
                    Epilogue::None => sum,
                    Epilogue::Bias => sum + bias[j],
                    Epilogue::Relu => sum.max(0.0),
                    Epilogue::BiasRelu => (sum + bias[j]).max(0.0),
                };
                let sums = 16.0 * f64::from(f32::EPSILON) * (k as f64).sqrt() * squares.sqrt();
                assert_close(found, exact, epsilon(output) * exact.abs() + sums, || format!("{spec:?} at [{i}, {j}]"));
            }
        }
    }
    let linear = LinearPlan::new(&device, Dtype::F32, shape).unwrap();
    let buffer = poisoned(&device, 4 * (m + n) * k);
    let error = linear.enqueue_with_bias(&buffer, &buffer, &buffer, &mut poisoned(&device, 4 * m * n)).unwrap_err();
    assert_eq!(error, NativeError::InputCount { needed: 2, found: 3 });
}

#[test]
#[ignore = "needs CUDA"]
fn tf32_is_used_only_on_request() {
    let (device, _guard) = gpu();
    let (m, k, n) = (256, 1024, 128);
    let shape = LinearShape { m, k, n };
    let (x, w) = (values(m * k, 1, Dtype::F32), values(n * k, 2, Dtype::F32));
    let upload = |values: &[f64]| device.upload(&encode(values, Dtype::F32)).unwrap();
    let (device_x, device_w) = (upload(&x), upload(&w));
    // Largest error of an element, relative to the norm of its terms.
    let error_of = |linear: LinearPlan| {
        println!("{shape}: {}", linear.algorithm());
        let mut y = poisoned(&device, linear.y_bytes());
        linear.enqueue(&device_x, &device_w, &mut y).unwrap();
        let y = decode(&y.download().unwrap(), Dtype::F32);
        let errors = (0..m * n).map(|at| {
            let (row, column) = (&x[at / n * k..][..k], &w[at % n * k..][..k]);
            let terms = row.iter().zip(column).map(|(a, b)| a * b);
            let squares: f64 = terms.clone().map(|term| term * term).sum();
            (y[at] - terms.sum::<f64>()).abs() / squares.sqrt()
        });
        errors.fold(0.0, f64::max)
    };
    let whole = error_of(LinearPlan::new(&device, Dtype::F32, shape).unwrap());
    let rounded = error_of(LinearPlan::with_tf32(&device, shape).unwrap());
    println!("error of f32 {whole:.1e}, of TF32 {rounded:.1e}");
    // TF32 keeps 11 bits of each operand, f32 keeps 24.
    assert!(whole < 1e-4 && (5e-4..1e-2).contains(&rounded), "{whole:e} {rounded:e}");
}

#[test]
#[ignore = "needs CUDA"]
fn linear_plans_the_largest_shapes() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        let shape = LinearShape { m: 65536, k: 65536, n: 65536 };
        println!("{kind} {shape}: {}", LinearPlan::new(&device, kind, shape).unwrap().algorithm());
    }
    let error = LinearPlan::new(&device, Dtype::F32, LinearShape { m: 0, k: 1, n: 1 }).unwrap_err();
    assert!(matches!(error, NativeError::InvalidSize { what: "m", value: 0, .. }), "{error}");
}

#[test]
#[ignore = "needs CUDA"]
fn layer_norm_is_accurate_for_large_means() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        for columns in [1, 31, 33, 257, 768, 1000, 1025, 4096, 32768, 65536, 70001] {
            let rows = 5;
            let mut x: Vec<f64> =
                values(rows * columns, 3, kind).into_iter().map(|value| round(100.0 + value, kind)).collect();
            // A constant row must not divide by zero.
            x[..columns].fill(100.0);
            let norm = CudaKernel::layer_norm(&device, kind, rows, columns).unwrap();
            println!("{kind} {columns}: {}", norm.algorithm());
            let mut y = poisoned(&device, norm.output_bytes(0));
            norm.enqueue([&device.upload(&encode(&x, kind)).unwrap()], [&mut y]).unwrap();
            let y = decode(&y.download().unwrap(), kind);
            for row in 0..rows {
                let x = &x[row * columns..(row + 1) * columns];
                let mean = x.iter().sum::<f64>() / columns as f64;
                let variance = x.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / columns as f64;
                let scale = 1.0 / (variance + f64::from(LAYER_NORM_EPSILON)).sqrt();
                for (column, value) in x.iter().enumerate() {
                    let exact = (value - mean) * scale;
                    // The mean is a float near 100, with an error of up to half an ULP.
                    let tolerance = epsilon(kind) * exact.abs() + 100.0 * f64::from(f32::EPSILON) * scale;
                    let at = || format!("{kind} {columns} columns at [{row}, {column}]");
                    assert_close(y[row * columns + column], exact, tolerance, at);
                }
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn activations_match_at_every_length() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        let (smallest, largest) = extremes(kind);
        let mut x = vec![0.0, -0.0, smallest, -smallest, 3.0 * smallest, largest, -largest];
        x.extend([0.5, 1.0, 3.0, 6.0, 20.0, 88.0, 100.0, 1000.0, 60000.0].iter().flat_map(|v| [*v, -*v]));
        x.extend((-800..=800).map(|i| f64::from(i) / 100.0));
        let mut x: Vec<f64> = x.into_iter().map(|value| round(value, kind)).collect();
        for function in ActivationFunction::ALL {
            // One element less each time, to cover every tail.
            x.pop();
            let activation = CudaKernel::activation(&device, kind, function, x.len()).unwrap();
            let input = device.upload(&encode(&x, kind)).unwrap();
            let mut output = poisoned(&device, activation.output_bytes(0));
            activation.enqueue([&input], [&mut output]).unwrap();
            let bytes = output.download().unwrap();
            for (&x, y) in x.iter().zip(decode(&bytes, kind)) {
                let exact = round(reference(function, x), kind);
                let tolerance = match function {
                    ActivationFunction::Relu | ActivationFunction::Relu6 => 0.0,
                    _ => {
                        let rounding = epsilon(kind) + 4.0 * f64::from(f32::EPSILON);
                        rounding * exact.abs() + 1e-6 * x.abs().min(10.0) + smallest
                    }
                };
                assert_close(y, exact, tolerance, || format!("{function} {kind} of {x:e}"));
            }
            let mut in_place = input;
            activation.enqueue_in_place(&mut in_place).unwrap();
            assert_eq!(in_place.download().unwrap(), bytes, "{function} {kind} in place");
        }
        for length in 1..=9 {
            let activation = CudaKernel::activation(&device, kind, ActivationFunction::Relu, length).unwrap();
            let mut output = device.upload(&vec![0xff; activation.output_bytes(0) + 16]).unwrap();
            activation.enqueue([&device.upload(&encode(&x[7..7 + length], kind)).unwrap()], [&mut output]).unwrap();
            let bytes = output.download().unwrap();
            assert!(
                bytes[activation.output_bytes(0)..].iter().all(|&byte| byte == 0xff),
                "{kind}: wrote past {length}"
            );
            assert!(
                decode(&bytes[..activation.output_bytes(0)], kind).iter().all(|y| *y >= 0.0),
                "{kind}: left some of {length}"
            );
        }
        let nan = device.upload(&[0xff; 64]).unwrap();
        for function in ActivationFunction::ALL {
            let activation = CudaKernel::activation(&device, kind, function, 64 / kind.width()).unwrap();
            let mut output = device.allocate(64).unwrap();
            activation.enqueue([&nan], [&mut output]).unwrap();
            assert!(decode(&output.download().unwrap(), kind).iter().all(|y| y.is_nan()), "{function} {kind} of NaN");
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn out_of_memory_is_a_recoverable_error() {
    let (device, _guard) = gpu();
    let error = device.allocate(1 << 40).unwrap_err();
    println!("{error}");
    let NativeError::OutOfMemory { asked, free } = error else { panic!("{error}") };
    assert_eq!(asked, 1 << 40);
    assert!(free > 0 && free < 1 << 40);

    let linear = LinearPlan::new(&device, Dtype::F32, LinearShape { m: 8, k: 8, n: 8 }).unwrap();
    let ones = device.upload(&encode(&[1.0; 64], Dtype::F32)).unwrap();
    let mut y = poisoned(&device, linear.y_bytes());
    linear.enqueue(&ones, &ones, &mut y).unwrap();
    assert_eq!(decode(&y.download().unwrap(), Dtype::F32), [8.0; 64]);
}

#[test]
#[ignore = "needs CUDA"]
fn probes_pass_their_checks() {
    let (device, _guard) = gpu();
    let mut probes = NativeProbes::new(device.clone());
    for steps in [0, 1, 2, 3, 12_345, 1_000_000] {
        assert_eq!(probes.spin(steps).unwrap().check(), Ok(()), "{steps} steps");
    }
    // A single vector, a full and a partially filled block of either kernel, many blocks, and more bytes than 32 bits
    // can count.
    let block = 32 << 10;
    let sizes = [(16, 3), (block / 2, 3), (block / 2 + 16, 3), (block, 3), (block - 16, 3), (3 * block + 48, 7)];
    for (bytes, sets) in sizes.into_iter().chain([((4 << 30) + 16, 1)]) {
        let (mut copy, mut read) = (probes.copy(bytes, sets).unwrap(), probes.read(bytes, sets).unwrap());
        assert_eq!((copy.check(), copy.bytes()), (Ok(()), 2 * bytes), "a copy of {bytes} bytes");
        assert_eq!((read.check(), read.bytes()), (Ok(()), bytes), "a read of {bytes} bytes");
        copy.launch().unwrap();
        assert_eq!(copy.check(), Ok(()), "a copy that starts at another buffer set");
    }
    let error = probes.copy(1 << 50, 1).err();
    assert_eq!(error, Some(ProbeError::BufferSize { bytes: 1 << 50, limit: device.total_memory() }));
}

#[test]
#[ignore = "needs CUDA"]
fn spin_time_is_proportional_to_steps() {
    let (device, _guard) = gpu();
    let mut probes = NativeProbes::new(device.clone());
    let mut time = |steps| {
        let micros = 1e3 * fastest(&device, &mut *probes.spin(steps).unwrap(), 1);
        println!("spin of {steps} steps: {micros:.2} us");
        micros
    };
    // The first launch raises the clock.
    time(20_000_000);
    let [short, middle, long] = [1_000_000, 2_000_000, 4_000_000].map(&mut time);
    assert!((middle / short - 2.0).abs() < 0.04 && (long / short - 4.0).abs() < 0.08);
}

/// Prints the bandwidths of the probes, for manual inspection.
#[test]
#[ignore = "needs CUDA"]
fn bandwidths_of_memory_and_of_the_cache() {
    let (device, _guard) = gpu();
    let mut probes = NativeProbes::new(device.clone());
    for (bytes, sets) in [(256 << 20, 4), (1 << 30, 2), (2 << 30, 2), (device.l2_bytes() / 8 / 16 * 16, 1)] {
        for (name, mut probe) in
            [("copy", probes.copy(bytes, sets).unwrap()), ("read", probes.read(bytes, sets).unwrap())]
        {
            let millis = fastest(&device, &mut *probe, 20);
            println!("{name} of {bytes} bytes in {sets} sets: {:.1} GB/s", probe.bytes() as f64 / millis / 1e6);
        }
    }
}

/// Compares the two cache-cold methods: overwriting a large buffer before each launch, and rotating buffers. The fill
/// leaves dirty cache lines to be written back, and two events around a single launch include their own cost.
#[test]
#[ignore = "needs CUDA"]
fn small_gemm_takes_longer_after_fill_than_rotation() {
    let (device, _guard) = gpu();
    const SETS: usize = 17;
    const FLUSH: usize = 256 << 20;
    let (kind, shape) = (Dtype::Bf16, LinearShape { m: 1, k: 4096, n: 4096 });
    let linear = LinearPlan::new(&device, kind, shape).unwrap();
    let upload = |count: usize, seed: u64| device.upload(&encode(&values(count, seed, kind), kind)).unwrap();
    let x = upload(4096, 1);
    let weights: Vec<DeviceBuffer> = (0..SETS).map(|set| upload(4096 * 4096, set as u64)).collect();
    let (mut y, mut flush) = (device.allocate(linear.y_bytes()).unwrap(), device.allocate(FLUSH).unwrap());
    let timed = Some(CUevent_flags::CU_EVENT_DEFAULT);
    let mut measure = |fill: bool, launches: usize| -> f64 {
        let mut times: Vec<f64> = (0..40)
            .map(|turn| {
                if fill {
                    flush.fill(0).unwrap();
                }
                let start = device.stream().record_event(timed).unwrap();
                for launch in 0..launches {
                    linear.enqueue(&x, &weights[(turn + launch) % SETS], &mut y).unwrap();
                }
                let end = device.stream().record_event(timed).unwrap();
                end.synchronize().unwrap();
                f64::from(start.elapsed_ms(&end).unwrap()) * 1e3 / launches as f64
            })
            .collect();
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (filled, rotated) = (measure(true, 1), measure(false, 20 * SETS));
    println!("bf16 1x4096x4096: {filled:.2} us after a fill of 256 MiB, {rotated:.2} us from rotated buffers");
    assert!(filled > rotated, "{filled} {rotated}");
}

/// Milliseconds per launch between events: minimum of five batches.
fn fastest(device: &CudaDevice, probe: &mut dyn Probe, launches: u32) -> f64 {
    let event = || device.stream().record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
    let mut least = f64::INFINITY;
    for _ in 0..5 {
        let start = event();
        (0..launches).for_each(|_| probe.launch().unwrap());
        let end = event();
        probe.synchronize().unwrap();
        least = least.min(f64::from(start.elapsed_ms(&end).unwrap()) / f64::from(launches));
    }
    least
}

fn poisoned(device: &CudaDevice, bytes: usize) -> DeviceBuffer {
    let mut buffer = device.allocate(bytes).unwrap();
    buffer.fill(0xff).unwrap();
    buffer
}

fn assert_close(found: f64, exact: f64, tolerance: f64, place: impl FnOnce() -> String) {
    let same = found == exact || (found - exact).abs() <= tolerance;
    assert!(same, "{}: {found:e} instead of {exact:e}, tolerance {tolerance:e}", place());
}

/// Random values between -1 and 1, rounded to the dtype.
fn values(count: usize, seed: u64, kind: Dtype) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        // 64-bit generator of Knuth's MMIX.
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        round((state >> 32) as f64 / f64::from(1u32 << 31) - 1.0, kind)
    };
    (0..count).map(|_| next()).collect()
}

fn round(value: f64, kind: Dtype) -> f64 {
    match kind {
        Dtype::F32 => f64::from(value as f32),
        Dtype::F16 => f16::from_f64(value).to_f64(),
        Dtype::Bf16 => bf16::from_f64(value).to_f64(),
    }
}

fn encode(values: &[f64], kind: Dtype) -> Vec<u8> {
    match kind {
        Dtype::F32 => values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect(),
        Dtype::F16 => values.iter().flat_map(|value| f16::from_f64(*value).to_le_bytes()).collect(),
        Dtype::Bf16 => values.iter().flat_map(|value| bf16::from_f64(*value).to_le_bytes()).collect(),
    }
}

fn decode(bytes: &[u8], kind: Dtype) -> Vec<f64> {
    let element = |bytes: &[u8]| match kind {
        Dtype::F32 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
        Dtype::F16 => f16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
        Dtype::Bf16 => bf16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
    };
    bytes.chunks_exact(kind.width()).map(element).collect()
}

/// Distance from 1 to the next larger representable value.
fn epsilon(kind: Dtype) -> f64 {
    match kind {
        Dtype::F32 => f64::from(f32::EPSILON),
        Dtype::F16 => f16::EPSILON.to_f64(),
        Dtype::Bf16 => bf16::EPSILON.to_f64(),
    }
}

/// Smallest subnormal and largest finite value.
fn extremes(kind: Dtype) -> (f64, f64) {
    match kind {
        Dtype::F32 => (f64::from(f32::from_bits(1)), f64::from(f32::MAX)),
        Dtype::F16 => (f16::from_bits(1).to_f64(), f16::MAX.to_f64()),
        Dtype::Bf16 => (bf16::from_bits(1).to_f64(), bf16::MAX.to_f64()),
    }
}

fn reference(function: ActivationFunction, x: f64) -> f64 {
    match function {
        ActivationFunction::Relu => x.max(0.0),
        ActivationFunction::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        ActivationFunction::LeakyRelu => x.max(0.01 * x),
        ActivationFunction::Relu6 => x.clamp(0.0, 6.0),
        ActivationFunction::Gelu => x * normal_cdf(x),
        ActivationFunction::Silu => x / (1.0 + (-x).exp()),
        ActivationFunction::HardSwish => x * ((x + 3.0).clamp(0.0, 6.0) / 6.0),
    }
}

/// Normal distribution function, by a series without cancellation: 1/2 + pdf(x) (x + x³/3 + x⁵/15 + …).
fn normal_cdf(x: f64) -> f64 {
    if x.abs() > 10.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-18 * sum.abs() && term != 0.0 {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

#[test]
fn gelu_reference_matches_known_values() {
    for (x, exact) in [(0.0, 0.5), (1.0, 0.8413447460685429), (-2.0, 0.022750131948179195), (4.0, 0.9999683287581669)] {
        assert_close(normal_cdf(x), exact, 1e-15, || format!("the distribution function at {x}"));
    }
}
