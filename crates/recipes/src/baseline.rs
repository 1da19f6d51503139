//! `baseline`: the model as it is.

use crate::{Dtype, Linear, RecipeError, Scheme, Weight};
use burn::tensor::{Tensor, TensorData, backend::Backend};
use std::fmt;

/// Nothing quantised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Baseline;

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("baseline")
    }
}

impl Scheme for Baseline {
    const ABOUT: &'static str = "the model as it is, in its own dtype";

    fn spellings() -> Vec<String> {
        vec!["baseline".into()]
    }

    fn parse(name: &str) -> Option<Self> {
        (name == "baseline").then_some(Self)
    }

    fn check(&self, _: u64, _: u64, _: Dtype) -> Result<(), RecipeError> {
        Ok(())
    }

    fn weight_bytes(&self, n: u64, k: u64, dtype: Dtype) -> u64 {
        n * k * dtype.bytes()
    }

    fn roundings(&self) -> u32 {
        1
    }

    fn dequantised(&self, weight: &Weight) -> Weight {
        weight.clone()
    }

    fn linear<B: Backend>(&self, weight: &Weight, device: &B::Device) -> Result<Box<dyn Linear<B>>, RecipeError> {
        let data = TensorData::new(weight.values().to_vec(), [weight.n(), weight.k()]);
        let weight_bytes = self.weight_bytes(weight.n() as u64, weight.k() as u64, weight.dtype());
        let weight = Tensor::from_data(data, (device, weight.dtype().burn()));
        Ok(Box::new(Dense { weight, weight_bytes }))
    }
}

/// A plain linear layer; the weight is kept as `[n, k]`, like everybody's checkpoints.
struct Dense<B: Backend> {
    weight: Tensor<B, 2>,
    weight_bytes: u64,
}

impl<B: Backend> Linear<B> for Dense<B> {
    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2> {
        input.matmul(self.weight.clone().transpose())
    }

    fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }
}
