//! Quantization, compared bit for bit with ggml.

use crate::golden_file::Golden;
use calorimeter_recipes::{Dtype, ElementCodec, FloatType, QuantizedTensor, Recipe};

fn quantize(golden: &Golden) -> QuantizedTensor {
    let config = golden.recipe.parse::<Recipe>().unwrap().quant_config(Dtype::F32, None).unwrap();
    config.quantize(&golden.weight()).unwrap().unwrap()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn quantization_matches_ggml() {
    let files = Golden::of_ggml();
    assert_eq!(files.iter().map(|golden| golden.recipe.as_str()).collect::<Vec<_>>(), ["q4_0", "q8_0"]);
    for golden in &files {
        let ours = quantize(golden);
        let codes: Vec<f32> = ours.codes().into_iter().map(|code| ours.format.element.decode(code.into())).collect();
        assert_eq!(codes, golden.tensor("codes").values, "quantized values of {}", golden.name);
        assert_eq!(bits(&ours.scales), bits(&golden.tensor("scales").values), "scales of {}", golden.name);
        let dequantized = &golden.tensor("dequantized").values;
        assert_eq!(bits(&ours.dequantize()), bits(dequantized), "dequantized values of {}", golden.name);
    }
}

/// Parameters of the quantization of a block.
#[derive(Clone, Copy)]
struct Arithmetic {
    /// Value that determines the scale.
    extreme: fn(&[f32]) -> f32,
    divisor: f32,
    /// Rounding of scaled values.
    round: fn(f32) -> f32,
    /// True if values are multiplied by the inverse of the scale in f16, instead of the scale in f32.
    uses_stored_scale: bool,
}

impl Arithmetic {
    /// Quantized values and scales of a golden file.
    fn quantize(self, golden: &Golden) -> (Vec<f32>, Vec<f32>) {
        let (mut codes, mut scales) = (Vec::new(), Vec::new());
        for block in golden.tensor("weight").values.chunks(32) {
            let scale = (self.extreme)(block) / self.divisor;
            let stored = Dtype::F16.round(scale);
            let divided = if self.uses_stored_scale { stored } else { scale };
            let inverse = if divided == 0.0 { 0.0 } else { 1.0 / divided };
            codes.extend(block.iter().map(|x| (self.round)(x * inverse)));
            scales.push(stored);
        }
        (codes, scales)
    }
}

#[test]
fn golden_files_reject_similar_arithmetic() {
    fn amax(block: &[f32]) -> f32 {
        block.iter().fold(0.0, |amax, x| amax.max(x.abs()))
    }
    fn first(block: &[f32]) -> f32 {
        block.iter().fold(0.0, |first: f32, &x| if x.abs() > first.abs() { x } else { first })
    }
    fn last(block: &[f32]) -> f32 {
        block.iter().fold(0.0, |last: f32, &x| if x.abs() >= last.abs() { x } else { last })
    }
    fn truncate(x: f32) -> f32 {
        (x + 8.5).trunc().min(15.0) - 8.0
    }
    fn round_to_even(x: f32) -> f32 {
        x.round_ties_even().clamp(-8.0, 7.0)
    }
    let q8_0 = Arithmetic { extreme: amax, divisor: 127.0, round: f32::round, uses_stored_scale: false };
    let q4_0 = Arithmetic { extreme: first, divisor: -8.0, round: truncate, uses_stored_scale: false };
    let files = Golden::of_ggml();
    for (recipe, name, arithmetic) in [
        ("q8_0", "correct", q8_0),
        ("q8_0", "ties to even", Arithmetic { round: f32::round_ties_even, ..q8_0 }),
        ("q8_0", "amax / 127.5", Arithmetic { divisor: 127.5, ..q8_0 }),
        ("q8_0", "inverse of the f16 scale", Arithmetic { uses_stored_scale: true, ..q8_0 }),
        ("q4_0", "correct", q4_0),
        ("q4_0", "ties to even", Arithmetic { round: round_to_even, ..q4_0 }),
        ("q4_0", "amax without a sign", Arithmetic { extreme: amax, ..q4_0 }),
        ("q4_0", "last of equal magnitudes", Arithmetic { extreme: last, ..q4_0 }),
        ("q4_0", "max / -7.5", Arithmetic { divisor: -7.5, ..q4_0 }),
        ("q4_0", "inverse of the f16 scale", Arithmetic { uses_stored_scale: true, ..q4_0 }),
    ] {
        let golden = files.iter().find(|golden| golden.recipe == recipe).unwrap();
        let (codes, scales) = arithmetic.quantize(golden);
        let equal = codes == golden.tensor("codes").values && scales == golden.tensor("scales").values;
        assert_eq!(equal, name == "correct", "{recipe}, {name}");
    }
}
