//! What the layer gives on the CPU against what torchao's gives, or the formula of its kernel.

use crate::file::Golden;
use crate::golden::{checked, group_of, treatment};
use burn::tensor::{Tensor, TensorData};
use burn_flex::{Flex, FlexDevice};
use calorimeter_recipes::Quantized;
use calorimeter_recipes::format::{Method, Zero};
use calorimeter_recipes::{Dtype, Element, FloatType, Treatment};

/// The layer's output for the rows of `input`.
fn forward(treatment: &Treatment, golden: &Golden) -> Vec<f32> {
    let layer = treatment.linear::<Flex>(&golden.weight(), &FlexDevice).unwrap();
    let input = golden.tensor("input");
    let [rows, k] = input.shape[..] else { panic!("an input has two dimensions") };
    let data = TensorData::new(input.values.clone(), [rows, k]);
    let input = Tensor::<Flex, 2>::from_data(data, (&FlexDevice, golden.dtype.burn()));
    // Where an input of a single row is left as it is, the file's tokens are inputs of their own.
    let tokens = if treatment.spares_single_rows { 1 } else { rows };
    let outputs = (0..rows).step_by(tokens).map(|row| layer.forward(input.clone().slice([row..row + tokens, 0..k])));
    Tensor::cat(outputs.collect(), 0).cast(Dtype::F32.burn()).into_data().to_vec().unwrap()
}

/// The distance of a number of this size to the next.
fn ulp(dtype: Dtype, x: f64) -> f64 {
    let least = match dtype {
        Dtype::F16 => -14,
        Dtype::F32 | Dtype::Bf16 => -126,
    };
    let exponent = if x == 0.0 { least } else { (x.abs().log2().floor() as i32).max(least) };
    2.0 * dtype.unit_roundoff() * 2f64.powi(exponent)
}

/// How far an output may be from torchao's: an ulp, and what the terms of its sum may lose.
///
/// Sums in f32 are added in another order. Numbers with a zero in a float type, and QQQ's, are rounded twice to the dtype
/// in torchao's Python, and once or not at all in kernels and here. For pruned int8 weights torchao's kernel rounds the
/// product to bf16 whatever the dtype. Its reference for QQQ rounds to 8-bit steps from the rounded numbers, its kernel
/// and we from the codes: some are a step apart.
fn tolerance(
    golden: &Golden,
    treatment: &Treatment,
    quantized: &Quantized,
    input: &[f32],
    (row, col): (usize, usize),
) -> f64 {
    let (format, k) = (quantized.format, quantized.cols);
    let (input, weight) = (&input[row * k..][..k], &quantized.dequantize()[col * k..][..k]);
    let sum = |size: &dyn Fn(usize) -> f32| (0..k).map(|i| f64::from(input[i].abs()) * f64::from(size(i))).sum::<f64>();
    let zero = |i: usize| match format.zero {
        Zero::InUnits(_) => quantized.zeros[group_of(&format, k, col * k + i)].abs(),
        _ => 0.0,
    };
    let twice = matches!(format.zero.element(), Some(Element::Float(_))) || format.method == Method::Qqq;
    let rounded = if twice { 3.0 * golden.dtype.unit_roundoff() } else { 0.0 };
    let terms = (rounded + k as f64 * Dtype::F32.unit_roundoff()) * sum(&|i| weight[i].abs() + zero(i));
    let steps = if format.method == Method::Qqq { sum(&|_| quantized.outer[col]) } else { 0.0 };
    let product = f64::from(golden.tensor("output").values[row * quantized.rows + col]);
    let pruned_int8 = treatment.sparsity.is_some() && format.element == Element::Signed(8);
    let product_type = if pruned_int8 { Dtype::Bf16 } else { golden.dtype };
    terms + steps + ulp(product_type, product)
}

#[test]
fn outputs_are_torchaos_up_to_the_order_of_sums() {
    for golden in checked().filter(|golden| golden.recipe != "nvfp4_no_global_scale") {
        let (name, treatment) = (&golden.name, treatment(&golden));
        let (weight, input) = (golden.weight(), golden.tensor("input"));
        let quantized = treatment.quantize(&weight).unwrap().expect("golden recipes quantize weights");
        let read = treatment.effective_input(&input.values, weight.k());
        let read = read.as_deref().unwrap_or(&input.values);
        // Where torchao has codes of NaNs, see the test of codes, marlin's stand for -8.
        let undefined = |col: usize| {
            let inverse =
                golden.dtype.round(1.0 / quantized.scales[group_of(&quantized.format, weight.k(), col * weight.k())]);
            name == "marlin+semi.f16" && inverse.is_infinite()
        };
        for (i, (&ours, &theirs)) in
            forward(&treatment, &golden).iter().zip(&golden.tensor("output").values).enumerate()
        {
            let (row, col) = (i / weight.n(), i % weight.n());
            let tolerance = tolerance(&golden, &treatment, &quantized, read, (row, col));
            if theirs.is_nan() {
                assert_eq!(ours, 0.0, "{name} at {row}, {col}: NaN is the output of zeros only");
            } else if !undefined(col) {
                let distance = (f64::from(ours) - f64::from(theirs)).abs();
                assert!(
                    distance <= tolerance,
                    "{name} at {row}, {col}: {ours:e}, theirs {theirs:e}, within {tolerance:e}"
                );
            }
        }
    }
}
