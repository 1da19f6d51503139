//! Purpose of each case of a calibration.

use super::operations::Operation;
use super::parts::Part;
use calorimeter_case::Record;

/// Purpose of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Measures an operation.
    Operation(Operation),
    /// Measures the effect of fusion.
    Fusion,
    /// Not planned by a calibration; the journal belongs to another kind of run.
    Other,
}

impl Purpose {
    /// Parses the purpose from the two words that journals and profiles store: part (name of the entry) and operator.
    pub fn read(part: &str, operator: &str) -> Self {
        match Part::named(part) {
            Some(Part::Fusion) => Self::Fusion,
            Some(part) => Operation::named(part, operator).map_or(Self::Other, Self::Operation),
            None => Self::Other,
        }
    }

    /// Part of the plan to which it belongs.
    pub fn part(self) -> Option<Part> {
        match self {
            Self::Operation(operation) => Some(operation.part()),
            Self::Fusion => Some(Part::Fusion),
            Self::Other => None,
        }
    }

    /// True for matmuls.
    pub fn is_product(self) -> bool {
        matches!(self, Self::Operation(Operation::Gemm | Operation::Matmul))
    }
}

/// Record with its parsed purpose.
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

/// Adds the purpose to each record.
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
                // `gemm` and `matmul` are the same operator at different sizes.
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
