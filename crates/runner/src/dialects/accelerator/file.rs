//! A file of accelerator-microbenchmarks as it is written.

use super::sweep::{Literal, Set, Sweep};
use crate::dialects::names::OperatorName;
use calorimeter_zoo::Operator;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// All of it.
pub struct File {
    /// The entries, in order.
    pub benchmarks: Vec<Benchmark>,
    /// Keys beside them.
    pub unknown: Vec<String>,
}

/// One entry of `benchmarks`.
pub struct Benchmark {
    /// What is measured.
    pub operator: Operator,
    /// At what: first those written one by one.
    literal: Vec<Set>,
    /// Then each of these.
    sweeps: Vec<Sweep>,
    /// For the sets that do not say it themselves.
    pub num_runs: Option<u64>,
    /// The folder of its table.
    pub csv_path: Option<String>,
    /// The folder of its traces.
    pub trace_dir: Option<String>,
    /// The folder of its JSON lines.
    pub metrics_dir: Option<String>,
    /// Keys that mean something there and nothing here.
    pub ignored: Vec<String>,
    /// Keys that mean nothing there either.
    pub unknown: Vec<String>,
}

impl Benchmark {
    /// At how many sets it is measured, without making those of sweeps.
    pub fn count(&self) -> u64 {
        let swept = self.sweeps.iter().map(Sweep::count);
        swept.fold(self.literal.len() as u64, u64::saturating_add)
    }

    /// At what: first those written one by one, then each sweep.
    pub fn sets(&self) -> impl Iterator<Item = Result<Set, String>> {
        self.literal.iter().cloned().map(Ok).chain(self.sweeps.iter().flat_map(Sweep::sets))
    }

    /// The names of their parameters, some of them often.
    pub fn parameters(&self) -> impl Iterator<Item = String> {
        let first = self.sweeps.iter().filter_map(|sweep| sweep.sets().next()?.ok());
        self.literal.iter().cloned().chain(first).flat_map(|set| {
            let (numbers, others) = (set.numbers.into_iter(), set.others.into_iter());
            numbers.map(|(name, _)| name).chain(others.map(|(name, _)| name))
        })
    }
}

impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Top;
        impl<'de> Visitor<'de> for Top {
            type Value = File;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the key benchmarks")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File, A::Error> {
                let (mut benchmarks, mut unknown) = (None, Vec::new());
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "benchmarks" if benchmarks.is_some() => return Err(twice(&key)),
                        "benchmarks" => benchmarks = Some(map.next_value()?),
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            unknown.push(key);
                        }
                    }
                }
                Ok(File { benchmarks: benchmarks.unwrap_or_default(), unknown })
            }
        }
        deserializer.deserialize_map(Top)
    }
}

impl<'de> Deserialize<'de> for Benchmark {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entry)
    }
}

struct Entry;

impl<'de> Visitor<'de> for Entry {
    type Value = Benchmark;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry with benchmark_name and benchmark_sweep_params")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Benchmark, A::Error> {
        let mut operator: Option<OperatorName> = None;
        let mut params: Option<Vec<Literal>> = None;
        let mut sweeps: Option<Vec<Sweep>> = None;
        let (mut num_runs, mut csv_path, mut trace_dir, mut metrics_dir) = (None, None, None, None);
        let (mut ignored, mut unknown, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(key) = map.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(twice(&key));
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
            return Err(Error::custom("benchmark_name is missing; files of version 2, with `name`, are not read"));
        };
        let literal = params.unwrap_or_default().into_iter().map(|Literal(set)| set).collect();
        let sweeps = sweeps.unwrap_or_default();
        let benchmark =
            Benchmark { operator, literal, sweeps, num_runs, csv_path, trace_dir, metrics_dir, ignored, unknown };
        if benchmark.count() == 0 {
            return Err(Error::custom("benchmark_params and benchmark_sweep_params are empty: nothing to run"));
        }
        Ok(benchmark)
    }
}

fn twice<E: Error>(key: &str) -> E {
    E::custom(format!("key {key:?} is given twice; keep one"))
}
