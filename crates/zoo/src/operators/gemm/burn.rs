//! GEMM by burn's operations: operands are decoded to a float dtype, scales are applied afterwards.

use super::Gemm;
use crate::operators::minifloat;
use crate::operators::minifloat::Decoded;
use crate::{BurnPass, Pass, Spec, Value};
use burn::tensor::DType;
use burn::tensor::backend::Backend;
use calorimeter_recipes::{Element, FloatType};

impl BurnPass for Gemm {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let (element, multiplied) = (spec.element, self.multiplied(spec).burn());
        let output = self.output(spec);
        let mut inputs = inputs.into_iter();
        let mut operand = || Decoded::new(inputs.next().expect("two operands"), element, multiplied);
        let (a, b) = (operand(), operand());
        let others: Vec<_> = inputs.map(Value::float).collect();
        Box::new(move || {
            let mut y = a.read().matmul(b.read());
            if let [rows, cols, ..] = &others[..] {
                y = y * (rows.clone() * cols.clone());
            }
            if let [_, _, c] = &others[..] {
                y = c.clone() + y;
            }
            vec![match output {
                Element::Float(output) => Value::Float(y.cast(output.burn())),
                _ => Value::Codes(minifloat::encode(y.cast(DType::F32))),
            }]
        })
    }
}
