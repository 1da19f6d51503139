//! Mean speed-up of each recipe over all shapes.

use calorimeter_case::record::SuiteSpeedup;
use calorimeter_case::{Device, Element, Implementation, Mode, Name, Regime, variant};
use calorimeter_sinks::report::MeanSpeedup;
use calorimeter_sinks::{CaseExcerpt, Record, Status};
use calorimeter_timing::SuiteMean;
use std::collections::HashMap;

/// Seed of the bootstrap: identical records give identical intervals.
const SEED: u64 = 42;

/// Mean speed-ups per recipe (or operator), implementation, device, dtype and regime, in the order of the records.
pub(crate) fn speedups(records: &[Record]) -> Vec<SuiteSpeedup> {
    let with_speedup: Vec<CaseExcerpt> =
        records.iter().filter(|record| record.speedup.is_some()).map(CaseExcerpt::from).collect();
    means(&with_speedup).into_iter().map(|mean| mean.speedup).collect()
}

/// Mean speed-ups with the indices of the cases that each covers.
pub(crate) fn means(cases: &[CaseExcerpt]) -> Vec<MeanSpeedup> {
    let mut lines: Vec<(SuiteSpeedup, Vec<f64>, Vec<usize>)> = Vec::new();
    let mut place_of: HashMap<SuiteKey, usize> = HashMap::new();
    for (index, case) in cases.iter().enumerate().filter(|(_, case)| case.status == Status::Ok) {
        let Some(ratio) = case.speedup.map(|speedup| speedup.ratio) else { continue };
        let line = SuiteKey::new(case);
        let place = *place_of.entry(line).or_insert_with(|| {
            lines.push((line.into_speedup(), Vec::new(), Vec::new()));
            lines.len() - 1
        });
        lines[place].1.push(ratio);
        lines[place].2.push(index);
    }
    let mean = |(line, ratios, of): (SuiteSpeedup, Vec<f64>, Vec<usize>)| {
        let SuiteMean { ratio, lo, hi, .. } = SuiteMean::from_ratios(&ratios, SEED)?;
        Some(MeanSpeedup {
            speedup: SuiteSpeedup { cases: ratios.len() as u64, ratio, lo, hi, ..line },
            record_indices: of,
        })
    };
    lines.into_iter().filter_map(mean).collect()
}

/// Key of a mean: properties that its cases share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct SuiteKey {
    /// Workload of operators and training passes, which are not averaged over workloads.
    workload: Option<Name>,
    variant: Option<(Name, Option<Name>)>,
    implementation: Implementation,
    device: Device,
    element: Element,
    regime: Regime,
}

impl SuiteKey {
    fn new(case: &CaseExcerpt) -> Self {
        let CaseExcerpt { implementation, device, element, regime, .. } = *case;
        let variant = (case.recipe, case.sparsity);
        let (workload, variant) = match case.mode {
            Mode::Operator(_) => (Some(case.workload), None),
            Mode::Training => (Some(case.workload), Some(variant)),
            Mode::Inference => (None, Some(variant)),
        };
        Self { workload, variant, implementation, device, element, regime }
    }

    fn into_speedup(self) -> SuiteSpeedup {
        let variant = self.variant.map(|(recipe, sparsity)| variant(recipe, sparsity));
        let parts: Vec<String> = self.workload.map(|name| name.to_string()).into_iter().chain(variant).collect();
        SuiteSpeedup {
            recipe: parts.join(" "),
            implementation: self.implementation.to_string(),
            device: self.device.to_string(),
            dtype: self.element.to_string(),
            regime: self.regime.to_string(),
            ..SuiteSpeedup::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::record::Speedup;
    use calorimeter_case::{Case, Suite};

    #[test]
    fn recipes_have_one_mean_over_shapes() {
        let record = |recipe: &str, ratio: f64, status| {
            let case = Case { recipe: recipe.parse().unwrap(), ..Case::default() };
            let speedup = Some(Speedup { ratio, ..Speedup::default() });
            Record { speedup, ..Record::new(case, status) }
        };
        let records = [
            record("int8wo", 2.0, Status::Ok),
            record("mxfp8", 3.0, Status::Ok),
            record("int8wo", 0.5, Status::Ok),
            record("int8wo", 100.0, Status::Mismatch),
        ];
        let lines = speedups(&records);
        let short: Vec<(&str, u64, f64)> = lines.iter().map(|l| (l.recipe.as_str(), l.cases, l.ratio)).collect();
        assert_eq!(short[0].0, "int8wo");
        assert!((short[0].2 - 1.0).abs() < 1e-12 && short[0].1 == 2, "{short:?}");
        assert_eq!((short[1].0, short[1].1), ("mxfp8", 1));
    }

    #[test]
    fn different_operators_have_no_common_mean() {
        let record = |workload: &str| {
            let case =
                Case { mode: Mode::Operator(Suite::Ops), workload: workload.parse().unwrap(), ..Case::default() };
            let speedup = Some(Speedup { ratio: 2.0, ..Speedup::default() });
            Record { speedup, ..Record::new(case, Status::Ok) }
        };
        let lines = speedups(&[record("softmax"), record("gelu"), record("softmax")]);
        let short: Vec<(&str, u64)> = lines.iter().map(|line| (line.recipe.as_str(), line.cases)).collect();
        assert_eq!(short, [("softmax", 2), ("gelu", 1)]);
    }
}
