//! What each case of a calibration is measured for.

use super::operations::Operation;
use super::parts::Part;
use calorimeter_case::Record;

/// What a case is measured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The figures of an operation.
    Operation(Operation),
    /// What fusing a pattern is worth.
    Fusion,
    /// No calibration of ours asked for it: the journal is that of another run.
    Other,
}

impl Purpose {
    /// The purpose that journals and profiles keep as two words: the part, which names the case's entry, and the operator.
    pub fn read(part: &str, operator: &str) -> Self {
        match Part::named(part) {
            Some(Part::Fusion) => Self::Fusion,
            Some(part) => Operation::named(part, operator).map_or(Self::Other, Self::Operation),
            None => Self::Other,
        }
    }

    /// The part that it belongs to.
    pub fn part(self) -> Option<Part> {
        match self {
            Self::Operation(operation) => Some(operation.part()),
            Self::Fusion => Some(Part::Fusion),
            Self::Other => None,
        }
    }

    /// Whether matrices are multiplied.
    pub fn is_product(self) -> bool {
        matches!(self, Self::Operation(Operation::Gemm | Operation::Matmul))
    }
}

/// A record of a calibration with what it was measured for, read once.
#[derive(Debug, Clone, Copy)]
pub struct CalibrationRecord<'a> {
    pub purpose: Purpose,
    pub record: &'a Record,
}

impl<'a> From<&'a Record> for CalibrationRecord<'a> {
    fn from(record: &'a Record) -> Self {
        Self { purpose: Purpose::read(&record.case.name, record.case.workload.as_str()), record }
    }
}

/// Each record with its purpose.
pub fn with_purpose(records: &[Record]) -> Vec<CalibrationRecord<'_>> {
    records.iter().map(CalibrationRecord::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_read_back_from_its_part_and_operator() {
        for operation in Operation::ALL {
            for operator in operation.operators() {
                let purpose = Purpose::read(operation.part().word(), operator);
                assert_eq!(purpose.part(), Some(operation.part()), "{operation:?}");
                // `gemm` and `matmul` are the same product at other sizes.
                let same = purpose == Purpose::Operation(operation);
                assert!(same || (purpose.is_product() && Purpose::Operation(operation).is_product()), "{operation:?}");
            }
        }
    }

    #[test]
    fn what_no_calibration_asks_for_has_no_part() {
        assert_eq!(Purpose::read("fusion", "linear_bias"), Purpose::Fusion);
        for (part, operator) in [("", "matmul"), ("stream", "dot"), ("Stream", "stream_copy"), ("mine", "stream_copy")]
        {
            assert_eq!(Purpose::read(part, operator).part(), None, "{part} {operator}");
        }
    }
}
