//! 2:4 sparse layers against 64-bit arithmetic on the dequantized weights, and their times.

use std::sync::Arc;

use calorimeter_kernels::{
    Activation, Dtype, DynamicFormat, Prologue, ScaleGranularity, SparseLinearSpec, SparseWeightFormat,
    native::{CudaDevice, LinearShape, NativeError, SparseLinearPlan, SparseWeight},
    rowwise,
};

use super::{decode, encode, epsilon, gpu, micros, poisoned, round, values};

const FORMATS: [SparseWeightFormat; 5] = [
    SparseWeightFormat::Float,
    SparseWeightFormat::Int4,
    SparseWeightFormat::Dynamic(DynamicFormat::Int8, ScaleGranularity::Row),
    SparseWeightFormat::Dynamic(DynamicFormat::E4m3, ScaleGranularity::Row),
    SparseWeightFormat::Dynamic(DynamicFormat::E4m3, ScaleGranularity::Tensor),
];

fn plain_spec(kind: Dtype, codes: SparseWeightFormat) -> SparseLinearSpec {
    SparseLinearSpec { kind, weight: codes, prologue: Prologue::None, activation: None, has_addend: false }
}

/// Weight on the host: bytes of its parts, and dequantized values.
struct Weight {
    codes: Vec<u8>,
    scales: Option<Vec<u8>>,
    places: Vec<u8>,
    numbers: Vec<f64>,
}

/// Pairs of positions within four elements, ascending.
const PAIRS: [[usize; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];

impl Weight {
    fn new(spec: SparseLinearSpec, n: usize, k: usize) -> Self {
        let (kind, bits) = (spec.kind, spec.bits());
        let row = if bits == 4 { k.next_multiple_of(128) / 2 } else { (k / 2).next_multiple_of(32) };
        let row_bytes = row * bits / 8;
        let mut codes = match spec.weight {
            SparseWeightFormat::Float => encode(&values(n * row, 11, kind), kind),
            _ => values(n * row_bytes, 11, Dtype::F32).iter().map(|x| ((x + 1.0) * 128.0) as u8).collect(),
        };
        if matches!(spec.weight, SparseWeightFormat::Dynamic(DynamicFormat::E4m3, _)) {
            codes.iter_mut().filter(|code| **code & 0x7f == 0x7f).for_each(|code| *code ^= 1);
        }
        // Some rows are zero.
        codes.chunks_mut(row_bytes).skip(3).step_by(5).for_each(|row| row.fill(0));
        let (count, scale) = match spec.weight {
            SparseWeightFormat::Float => (0, kind),
            SparseWeightFormat::Int4 => (n * k.div_ceil(128), kind),
            SparseWeightFormat::Dynamic(codes, shared) => {
                let scale = if codes == DynamicFormat::Int8 { kind } else { Dtype::F32 };
                (if shared == ScaleGranularity::Row { n } else { 1 }, scale)
            }
        };
        let of_scales: Vec<f64> =
            values(count.max(1), 12, scale).iter().map(|x| round(0.01 * (x + 1.5), scale)).collect();
        let pair = |i: usize, four: usize| PAIRS[(i * 7 + four * 5 + (i * four) % 11) % 6];
        let words = k.div_ceil(32);
        let mut places = vec![0u8; n * words * 4];
        let mut numbers = vec![0.0; n * k];
        let plain = decode(&codes, kind);
        for i in 0..n {
            for four in 0..k / 4 {
                let [first, second] = pair(i, four);
                places[i * words * 4 + four / 2] |= ((first | second << 2) << (4 * (four % 2))) as u8;
                for (at, place) in [first, second].into_iter().enumerate() {
                    let kept = i * row + 2 * four + at;
                    numbers[i * k + 4 * four + place] = match spec.weight {
                        SparseWeightFormat::Float => plain[kept],
                        SparseWeightFormat::Int4 => {
                            let code = codes[kept / 2] >> (kept % 2 * 4) & 15;
                            let code = f64::from((code << 4) as i8 >> 4);
                            // Rounded to the dtype of x, as in the multiplication.
                            round(code * of_scales[i * k.div_ceil(128) + four / 32], kind)
                        }
                        SparseWeightFormat::Dynamic(what, shared) => {
                            let number = match what {
                                DynamicFormat::Int8 => f64::from(codes[kept] as i8),
                                _ => f64::from(rowwise::e4m3_to_f32(codes[kept])),
                            };
                            number * of_scales[if shared == ScaleGranularity::Row { i } else { 0 }]
                        }
                    };
                }
            }
        }
        let scales = (count > 0).then(|| encode(&of_scales, scale));
        Self { codes, scales, places, numbers }
    }

    fn upload(&self, device: &CudaDevice) -> SparseWeight {
        let upload = |bytes: &Vec<u8>| device.upload(bytes).unwrap();
        SparseWeight {
            codes: upload(&self.codes),
            scales: self.scales.as_ref().map(upload),
            metadata: upload(&self.places),
        }
    }
}

/// Fake-quantizes an input.
fn quantized(x: &[f64], k: usize, spec: SparseLinearSpec) -> Vec<f64> {
    let SparseWeightFormat::Dynamic(codes, shared) = spec.weight else { return x.to_vec() };
    let kind = spec.kind;
    let rounded = |x: f32| round(f64::from(x), kind) as f32;
    let largest = |x: &[f64]| x.iter().fold(0.0f32, |most, &x| most.max(x.abs() as f32));
    let of_all = largest(x);
    let row = |row: &[f64]| -> Vec<f64> {
        let top = if shared == ScaleGranularity::Row { largest(row) } else { of_all };
        let number = |&x: &f64| {
            let x = x as f32;
            if codes == DynamicFormat::Int8 {
                let step = |x: f32| if kind == Dtype::F16 { x } else { rounded(x) };
                let scale = rounded(top / 127.0).max(rounded(1e-5));
                let code = step(x * step(1.0 / scale)).round_ties_even().clamp(-127.0, 127.0);
                f64::from(code) * f64::from(scale)
            } else {
                let scale = rounded(top / 448.0);
                let quotient = x / scale;
                let code = if quotient.is_nan() { 0 } else { rowwise::to_e4m3(quotient) };
                f64::from(rowwise::e4m3_to_f32(code)) * f64::from(scale)
            }
        };
        row.iter().map(number).collect()
    };
    x.chunks(k).flat_map(row).collect()
}

#[test]
#[ignore = "needs CUDA"]
fn sparse_2to4_gemm_matches_at_ragged_sizes() {
    let (device, _guard) = gpu();
    let few = [(1, 4096, 257), (3, 20, 127), (8, 132, 1000), (17, 1000, 129), (64, 128, 3), (1, 4, 1), (33, 8192, 48)];
    let many = [(65, 1000, 17), (127, 132, 1000), (130, 256, 128), (300, 1000, 300)];
    for kind in Dtype::ALL {
        for codes in FORMATS {
            for (turn, (m, k, n)) in few.into_iter().chain(many).enumerate() {
                let plain = plain_spec(kind, codes);
                let dynamic = plain.dynamic().is_some();
                let activation = Some(Activation::Relu).filter(|_| dynamic && turn % 2 == 0);
                check(
                    &device,
                    SparseLinearSpec { activation, has_addend: turn % 3 > 0, ..plain },
                    LinearShape { m, k, n },
                );
            }
        }
    }
}

fn check(device: &Arc<CudaDevice>, spec: SparseLinearSpec, shape: LinearShape) {
    let (LinearShape { m, k, n }, kind) = (shape, spec.kind);
    let mut linear = SparseLinearPlan::new(device, spec, shape).unwrap();
    let place = format!("{spec:?} {shape}: {}", linear.algorithm());
    println!("{place}");
    let mut x = values(m * k, 1, kind);
    for (row, numbers) in x.chunks_mut(k).enumerate() {
        let gain = [1.0, 50.0, 0.0, 0.01][row % 4];
        numbers.iter_mut().for_each(|x| *x = round(*x * gain, kind));
    }
    let (weight, added) = (Weight::new(spec, n, k), values(m * n, 21, kind));
    let device_x = device.upload(&encode(&x, kind)).unwrap();
    let device_w = linear.prepack(weight.upload(device)).unwrap();
    let device_added = device.upload(&encode(&added, kind)).unwrap();
    let mut launch = || {
        let mut y = poisoned(device, linear.y_bytes());
        linear.enqueue(&device_x, &device_w, spec.has_addend.then_some(&device_added), &mut y).unwrap();
        y.download().unwrap()
    };
    let bytes = launch();
    assert!(launch() == bytes, "{place}: repeated launches are identical");
    let (y, operand) = (decode(&bytes, kind), quantized(&x, k, spec));
    let step = (m * n / 20_000).max(1) | 1;
    for at in (0..m * n).step_by(step) {
        let (i, j) = (at / n, at % n);
        let terms = operand[i * k..][..k].iter().zip(&weight.numbers[j * k..][..k]).map(|(x, w)| x * w);
        let (sum, squares) = terms.fold((0.0, 0.0), |(sum, squares), term| (sum + term, squares + term * term));
        let activated = if spec.activation.is_some() { sum.max(0.0) } else { sum };
        let exact = activated + if spec.has_addend { added[at] } else { 0.0 };
        let of_sums = match spec.weight {
            SparseWeightFormat::Dynamic(DynamicFormat::Int8, _) => 4.0 * f64::from(f32::EPSILON) * sum.abs(),
            SparseWeightFormat::Dynamic(..) => {
                16.0 * (k as f64 / 32.0).max(1.0).sqrt() * 2f64.powi(-13) * squares.sqrt().max(sum.abs())
            }
            // Tensor cores truncate partial sums instead of rounding.
            _ => 16.0 * f64::from(f32::EPSILON) * (k as f64).sqrt() * squares.sqrt(),
        };
        let tolerance = epsilon(kind) * exact.abs() + of_sums + 1e-7;
        let found = y[at];
        assert!((found - exact).abs() <= tolerance, "{place} at [{i}, {j}]: {found:e} instead of {exact:e}");
    }
}

#[test]
#[ignore = "needs CUDA"]
fn unaligned_k_and_mismatched_plans_are_rejected() {
    let (device, _guard) = gpu();
    let of = |k, kind| {
        SparseLinearPlan::new(&device, plain_spec(kind, SparseWeightFormat::Float), LinearShape { m: 8, k, n: 64 })
    };
    assert_eq!(of(66, Dtype::Bf16).unwrap_err(), NativeError::SparseRowLength { k: 66 });
    let (mut sparse, dense) = (of(64, Dtype::Bf16).unwrap(), of(64, Dtype::F32).unwrap());
    assert!(sparse.skips_zeros() && !dense.skips_zeros());
    let whole = || Weight::new(plain_spec(Dtype::F32, SparseWeightFormat::Float), 64, 64).upload(&device);
    let (x, mut y) = (poisoned(&device, sparse.x_bytes()), poisoned(&device, sparse.y_bytes()));
    let other = dense.prepack(whole()).unwrap();
    assert_eq!(sparse.enqueue(&x, &other, None, &mut y).unwrap_err(), NativeError::PlanMismatch);
    let short = SparseWeight { metadata: device.allocate(64 * 2 * 4 - 1).unwrap(), ..whole() };
    let error = sparse.prepack(short).unwrap_err();
    assert!(matches!(error, NativeError::BufferSize { what: "metadata", .. }), "{error}");
}

/// Prints layer times, for manual inspection. Rotating weights exceed the L2 cache.
#[test]
#[ignore = "needs CUDA"]
fn times_of_sparse_2to4_layers() {
    let (device, _guard) = gpu();
    let (kind, size) = (Dtype::Bf16, 4096);
    for codes in FORMATS {
        let spec = plain_spec(kind, codes);
        let weight = Weight::new(spec, size, size);
        for m in [1, 8, 16, 32, 64, 128, 256, 512, 1024, 4096] {
            let mut linear = SparseLinearPlan::new(&device, spec, LinearShape { m, k: size, n: size }).unwrap();
            let sets: Vec<_> = (0..8).map(|_| linear.prepack(weight.upload(&device)).unwrap()).collect();
            let x = device.upload(&encode(&values(m * size, 1, kind), kind)).unwrap();
            let mut y = poisoned(&device, linear.y_bytes());
            let time = micros(&device, sets.len(), |set| linear.enqueue(&x, &sets[set], None, &mut y).unwrap());
            println!("{codes:?} m={m}: {time:.1} us: {}", linear.algorithm());
        }
    }
}
