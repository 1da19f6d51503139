//! Properties of the weight formats of all recipes, for arbitrary weights.

use crate::golden::scale_index;
use calorimeter_recipes::QuantizedTensor;
use calorimeter_recipes::format::{Format, QuantMethod, ZeroPoint};
use calorimeter_recipes::{Dtype, Element, QuantConfig, Recipe, RecipeError, Sparsity, Weight, prune};
use proptest::prelude::*;

/// Recipes of every family, with the parameters that change the arithmetic.
const RECIPES: [&str; 32] = [
    "int8wo",
    "int8dq",
    "int4wo-32",
    "int4wo-64-hqq",
    "int8adq-int4w-symm",
    "marlin",
    "marlin-qqq",
    "fp6",
    "uintx-1-32",
    "uintx-2-32",
    "uintx-3-32",
    "uintx-4-64",
    "uintx-5-32",
    "uintx-6-32",
    "uintx-7-32",
    "uintx-8-32",
    "uintx-2-32-hqq",
    "uintx-4-32-hqq",
    "uintx-8-64-hqq",
    "int8_dynamic_activation_intx_weight-1-32-true",
    "int8_dynamic_activation_intx_weight-4-32-true",
    "int8_dynamic_activation_intx_weight-4-32-false",
    "gemlitewo-4-32",
    "gemlitewo-8",
    "float8wo",
    "float8dq-tensor",
    "float8dq-row",
    "mxfp8",
    "mxfp4",
    "nvfp4",
    "q8_0",
    "q4_0",
];

const K: usize = 256;

fn quant_config(name: &str, dtype: Dtype) -> QuantConfig {
    let recipe: Recipe = name.parse().unwrap();
    let sparsity = (name == "marlin").then_some(Sparsity::SemiStructured);
    recipe.quant_config(dtype, sparsity).unwrap()
}

/// Exponent of the smallest normal value, and mantissa bits.
fn float_layout(element: Element) -> (i32, i32) {
    match element {
        Element::E5m2 => (-14, 2),
        Element::E3m2 => (-2, 2),
        Element::E2m1 => (0, 1),
        _ => (-6, 3),
    }
}

/// Error bound of element `i`: half a step plus rounding errors; `None` if the format saturates there.
fn error_bound(format: &Format, quantized: &QuantizedTensor, i: usize, x: f64) -> Option<f64> {
    let at = scale_index(format, K, i);
    let (scale, zero) = (f64::from(quantized.scales[at]), f64::from(*quantized.zeros.get(at).unwrap_or(&0.0)));
    let lost = format.compute_dtype.unit_roundoff();
    let small_float = |scale: f64, lost: f64| {
        let (least, mantissa) = float_layout(format.element);
        let size = x.abs() / scale;
        let spacing = 2f64.powi((size.log2().floor() as i32).max(least) - mantissa);
        scale * spacing / 2.0 + lost * x.abs()
    };
    Some(match format.method {
        // Rounding of the scale, its inverse and the product.
        QuantMethod::Symmetric { .. } => scale / 2.0 + 3.0 * lost * x.abs(),
        // Also rounding of the range and of the quotient for the zero point.
        QuantMethod::Asymmetric { .. } => {
            scale / 2.0 + 3.0 * lost * (x.abs() + scale * 2f64.powi(format.bits() as i32))
        }
        // Rounding of the zero point, the subtrahend, the difference and the quotient.
        QuantMethod::Tinygemm { .. } => scale / 2.0 + 3.0 * lost * (x.abs() + zero.abs() + 16.0 * scale),
        // Rounding of the stored scale and zero point; the optimized zero point lets the ends of the range saturate.
        QuantMethod::Hqq(_) => {
            let code = quantized.code(i / K, i % K);
            let ends = [0, (1 << format.bits()) - 1];
            let Element::Float(stored) = format.scale else { panic!("HQQ's scales are in a dtype") };
            let zero = if matches!(format.zero, ZeroPoint::BeforeScale(_)) { zero * scale } else { zero };
            if ends.contains(&code) {
                return None;
            }
            scale / 2.0 + 2.0 * stored.unit_roundoff() * (x.abs() + zero.abs() + scale * f64::from(format.midpoint()))
        }
        QuantMethod::Floats { .. } => small_float(scale, 2.0 * lost),
        QuantMethod::Mx(_) => small_float(scale, 0.0),
        QuantMethod::Nvfp4 => {
            let scale = scale * f64::from(quantized.outer_scales[0]);
            if x.abs() > 6.0 * scale {
                return None;
            }
            small_float(scale, 2.0 * Dtype::F32.unit_roundoff())
        }
        // One step of the 4-bit values, and one of the int8 values of the row.
        QuantMethod::Qqq => {
            let outer = f64::from(quantized.outer_scales[i / K]);
            scale * outer / 2.0 + outer / 2.0 + 3.0 * lost * x.abs()
        }
        // Also rounding of the scale to f16. In `Q4_0`, a value at the end of the range saturates by half a step more.
        QuantMethod::Ggml => {
            let (bits, scale) = (format.bits() as i32, scale.abs());
            let stored = 2f64.powi(bits - 1) * (scale * Dtype::F16.unit_roundoff()).max(2f64.powi(-25));
            scale * if bits == 8 { 0.5 } else { 1.0 } + 2.0 * stored + 3.0 * lost * x.abs()
        }
        QuantMethod::Unquantized => 0.0,
    })
}

/// Weights of a few rows with different magnitudes and offsets.
fn weights(dtype: Dtype) -> impl Strategy<Value = Weight> {
    let row = (-6i32..8, -2.0f32..2.0, proptest::collection::vec(-1.0f32..1.0, K));
    proptest::collection::vec(row, 1..4).prop_map(move |rows| {
        let n = rows.len();
        let values = rows.iter().flat_map(|(size, offset, values)| {
            values.iter().map(move |x| (x * x * x + offset * offset * offset) * 2f32.powi(*size))
        });
        Weight::new(n, K, values.collect(), dtype)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn quantization_error_is_within_half_a_step(bf16 in weights(Dtype::Bf16), f16 in weights(Dtype::F16), f32 in weights(Dtype::F32)) {
        for (name, weight) in RECIPES.iter().flat_map(|name| [(name, &bf16), (name, &f16), (name, &f32)]) {
            let config = quant_config(name, weight.dtype());
            let pruned = config.sparsity.map_or_else(|| weight.clone(), |sparsity| prune(sparsity, weight));
            let quantized = config.quantize(weight).unwrap().unwrap();
            for (i, (&x, y)) in pruned.values().iter().zip(quantized.dequantize()).enumerate() {
                let distance = (f64::from(x) - f64::from(y)).abs();
                if let Some(farthest) = error_bound(&quantized.format, &quantized, i, x.into()) {
                    let farthest = farthest * (1.0 + 1e-5);
                    prop_assert!(distance <= farthest, "{name} in {}, at {i}: {x:e} became {y:e}, within {farthest:e}", weight.dtype());
                }
            }
        }
    }
}

/// Largest and smallest positive values of a dtype.
fn extreme_values(dtype: Dtype) -> (f32, f32) {
    match dtype {
        Dtype::F32 => (f32::MAX, f32::from_bits(1)),
        Dtype::F16 => (65504.0, 2f32.powi(-24)),
        Dtype::Bf16 => (f32::from_bits(0x7F7F_0000), f32::from_bits(0x0001_0000)),
    }
}

/// All recipes in all dtypes, with a weight of one row.
fn every_recipe(value: impl Fn(usize, Dtype) -> f32) -> impl Iterator<Item = (String, QuantConfig, Weight)> {
    Dtype::ALL.into_iter().flat_map(move |dtype| {
        let weight = Weight::new(1, K, (0..K).map(|i| value(i, dtype)).collect(), dtype);
        RECIPES.map(|name| (format!("{name} in {dtype}"), quant_config(name, dtype), weight.clone()))
    })
}

#[test]
fn every_family_is_tested() {
    // Baselines and training recipes do not quantize weights.
    let quantizes = |name: &String| {
        !["baseline", "baseline-tf32", "tensorwise", "rowwise", "rowwise_with_gw_hp"].contains(&name.as_str())
    };
    for pattern in Recipe::all().into_iter().map(|info| info.name).filter(quantizes) {
        let family = pattern.split(['{', '[', '_']).next().unwrap();
        assert!(RECIPES.iter().any(|name| name.starts_with(family)), "{pattern}");
    }
}

#[test]
fn degenerate_weights_stay_finite() {
    let zero = |_: usize, _: Dtype| 0.0;
    let negative_zero = |_: usize, _: Dtype| -0.0;
    let constant = |_: usize, _: Dtype| 0.3;
    let subnormal = |i: usize, dtype: Dtype| extreme_values(dtype).1 * ((i % 9) as f32 - 4.0);
    let kinds: [&dyn Fn(usize, Dtype) -> f32; 4] = [&zero, &negative_zero, &constant, &subnormal];
    for (kind, value) in kinds.into_iter().enumerate() {
        for (name, config, weight) in every_recipe(value) {
            let numbers = config.quantize(&weight).unwrap().unwrap().dequantize();
            let right = |y: f32| if kind < 2 { y == 0.0 } else { y.is_finite() };
            assert!(numbers.iter().all(|&y| right(y)), "{name}, {}: {:e}", weight.values()[1], numbers[1]);
        }
    }
}

#[test]
fn huge_weights_are_rejected_or_nearly_exact() {
    let largest = |_: usize, dtype: Dtype| extreme_values(dtype).0;
    let both =
        |i: usize, dtype: Dtype| if i.is_multiple_of(2) { extreme_values(dtype).0 } else { -extreme_values(dtype).0 };
    let one = |i: usize, dtype: Dtype| if i == 77 { -extreme_values(dtype).0 } else { (i % 5) as f32 };
    let near = |i: usize, dtype: Dtype| extreme_values(dtype).0 * ((i % 7) as f32 / 7.0);
    let kinds: [&dyn Fn(usize, Dtype) -> f32; 4] = [&largest, &both, &one, &near];
    for value in kinds {
        for (name, config, weight) in every_recipe(value) {
            match config.quantize(&weight) {
                Ok(quantized) => {
                    for (x, y) in weight.values().iter().zip(quantized.unwrap().dequantize()) {
                        // A quantized value times its scale may exceed the original value, and then overflow f32.
                        assert!(
                            y.is_finite() || (x.abs() > 0.99 * f32::MAX && y.is_infinite()),
                            "{name}: {x:e} became {y:e}"
                        );
                    }
                }
                Err(error) => assert!(matches!(error, RecipeError::NotFinite { row: 0, .. }), "{name}: {error}"),
            }
        }
    }
    // Half of the largest value must be quantized without error.
    for (name, config, weight) in every_recipe(|i, dtype| extreme_values(dtype).0 * (((i % 7) as f32 - 3.0) / 7.0)) {
        let quantized = config.quantize(&weight);
        if config.weight.is_some_and(|format| format.scale == Element::Float(Dtype::F16))
            && weight.dtype() != Dtype::F16
        {
            // The scale exceeds f16.
            assert!(matches!(quantized, Err(RecipeError::NotFinite { .. })), "{name}");
            continue;
        }
        let numbers = quantized.unwrap_or_else(|error| panic!("{name}: {error}")).unwrap().dequantize();
        assert!(numbers.iter().all(|y| y.is_finite()), "{name}");
    }
}

#[test]
fn non_finite_weight_error_names_the_group() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for (name, config, weight) in every_recipe(|i, _| if i == 200 { value } else { i as f32 }) {
            let format = config.weight.unwrap();
            let group = if format.outer_scale_count(1) == 0 { 200 / format.group_size(K) } else { 0 };
            assert_eq!(config.quantize(&weight), Err(RecipeError::NotFinite { row: 0, group }), "{name}");
        }
    }
}
