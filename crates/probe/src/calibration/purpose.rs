//! Purpose of each case of a calibration.

use super::operations::CalibrationOperation;
use super::part::CalibrationPart;
use calorimeter_case::Record;

/// Purpose of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Measures an operation.
    Operation(CalibrationOperation),
    /// Measures the effect of fusion.
    Fusion,
    /// Not planned by a calibration; the journal belongs to another kind of run.
    Other,
}

impl Purpose {
    /// Parses the purpose from the two words that journals and profiles store: part (name of the entry) and operator.
    pub(super) fn from_words(part: &str, operator: &str) -> Self {
        match CalibrationPart::from_word(part) {
            Some(CalibrationPart::Fusion) => Self::Fusion,
            Some(part) => CalibrationOperation::by_operator(part, operator).map_or(Self::Other, Self::Operation),
            None => Self::Other,
        }
    }

    /// Part of the plan to which it belongs.
    pub(super) fn part(self) -> Option<CalibrationPart> {
        match self {
            Self::Operation(operation) => Some(operation.part()),
            Self::Fusion => Some(CalibrationPart::Fusion),
            Self::Other => None,
        }
    }

    /// True for matmuls.
    pub(super) fn is_matmul(self) -> bool {
        matches!(self, Self::Operation(CalibrationOperation::Gemm | CalibrationOperation::Matmul))
    }
}

/// Record with its parsed purpose.
#[derive(Debug, Clone, Copy)]
pub(super) struct CalibrationRecord<'a> {
    pub purpose: Purpose,
    pub record: &'a Record,
}

impl<'a> From<&'a Record> for CalibrationRecord<'a> {
    fn from(record: &'a Record) -> Self {
        Self { purpose: Purpose::from_words(&record.case.name, record.case.workload.as_str()), record }
    }
}

/// Adds the purpose to each record.
pub(super) fn with_purpose(records: &[Record]) -> Vec<CalibrationRecord<'_>> {
    records.iter().map(CalibrationRecord::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_round_trip_through_part_and_operator() {
        for operation in CalibrationOperation::ALL {
            for operator in operation.operators() {
                let purpose = Purpose::from_words(operation.part().word(), operator);
                assert_eq!(purpose.part(), Some(operation.part()), "{operation:?}");
                // `gemm` and `matmul` are the same operator at different sizes.
                let same = purpose == Purpose::Operation(operation);
                assert!(same || (purpose.is_matmul() && Purpose::Operation(operation).is_matmul()), "{operation:?}");
            }
        }
    }

    #[test]
    fn unknown_parts_have_no_purpose() {
        assert_eq!(Purpose::from_words("fusion", "linear_bias"), Purpose::Fusion);
        for (part, operator) in [("", "matmul"), ("stream", "dot"), ("Stream", "stream_copy"), ("mine", "stream_copy")]
        {
            assert_eq!(Purpose::from_words(part, operator).part(), None, "{part} {operator}");
        }
    }
}
