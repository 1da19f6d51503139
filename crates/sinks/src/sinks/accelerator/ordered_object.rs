//! JSON objects with keys in order.

use serde::{Serialize, Serializer};

/// JSON object with keys in column order.
pub(super) struct OrderedObject<V>(pub Vec<(String, V)>);

impl<V: Serialize> Serialize for OrderedObject<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, cell)| (name, cell)))
    }
}
