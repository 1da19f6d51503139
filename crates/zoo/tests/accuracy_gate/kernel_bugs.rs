//! Bugs that published kernels had or could have, computed on the host. The gate must reject each.

use calorimeter_recipes::{Dtype, Element, FloatType};
use calorimeter_shapes::Axes;
use calorimeter_zoo::{Matrix, OperatorProblem, Output, Spec};

/// Kernel: maps inputs to the rows of each output.
type TestKernel = fn(&[Matrix]) -> Vec<Vec<Vec<f64>>>;

/// True if the gate rejects the outputs of a kernel, rounded to the stored dtype.
fn is_rejected(operator: &str, dtype: Dtype, dimension: u64, kernel: TestKernel) -> bool {
    let axes = Axes::new([("batch", 3), ("sequence", 3), ("dimension", dimension)]).unwrap();
    let spec = Spec { axes, element: Element::Float(dtype), output: None, training: None };
    let problem = OperatorProblem { operator: operator.parse().unwrap(), spec, seed: 5 };
    problem.operator.check(&problem.spec).unwrap();
    let inputs = problem.inputs();
    let slots = problem.operator.outputs(&problem.spec);
    let outputs: Vec<Output> = kernel(&inputs)
        .into_iter()
        .zip(slots)
        .map(|(rows, slot)| {
            let Element::Float(stored) = slot.element else { panic!("{operator} stores floats") };
            let (count, cols) = (rows.len(), rows[0].len());
            let values = rows.iter().flatten().map(|&value| stored.round(value as f32)).collect();
            Output { rows: count, cols, values }
        })
        .collect();
    // TF32 is allowed, as on CUDA.
    problem.judge(&outputs, &problem.references(&inputs), true).is_err()
}

/// Applies `of` to each row of an input.
fn map_rows(input: &Matrix, of: impl Fn(&[f64]) -> Vec<f64>) -> Vec<Vec<f64>> {
    (0..input.rows).map(|row| of(&input.exact_row(row))).collect()
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn variance(x: &[f64]) -> f64 {
    let mean = mean(x);
    x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64
}

/// Lanes of the block that processes a row, including those beyond its end.
fn lanes(x: &[f64]) -> f64 {
    x.len().next_power_of_two() as f64
}

/// Layer normalization with the mean and variance that `statistics` returns.
fn layer_norm(inputs: &[Matrix], statistics: impl Fn(&[f64]) -> (f64, f64)) -> Vec<Vec<f64>> {
    let (gain, bias) = (inputs[1].exact_row(0), inputs[2].exact_row(0));
    map_rows(&inputs[0], |x| {
        let (mean, variance) = statistics(x);
        let scale = 1.0 / (variance + 1e-5).sqrt();
        (0..x.len()).map(|col| (x[col] - mean) * scale * gain[col] + bias[col]).collect()
    })
}

fn mean_and_variance(x: &[f64]) -> (f64, f64) {
    (mean(x), variance(x))
}

fn unmasked_lane_variance(x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    (mean(x), variance(x) + (lanes(x) - n) * mean(x).powi(2) / n)
}

fn rms_norm(inputs: &[Matrix], square: impl Fn(&[f64]) -> f64) -> Vec<Vec<f64>> {
    let gain = inputs[1].exact_row(0);
    map_rows(&inputs[0], |x| {
        let scale = 1.0 / (square(x) + 1e-5).sqrt();
        x.iter().zip(&gain).map(|(x, gain)| x * scale * gain).collect()
    })
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + libm::erf(x / 2f64.sqrt()))
}

fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044715 * x.powi(3))).tanh())
}

fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// Softmax in f32 over a number of lanes; those beyond the end of the row hold zero.
fn softmax(logits: &Matrix, largest: impl Fn(&[f64]) -> f64, lanes: impl Fn(&[f64]) -> f64) -> Vec<Vec<f64>> {
    map_rows(logits, |x| {
        let largest = largest(x);
        let exponential = |x: f64| f64::from(((x - largest) as f32).exp());
        let padding = std::iter::repeat_n(0.0, lanes(x) as usize - x.len());
        let sum: f64 = x.iter().copied().chain(padding).map(exponential).sum();
        x.iter().map(|&x| exponential(x) / sum).collect()
    })
}

fn largest(x: &[f64]) -> f64 {
    x.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Mean cross-entropy over rows; `target` maps the correct class and the number of classes to the class that is used.
fn cross_entropy(inputs: &[Matrix], target: impl Fn(usize, usize) -> usize, columns: usize) -> Vec<Vec<f64>> {
    let losses: Vec<f64> = (0..inputs[0].rows)
        .map(|row| {
            let x = inputs[0].exact_row(row);
            let largest = largest(&x);
            let sum: f64 = x.iter().take(columns).map(|x| (x - largest).exp()).sum();
            sum.ln() + largest - x[target(inputs[1].row(row)[0] as usize, x.len())]
        })
        .collect();
    vec![vec![mean(&losses)]]
}

/// Squared differences of two inputs, by row.
fn squared_differences(inputs: &[Matrix]) -> Vec<Vec<f64>> {
    let row = |row| inputs[0].exact_row(row).into_iter().zip(inputs[1].exact_row(row));
    (0..inputs[0].rows).map(|r| row(r).map(|(x, y)| (x - y).powi(2)).collect()).collect()
}

fn sum_and_count(squares: &[Vec<f64>]) -> (f64, f64) {
    (squares.iter().flatten().sum(), squares.iter().map(Vec::len).sum::<usize>() as f64)
}

/// Operator, dimensions, description of the bug, and the kernel that has it.
type KernelBug = (&'static str, &'static [u64], &'static str, TestKernel);

/// Bugs that are rejected in every dtype.
const BUGS: &[KernelBug] = &[
    ("layer_norm", &[31, 33, 257, 1000, 1025], "masked lanes add the square of the mean to the variance", |inputs| {
        vec![layer_norm(inputs, unmasked_lane_variance)]
    }),
    ("layer_norm", &[31, 257, 1025], "the mean is assumed to be zero", |inputs| {
        vec![layer_norm(inputs, |x| (0.0, mean(&x.iter().map(|x| x * x).collect::<Vec<_>>())))]
    }),
    ("layer_norm", &[31, 257, 1025], "the mean is subtracted, but not from the square", |inputs| {
        vec![layer_norm(inputs, |x| (mean(x), mean(&x.iter().map(|x| x * x).collect::<Vec<_>>())))]
    }),
    ("layer_norm", &[1025, 2048], "columns after the first 1024 are copied", |inputs| {
        let mut output = layer_norm(inputs, |x| mean_and_variance(&x[..1024]));
        for (row, output) in output.iter_mut().enumerate() {
            output[1024..].copy_from_slice(&inputs[0].exact_row(row)[1024..]);
        }
        vec![output]
    }),
    ("layer_norm", &[1025, 2048], "columns after the first 1024 are zero", |inputs| {
        let mut output = layer_norm(inputs, |x| mean_and_variance(&x[..1024]));
        output.iter_mut().for_each(|row| row[1024..].fill(0.0));
        vec![output]
    }),
    ("rms_norm", &[31, 257, 1000], "the mean is subtracted", |inputs| vec![rms_norm(inputs, variance)]),
    ("rms_norm", &[31, 257, 1000], "the mean is over all lanes", |inputs| {
        vec![rms_norm(inputs, |x| x.iter().map(|x| x * x).sum::<f64>() / lanes(x))]
    }),
    ("softmax", &[31, 257, 1000], "the largest logit is not subtracted", |inputs| {
        vec![softmax(&inputs[0], |_| 0.0, |x| x.len() as f64)]
    }),
    ("softmax", &[31, 257, 1000], "masked lanes are logits of zero", |inputs| {
        vec![softmax(&inputs[0], largest, lanes)]
    }),
    ("silu", &[31, 257], "only the sigmoid", |inputs| {
        vec![map_rows(&inputs[0], |x| x.iter().map(|&x| silu(x) / x).collect())]
    }),
    ("ln_gelu", &[31, 257], "GELU of the unnormalized input", |inputs| {
        vec![map_rows(&inputs[0], |x| x.iter().map(|&x| gelu(x)).collect())]
    }),
    ("ln_gelu", &[31, 257, 1000], "masked lanes add the square of the mean to the variance", |inputs| {
        let normal = layer_norm(inputs, unmasked_lane_variance);
        vec![normal.into_iter().map(|row| row.into_iter().map(gelu).collect()).collect()]
    }),
    ("add_ln", &[31, 257], "the residual is missing in the normalized sum", |inputs| {
        let sum = |row| inputs[0].exact_row(row).iter().zip(inputs[1].exact_row(row)).map(|(x, y)| x + y).collect();
        let normal = layer_norm(&[inputs[0].clone(), inputs[2].clone(), inputs[3].clone()], mean_and_variance);
        vec![(0..inputs[0].rows).map(sum).collect(), normal]
    }),
    ("swiglu", &[31, 257], "gate and up are swapped", |inputs| {
        let row =
            |row| inputs[1].exact_row(row).iter().zip(inputs[0].exact_row(row)).map(|(x, y)| silu(*x) * y).collect();
        vec![(0..inputs[0].rows).map(row).collect()]
    }),
    ("mse_loss", &[31, 257, 1000], "the mean is over all lanes", |inputs| {
        let (sum, count) = sum_and_count(&squared_differences(inputs));
        vec![vec![vec![sum / (count as usize).next_power_of_two() as f64]]]
    }),
    ("mse_loss", &[31, 257, 1000], "a sum of squares", |inputs| {
        let squared = |input: &Matrix| map_rows(input, |x| x.iter().map(|x| x * x).collect());
        let ((x, count), (y, _)) = (sum_and_count(&squared(&inputs[0])), sum_and_count(&squared(&inputs[1])));
        vec![vec![vec![(x + y) / count]]]
    }),
    ("mse_loss", &[1025], "columns after the first 1024 are left out", |inputs| {
        let mut squares = squared_differences(inputs);
        let (_, count) = sum_and_count(&squares);
        squares.iter_mut().for_each(|row| row.truncate(1024));
        vec![vec![vec![sum_and_count(&squares).0 / count]]]
    }),
    ("cross_entropy", &[31, 257, 1000], "next class", |inputs| {
        vec![cross_entropy(inputs, |target, classes| (target + 1) % classes, usize::MAX)]
    }),
    ("cross_entropy", &[1025], "columns after the first 1024 are left out of the sum", |inputs| {
        vec![cross_entropy(inputs, |target, _| target, 1024)]
    }),
];

#[test]
fn kernel_bugs_are_rejected_in_every_dtype() {
    for &(operator, dimensions, bug, kernel) in BUGS {
        for &dimension in dimensions {
            for dtype in Dtype::ALL {
                assert!(is_rejected(operator, dtype, dimension, kernel), "{operator} {dtype} {dimension}: {bug}");
            }
        }
    }
}

/// The correct kernels share the code of the wrong ones, so that rejections are due to the bugs.
#[test]
fn correct_kernels_pass() {
    let kernels: &[(&str, TestKernel)] = &[
        ("layer_norm", |inputs| vec![layer_norm(inputs, mean_and_variance)]),
        ("rms_norm", |inputs| vec![rms_norm(inputs, |x| mean(&x.iter().map(|x| x * x).collect::<Vec<_>>()))]),
        ("softmax", |inputs| vec![softmax(&inputs[0], largest, |x| x.len() as f64)]),
        ("gelu", |inputs| vec![map_rows(&inputs[0], |x| x.iter().map(|&x| gelu(x)).collect())]),
        ("gelu_tanh", |inputs| vec![map_rows(&inputs[0], |x| x.iter().map(|&x| gelu_tanh(x)).collect())]),
        ("silu", |inputs| vec![map_rows(&inputs[0], |x| x.iter().map(|&x| silu(x)).collect())]),
        ("mse_loss", |inputs| {
            let (sum, count) = sum_and_count(&squared_differences(inputs));
            vec![vec![vec![sum / count]]]
        }),
        ("cross_entropy", |inputs| vec![cross_entropy(inputs, |target, _| target, usize::MAX)]),
    ];
    for &(operator, kernel) in kernels {
        for dimension in [31, 1000, 1025] {
            for dtype in Dtype::ALL {
                assert!(!is_rejected(operator, dtype, dimension, kernel), "{operator} {dtype} {dimension}");
            }
        }
    }
}

/// The variants differ by at most 5e-4, less than one rounding in f16 and bf16.
#[test]
fn gelu_variants_are_distinguished_in_f32() {
    let tanh: TestKernel = |inputs| vec![map_rows(&inputs[0], |x| x.iter().map(|&x| gelu_tanh(x)).collect())];
    let erf: TestKernel = |inputs| vec![map_rows(&inputs[0], |x| x.iter().map(|&x| gelu(x)).collect())];
    let after_norm: TestKernel = |inputs| {
        let normal = layer_norm(inputs, mean_and_variance);
        vec![normal.into_iter().map(|row| row.into_iter().map(gelu_tanh).collect()).collect()]
    };
    for dimension in [31, 257, 1025] {
        assert!(is_rejected("gelu", Dtype::F32, dimension, tanh));
        assert!(is_rejected("gelu_tanh", Dtype::F32, dimension, erf));
        assert!(is_rejected("ln_gelu", Dtype::F32, dimension, after_norm));
    }
}

/// A single column of 1025 changes the statistics by a thousandth, less than one rounding in bf16.
#[test]
fn partial_row_statistics_are_rejected_in_f32() {
    assert!(is_rejected("layer_norm", Dtype::F32, 1025, |inputs| vec![layer_norm(inputs, |x| mean_and_variance(
        &x[..1024]
    ))]));
}
