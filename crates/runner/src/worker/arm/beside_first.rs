//! Outputs of programs that are not ours: there is no reference, so each is compared with what the first program left.

use crate::worker::operands::Operands;
use calorimeter_case::Record;
use calorimeter_zoo::Output;
use calorimeter_zoo::foreign::ForeignProblem;
use calorimeter_zoo::gate::Mismatch;

/// Said of a process.
const EXIT_STATUS: &str = "its output was not judged: of a command only the exit status is known";
/// Said where no buffer is written.
const NOTHING_WRITTEN: &str = "its output was not judged: none of its arguments is written";
/// Said of one program alone.
const ALONE: &str = "its output was not judged: there is no other program to compare it with";
/// Said of the first of several.
const FIRST: &str = "its output was not judged: those of the others are compared with it";

/// Compares outputs with the first program's, or remembers them as that; answers the relative error. In any case every
/// number must have been written, and be finite.
pub fn judge(
    problem: &ForeignProblem,
    outputs: &[Output],
    is_a_process: bool,
    record: &mut Record,
    operands: &mut Operands,
) -> Result<f64, Mismatch> {
    if outputs.is_empty() {
        warn_once(record, if is_a_process { EXIT_STATUS } else { NOTHING_WRITTEN });
        return Ok(0.0);
    }
    let first = problem.foreign.first();
    if first == Some(record.case.implementation) {
        warn_once(record, if problem.foreign.subjects.len() == 1 { ALONE } else { FIRST });
        let own = problem.references(outputs);
        // Its later outputs must be its first ones.
        let known = operands.first.as_deref().unwrap_or(&own);
        let judged = problem.judge(outputs, known)?;
        operands.first.get_or_insert(own);
        return Ok(judged.rel_l2);
    }
    match &operands.first {
        Some(references) => Ok(problem.judge(outputs, references)?.rel_l2),
        None => {
            let name = first.map(|first| first.to_string()).unwrap_or_default();
            warn_once(record, &format!("its output was not judged: {name} left none to compare it with"));
            Ok(problem.judge(outputs, &problem.references(outputs))?.rel_l2)
        }
    }
}

fn warn_once(record: &mut Record, text: &str) {
    if !record.outcome.warnings.iter().any(|warning| warning == text) {
        record.warn(text);
    }
}
