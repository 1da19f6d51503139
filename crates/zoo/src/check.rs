//! Check of a caller's kernel against the reference of an operator.

use crate::gate::{GateResult, Mismatch};
use crate::{Matrix, OperatorProblem, Output, Spec, ZooError};
use calorimeter_recipes::Element;

/// Error of [`check`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// Unknown operator, or invalid axes.
    #[error(transparent)]
    Problem(#[from] ZooError),
    /// Wrong output.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// Runs a kernel on inputs of an operator and compares the outputs with the reference in double precision.
///
/// The kernel receives the inputs of the operator and returns the row-major values of each output. It runs on gate data,
/// which reveals reads from a wrong position, then on random inputs. Returns the result for the random inputs.
///
/// # Errors
/// Returns the first mismatch, or the reason why the operator does not exist at this size and dtype.
pub fn check(
    operator: &str,
    axes: &[(&str, u64)],
    element: impl Into<Element>,
    mut kernel: impl FnMut(&[Matrix]) -> Vec<Vec<f32>>,
) -> Result<GateResult, CheckError> {
    let axes = axes.iter().map(|&(name, size)| (name.to_owned(), size)).collect();
    let spec = Spec { axes, element: element.into(), output: None, training: None };
    let problem = OperatorProblem { operator: operator.parse()?, spec, seed: 42 };
    problem.operator.check(&problem.spec)?;
    let slots = problem.operator.outputs(&problem.spec);
    let mut judge = |inputs: Vec<Matrix>| {
        let computed = kernel(&inputs);
        if computed.len() != slots.len() {
            return Err(Mismatch::OutputCount { got: computed.len(), expected: slots.len() });
        }
        let outputs: Vec<Output> = computed
            .into_iter()
            .zip(&slots)
            .map(|(values, slot)| Output { rows: slot.rows as usize, cols: slot.cols as usize, values })
            .collect();
        problem.judge(&outputs, &problem.references(&inputs), false)
    };
    judge(problem.gate_inputs())?;
    Ok(judge(problem.inputs())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_recipes::Dtype;

    const AXES: [(&str, u64); 3] = [("batch", 2), ("sequence", 8), ("dimension", 64)];

    fn silu(inputs: &[Matrix]) -> Vec<Vec<f32>> {
        vec![(0..inputs[0].rows).flat_map(|row| inputs[0].row(row).iter().map(|x| x / (1.0 + (-x).exp()))).collect()]
    }

    #[test]
    fn correct_kernel_is_accepted() {
        let result = check("silu", &AXES, Dtype::F32, silu);
        assert!(result.as_ref().is_ok_and(|result| result.rel_l2 < 1e-6), "{result:?}");
    }

    #[test]
    fn wrong_kernels_are_rejected() {
        type Kernel = fn(&[Matrix]) -> Vec<Vec<f32>>;
        let first_row_only: Kernel = |inputs| vec![silu(inputs)[0][..64].repeat(inputs[0].rows)];
        let too_short: Kernel = |inputs| vec![silu(inputs)[0][1..].to_vec()];
        let without_output: Kernel = |_| vec![];
        let two_outputs: Kernel = |inputs| [silu(inputs), silu(inputs)].concat();
        type Expected = fn(&Mismatch) -> bool;
        let cases: [(Kernel, Expected); 4] = [
            (first_row_only, |found| matches!(found, Mismatch::Element { .. })),
            (too_short, |found| matches!(found, Mismatch::Size { got: 1023, expected: 1024 })),
            (without_output, |found| matches!(found, Mismatch::OutputCount { got: 0, expected: 1 })),
            (two_outputs, |found| matches!(found, Mismatch::OutputCount { got: 2, expected: 1 })),
        ];
        for (kernel, is_expected) in cases {
            let result = check("silu", &AXES, Dtype::F32, kernel);
            assert!(matches!(&result, Err(CheckError::Mismatch(found)) if is_expected(found)), "{result:?}");
        }
    }

    #[test]
    fn invalid_problems_are_errors() {
        let zero = [("batch", 2), ("sequence", 0), ("dimension", 64)];
        for (operator, axes) in [("siluu", &AXES[..]), ("silu", &AXES[..1]), ("silu", &zero)] {
            let result = check(operator, axes, Dtype::F32, silu);
            assert!(matches!(result, Err(CheckError::Problem(_))), "{result:?}");
        }
    }
}
