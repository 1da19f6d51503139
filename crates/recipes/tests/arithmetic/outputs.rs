//! Outputs of layers on the CPU, compared with torchao or the formula of its kernel.

use crate::golden::{checked, quant_config, scale_index};
use crate::golden_file::Golden;
use burn::tensor::{Tensor, TensorData};
use burn_flex::{Flex, FlexDevice};
use calorimeter_recipes::QuantizedTensor;
use calorimeter_recipes::format::{QuantMethod, ZeroPoint};
use calorimeter_recipes::{Dtype, Element, FloatType, QuantConfig};

/// Output of the layer for the rows of `input`.
fn forward(config: &QuantConfig, golden: &Golden) -> Vec<f32> {
    let layer = config.linear::<Flex>(&golden.weight(), &FlexDevice).unwrap();
    let input = golden.tensor("input");
    let [rows, k] = input.shape[..] else { panic!("an input has two dimensions") };
    let data = TensorData::new(input.values.clone(), [rows, k]);
    let input = Tensor::<Flex, 2>::from_data(data, (&FlexDevice, golden.dtype.burn()));
    // If single rows are not quantized, each token of the file is a separate input.
    let tokens = if config.skip_input_for_single_row { 1 } else { rows };
    let outputs = (0..rows).step_by(tokens).map(|row| layer.forward(input.clone().slice([row..row + tokens, 0..k])));
    Tensor::cat(outputs.collect(), 0).cast(Dtype::F32.burn()).into_data().to_vec().unwrap()
}

/// ULP of a dtype at `x`.
fn ulp(dtype: Dtype, x: f64) -> f64 {
    let least = match dtype {
        Dtype::F16 => -14,
        Dtype::F32 | Dtype::Bf16 => -126,
    };
    let exponent = if x == 0.0 { least } else { (x.abs().log2().floor() as i32).max(least) };
    2.0 * dtype.unit_roundoff() * 2f64.powi(exponent)
}

/// Tolerance of an output relative to torchao: one ULP, plus the rounding errors of the terms of its sum.
///
/// Sums in f32 are added in another order. Values with a float zero point, and values of QQQ, are rounded to the dtype
/// twice in torchao's Python code, and at most once in its kernels and here. For pruned int8 weights torchao's kernel
/// rounds the matmul to bf16 for every dtype. torchao's reference for QQQ computes int8 values from rounded values, its
/// kernel and this crate from the quantized values; some are one step apart.
fn tolerance(
    golden: &Golden,
    config: &QuantConfig,
    quantized: &QuantizedTensor,
    input: &[f32],
    (row, col): (usize, usize),
) -> f64 {
    let (format, k) = (quantized.format, quantized.cols);
    let (input, weight) = (&input[row * k..][..k], &quantized.dequantize()[col * k..][..k]);
    let sum = |size: &dyn Fn(usize) -> f32| (0..k).map(|i| f64::from(input[i].abs()) * f64::from(size(i))).sum::<f64>();
    let zero = |i: usize| match format.zero {
        ZeroPoint::AfterScale(_) => quantized.zeros[scale_index(&format, k, col * k + i)].abs(),
        _ => 0.0,
    };
    let twice = matches!(format.zero.element(), Some(Element::Float(_))) || format.method == QuantMethod::Qqq;
    let rounded = if twice { 3.0 * golden.dtype.unit_roundoff() } else { 0.0 };
    let terms = (rounded + k as f64 * Dtype::F32.unit_roundoff()) * sum(&|i| weight[i].abs() + zero(i));
    let steps = if format.method == QuantMethod::Qqq { sum(&|_| quantized.outer_scales[col]) } else { 0.0 };
    let product = f64::from(golden.tensor("output").values[row * quantized.rows + col]);
    let pruned_int8 = config.sparsity.is_some() && format.element == Element::Signed(8);
    let product_type = if pruned_int8 { Dtype::Bf16 } else { golden.dtype };
    terms + steps + ulp(product_type, product)
}

#[test]
fn outputs_match_torchao() {
    for golden in checked().filter(|golden| golden.recipe != "nvfp4_no_global_scale") {
        let (name, config) = (&golden.name, quant_config(&golden));
        let (weight, input) = (golden.weight(), golden.tensor("input"));
        let quantized = config.quantize(&weight).unwrap().expect("golden recipes quantize weights");
        let read = config.effective_input(&input.values, weight.k());
        let read = read.as_deref().unwrap_or(&input.values);
        // Where torchao quantizes a NaN, see the test of quantized values, the result of marlin represents -8.
        let undefined = |col: usize| {
            let inverse = golden
                .dtype
                .round(1.0 / quantized.scales[scale_index(&quantized.format, weight.k(), col * weight.k())]);
            name == "marlin+semi.f16" && inverse.is_infinite()
        };
        for (i, (&ours, &theirs)) in forward(&config, &golden).iter().zip(&golden.tensor("output").values).enumerate() {
            let (row, col) = (i / weight.n(), i % weight.n());
            let tolerance = tolerance(&golden, &config, &quantized, read, (row, col));
            if theirs.is_nan() {
                assert_eq!(ours, 0.0, "{name} at {row}, {col}: torchao returns NaN for zeros only");
            } else if !undefined(col) {
                let distance = (f64::from(ours) - f64::from(theirs)).abs();
                assert!(
                    distance <= tolerance,
                    "{name} at {row}, {col}: {ours:e}, torchao {theirs:e}, within {tolerance:e}"
                );
            }
        }
    }
}
