//! Cross-entropy by burn's operations: log-sum-exp in f32, then a gather of the target logits.

use super::CrossEntropy;
use crate::operators::loss;
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::DType;
use burn::tensor::backend::Backend;

impl BurnPass for CrossEntropy {
    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let [logits, targets]: [TensorValue<B>; 2] =
            inputs.try_into().expect("as many inputs as the operator declares");
        let (logits, targets) = (logits.float(), targets.int());
        Box::new(move || {
            let logits = logits.clone().cast(DType::F32);
            let below = logits.clone() - logits.max_dim(1);
            let sum = below.clone().exp().sum_dim(1);
            vec![TensorValue::Float(loss::mean(sum.log() - below.gather(1, targets.clone())))]
        })
    }
}
