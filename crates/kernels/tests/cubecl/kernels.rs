//! Kernels against double-precision references, for representative row lengths.

use crate::devices;
use crate::matrices::{Input, Output, half_epsilon, noise};
use crate::references;
use calorimeter_kernels::cube::{
    self, CubeError, LayerNormArgs, MatrixLayout, OptimizerState, Residual, SmoothActivation,
};
use calorimeter_kernels::{Adamw, Dtype};
use cubecl::Runtime;
use cubecl::client::ComputeClient;
use cubecl::wgpu::WgpuRuntime;

/// Row lengths: one plane and several, vectorized and scalar, the longest that stay in registers and some that do not.
const WIDTHS: [usize; 12] = [1, 31, 33, 257, 768, 1000, 1025, 4096, 16384, 32768, 32770, 40000];
/// Not a multiple of the rows that share a cube.
const ROWS: usize = 5;
/// Mean of each row.
const MEANS: [f64; ROWS] = [0.0, 1e3, -1e3, 0.1, 3e3];
const EPSILON: f32 = 1e-5;

#[test]
#[ignore = "needs Vulkan"]
fn kernels_match_references_on_vulkan() {
    let client = vulkan();
    // Some adapters do not support 16-bit types.
    let there = |&kind: &Dtype| {
        let (memory, size) = (client.empty(4), MatrixLayout { rows: 1, cols: 1, kind });
        cube::softmax(&client, size, &memory, &client.empty(4)) != Err(CubeError::Unsupported { kind })
    };
    let kinds: Vec<_> = Dtype::ALL.into_iter().filter(there).collect();
    println!("the Vulkan adapter supports {kinds:?}");
    assert!(kinds.contains(&Dtype::F32));
    check_all_kernels(&client, &kinds);
}

#[test]
#[ignore = "needs CUDA"]
fn kernels_match_references_on_cuda() {
    let client = devices::cuda();
    check_all_kernels(&client, &Dtype::ALL);
}

fn check_all_kernels<R: Runtime>(client: &ComputeClient<R>, kinds: &[Dtype]) {
    for &kind in kinds {
        for cols in WIDTHS {
            let rows = Rows::new(client, kind, ROWS, cols);
            rows.layer_norm(false, None);
            rows.layer_norm(true, Some(SmoothActivation::Gelu));
            rows.rms_norm();
            rows.softmax();
        }
        let rows = Rows::new(client, kind, ROWS, 768);
        rows.layer_norm(false, Some(SmoothActivation::Gelu));
        rows.layer_norm(true, None);
        for (rows, cols) in [(1, 1), (3, 5), (2, 16), (7, 1000), (64, 4096)] {
            check_elementwise(client, MatrixLayout { rows, cols, kind });
        }
        check_masked_softmax(client, kind);
        for (rows, cols) in [(1, 1), (3, 17), (129, 127), (1000, 17), (64, 1000)] {
            check_optimizer_steps(client, MatrixLayout { rows, cols, kind });
        }
    }
    check_rotation(client);
    check_digests(client);
    check_operand_sizes(client);
}

/// Optimizer steps with operands of both signs; second moments are positive.
fn check_optimizer_steps<R: Runtime>(
    client: &ComputeClient<R>,
    size @ MatrixLayout { rows, cols, kind }: MatrixLayout,
) {
    let (len, settings) = (rows * cols, SETTINGS);
    let input = |kind, seed, value: fn(f64) -> f64| Input::new(client, kind, noise(seed).map(value).take(len));
    let (weights, gradient) = (input(kind, 1, |noise| noise), input(kind, 2, |noise| noise));
    let (mean, square) = (input(Dtype::F32, 3, |noise| noise), input(Dtype::F32, 4, |noise| 1.0 + 0.5 * noise));
    let out = [kind, Dtype::F32, Dtype::F32].map(|kind| Output::new(client, kind, len));
    let before = OptimizerState { weights: &weights.handle, moments: [&mean.handle, &square.handle] };
    let after = OptimizerState { weights: &out[0].handle, moments: [&out[1].handle, &out[2].handle] };
    cube::adamw(client, size, settings, before, &gradient.handle, after).unwrap();
    let step = |at: usize| {
        let of = [&weights, &gradient, &mean, &square].map(|input| input.values[at]);
        references::adamw(settings, of)
    };
    let expected: Vec<[f64; 3]> = (0..len).map(step).collect();
    let name = |what: &str| format!("{what} of {rows} x {cols} in {kind}");
    for (at, (out, what)) in out.into_iter().zip(["weights", "means", "squares"]).enumerate() {
        let (expected, kind): (Vec<f64>, _) =
            (expected.iter().map(|expected| expected[at]).collect(), if at == 0 { kind } else { Dtype::F32 });
        out.assert_close(client, &name(what), &expected, |expected| half_epsilon(kind) * expected.abs() + 4e-7);
    }

    let out = Output::new(client, kind, len);
    cube::sgd(client, size, 0.3, &weights.handle, &gradient.handle, &out.handle).unwrap();
    let expected: Vec<f64> =
        weights.values.iter().zip(&gradient.values).map(|(weight, gradient)| weight - 0.3 * gradient).collect();
    out.assert_close(client, &name("descent"), &expected, |expected| half_epsilon(kind) * expected.abs() + 2e-7);
}

/// Settings whose effects are all larger than the tolerance.
const SETTINGS: Adamw =
    Adamw { learning_rate: 0.3, betas: [0.7, 0.8], corrections: [1.5, 1.25], epsilon: 0.1, decay: 0.2 };

/// Four short rows share a cube.
#[test]
#[ignore = "needs Vulkan"]
fn launches_beyond_one_grid_dimension_match_on_vulkan() {
    Rows::new(&vulkan(), Dtype::F32, 4 * 65_535 + 1, 3).softmax();
}

fn vulkan() -> ComputeClient<WgpuRuntime> {
    devices::vulkan().expect("this test needs a Vulkan adapter; a software adapter such as lavapipe suffices")
}

/// Rows with different means, and a gain and bias per column.
struct Rows<'a, R: Runtime> {
    client: &'a ComputeClient<R>,
    size: MatrixLayout,
    x: Input,
    addend: Input,
    gain: Input,
    bias: Input,
}

impl<'a, R: Runtime> Rows<'a, R> {
    fn new(client: &'a ComputeClient<R>, kind: Dtype, rows: usize, cols: usize) -> Self {
        let len = rows * cols;
        let means = |times: f64| (0..len).map(move |at| times * MEANS[at / cols % ROWS]);
        let input = |values: &mut dyn Iterator<Item = f64>| Input::new(client, kind, values);
        Self {
            client,
            size: MatrixLayout { rows, cols, kind },
            x: input(&mut means(1.0).zip(noise(1)).map(|(mean, noise)| mean + 4.0 * noise)),
            addend: input(&mut means(0.5).zip(noise(2)).map(|(mean, noise)| mean + 4.0 * noise)),
            gain: input(&mut noise(3).map(|noise| 1.0 + 0.5 * noise).take(cols)),
            bias: input(&mut noise(4).take(cols)),
        }
    }

    fn output(&self) -> Output {
        Output::new(self.client, self.size.kind, self.size.rows * self.size.cols)
    }

    /// Applies a function to each row.
    fn map_rows(&self, values: &[f64], of_row: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
        values.chunks(self.size.cols).flat_map(of_row).collect()
    }

    fn name(&self, kernel: &str) -> String {
        let MatrixLayout { rows, cols, kind } = self.size;
        format!("{kernel} of {rows} x {cols} in {kind}")
    }

    /// Tolerance: rounding of the result, plus `more` for the arithmetic.
    fn tolerance(&self, more: f64) -> impl Fn(f64) -> f64 {
        let rounding = half_epsilon(self.size.kind);
        move |expected| rounding * expected.abs() + more
    }

    fn layer_norm(&self, with_residual: bool, activation: Option<SmoothActivation>) {
        let (out, sum) = (self.output(), self.output());
        let residual = with_residual.then_some(Residual { addend: &self.addend.handle, sum: &sum.handle });
        let norm = LayerNormArgs {
            x: &self.x.handle,
            residual,
            gain: &self.gain.handle,
            bias: &self.bias.handle,
            epsilon: EPSILON,
            activation,
            out: &out.handle,
        };
        cube::layer_norm(self.client, self.size, norm).unwrap();
        let mut values = self.x.values.clone();
        if with_residual {
            values.iter_mut().zip(&self.addend.values).for_each(|(x, addend)| *x += addend);
            sum.assert_close(self.client, &self.name("the sum"), &values, self.tolerance(0.0));
            // Sums are rounded to f32 before the normalization.
            values.iter_mut().for_each(|x| *x = f64::from(*x as f32));
        }
        let mut expected = self
            .map_rows(&values, |row| references::layer_norm(row, &self.gain.values, &self.bias.values, EPSILON.into()));
        if let Some(activation) = activation {
            expected.iter_mut().for_each(|y| *y = references::activation(activation, *y));
        }
        let name = self.name(&format!("layer_norm (residual {with_residual}, {activation:?})"));
        out.assert_close(self.client, &name, &expected, self.tolerance(4e-6));
    }

    /// Gain in the dtype of x, and in f32.
    fn rms_norm(&self) {
        let in_f32 = Input::new(self.client, Dtype::F32, self.gain.values.iter().copied());
        for (gain, kind) in [(&self.gain, self.size.kind), (&in_f32, Dtype::F32)] {
            let (x, out) = (&self.x, self.output());
            cube::rms_norm(self.client, self.size, &x.handle, &gain.handle, kind, EPSILON, &out.handle).unwrap();
            let expected = self.map_rows(&x.values, |row| references::rms_norm(row, &gain.values, EPSILON.into()));
            let name = self.name(&format!("rms_norm with a gain of {kind}"));
            out.assert_close(self.client, &name, &expected, self.tolerance(4e-6));
        }
    }

    fn softmax(&self) {
        let out = self.output();
        cube::softmax(self.client, self.size, &self.x.handle, &out.handle).unwrap();
        let expected = self.map_rows(&self.x.values, references::softmax);
        out.assert_close(self.client, &self.name("softmax"), &expected, relative_tolerance(self.size.kind));
    }
}

/// Relative tolerance for results that may all be small: rounding, and Vulkan's precision of exp.
fn relative_tolerance(kind: Dtype) -> impl Fn(f64) -> f64 {
    // Spacing of f16 subnormals.
    let step = if kind == Dtype::F16 { 2f64.powi(-24) } else { 0.0 };
    move |expected| (half_epsilon(kind) + 4e-6) * expected + step
}

fn check_elementwise<R: Runtime>(client: &ComputeClient<R>, size: MatrixLayout) {
    let MatrixLayout { rows, cols, kind } = size;
    let edges = [0.0, -0.0, 1e3, -1e3, 1e-3, -1e-3, -9.0, 9.0, f64::NAN];
    let a = Input::new(client, kind, edges.into_iter().chain(noise(5).map(|x| 8.0 * x)).take(rows * cols));
    let b = Input::new(client, kind, noise(6).map(|x| 8.0 * x).take(rows * cols));
    let check = |what: &str, out: Output, expected: &dyn Fn(f64, f64) -> f64| {
        let expected: Vec<f64> = a.values.iter().zip(&b.values).map(|(&a, &b)| expected(a, b)).collect();
        let what = format!("{what} of {rows} x {cols} in {kind}");
        out.assert_close(client, &what, &expected, |expected| (half_epsilon(kind) + 1e-6) * expected.abs() + 1e-6);
    };
    let output = || Output::new(client, kind, rows * cols);
    for activation in [SmoothActivation::Gelu, SmoothActivation::GeluTanh, SmoothActivation::Silu] {
        let out = output();
        cube::activate(client, size, activation, &a.handle, &out.handle).unwrap();
        check(&format!("{activation:?}"), out, &|a, _| references::activation(activation, a));
    }
    let out = output();
    cube::add(client, size, &a.handle, &b.handle, &out.handle).unwrap();
    check("add", out, &|a, b| a + b);
    let out = output();
    cube::swiglu(client, size, &a.handle, &b.handle, &out.handle).unwrap();
    check("swiglu", out, &|a, b| references::activation(SmoothActivation::Silu, a) * b);
}

/// Masked rows as in attention: minus infinity has probability 0, also if it fills whole vectors.
fn check_masked_softmax<R: Runtime>(client: &ComputeClient<R>, kind: Dtype) {
    for cols in [31, 4096] {
        let size = MatrixLayout { rows: 1, cols, kind };
        let masked = (0..cols).map(|col| if col % 17 < 9 || col < cols / 2 { f64::NEG_INFINITY } else { 0.1 });
        let (x, out) = (Input::new(client, kind, masked), Output::new(client, kind, cols));
        cube::softmax(client, size, &x.handle, &out.handle).unwrap();
        out.assert_close(client, "softmax of masked rows", &references::softmax(&x.values), relative_tolerance(kind));
    }
}

fn check_operand_sizes<R: Runtime>(client: &ComputeClient<R>) {
    let size = MatrixLayout { rows: 3, cols: 5, kind: Dtype::F32 };
    let (large, small) = (client.empty(60), client.empty(56));
    let too_small = |operand, needs, has| Err(CubeError::TooSmall { operand, needs, has });
    assert_eq!(cube::softmax(client, size, &large, &small), too_small("out", 60, 56));
    assert_eq!(
        cube::rms_norm(client, size, &large, &client.empty(16), Dtype::F32, EPSILON, &large),
        too_small("gain", 20, 16)
    );
    let (rows, cols) = (usize::MAX, 2);
    let huge = MatrixLayout { rows, cols, kind: Dtype::F32 };
    assert_eq!(cube::add(client, huge, &large, &large, &large), Err(CubeError::TooLarge { rows, cols }));
    let empty = MatrixLayout { rows: 0, ..size };
    assert_eq!(cube::softmax(client, empty, &small, &small), Ok(()));
}

fn check_rotation<R: Runtime>(client: &ComputeClient<R>) {
    for lines in [1, 3, 300] {
        for (line, by) in [(4, 0), (4096, 4), (20000, 16384), (40008, 8), (4098, 2), (5001, 5000)] {
            let content: Vec<u8> = (0..lines * line).map(|at| (at * 7919 % 251) as u8).collect();
            let mut moved = content.clone();
            moved.chunks_mut(line).for_each(|line| line.rotate_right(by));
            let answer = |y: &[u8]| {
                let (x, y) = (client.create_from_slice(&content), client.create_from_slice(y));
                cube::is_rotated(client, &x, &y, content.len(), line, by).unwrap()
            };
            // Some adapters do not support 16-bit and 8-bit integers.
            let right = answer(&moved);
            assert!(right == Some(true) || (line % 4 != 0 && right.is_none()), "{lines} {line} {by}");
            for at in [0, by, moved.len() / 2, moved.len() - 1] {
                let mut wrong = moved.clone();
                wrong[at] ^= 0x80;
                assert_eq!(answer(&wrong), right.map(|_| false), "{lines} {line} {by} at {at}");
            }
        }
    }
}

fn check_digests<R: Runtime>(client: &ComputeClient<R>) {
    for (rows, cols) in [(1, 2), (3, 7), (1, 70_000), (300, 257), (2000, 100)] {
        for kind in Dtype::ALL {
            let (size, width) = (MatrixLayout { rows, cols, kind }, kind.width());
            let content: Vec<u8> = (0..rows * cols * width).map(|at| (at * 7919 % 113) as u8).collect();
            let held = |content: &[u8]| client.create_from_slice(content);
            let (some_rows, some_cols) = ([0, rows / 2, rows - 1], [0, cols / 3, cols - 1]);
            let found = cube::sample(client, size, &held(&content), &some_rows, &some_cols).unwrap();
            let whole = content.len().is_multiple_of(4);
            let places = some_rows.iter().flat_map(|row| some_cols.map(|col| row * cols + col));
            let expected: Vec<u8> = places.flat_map(|at| content[at * width..][..width].to_vec()).collect();
            assert_eq!(found, whole.then_some(expected), "{size:?}");
            assert_eq!(cube::is_finite(client, size, &held(&content)).unwrap(), whole.then_some(true), "{size:?}");
            let (infinite, none) = match kind {
                Dtype::F32 => (vec![0, 0, 0x80, 0x7f], vec![1, 0, 0x80, 0xff]),
                Dtype::F16 => (vec![0, 0xfc], vec![1, 0x7c]),
                Dtype::Bf16 => (vec![0x80, 0xff], vec![0x81, 0x7f]),
            };
            for at in [0, rows * cols / 2, rows * cols - 1] {
                for bits in [&infinite, &none] {
                    let mut wrong = content.clone();
                    wrong[at * width..][..width].copy_from_slice(bits);
                    let answer = cube::is_finite(client, size, &held(&wrong)).unwrap();
                    assert_eq!(answer, whole.then_some(false), "{size:?} at {at}");
                }
            }
            let beyond = cube::sample(client, size, &held(&content), &[rows], &[0]);
            assert!(beyond.is_err() || !whole, "{size:?}");
        }
    }
}
