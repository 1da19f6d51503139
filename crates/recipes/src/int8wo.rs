//! `int8wo`: 8-bit weights, one scale per output channel, activations untouched.
//!
//! Symmetric over -128..=127, so the scale is amax / 127.5 and the positive maximum clamps to 127. Every step is rounded
//! to the weight's dtype, as torchao's version 1 does. The layer multiplies with the integers cast to the activation's
//! dtype and applies the scale to the rounded product.

use crate::{Dtype, Linear, RecipeError, Scheme, Weight};
use burn::tensor::{DType, Int, Tensor, TensorData, backend::Backend};
use rayon::prelude::*;
use std::fmt;

/// Half of the integer range, which amax is divided by.
const HALF_RANGE: f32 = 127.5;

/// Int8 weight-only quantisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Int8WeightOnly;

/// A weight in int8 with one scale per output channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Int8Weight {
    /// Row-major values, `n * k`.
    pub values: Vec<i8>,
    /// One scale for each of the `n` rows, exact in the weight's dtype.
    pub scales: Vec<f32>,
}

impl Int8WeightOnly {
    /// Quantises a weight, row by row.
    pub fn quantise(&self, weight: &Weight) -> Int8Weight {
        let mut values = vec![0; weight.values().len()];
        let dtype = weight.dtype();
        let scales = values
            .par_chunks_mut(weight.k().max(1))
            .enumerate()
            .map(|(channel, out)| quantise_row(weight.row(channel), out, dtype))
            .collect();
        Int8Weight { values, scales }
    }
}

/// Fills a row's integers and answers its scale.
fn quantise_row(row: &[f32], out: &mut [i8], dtype: Dtype) -> f32 {
    let amax = row.iter().fold(0.0f32, |amax, value| amax.max(value.abs()));
    let scale = dtype.round(dtype.round(amax / HALF_RANGE).max(dtype.round(f32::EPSILON)));
    let inverse = dtype.round(1.0 / scale);
    for (out, value) in out.iter_mut().zip(row) {
        *out = dtype.round(value * inverse).round_ties_even().clamp(-128.0, 127.0) as i8;
    }
    scale
}

impl fmt::Display for Int8WeightOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("int8wo")
    }
}

impl Scheme for Int8WeightOnly {
    const ABOUT: &'static str = "8-bit weights, one scale per output channel; activations untouched";

    fn spellings() -> Vec<String> {
        vec!["int8wo".into()]
    }

    fn parse(name: &str) -> Option<Self> {
        (name == "int8wo").then_some(Self)
    }

    fn check(&self, _: u64, _: u64, _: Dtype) -> Result<(), RecipeError> {
        Ok(())
    }

    fn weight_bytes(&self, n: u64, k: u64, dtype: Dtype) -> u64 {
        n * k + n * dtype.bytes()
    }

    fn roundings(&self) -> u32 {
        2
    }

    fn dequantised(&self, weight: &Weight) -> Weight {
        let quantised = self.quantise(weight);
        let rows = quantised.values.chunks(weight.k().max(1)).zip(&quantised.scales);
        let values = rows.flat_map(|(row, scale)| row.iter().map(move |&q| f32::from(q) * scale)).collect();
        // The product of an integer and a scale is finer than the dtype: it must not be rounded to it.
        Weight::new(weight.n(), weight.k(), values, Dtype::F32)
    }

    fn linear<B: Backend>(&self, weight: &Weight, device: &B::Device) -> Result<Box<dyn Linear<B>>, RecipeError> {
        let (n, k, dtype) = (weight.n(), weight.k(), weight.dtype());
        let Int8Weight { values, scales } = self.quantise(weight);
        Ok(Box::new(Int8Linear {
            weight: Tensor::from_data(TensorData::new(values, [n, k]), (device, DType::I8)),
            scales: Tensor::from_data(TensorData::new(scales, [1, n]), (device, dtype.burn())),
            weight_bytes: self.weight_bytes(n as u64, k as u64, dtype),
        }))
    }
}

/// Integers and scales on the device.
struct Int8Linear<B: Backend> {
    weight: Tensor<B, 2, Int>,
    scales: Tensor<B, 2>,
    weight_bytes: u64,
}

impl<B: Backend> Linear<B> for Int8Linear<B> {
    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2> {
        let integers = self.weight.clone().into_primitive();
        let cast = B::int_into_float(integers, input.dtype().into());
        let weight = Tensor::<B, 2>::from_primitive(burn::tensor::TensorPrimitive::Float(cast));
        input.matmul(weight.transpose()) * self.scales.clone()
    }

    fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_flex::Flex;
    use proptest::prelude::*;

    fn quantised(k: usize, values: Vec<f32>, dtype: Dtype) -> Int8Weight {
        Int8WeightOnly.quantise(&Weight::new(values.len() / k, k, values, dtype))
    }

    #[test]
    fn the_positive_maximum_clamps_and_the_negative_one_reaches_the_end() {
        let q = quantised(4, vec![127.5, -127.5, 63.75, 1.0], Dtype::F32);
        assert_eq!(q.scales, [1.0]);
        // 127.5 is halfway between 127 and 128: to even, then clamped; 63.75 rounds up.
        assert_eq!(q.values, [127, -128, 64, 1]);
    }

    #[test]
    fn halves_round_to_even() {
        let q = quantised(6, vec![0.5, 1.5, 2.5, -0.5, -1.5, 127.5], Dtype::F32);
        assert_eq!(q.values[..5], [0, 2, 2, 0, -2]);
    }

    #[test]
    fn a_zero_row_keeps_the_smallest_scale_and_stays_zero() {
        let q = quantised(3, vec![0.0; 6], Dtype::F32);
        assert_eq!((q.scales, q.values), (vec![f32::EPSILON; 2], vec![0; 6]));
    }

    #[test]
    fn in_bf16_every_step_is_rounded() {
        let q = quantised(2, vec![1.0, 0.3], Dtype::Bf16);
        let scale = Dtype::Bf16.round(1.0 / 127.5);
        let inverse = Dtype::Bf16.round(1.0 / scale);
        assert_eq!(q.scales, [scale]);
        assert_eq!(q.values[1], Dtype::Bf16.round(Dtype::Bf16.round(0.3) * inverse).round_ties_even() as i8);
        assert_eq!(q.values[0], 127);
    }

    #[test]
    fn the_layer_computes_what_its_operands_stand_for() {
        let (n, k) = (5, 7);
        let weight = Weight::new(n, k, (0..n * k).map(|i| ((i * 37 % 23) as f32 - 11.0) / 7.0).collect(), Dtype::F32);
        let device = Default::default();
        let layer = Int8WeightOnly.linear::<Flex>(&weight, &device).unwrap();
        let input: Vec<f32> = (0..3 * k).map(|i| (i as f32).sin()).collect();
        let output = layer.forward(Tensor::from_data(TensorData::new(input.clone(), [3, k]), (&device, DType::F32)));
        let exact = Int8WeightOnly.dequantised(&weight);
        let output: Vec<f32> = output.into_data().to_vec().unwrap();
        for (i, value) in output.iter().enumerate() {
            let expected: f32 = input[i / n * k..][..k].iter().zip(exact.row(i % n)).map(|(x, w)| x * w).sum();
            assert!((value - expected).abs() < 1e-5, "{i}: {value} and {expected}");
        }
        assert_eq!(layer.weight_bytes(), (n * k + n * 4) as u64);
    }

    proptest! {
        #[test]
        fn dequantised_values_are_within_half_a_step(row in prop::collection::vec(-1e4f32..1e4, 1..64)) {
            let weight = Weight::new(1, row.len(), row, Dtype::F32);
            let q = Int8WeightOnly.quantise(&weight);
            let back = Int8WeightOnly.dequantised(&weight);
            let amax = weight.values().iter().fold(0.0f32, |a, v| a.max(v.abs()));
            for (value, restored) in weight.values().iter().zip(back.values()) {
                // The positive maximum itself may clamp, half a step further away.
                let slack = if *value > 0.99 * amax { 1.01 } else { 0.501 };
                prop_assert!((value - restored).abs() <= q.scales[0] * slack, "{} {}", value, restored);
            }
        }
    }
}
