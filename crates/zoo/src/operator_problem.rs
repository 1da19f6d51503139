//! An operator at a size in its number types, with seeded inputs.

use crate::gains::GATE;
use crate::gate::{self, Evidence, Judged, Mismatch};
use crate::{Matrix, Operand, Operator, Output, Reference, Sample, Slot, Spec, ZooError};
use calorimeter_recipes::{Dtype, Element};

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

/// How far sums in double precision may differ by their order.
const ROUNDING: f64 = 1e-9;

impl OperatorProblem {
    /// Its inputs, the same for the same seed.
    pub fn inputs(&self) -> Vec<Matrix> {
        let operands = self.operator.inputs(&self.spec);
        operands.iter().zip(self.seed..).map(|(operand, seed)| operand.matrix(seed)).collect()
    }

    /// Inputs for the gate alone, in which a number from the wrong place shows; they are never timed.
    pub fn gate_inputs(&self) -> Vec<Matrix> {
        let operands = self.operator.inputs(&self.spec);
        operands.iter().zip(self.seed ^ GATE..).map(|(operand, seed)| operand.gate_matrix(seed)).collect()
    }

    /// Refuses an operator whose reference does not move as it says: its right outputs would be called wrong.
    pub fn check_moves(&self, inputs: &[Matrix]) -> Result<(), ZooError> {
        let Self { operator, spec, .. } = self;
        let moves = operator.moves(spec);
        if !moves.differ() {
            return Ok(());
        }
        let moved = moves.inputs_of_set(inputs, 1);
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for (output, slot) in operator.outputs(spec).iter().enumerate() {
            // What goes round comes in at the first of each and leaves at the last.
            let ends = |size: u64| if size > 1 { vec![0, size as usize - 1] } else { vec![0] };
            let sample = Sample { rows: ends(slot.rows), cols: ends(slot.cols) };
            let before = |row: usize, col: usize| moves.place_before(output, slot, [row, col]);
            let rows = sample.rows.iter().map(|&row| before(row, 0)[0]).collect();
            let cols = sample.cols.iter().map(|&col| before(0, col)[1]).collect();
            here.push((output, sample));
            there.push((output, Sample { rows, cols }));
        }
        let found = operator.references(spec, &moved, &here);
        let expected = operator.references(spec, inputs, &there);
        for (output, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let size = expected.iter().fold(0.0, |size: f64, value| size.max(value.abs()));
            if found.iter().zip(expected).any(|(found, expected)| (found - expected).abs() > ROUNDING * size) {
                return Err(ZooError::Shape(format!(
                    "{operator}: output {output} of its reference does not move with its inputs as `Operation::moves` \
                     says; say there how they do, or `Moves::none()`"
                )));
            }
        }
        Ok(())
    }

    /// An estimate of the device memory that running it takes: two outputs overlap, and the first is kept beside them.
    pub fn memory(&self) -> u64 {
        let read: u64 = self.operator.inputs(&self.spec).iter().map(Operand::bytes).sum();
        let written: u64 = self.operator.outputs(&self.spec).iter().map(Slot::bytes).sum();
        read + 3 * written + self.operator.intermediate(&self.spec)
    }

    /// What a correct implementation computes, for each output.
    pub fn references(&self, inputs: &[Matrix]) -> Vec<Reference> {
        let Self { operator, spec, .. } = self;
        let slots = operator.outputs(spec);
        let samples: Vec<(usize, Sample)> =
            (0..slots.len()).map(|output| (output, operator.sample(spec, output))).collect();
        let values = operator.references(spec, inputs, &samples);
        let each = slots.iter().zip(samples).zip(values);
        each.map(|((slot, (output, sample)), values)| {
            let whole = sample.len() as u64 == slot.rows * slot.cols;
            let projection = if whole { None } else { operator.projection(spec, inputs, output) };
            Reference { sample, values, projection }
        })
        .collect()
    }

    /// Compares outputs with their references; the error of the worst is answered.
    pub fn judge(
        &self,
        outputs: &[impl Evidence],
        references: &[Reference],
        may_use_tf32: bool,
    ) -> Result<Judged, Mismatch> {
        if outputs.len() != references.len() {
            return Err(Mismatch::Size { got: outputs.len(), expected: references.len() });
        }
        let products = self.operator.products();
        let is_f32 = |operand: &Operand| operand.element == Element::Float(Dtype::F32);
        let may_use_tf32 = may_use_tf32 && products > 0 && self.operator.inputs(&self.spec).iter().any(is_f32);
        let mut worst = Judged { rel_l2: 0.0, tf32: false };
        for (index, (output, reference)) in outputs.iter().zip(references).enumerate() {
            let (output, tolerance) = (&*output.seen(reference), self.operator.tolerance(&self.spec, index));
            let judge = if products > 0 { gate::judge_sums } else { gate::judge };
            let judged = match judge(output, reference, &tolerance) {
                Err(_) if may_use_tf32 => judge(output, reference, &tolerance.with_tf32(products))
                    .map(|rel_l2| Judged { rel_l2, tf32: true })?,
                judged => Judged { rel_l2: judged?, tf32: false },
            };
            worst = Judged { rel_l2: worst.rel_l2.max(judged.rel_l2), tf32: worst.tf32 || judged.tf32 };
        }
        Ok(worst)
    }

    /// Compares outputs, as they would be on the first buffer set, with those of the first, everywhere.
    pub fn judge_beside(&self, outputs: &[Output], right: &[Output], tf32: bool) -> Result<(), Mismatch> {
        outputs.iter().zip(right).enumerate().try_for_each(|(index, (output, right))| {
            let tolerance = self.operator.tolerance(&self.spec, index);
            let tolerance = if tf32 { tolerance.with_tf32(self.operator.products()) } else { tolerance };
            gate::judge_beside(output, right, &tolerance)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Tolerance;
    use crate::{Cost, Exact, Operation, Signature};
    use calorimeter_shapes::Axes;

    /// Each row added to those before it: no row can take the place of another, and nothing says so.
    #[derive(Debug)]
    struct Accumulated;

    impl Signature for Accumulated {
        fn name(&self) -> &'static str {
            "accumulated_rows"
        }

        fn about(&self) -> &'static str {
            "sums of rows up to each"
        }

        fn axes(&self) -> &'static [&'static str] {
            &["m", "n"]
        }

        fn inputs(&self, spec: &Spec) -> Vec<Operand> {
            vec![Operand::normal(spec.axis("m"), spec.axis("n"), spec.element)]
        }

        fn outputs(&self, spec: &Spec) -> Vec<Slot> {
            vec![Slot::new(spec.axis("m"), spec.axis("n"), spec.element)]
        }
    }

    impl Cost for Accumulated {
        fn flops(&self, spec: &Spec) -> u64 {
            spec.axis("m") * spec.axis("n")
        }
    }

    impl Operation for Accumulated {}

    impl Exact for Accumulated {
        fn depth(&self, spec: &Spec, _: usize) -> u64 {
            spec.axis("m")
        }

        fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
            sample.by_elements(|row, col| (0..=row).map(|row| f64::from(inputs[0].row(row)[col])).sum())
        }

        fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
            Tolerance::new(spec.dtype(), 1, spec.axis("m"))
        }
    }

    #[test]
    fn an_operator_that_does_not_move_as_its_sizes_suggest_is_told_to_say_so() {
        let spec = Spec {
            axes: Axes::from([("m", 5), ("n", 3)]),
            element: Element::Float(Dtype::F32),
            output: None,
            training: None,
        };
        let problem = OperatorProblem { operator: Operator::of(&Accumulated), spec, seed: 1 };
        let error = problem.check_moves(&problem.gate_inputs()).unwrap_err().to_string();
        assert!(error.contains("`Operation::moves`") && error.contains("`Moves::none()`"), "{error}");
    }
}
