//! Gradient kernels against 64-bit arithmetic.

use calorimeter_kernels::{
    Activation, Dtype,
    native::{
        CudaKernel, ElementwiseFunction, LAYER_NORM_EPSILON, ResidualGradient, RmsNormGradientPlan, RmsNormSpec,
        SHORT_ATTENTION_TOKENS,
    },
};

use super::rows::{COLUMNS, EPSILON, inverse_rms, values_around_one};
use super::{assert_close, decode, encode, epsilon, gpu, normal_cdf, poisoned, round, values};

#[test]
#[ignore = "needs CUDA"]
fn rms_norm_gradients_match() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        for (rows, columns) in
            COLUMNS.map(|columns| (5, columns)).into_iter().chain([(1, 129), (3000, 129), (2000, 1024)])
        {
            let (x, dy) = (values(rows * columns, 1, kind), values(rows * columns, 2, kind));
            // Either gain dtype, with and without a residual gradient.
            let (gain_kind, past) =
                if columns % 2 == 0 { (kind, ResidualGradient::Added) } else { (Dtype::F32, ResidualGradient::None) };
            let (gain, around) = (values_around_one(columns, 3, gain_kind), values(rows * columns, 4, kind));
            let spec = RmsNormSpec { gain_is_f32: gain_kind == Dtype::F32, epsilon: EPSILON as f32 };
            let mut plan = RmsNormGradientPlan::new(&device, kind, spec, past, (rows, columns)).unwrap();
            println!("{rows}x{columns}: {}", plan.algorithm());
            let [of_x, of_gain, of_dy, of_around] = [(&x, kind), (&gain, gain_kind), (&dy, kind), (&around, kind)]
                .map(|(x, kind)| device.upload(&encode(x, kind)).unwrap());
            let mut dx = poisoned(&device, rows * columns * kind.width());
            let mut dgain = poisoned(&device, columns * gain_kind.width());
            let added = (past == ResidualGradient::Added).then_some(&of_around);
            plan.enqueue([&of_x, &of_gain, &of_dy], added, &mut dx, &mut dgain).unwrap();
            let (dx, dgain) = (decode(&dx.download().unwrap(), kind), decode(&dgain.download().unwrap(), gain_kind));
            let (mut sums, mut sizes) = (vec![0.0; columns], vec![0.0; columns]);
            for row in 0..rows {
                let (x, dy) = (&x[row * columns..][..columns], &dy[row * columns..][..columns]);
                let scale = inverse_rms(x);
                let weighted = (0..columns).map(|at| dy[at] * gain[at] * x[at]).sum::<f64>() / columns as f64;
                for at in 0..columns {
                    sums[at] += x[at] * scale * dy[at];
                    sizes[at] += (x[at] * scale * dy[at]).abs();
                    let (first, second) = (scale * gain[at] * dy[at], scale.powi(3) * weighted * x[at]);
                    let past = if past == ResidualGradient::Added { around[row * columns + at] } else { 0.0 };
                    let (exact, size) = (first - second + past, first.abs() + second.abs() + past.abs());
                    // Error of the mean of the products, in proportion to their magnitude.
                    let of_mean = scale.powi(3) * x[at].abs() * 2e-7;
                    let tolerance =
                        0.51 * epsilon(kind) * exact.abs() + 32.0 * f64::from(f32::EPSILON) * size + of_mean;
                    assert_close(dx[row * columns + at], exact, tolerance + f64::from(f32::MIN_POSITIVE), || {
                        format!("{kind} {rows}x{columns} dx at [{row}, {at}]")
                    });
                }
            }
            for at in 0..columns {
                let tolerance = 0.51 * epsilon(gain_kind) * sums[at].abs() + 32.0 * f64::from(f32::EPSILON) * sizes[at];
                assert_close(dgain[at], sums[at], tolerance, || format!("{kind} {rows}x{columns} gain at {at}"));
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn layer_norm_gradient_matches_far_from_zero() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        // The last two have a mean much larger than the spread.
        for (columns, mean) in COLUMNS.map(|columns| (columns, 0.0)).into_iter().chain([(1000, 16.0), (4096, 16.0)]) {
            let rows = 5;
            let shifted = values(rows * columns, 1, kind).into_iter().map(|x| round(x + mean, kind));
            let (x, dy): (Vec<f64>, _) = (shifted.collect(), values(rows * columns, 2, kind));
            let plan = CudaKernel::layer_norm_gradient(&device, kind, rows, columns).unwrap();
            println!("{rows}x{columns}: {}", plan.algorithm());
            let [of_x, of_dy] = [&x, &dy].map(|x| device.upload(&encode(x, kind)).unwrap());
            let mut dx = poisoned(&device, rows * columns * kind.width());
            plan.enqueue([&of_x, &of_dy], [&mut dx]).unwrap();
            let dx = decode(&dx.download().unwrap(), kind);
            for row in 0..rows {
                let (x, dy) = (&x[row * columns..][..columns], &dy[row * columns..][..columns]);
                let mean_of = |each: &dyn Fn(usize) -> f64| (0..columns).map(each).sum::<f64>() / columns as f64;
                let mean = mean_of(&|at| x[at]);
                let variance = mean_of(&|at| (x[at] - mean).powi(2));
                let scale = 1.0 / (variance + f64::from(LAYER_NORM_EPSILON)).sqrt();
                let normalized = |at: usize| (x[at] - mean) * scale;
                let (level, along) = (mean_of(&|at| dy[at]), mean_of(&|at| dy[at] * normalized(at)));
                let size = mean_of(&|at| dy[at].abs() * (1.0 + normalized(at).abs()));
                for at in 0..columns {
                    let exact = scale * (dy[at] - level - normalized(at) * along);
                    let parts = scale * (dy[at].abs() + size + normalized(at).abs() * size);
                    // Rounding error of the differences, relative to the mean.
                    let of_mean = scale * mean.abs() * scale * size;
                    let tolerance = 0.51 * epsilon(kind) * exact.abs()
                        + 32.0 * f64::from(f32::EPSILON) * (parts + of_mean)
                        + f64::from(f32::MIN_POSITIVE);
                    assert_close(dx[row * columns + at], exact, tolerance, || {
                        format!("{kind} {rows}x{columns} around {mean} at [{row}, {at}]")
                    });
                }
            }
        }
    }
}

/// Derivative of an activation.
fn derivative(activation: Activation, x: f64) -> f64 {
    let sigmoid = 1.0 / (1.0 + (-x).exp());
    let inside = |from: f64, to: f64| f64::from(u8::from(x > from && x < to));
    match activation {
        Activation::Relu => inside(0.0, f64::INFINITY),
        Activation::Sigmoid => sigmoid * (1.0 - sigmoid),
        Activation::LeakyRelu if x < 0.0 => 0.01,
        Activation::LeakyRelu => 1.0,
        Activation::Relu6 => inside(0.0, 6.0),
        Activation::Gelu => normal_cdf(x) + x * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt(),
        Activation::Silu => sigmoid * (1.0 + x * (1.0 - sigmoid)),
        Activation::HardSwish if x >= 3.0 => 1.0,
        Activation::HardSwish => (2.0 * x + 3.0) / 6.0 * inside(-3.0, 3.0),
    }
}

#[test]
#[ignore = "needs CUDA"]
fn activation_gradients_match() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        // Avoids the kinks at -3, 0, 3 and 6.
        let x: Vec<f64> = (-2000..=2001).map(|step| round(f64::from(step) / 200.0 + 0.002, kind)).collect();
        let x: Vec<f64> = x.into_iter().filter(|x| ![-3.0, 0.0, 3.0, 6.0].contains(x)).collect();
        let dy = values(x.len(), 2, kind);
        let [of_x, of_dy] = [&x, &dy].map(|x| device.upload(&encode(x, kind)).unwrap());
        for activation in Activation::ALL {
            let plan =
                CudaKernel::elementwise(&device, kind, ElementwiseFunction::Gradient(activation), x.len()).unwrap();
            let mut dx = poisoned(&device, plan.output_bytes(0));
            plan.enqueue([&of_x, &of_dy], [&mut dx]).unwrap();
            for (at, found) in decode(&dx.download().unwrap(), kind).into_iter().enumerate() {
                let exact = derivative(activation, x[at]) * dy[at];
                let tolerance =
                    0.51 * epsilon(kind) * exact.abs() + 2e-6 * dy[at].abs() + (round(exact, kind) - exact).abs();
                assert_close(found, exact, tolerance, || format!("{activation} {kind} of {} and {}", x[at], dy[at]));
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn silu_mul_gradients_match() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        for length in [1, 7, 9, 256 * 2 * 8, 256 * 2 * 8 + 3, 100_003] {
            let a: Vec<f64> = values(length, 1, kind).into_iter().map(|x| round(8.0 * x, kind)).collect();
            let (b, dy) = (values(length, 2, kind), values(length, 3, kind));
            let inputs = [&a, &b, &dy].map(|x| device.upload(&encode(x, kind)).unwrap());
            let plan = CudaKernel::silu_mul_gradient(&device, kind, length).unwrap();
            let [mut da, mut db] = [(); 2].map(|()| poisoned(&device, length * kind.width()));
            plan.enqueue(&inputs, [&mut da, &mut db]).unwrap();
            let [da, db] = [da, db].map(|found| decode(&found.download().unwrap(), kind));
            for at in 0..length {
                let silu = a[at] / (1.0 + (-a[at]).exp());
                for (what, found, exact) in [
                    ("da", da[at], dy[at] * b[at] * derivative(Activation::Silu, a[at])),
                    ("db", db[at], dy[at] * silu),
                ] {
                    let tolerance =
                        0.51 * epsilon(kind) * exact.abs() + 5e-6 * dy[at].abs() + (round(exact, kind) - exact).abs();
                    assert_close(found, exact, tolerance, || format!("{what} {kind} {length} at {at}"));
                }
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn short_attention_gradient_matches_for_every_head() {
    let (device, _guard) = gpu();
    const TOKENS: usize = SHORT_ATTENTION_TOKENS;
    for kind in Dtype::ALL {
        for (sequences, heads, head) in [(1, 8, 1), (3, 8, 17), (5, 8, 128), (2, 3, 512), (1, 1, 2000)] {
            let width = heads * head;
            let rows = sequences * TOKENS;
            let x: Vec<f64> = values(rows * 3 * width, 1, kind).into_iter().map(|x| round(2.0 * x, kind)).collect();
            let dy = values(rows * width, 2, kind);
            let plan = CudaKernel::short_attention_gradient(&device, kind, sequences, heads, head).unwrap();
            println!("{sequences} {heads} {head}: {}", plan.algorithm());
            let [of_x, of_dy] = [&x, &dy].map(|x| device.upload(&encode(x, kind)).unwrap());
            let mut dx = poisoned(&device, rows * 3 * width * kind.width());
            plan.enqueue([&of_x, &of_dy], [&mut dx]).unwrap();
            let found = decode(&dx.download().unwrap(), kind);
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            for (sequence, h) in (0..sequences).flat_map(|sequence| (0..heads).map(move |h| (sequence, h))) {
                let place = |token: usize, which: usize| (3 * (sequence * TOKENS + token) + which) * width + h * head;
                let part = |token: usize, which: usize| &x[place(token, which)..][..head];
                let slope = |token: usize| &dy[(sequence * TOKENS + token) * width + h * head..][..head];
                let mut exact: Vec<[Vec<[f64; 2]>; 3]> = vec![[(); 3].map(|()| vec![[0.0; 2]; head]); TOKENS];
                for token in 0..TOKENS {
                    let root = (head as f64).sqrt();
                    let scores: Vec<f64> = (0..TOKENS).map(|t| dot(part(token, 0), part(t, 1)) / root).collect();
                    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let powers: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
                    let sum: f64 = powers.iter().sum();
                    let back: Vec<f64> = (0..TOKENS).map(|t| dot(slope(token), part(t, 2))).collect();
                    let level: f64 = (0..TOKENS).map(|t| powers[t] / sum * back[t]).sum();
                    for t in 0..TOKENS {
                        let share = powers[t] / sum;
                        let score = share * (back[t] - level) / root;
                        let size = share * (back[t].abs() + level.abs()) / root;
                        let mut add = |token: usize, which: usize, [times, size]: [f64; 2], row: &[f64]| {
                            for ([sum, sizes], value) in exact[token][which].iter_mut().zip(row) {
                                *sum += times * value;
                                *sizes += (size * value).abs();
                            }
                        };
                        add(token, 0, [score, size], part(t, 1));
                        add(t, 1, [score, size], part(token, 0));
                        add(t, 2, [share, share], slope(token));
                    }
                }
                for (token, which) in (0..TOKENS).flat_map(|token| (0..3).map(move |which| (token, which))) {
                    for (at, [exact, size]) in exact[token][which].iter().enumerate() {
                        // Rounding error of the scores, in proportion to the norm of their terms.
                        let of_scores = 64.0 * f64::from(f32::EPSILON) * (head as f64).sqrt();
                        let tolerance = 0.51 * epsilon(kind) * exact.abs() + of_scores * size + 1e-6;
                        assert_close(found[place(token, which) + at], *exact, tolerance, || {
                            format!("{kind} {heads} {head} of {which} at [{token}, {at}]")
                        });
                    }
                }
            }
        }
    }
}
