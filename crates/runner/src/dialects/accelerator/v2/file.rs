//! Syntax of version 2 files.

use super::benchmarks::{BenchmarkDefinition, BenchmarkName};
use super::presets::PresetName;
use crate::dialects::accelerator::sweep::{
    Combinations, ParameterPairs, ParameterValue, SweepValues, check_not_repeated,
};
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Parsed file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "the keys global, hardware and benchmarks")]
pub(super) struct Version2File {
    /// Defaults of all benchmarks.
    #[serde(default)]
    pub global: Option<ParameterMap<ParameterValue>>,
    /// Peaks of the hardware.
    #[serde(default)]
    pub hardware: Option<HardwarePeaks>,
    /// Benchmarks in order.
    pub benchmarks: Vec<Version2Benchmark>,
}

/// Peaks of the hardware, as written to the results.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "a map such as {peak_tflops: 459, hbm_bw: 1600}")]
pub(super) struct HardwarePeaks {
    /// Peak in 10¹² operations per second, for all dtypes or by dtype.
    #[serde(default, alias = "tflops", skip_serializing_if = "Option::is_none")]
    peak_tflops: Option<PeakTable<String>>,
    /// Bandwidth in 10⁹ bytes per second, for all sizes or by size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hbm_bw: Option<PeakTable<u64>>,
}

/// Peak that may depend on a key.
#[derive(Clone, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected a number, or a map to numbers such as {1048576: 1200}")]
enum PeakTable<K: Ord> {
    Constant(f64),
    Table(BTreeMap<K, f64>),
}

/// Entry of `benchmarks`.
pub(super) struct Version2Benchmark {
    pub definition: &'static BenchmarkDefinition,
    /// Parameters with one value each.
    pub parameters: ParameterPairs,
    /// Swept parameters; a single empty combination if there are none.
    pub sweep: Combinations,
    /// Path of a CSV file with a set of parameters per row.
    pub csv_shapes: Option<String>,
    /// Sizes of the language model; may include parameters of other benchmarks.
    pub model: ParameterPairs,
}

impl<'de> Deserialize<'de> for Version2Benchmark {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BenchmarkMap;
        impl<'de> Visitor<'de> for BenchmarkMap {
            type Value = Version2Benchmark;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a benchmark such as {name: gemm_generalized, m: 64, sweep: {n: [8, 16]}}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Version2Benchmark, A::Error> {
                let (mut name, mut sweep, mut csv_shapes, mut model) = (None, None, None, None);
                let mut parameters = ParameterPairs::new();
                let mut seen = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    check_not_repeated(seen.iter(), &key)?;
                    match key.as_str() {
                        "name" => name = Some(map.next_value::<BenchmarkName>()?.0),
                        "sweep" => sweep = map.next_value::<Option<ParameterMap<SweepValues<true>>>>()?,
                        "csv_shapes" => csv_shapes = map.next_value()?,
                        "model" => model = map.next_value::<Option<PresetName>>()?.map(PresetName::sizes),
                        _ => parameters.push((key.clone(), map.next_value()?)),
                    }
                    seen.push(key);
                }
                let definition = name.ok_or_else(|| Error::custom("missing name"))?;
                let swept = sweep.map(|ParameterMap(swept)| swept).unwrap_or_default();
                let swept = swept.into_iter().map(|(name, SweepValues(values))| (name, values)).collect();
                let sweep = Combinations::new(swept).map_err(Error::custom)?;
                Ok(Version2Benchmark { definition, parameters, sweep, csv_shapes, model: model.unwrap_or_default() })
            }
        }
        deserializer.deserialize_map(BenchmarkMap)
    }
}

/// Parameters in file order, without repetitions.
pub(super) struct ParameterMap<V>(pub Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for ParameterMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OrderedMap<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for OrderedMap<V> {
            type Value = ParameterMap<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of parameters such as {m: 64, n: 8}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ParameterMap<V>, A::Error> {
                let mut pairs: Vec<(String, V)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, V>()? {
                    check_not_repeated(pairs.iter().map(|(name, _)| name), &name)?;
                    pairs.push((name, value));
                }
                Ok(ParameterMap(pairs))
            }
        }
        deserializer.deserialize_map(OrderedMap(PhantomData))
    }
}
