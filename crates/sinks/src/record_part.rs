//! What of a record a reader needs who reads many.

use calorimeter_case::CaseId;
use calorimeter_case::record::Record;
use serde::de::DeserializeOwned;

/// A part of a record. It is read from the record's JSON, where nothing else is looked at, or made from a record: both give
/// the same.
pub trait RecordPart: DeserializeOwned + Send + for<'a> From<&'a Record> {
    /// The id of the case.
    fn id(&self) -> &CaseId;
}
