//! An operator at a size in its number types, with seeded inputs.

use crate::gate::{self, Judged, Mismatch};
use crate::{Matrix, Operand, Operator, Output, Reference, Slot, Spec};

/// What is computed, whatever computes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperatorProblem {
    /// The operator.
    pub operator: Operator,
    /// Its size and number types.
    pub spec: Spec,
    /// Seed of its inputs.
    pub seed: u64,
}

impl OperatorProblem {
    /// Its inputs, the same for the same seed.
    pub fn inputs(&self) -> Vec<Matrix> {
        let operands = self.operator.inputs(&self.spec);
        operands.iter().zip(self.seed..).map(|(operand, seed)| operand.matrix(seed)).collect()
    }

    /// An estimate of the device memory that running it takes: two outputs overlap.
    pub fn memory(&self) -> u64 {
        let read: u64 = self.operator.inputs(&self.spec).iter().map(Operand::bytes).sum();
        let written: u64 = self.operator.outputs(&self.spec).iter().map(Slot::bytes).sum();
        read + 2 * written + self.operator.intermediate(&self.spec)
    }

    /// What a correct implementation computes, for each output.
    pub fn references(&self, inputs: &[Matrix]) -> Vec<Reference> {
        let Self { operator, spec, .. } = self;
        (0..operator.outputs(spec).len())
            .map(|output| {
                let sample = operator.sample(spec, output);
                let values = operator.reference(spec, inputs, output, &sample);
                Reference { sample, values, projection: None }
            })
            .collect()
    }

    /// Compares outputs with their references; the error of the worst is answered.
    pub fn judge(&self, outputs: &[Output], references: &[Reference], may_use_tf32: bool) -> Result<Judged, Mismatch> {
        if outputs.len() != references.len() {
            return Err(Mismatch::Size { got: outputs.len(), expected: references.len() });
        }
        let products = self.operator.products();
        let mut worst = Judged { rel_l2: 0.0, tf32: false };
        for (index, (output, reference)) in outputs.iter().zip(references).enumerate() {
            let tolerance = self.operator.tolerance(&self.spec, index);
            let judged = match gate::judge(output, reference, &tolerance) {
                Err(_) if may_use_tf32 && products > 0 => {
                    gate::judge(output, reference, &tolerance.with_tf32(products))
                        .map(|rel_l2| Judged { rel_l2, tf32: true })?
                }
                judged => Judged { rel_l2: judged?, tf32: false },
            };
            worst = Judged { rel_l2: worst.rel_l2.max(judged.rel_l2), tf32: worst.tf32 || judged.tf32 };
        }
        Ok(worst)
    }
}
