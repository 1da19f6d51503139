//! Syntax of accelerator-microbenchmarks files.

use super::sweep::{LiteralSet, ParameterSet, Sweep};
use crate::dialects::names::OperatorName;
use calorimeter_zoo::Operator;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// Parsed file.
pub(super) struct AcceleratorFile {
    /// Entries in order.
    pub benchmarks: Vec<AcceleratorBenchmark>,
    /// Unknown keys at the top level.
    pub unknown: Vec<String>,
}

/// Entry of `benchmarks`.
pub(super) struct AcceleratorBenchmark {
    /// Operator to measure.
    pub operator: Operator,
    /// Parameter sets written out; measured first.
    literal: Vec<ParameterSet>,
    /// Sweeps, measured after the literal sets.
    sweeps: Vec<Sweep>,
    /// Default number of runs of the sets.
    pub num_runs: Option<u64>,
    /// Folder for the CSV table.
    pub csv_path: Option<String>,
    /// Folder for traces.
    pub trace_dir: Option<String>,
    /// Folder for JSON lines.
    pub metrics_dir: Option<String>,
    /// Keys without effect in this program.
    pub ignored: Vec<String>,
    /// Unknown keys.
    pub unknown: Vec<String>,
}

impl AcceleratorBenchmark {
    /// Number of parameter sets, computed without expanding the sweeps.
    pub(super) fn count(&self) -> u64 {
        let swept = self.sweeps.iter().map(Sweep::count);
        swept.fold(self.literal.len() as u64, u64::saturating_add)
    }

    /// Parameter sets: literal ones, then each sweep.
    pub(super) fn sets(&self) -> impl Iterator<Item = Result<ParameterSet, String>> {
        self.literal.iter().cloned().map(Ok).chain(self.sweeps.iter().flat_map(Sweep::sets))
    }

    /// Names of all parameters, possibly repeated.
    pub(super) fn parameters(&self) -> impl Iterator<Item = String> {
        let first = self.sweeps.iter().filter_map(|sweep| sweep.sets().next()?.ok());
        self.literal.iter().cloned().chain(first).flat_map(|set| {
            let (numbers, others) = (set.integers.into_iter(), set.texts.into_iter());
            numbers.map(|(name, _)| name).chain(others.map(|(name, _)| name))
        })
    }
}

impl<'de> Deserialize<'de> for AcceleratorFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Top;
        impl<'de> Visitor<'de> for Top {
            type Value = AcceleratorFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the key benchmarks")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AcceleratorFile, A::Error> {
                let (mut benchmarks, mut unknown) = (None, Vec::new());
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "benchmarks" if benchmarks.is_some() => return Err(duplicate_key(&key)),
                        "benchmarks" => benchmarks = Some(map.next_value()?),
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            unknown.push(key);
                        }
                    }
                }
                Ok(AcceleratorFile { benchmarks: benchmarks.unwrap_or_default(), unknown })
            }
        }
        deserializer.deserialize_map(Top)
    }
}

impl<'de> Deserialize<'de> for AcceleratorBenchmark {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BenchmarkVisitor)
    }
}

struct BenchmarkVisitor;

impl<'de> Visitor<'de> for BenchmarkVisitor {
    type Value = AcceleratorBenchmark;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry with benchmark_name and benchmark_sweep_params")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AcceleratorBenchmark, A::Error> {
        let mut operator: Option<OperatorName> = None;
        let mut params: Option<Vec<LiteralSet>> = None;
        let mut sweeps: Option<Vec<Sweep>> = None;
        let (mut num_runs, mut csv_path, mut trace_dir, mut metrics_dir) = (None, None, None, None);
        let (mut ignored, mut unknown, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(key) = map.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(duplicate_key(&key));
            }
            match key.as_str() {
                "benchmark_name" => operator = Some(map.next_value()?),
                "benchmark_params" => params = map.next_value()?,
                "benchmark_sweep_params" => sweeps = map.next_value()?,
                "num_runs" => num_runs = map.next_value()?,
                "csv_path" => csv_path = map.next_value()?,
                "trace_dir" => trace_dir = map.next_value()?,
                "xlml_metrics_dir" => metrics_dir = map.next_value()?,
                known => {
                    let list = if ["xla_dump_dir", "warmup_tries", "topology"].contains(&known) {
                        &mut ignored
                    } else {
                        &mut unknown
                    };
                    list.push(key.clone());
                    map.next_value::<IgnoredAny>()?;
                }
            }
            seen.push(key);
        }
        let Some(OperatorName(operator)) = operator else {
            return Err(Error::custom("missing benchmark_name"));
        };
        let literal = params.unwrap_or_default().into_iter().map(|LiteralSet(set)| set).collect();
        let sweeps = sweeps.unwrap_or_default();
        let benchmark = AcceleratorBenchmark {
            operator,
            literal,
            sweeps,
            num_runs,
            csv_path,
            trace_dir,
            metrics_dir,
            ignored,
            unknown,
        };
        if benchmark.count() == 0 {
            return Err(Error::custom("nothing to run: benchmark_params and benchmark_sweep_params are empty"));
        }
        Ok(benchmark)
    }
}

fn duplicate_key<E: Error>(key: &str) -> E {
    E::custom(format!("duplicate key {key:?}; keep one"))
}
