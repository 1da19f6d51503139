//! BLAS routines by burn's operations.

use super::{ALPHA, Blas};
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::DType;
use burn::tensor::backend::Backend;

impl BurnPass for Blas {
    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let [a, b] =
            inputs.try_into().map(|inputs: [TensorValue<B>; 2]| inputs.map(TensorValue::float)).expect("two inputs");
        let routine = *self;
        Box::new(move || {
            let (a, b) = (a.clone(), b.clone());
            vec![TensorValue::Float(match routine {
                Blas::Dot => (a.cast(DType::F32) * b.cast(DType::F32)).sum_dim(1),
                Blas::Axpy => a * ALPHA + b,
                // xᵀ Aᵀ: the transpose is a view.
                Blas::Gemv => b.matmul(a.transpose()),
                Blas::Matmul => a.matmul(b),
            })]
        })
    }
}
