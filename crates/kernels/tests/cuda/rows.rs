//! Row kernels against 64-bit arithmetic.

use calorimeter_kernels::{
    Dtype,
    native::{AffineNormVariant, AttentionSpec, CudaKernel, MatVecPlan, RmsNormSpec, SHORT_ATTENTION_TOKENS},
};

use super::{assert_close, decode, encode, epsilon, gpu, micros, normal_cdf, poisoned, round, values};

pub(crate) const EPSILON: f64 = 1e-6;

/// Odd lengths, aligned lengths, and rows too long for registers.
pub(crate) const COLUMNS: [usize; 12] = [1, 3, 17, 127, 129, 768, 1000, 1025, 4096, 16384, 32768, 70_001];

/// Values around one, so that nothing cancels to zero.
pub(crate) fn values_around_one(count: usize, seed: u64, kind: Dtype) -> Vec<f64> {
    values(count, seed, kind).into_iter().map(|value| round(1.0 + 0.5 * value, kind)).collect()
}

pub(crate) fn inverse_rms(row: &[f64]) -> f64 {
    1.0 / (row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64 + EPSILON).sqrt()
}

#[test]
#[ignore = "needs CUDA"]
fn rms_norm_matches() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        for columns in COLUMNS {
            let rows = 5;
            let mut x = values(rows * columns, 1, kind);
            // A zero row must not divide by zero.
            x[..columns].fill(0.0);
            for gain_kind in [kind, Dtype::F32] {
                let gain = values_around_one(columns, 2, gain_kind);
                let spec = RmsNormSpec { gain_is_f32: gain_kind == Dtype::F32, epsilon: EPSILON as f32 };
                let plan = CudaKernel::rms_norm(&device, kind, spec, rows, columns).unwrap();
                println!("{columns}: {}", plan.algorithm());
                let [of_x, of_gain] =
                    [(&x, kind), (&gain, gain_kind)].map(|(x, kind)| device.upload(&encode(x, kind)).unwrap());
                let mut y = poisoned(&device, rows * columns * kind.width());
                plan.enqueue([&of_x, &of_gain], [&mut y]).unwrap();
                for (at, found) in decode(&y.download().unwrap(), kind).into_iter().enumerate() {
                    let (row, column) = (at / columns, at % columns);
                    let exact = x[at] * inverse_rms(&x[row * columns..][..columns]) * gain[column];
                    let tolerance = (0.51 * epsilon(kind) + 16.0 * f64::from(f32::EPSILON)) * exact.abs() + 1e-7;
                    assert_close(found, exact, tolerance, || format!("{kind} {columns} at [{row}, {column}]"));
                }
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn short_attention_matches_for_every_head() {
    let (device, _guard) = gpu();
    const TOKENS: usize = SHORT_ATTENTION_TOKENS;
    for kind in Dtype::ALL {
        for (sequences, heads, head) in [(1, 8, 1), (3, 8, 17), (5, 8, 128), (2, 3, 512), (1, 1, 2000)] {
            let width = heads * head;
            let x: Vec<f64> =
                values(sequences * TOKENS * 3 * width, 1, kind).into_iter().map(|x| round(4.0 * x, kind)).collect();
            let plan = CudaKernel::short_attention(&device, kind, sequences, heads, head).unwrap();
            println!("{sequences} {heads} {head}: {}", plan.algorithm());
            let of_x = device.upload(&encode(&x, kind)).unwrap();
            let mut y = poisoned(&device, sequences * TOKENS * width * kind.width());
            plan.enqueue([&of_x], [&mut y]).unwrap();
            let found = decode(&y.download().unwrap(), kind);
            for (at, found) in found.into_iter().enumerate() {
                let (token, column) = (at / width, at % width);
                let (first, h) = (token / TOKENS * TOKENS, column / head);
                let part = |token: usize, which: usize| &x[(3 * token + which) * width + h * head..][..head];
                let score = |t: usize| -> f64 {
                    let products = part(token, 0).iter().zip(part(first + t, 1)).map(|(q, k)| q * k);
                    products.sum::<f64>() / (head as f64).sqrt()
                };
                let scores: Vec<f64> = (0..TOKENS).map(score).collect();
                let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
                let value = |t: usize| weights[t] * part(first + t, 2)[column - h * head];
                let exact = (0..TOKENS).map(value).sum::<f64>() / weights.iter().sum::<f64>();
                // Rounding error of the scores, in proportion to the norm of their terms; values are at most 4.
                let of_scores = 64.0 * f64::from(f32::EPSILON) * (head as f64).sqrt();
                let tolerance = 0.51 * epsilon(kind) * exact.abs() + 4.0 * of_scores + 1e-6;
                assert_close(found, exact, tolerance, || format!("{kind} {heads} {head} at [{token}, {column}]"));
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn attention_matches_with_and_without_mask() {
    let (device, _guard) = gpu();
    for kind in [Dtype::F16, Dtype::Bf16] {
        for (heads, positions, width) in [
            (1, 1, 8),
            (2, 3, 64),
            (3, 17, 128),
            (2, 127, 128),
            (2, 128, 64),
            (2, 129, 72),
            (1, 1000, 128),
            (5, 384, 64),
        ] {
            for causal in [false, true] {
                let spec = AttentionSpec { heads, positions, width, causal };
                let plan = CudaKernel::attention(&device, kind, spec).unwrap();
                println!("{spec:?}: {}", plan.algorithm());
                let count = heads * positions * width;
                let [q, k, v] = [1, 2, 3].map(|seed| -> Vec<f64> {
                    values(count, seed, kind).into_iter().map(|x| round(4.0 * x, kind)).collect()
                });
                let [of_q, of_k, of_v] = [&q, &k, &v].map(|x| device.upload(&encode(x, kind)).unwrap());
                let mut y = poisoned(&device, count * kind.width());
                plan.enqueue([&of_q, &of_k, &of_v], [&mut y]).unwrap();
                let found = decode(&y.download().unwrap(), kind);
                for row in 0..heads * positions {
                    let (head, position) = (row / positions * positions, row % positions);
                    let query = &q[row * width..][..width];
                    let seen = if causal { position + 1 } else { positions };
                    let score = |key: usize| -> f64 {
                        let products = query.iter().zip(&k[(head + key) * width..]).map(|(q, k)| q * k);
                        products.sum::<f64>() / (width as f64).sqrt()
                    };
                    let scores: Vec<f64> = (0..seen).map(score).collect();
                    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let powers: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
                    let total: f64 = powers.iter().sum();
                    for column in 0..width {
                        let parts = (0..seen).map(|key| powers[key] / total * v[(head + key) * width + column]);
                        let (exact, size) = parts.fold((0.0, 0.0), |(sum, size), part| (sum + part, size + part.abs()));
                        // Probabilities and output are rounded; scores have errors of some f32 ULP.
                        let tolerance = 0.51 * epsilon(kind) * (exact.abs() + size) + 1e-4 * size + 1e-6;
                        assert_close(found[row * width + column], exact, tolerance, || {
                            format!("{kind} {spec:?} at [{row}, {column}]")
                        });
                    }
                }
            }
        }
    }
}

/// Prints attention times, for manual inspection.
#[test]
#[ignore = "needs CUDA"]
fn times_of_attention() {
    let (device, _guard) = gpu();
    let kind = Dtype::Bf16;
    for (heads, positions, width) in [(256, 4096, 128), (64, 2048, 128), (64, 2048, 64)] {
        let count = heads * positions * width;
        let some = |seed| {
            let few = encode(&values(1 << 16, seed, kind), kind);
            device.upload(&few.into_iter().cycle().take(count * kind.width()).collect::<Vec<_>>()).unwrap()
        };
        let ([q, k, v], mut y) = ([1, 2, 3].map(some), poisoned(&device, count * kind.width()));
        for causal in [false, true] {
            let plan = CudaKernel::attention(&device, kind, AttentionSpec { heads, positions, width, causal }).unwrap();
            let micros = micros(&device, 1, |_| plan.enqueue([&q, &k, &v], [&mut y]).unwrap());
            let pairs = heads * positions * if causal { positions.div_ceil(2) } else { positions };
            let rate = (4 * pairs * width) as f64 / micros / 1e6;
            println!(
                "{heads}x{positions}x{width} causal {causal}: {micros:.1} us, {rate:.0} TFLOP/s: {}",
                plan.algorithm()
            );
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn halved_swiglu_and_its_gradient_match() {
    let (device, _guard) = gpu();
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    for kind in Dtype::ALL {
        for half in [1, 3, 17, 127, 129, 1000, 1024, 4096, 14_336, 33_000] {
            let rows = 37;
            let x: Vec<f64> = values(rows * 2 * half, 1, kind).into_iter().map(|x| round(8.0 * x, kind)).collect();
            let dy = values(rows * half, 2, kind);
            let [of_x, of_dy] = [&x, &dy].map(|x| device.upload(&encode(x, kind)).unwrap());
            let forward = CudaKernel::halved_swiglu(&device, kind, rows, 2 * half).unwrap();
            let backward = CudaKernel::halved_swiglu_gradient(&device, kind, rows, 2 * half).unwrap();
            println!("{half}: {}; {}", forward.algorithm(), backward.algorithm());
            let mut y = poisoned(&device, rows * half * kind.width());
            let mut dx = poisoned(&device, rows * 2 * half * kind.width());
            forward.enqueue([&of_x], [&mut y]).unwrap();
            backward.enqueue([&of_x, &of_dy], [&mut dx]).unwrap();
            let (y, dx) = (decode(&y.download().unwrap(), kind), decode(&dx.download().unwrap(), kind));
            for row in 0..rows {
                for at in 0..half {
                    let (a, b) = (x[row * 2 * half + at], x[row * 2 * half + half + at]);
                    let (gate, dy) = (sigmoid(a), dy[row * half + at]);
                    let check = |found: f64, exact: f64, size: f64, what: &str| {
                        let tolerance = 0.51 * epsilon(kind) * exact.abs() + 1e-6 * size + 1e-7;
                        assert_close(found, exact, tolerance, || format!("{kind} {what} {half} at [{row}, {at}]"));
                    };
                    let (of_a, of_b) = (&dx[row * 2 * half + at], &dx[row * 2 * half + half + at]);
                    check(y[row * half + at], a * gate * b, (a * b).abs(), "y");
                    check(*of_a, dy * b * gate * (1.0 + a * (1.0 - gate)), (dy * b).abs() * (1.0 + a.abs()), "da");
                    check(*of_b, dy * a * gate, (dy * a).abs(), "db");
                }
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn mat_vec_is_within_f32_accumulation_error() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        for columns in COLUMNS {
            for rows in [1, 3, 17, 127] {
                let (a, x) = (values(rows * columns, 1, kind), values(columns, 2, kind));
                let plan = MatVecPlan::new(&device, kind, rows, columns).unwrap();
                println!("{rows}x{columns}: {}", plan.algorithm());
                let [of_a, of_x] = [&a, &x].map(|x| device.upload(&encode(x, kind)).unwrap());
                let mut y = poisoned(&device, rows * kind.width());
                plan.enqueue(&of_a, &of_x, &mut y).unwrap();
                for (row, found) in decode(&y.download().unwrap(), kind).into_iter().enumerate() {
                    let terms = a[row * columns..][..columns].iter().zip(&x).map(|(a, x)| a * x);
                    let squares: f64 = terms.clone().map(|term| term * term).sum();
                    let exact: f64 = terms.sum();
                    let sums = 8.0 * f64::from(f32::EPSILON) * (columns as f64).sqrt() * squares.sqrt();
                    let tolerance = 0.51 * epsilon(kind) * exact.abs() + sums;
                    assert_close(found, exact, tolerance + f64::from(f32::MIN_POSITIVE), || {
                        format!("{kind} {rows}x{columns} row {row}")
                    });
                }
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn affine_layer_norm_variants_match() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        for columns in COLUMNS {
            let rows = 5;
            let mut x: Vec<f64> =
                values(rows * columns, 1, kind).into_iter().map(|value| round(30.0 + value, kind)).collect();
            // A constant row must not divide by zero.
            x[..columns].fill(30.0);
            let addend = values(rows * columns, 2, kind);
            let (gain, bias) = (values_around_one(columns, 3, kind), values(columns, 4, kind));
            for spec in [AffineNormVariant::Plain, AffineNormVariant::WithGelu, AffineNormVariant::WithResidual] {
                let plan = CudaKernel::layer_norm_affine(&device, kind, spec, 1e-5, (rows, columns)).unwrap();
                println!("{columns}: {}", plan.algorithm());
                let of_sum = spec == AffineNormVariant::WithResidual;
                let inputs = [Some(&x), of_sum.then_some(&addend), Some(&gain), Some(&bias)];
                let inputs: Vec<_> =
                    inputs.into_iter().flatten().map(|x| device.upload(&encode(x, kind)).unwrap()).collect();
                let mut outputs: Vec<_> =
                    (0..if of_sum { 2 } else { 1 }).map(|_| poisoned(&device, rows * columns * kind.width())).collect();
                plan.enqueue(&inputs, &mut outputs).unwrap();
                let outputs: Vec<_> = outputs.iter().map(|output| decode(&output.download().unwrap(), kind)).collect();
                let values: Vec<f64> = match of_sum {
                    true => x.iter().zip(&addend).map(|(x, y)| x + y).collect(),
                    false => x.clone(),
                };
                for (row, values) in values.chunks(columns).enumerate() {
                    let mean = values.iter().sum::<f64>() / columns as f64;
                    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / columns as f64;
                    let scale = 1.0 / (variance + 1e-5).sqrt();
                    for (column, value) in values.iter().enumerate() {
                        let at = || format!("{spec:?} {kind} {columns} at [{row}, {column}]");
                        let normal = (value - mean) * scale * gain[column] + bias[column];
                        let exact =
                            if spec == AffineNormVariant::WithGelu { normal * normal_cdf(normal) } else { normal };
                        // Mean and residual sum are floats near 30, with an error of half an ULP each.
                        let of_mean = 60.0 * f64::from(f32::EPSILON) * scale * gain[column];
                        let tolerance = 0.51 * epsilon(kind) * exact.abs() + 2e-6 * (1.0 + normal.abs()) + of_mean;
                        assert_close(outputs[outputs.len() - 1][row * columns + column], exact, tolerance, at);
                        if of_sum {
                            let tolerance = 0.51 * epsilon(kind) * value.abs();
                            assert_close(outputs[0][row * columns + column], *value, tolerance, at);
                        }
                    }
                }
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn softmax_matches_and_propagates_nan() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        for columns in COLUMNS {
            let rows = 7;
            let mut x: Vec<f64> = values(rows * columns, 1, kind)
                .into_iter()
                .enumerate()
                .map(|(at, value)| round((at / columns) as f64 * 30.0 - 100.0 + 5.0 * value, kind))
                .collect();
            // Row 0: minus infinity except for the last element. Rows 4 to 6: no defined softmax.
            x[..columns - 1].fill(f64::NEG_INFINITY);
            x[4 * columns + columns / 2] = f64::NAN;
            x[5 * columns + columns / 2] = f64::INFINITY;
            x[6 * columns..].fill(f64::NEG_INFINITY);
            let plan = CudaKernel::softmax(&device, kind, rows, columns).unwrap();
            println!("{columns}: {}", plan.algorithm());
            let mut y = poisoned(&device, rows * columns * kind.width());
            plan.enqueue([&device.upload(&encode(&x, kind)).unwrap()], [&mut y]).unwrap();
            let y = decode(&y.download().unwrap(), kind);
            for (row, x) in x.chunks(columns).enumerate() {
                let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = x.iter().map(|x| (x - largest).exp()).sum();
                for (column, x) in x.iter().enumerate() {
                    let (found, at) = (y[row * columns + column], || format!("{kind} {columns} at [{row}, {column}]"));
                    if row >= 4 {
                        assert!(found.is_nan(), "{}: {found:e}", at());
                        continue;
                    }
                    let exact = (x - largest).exp() / sum;
                    // Spacing of f16 subnormals is 2^-24.
                    let step = if kind == Dtype::F16 { 2f64.powi(-25) } else { 1e-37 };
                    assert_close(found, exact, (0.51 * epsilon(kind) + 4e-6) * exact + step, at);
                }
            }
        }
    }
}

/// Prints times of normalizations and cross-entropy, for manual inspection.
#[test]
#[ignore = "needs CUDA"]
fn times_of_rows() {
    let (device, _guard) = gpu();
    let (kind, rows, columns) = (Dtype::Bf16, 16384, 4096);
    let few = encode(&values(1 << 16, 1, kind), kind);
    let some = |count: usize| -> Vec<u8> { few.iter().copied().cycle().take(count * kind.width()).collect() };
    let inputs = [rows * columns, columns, columns].map(|count| device.upload(&some(count)).unwrap());
    let mut outputs = [poisoned(&device, rows * columns * kind.width())];
    for spec in [AffineNormVariant::Plain, AffineNormVariant::WithGelu] {
        let plan = CudaKernel::layer_norm_affine(&device, kind, spec, 1e-5, (rows, columns)).unwrap();
        let micros = micros(&device, 1, |_| plan.enqueue(&inputs, &mut outputs).unwrap());
        println!("{rows}x{columns}: {micros:.1} us: {}", plan.algorithm());
    }
    let targets = device.upload(&vec![0; 4 * rows]).unwrap();
    let mut loss = poisoned(&device, 4);
    let plan = CudaKernel::cross_entropy(&device, kind, rows, columns).unwrap();
    let micros = micros(&device, 1, |_| plan.enqueue([&inputs[0], &targets], [&mut loss]).unwrap());
    println!("{rows}x{columns}: {micros:.1} us: {}", plan.algorithm());
}
