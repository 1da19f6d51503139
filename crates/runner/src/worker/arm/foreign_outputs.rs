//! Checks for the outputs of foreign programs. A foreign program has no reference, so its output is compared with the
//! output of the first program.

use crate::worker::operands::GroupOperands;
use calorimeter_case::record::finite;
use calorimeter_case::{Record, Warning};
use calorimeter_zoo::Output;
use calorimeter_zoo::foreign::ForeignProblem;
use calorimeter_zoo::gate::Mismatch;

/// Reason for a command.
const EXIT_STATUS: &str = "a command reports only its exit status";
/// Reason for a program that writes no buffer.
const NOTHING_WRITTEN: &str = "none of its arguments is written";
/// Reason for a single program.
const SINGLE_PROGRAM: &str = "a single program cannot be compared";
/// Reason for the first of several programs.
const FIRST_PROGRAM: &str = "the other programs are compared with it";

/// Compares outputs with those of the first program, or stores them if this is the first; returns the relative error.
/// Every element must have been written and be finite.
pub(super) fn check_foreign_outputs(
    problem: &ForeignProblem,
    outputs: &[Output],
    is_a_process: bool,
    record: &mut Record,
    operands: &mut GroupOperands,
) -> Result<f64, Mismatch> {
    if outputs.is_empty() {
        warn(record, if is_a_process { EXIT_STATUS } else { NOTHING_WRITTEN });
        return Ok(0.0);
    }
    let first = problem.foreign.reference_implementation();
    if first == Some(record.case.implementation) {
        warn(record, if problem.foreign.subjects.len() == 1 { SINGLE_PROGRAM } else { FIRST_PROGRAM });
        let own = problem.references(outputs);
        // Later outputs of the first program must equal its first outputs.
        let known = operands.first_program_outputs.as_deref().unwrap_or(&own);
        let judged = problem.judge(outputs, known)?;
        operands.first_program_outputs.get_or_insert(own);
        return Ok(judged.rel_l2);
    }
    match &operands.first_program_outputs {
        Some(references) => Ok(problem.judge(outputs, references)?.rel_l2),
        None => {
            let name = first.map(|first| first.to_string()).unwrap_or_default();
            warn(record, &format!("{name} has no output to compare with"));
            Ok(problem.judge(outputs, &problem.references(outputs))?.rel_l2)
        }
    }
}

/// Replaces the elementwise errors of a record by the errors of outputs, if the work has an elementwise tolerance.
pub(super) fn record_largest_errors(
    problem: &ForeignProblem,
    outputs: &[Output],
    record: &mut Record,
    operands: &GroupOperands,
) {
    if problem.foreign.element_tolerance.is_some()
        && let (Some(accuracy), Some(first)) = (&mut record.accuracy, &operands.first_program_outputs)
    {
        let errors = problem.largest_errors(outputs, first);
        accuracy.max_abs = errors.and_then(|errors| finite(errors.absolute));
        accuracy.max_rel = errors.and_then(|errors| finite(errors.relative));
    }
}

fn warn(record: &mut Record, reason: &str) {
    record.warnings.push(Warning::unchecked_output(reason));
}
