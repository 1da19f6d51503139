//! Files of a data set, as far as Calorimeter reads them. Other fields are ignored, because data sets may be newer.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Signature of a kernel. Its reference in Python is read by the worker.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct KernelDefinition {
    pub name: String,
    pub op_type: String,
    pub axes: OrderedMap<AxisKind>,
    pub inputs: OrderedMap<TensorSignature>,
    pub outputs: OrderedMap<TensorSignature>,
}

/// Kind of an axis.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum AxisKind {
    /// Size that the definition states.
    Const { value: u64 },
    /// Size that a workload states.
    Var {},
    /// Kind that this version does not know.
    #[serde(other)]
    Unknown,
}

/// Shape and dtype of an input or output.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct TensorSignature {
    /// Names of axes; `None` for a scalar.
    pub shape: Option<Vec<String>>,
    pub dtype: String,
}

/// Line of a file of workloads.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct WorkloadLine {
    pub definition: String,
    /// Copied to the traces in full.
    pub workload: Value,
    #[serde(default)]
    pub solution: Option<Value>,
}

/// Sizes and inputs of a call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct KernelWorkload {
    pub uuid: String,
    pub axes: BTreeMap<String, u64>,
    pub inputs: BTreeMap<String, InputSource>,
}

/// Source of an input.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum InputSource {
    /// Generated values.
    Random {},
    /// Number or truth value.
    Scalar { value: Value },
    /// Tensor of a file.
    Safetensors { path: String, tensor_key: String },
    /// Source that this version does not know.
    #[serde(other)]
    Unknown,
}

/// Implementation of a definition. Its source code is read by the worker.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct SolutionHeader {
    pub name: String,
    pub definition: String,
    pub spec: SolutionSpec,
}

/// Build instructions of a solution.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct SolutionSpec {
    pub language: String,
}

/// JSON object whose order matters.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OrderedMap<T>(pub Vec<(String, T)>);

impl<T> OrderedMap<T> {
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrderedMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Pairs<T> {
            type Value = OrderedMap<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedMap<T>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(OrderedMap(pairs))
            }
        }
        deserializer.deserialize_map(Pairs(PhantomData))
    }
}
