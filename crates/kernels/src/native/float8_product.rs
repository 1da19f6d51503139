//! Matrix products of e4m3 codes whose second factor does not run along k.

use std::sync::Arc;

use super::{
    Buffer, Float8Linear, Float8Output, Float8Sums, LinearShape, Machine, NativeError, TransposeBytes, driver::Memory,
    turned_product::TurnedProduct,
};

/// A plan of y[m, n] = x[m, k] · w[k, n] for e4m3 codes in row-major matrices, with promoted sums.
///
/// On Hopper and for few rows a kernel of our own turns w on its way to the tensor cores. Else w is turned by
/// [`TransposeBytes`], for [`Float8Linear`]. k and n must be multiples of 16.
#[derive(Debug)]
pub struct Float8Product {
    way: Way,
    output: Float8Output,
}

#[derive(Debug)]
enum Way {
    Turned(TurnedProduct),
    After { turn: TransposeBytes, turned: Buffer, linear: Box<Float8Linear> },
}

impl Float8Product {
    /// Chooses and compiles.
    pub fn new(machine: &Arc<Machine>, shape: LinearShape, output: Float8Output) -> Result<Self, NativeError> {
        let way = if TurnedProduct::is_for(shape, machine.compute_capability()) {
            Way::Turned(TurnedProduct::new(machine, shape, output)?)
        } else {
            let turn = TransposeBytes::new(machine, shape.k, shape.n)?;
            let turned = machine.allocate(turn.bytes())?;
            let linear = Float8Linear::new(machine, shape, output, Float8Sums::Promoted)?;
            Way::After { turn, turned, linear: Box::new(linear) }
        };
        Ok(Self { way, output })
    }

    /// Enqueues one run on x, w, then m scales of rows and n of columns if it is scaled, and last what is added.
    pub fn enqueue(&mut self, inputs: &[&Buffer], y: &mut Buffer) -> Result<(), NativeError> {
        NativeError::unless_inputs(self.output.inputs(), inputs.len())?;
        match &mut self.way {
            Way::Turned(product) => {
                let inputs: Vec<&Memory> = inputs.iter().map(|input| &input.memory).collect();
                product.enqueue(&inputs, &mut y.memory)
            }
            Way::After { turn, turned, linear } => {
                turn.enqueue(inputs[1], turned)?;
                let mut inputs = inputs.to_vec();
                inputs[1] = turned;
                linear.enqueue(&inputs, y)
            }
        }
    }

    /// Which kernels, and what cuBLASLt chose.
    pub fn algorithm(&self) -> String {
        match &self.way {
            Way::Turned(product) => product.algorithm.clone(),
            Way::After { turn, linear, .. } => format!("{}; then {}", turn.algorithm(), linear.algorithm()),
        }
    }
}
