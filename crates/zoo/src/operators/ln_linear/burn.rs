//! `ln_linear` by burn's operations.

use super::{LnLinear, norm_spec};
use crate::operators::layer_norm::LayerNorm;
use crate::{BurnPass, Pass, Spec, TensorValue};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;

impl BurnPass for LnLinear {
    fn pass<B: QuantBackend + Float8Backend>(&self, spec: &Spec, mut inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let weight = inputs.pop().expect("four inputs").float();
        let norm = LayerNorm.pass(&norm_spec(spec), inputs);
        Box::new(move || {
            let x = norm().into_iter().map(TensorValue::float);
            x.map(|x| TensorValue::Float(x.matmul(weight.clone().transpose()))).collect()
        })
    }
}
