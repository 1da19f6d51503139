//! Operator at a size, with element types and seeded inputs.

use crate::gate::{self, GateResult, Mismatch, ToDigest};
use crate::gate_data::GATE_SEED;
use crate::{Matrix, Operand, Operator, Output, OutputSample, OutputSlot, Reference, Spec, ZooError};
use calorimeter_recipes::{Dtype, Element};
use serde::{Deserialize, Serialize};

/// Operator at a size; independent of implementation and device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OperatorProblem {
    /// Operator.
    pub operator: Operator,
    /// Size and element types.
    pub spec: Spec,
    /// Seed of the inputs.
    pub seed: u64,
}

/// Relative difference allowed between f64 sums in different order.
const SUM_ORDER_TOLERANCE: f64 = 1e-9;

impl OperatorProblem {
    /// Creates the inputs from the seed.
    pub fn inputs(&self) -> Vec<Matrix> {
        let operands = self.operator.inputs(&self.spec);
        operands.iter().zip(self.seed..).map(|(operand, seed)| operand.matrix(seed)).collect()
    }

    /// Creates inputs for the gate, in which reads from a wrong position produce visible errors. They are not timed.
    pub fn gate_inputs(&self) -> Vec<Matrix> {
        let operands = self.operator.inputs(&self.spec);
        operands.iter().zip(self.seed ^ GATE_SEED..).map(|(operand, seed)| operand.gate_matrix(seed)).collect()
    }

    /// Rejects an operator whose reference does not follow its declared rotation; correct outputs would fail the gate.
    pub fn check_set_rotation(&self, inputs: &[Matrix]) -> Result<(), ZooError> {
        let Self { operator, spec, .. } = self;
        let moves = operator.set_rotation(spec);
        if !moves.sets_differ() {
            return Ok(());
        }
        let rotated = moves.inputs_of_set(inputs, 1);
        let (mut samples, mut source_samples) = (Vec::new(), Vec::new());
        for (output, slot) in operator.outputs(spec).iter().enumerate() {
            // Rotation shows at both ends of each axis.
            let ends = |size: u64| if size > 1 { vec![0, size as usize - 1] } else { vec![0] };
            let sample = OutputSample { rows: ends(slot.rows), cols: ends(slot.cols) };
            let source = |row: usize, col: usize| moves.source_position(output, slot, [row, col]);
            let rows = sample.rows.iter().map(|&row| source(row, 0)[0]).collect();
            let cols = sample.cols.iter().map(|&col| source(0, col)[1]).collect();
            samples.push((output, sample));
            source_samples.push((output, OutputSample { rows, cols }));
        }
        let found = operator.references(spec, &rotated, &samples);
        let expected = operator.references(spec, inputs, &source_samples);
        for (output, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let size = expected.iter().fold(0.0, |size: f64, value| size.max(value.abs()));
            if found.iter().zip(expected).any(|(found, expected)| (found - expected).abs() > SUM_ORDER_TOLERANCE * size)
            {
                return Err(ZooError::Shape(format!(
                    "{operator}: output {output} of the reference does not rotate with the inputs as \
                     `Operation::set_rotation` declares; declare its rotation there, or `SetRotation::fixed()`"
                )));
            }
        }
        Ok(())
    }

    /// Estimated device memory: inputs, intermediates, two overlapping outputs and the reference output.
    pub fn memory(&self) -> u64 {
        let read: u64 = self.operator.inputs(&self.spec).iter().map(Operand::bytes).sum();
        let written: u64 = self.operator.outputs(&self.spec).iter().map(OutputSlot::bytes).sum();
        read + 3 * written + self.operator.intermediate(&self.spec)
    }

    /// Computes the reference of each output.
    pub fn references(&self, inputs: &[Matrix]) -> Vec<Reference> {
        let Self { operator, spec, .. } = self;
        let slots = operator.outputs(spec);
        let samples: Vec<(usize, OutputSample)> =
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

    /// Compares outputs with their references; returns the result of the worst output.
    pub fn judge(
        &self,
        outputs: &[impl ToDigest],
        references: &[Reference],
        may_use_tf32: bool,
    ) -> Result<GateResult, Mismatch> {
        if outputs.len() != references.len() {
            return Err(Mismatch::OutputCount { got: outputs.len(), expected: references.len() });
        }
        let products = self.operator.matmuls();
        let is_f32 = |operand: &Operand| operand.element == Element::Float(Dtype::F32);
        let may_use_tf32 = may_use_tf32 && products > 0 && self.operator.inputs(&self.spec).iter().any(is_f32);
        let mut worst = GateResult { rel_l2: 0.0, tf32: false };
        for (index, (output, reference)) in outputs.iter().zip(references).enumerate() {
            let (output, tolerance) = (&*output.to_digest(reference), self.operator.tolerance(&self.spec, index));
            let judge = if products > 0 { gate::judge_matmul } else { gate::judge };
            let judged = match judge(output, reference, &tolerance) {
                Err(_) if may_use_tf32 => judge(output, reference, &tolerance.with_tf32(products))
                    .map(|rel_l2| GateResult { rel_l2, tf32: true })?,
                judged => GateResult { rel_l2: judged?, tf32: false },
            };
            worst = GateResult { rel_l2: worst.rel_l2.max(judged.rel_l2), tf32: worst.tf32 || judged.tf32 };
        }
        Ok(worst)
    }

    /// Compares all elements of outputs, rotated back to set 0, with accepted outputs of set 0.
    pub fn judge_against_outputs(&self, outputs: &[Output], right: &[Output], tf32: bool) -> Result<(), Mismatch> {
        outputs.iter().zip(right).enumerate().try_for_each(|(index, (output, right))| {
            let tolerance = self.operator.tolerance(&self.spec, index);
            let tolerance = if tf32 { tolerance.with_tf32(self.operator.matmuls()) } else { tolerance };
            gate::judge_against_output(output, right, &tolerance)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Tolerance;
    use crate::{Cost, ExactReference, Operation, Signature};
    use calorimeter_case::Implementation;
    use calorimeter_shapes::Axes;

    /// Prefix sums over rows: permuting rows of the input does not permute the output, contrary to the default
    /// rotation.
    #[derive(Debug)]
    struct PrefixSums;

    impl Signature for PrefixSums {
        fn name(&self) -> &'static str {
            "accumulated_rows"
        }

        fn description(&self) -> &'static str {
            "prefix sums over rows"
        }

        fn axes(&self) -> &'static [&'static str] {
            &["m", "n"]
        }

        fn inputs(&self, spec: &Spec) -> Vec<Operand> {
            vec![Operand::normal(spec.axis("m"), spec.axis("n"), spec.element)]
        }

        fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
            vec![OutputSlot::new(spec.axis("m"), spec.axis("n"), spec.element)]
        }
    }

    impl Cost for PrefixSums {
        fn flops(&self, spec: &Spec) -> u64 {
            spec.axis("m") * spec.axis("n")
        }
    }

    impl Operation for PrefixSums {}

    impl ExactReference for PrefixSums {
        fn depth(&self, spec: &Spec, _: usize) -> u64 {
            spec.axis("m")
        }

        fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
            sample.map_elements(|row, col| (0..=row).map(|row| f64::from(inputs[0].row(row)[col])).sum())
        }

        fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
            Tolerance::new(spec.dtype(), 1, spec.axis("m"))
        }
    }

    #[test]
    fn wrong_set_rotation_is_rejected() {
        let spec = Spec {
            axes: Axes::from([("m", 5), ("n", 3)]),
            element: Element::Float(Dtype::F32),
            output: None,
            training: None,
        };
        let problem = OperatorProblem { operator: Operator::new(&PrefixSums), spec, seed: 1 };
        let error = problem.check_set_rotation(&problem.gate_inputs()).unwrap_err().to_string();
        assert!(error.contains("`Operation::set_rotation`") && error.contains("`SetRotation::fixed()`"), "{error}");
    }

    #[test]
    fn only_burn_multiplies_the_operands_of_float8_matmuls_as_floats() {
        let registered = Implementation::register("peer", "Implementation of a test.").unwrap();
        for (name, element) in [("gemm_simple", Element::E4m3), ("gemm_fp8_rowwise", Element::Float(Dtype::Bf16))] {
            let operator: Operator = name.parse().unwrap();
            let axes = Axes::from([("m", 64), ("k", 64), ("n", 64)]);
            let spec = Spec { axes, element, output: None, training: None };
            let multiplied = |implementation| operator.matmul_element(&spec, implementation);
            assert_eq!([registered, Implementation::Native].map(multiplied), [Element::E4m3; 2], "{name}");
            assert!(matches!(multiplied(Implementation::Eager), Element::Float(_)), "{name}");
        }
    }
}
