//! Parts of records, for readers of many records.

use calorimeter_case::CaseId;
use calorimeter_case::record::Record;
use serde::de::DeserializeOwned;

/// Part of a record. Deserialized from the JSON of a record, ignoring its other fields, or converted from a record,
/// with equal results.
pub trait RecordPart: DeserializeOwned + Send + for<'a> From<&'a Record> {
    /// Case id.
    fn id(&self) -> &CaseId;
}
