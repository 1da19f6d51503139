//! GEMM by burn's operations: operands are decoded to a float dtype, scales are applied afterwards.

use super::Gemm;
use crate::operators::e4m3;
use crate::operators::e4m3::DecodedOperand;
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::DType;
use burn::tensor::backend::Backend;
use calorimeter_recipes::{Element, FloatType};

impl BurnPass for Gemm {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let (element, multiplied) = (spec.element, self.burn_dtype(spec).burn());
        let output = self.output_element(spec);
        let mut inputs = inputs.into_iter();
        let mut operand = || DecodedOperand::new(inputs.next().expect("two operands"), element, multiplied);
        let (a, b) = (operand(), operand());
        let others: Vec<_> = inputs.map(TensorValue::float).collect();
        Box::new(move || {
            let mut y = a.decode().matmul(b.decode());
            if let [rows, cols, ..] = &others[..] {
                y = y * (rows.clone() * cols.clone());
            }
            if let [_, _, c] = &others[..] {
                y = c.clone() + y;
            }
            vec![match output {
                Element::Float(output) => TensorValue::Float(y.cast(output.burn())),
                _ => TensorValue::Int(e4m3::encode(y.cast(DType::F32))),
            }]
        })
    }
}
