//! `ln_linear` by burn's operations.

use super::{LnLinear, first};
use crate::operators::layer_norm::LayerNorm;
use crate::{BurnPass, Pass, Spec, Value};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;

impl BurnPass for LnLinear {
    fn pass<B: QuantBackend + Float8Backend>(&self, spec: &Spec, mut inputs: Vec<Value<B>>) -> Pass<B> {
        let weight = inputs.pop().expect("four inputs").float();
        let norm = LayerNorm.pass(&first(spec), inputs);
        Box::new(move || {
            let x = norm().into_iter().map(Value::float);
            x.map(|x| Value::Float(x.matmul(weight.clone().transpose()))).collect()
        })
    }
}
