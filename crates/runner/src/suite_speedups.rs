//! The speed-ups of each recipe over all shapes, together.

use calorimeter_case::Mode;
use calorimeter_case::record::SuiteSpeedup;
use calorimeter_sinks::report::Mean;
use calorimeter_sinks::{Record, Status};
use calorimeter_timing::SuiteMean;
use std::collections::HashMap;

/// What the bootstrap draws from: the same records give the same interval.
const SEED: u64 = 42;

/// A line for each recipe, or operator, and implementation on a device, in a dtype and regime, in the order of the records.
pub fn speedups(records: &[Record]) -> Vec<SuiteSpeedup> {
    means(records).into_iter().map(|mean| mean.together).collect()
}

/// The same, with the places of the records behind each line.
pub fn means(records: &[Record]) -> Vec<Mean> {
    let mut lines: Vec<(SuiteSpeedup, Vec<f64>, Vec<usize>)> = Vec::new();
    let mut place_of: HashMap<[String; 5], usize> = HashMap::new();
    for (index, record) in records.iter().enumerate().filter(|(_, record)| record.outcome.status == Status::Ok) {
        let Some(speedup) = &record.speedup else { continue };
        let case = &record.case;
        let names = [
            // Different operators have no mean, nor have different passes.
            match case.mode {
                Mode::Operator(_) => case.workload.to_string(),
                Mode::Training => format!("{} {}", case.workload, case.variant()),
                Mode::Inference => case.variant(),
            },
            case.implementation.to_string(),
            case.device.to_string(),
            case.element.to_string(),
            case.regime.to_string(),
        ];
        let place = *place_of.entry(names).or_insert_with_key(|names| {
            let [recipe, implementation, device, dtype, regime] = names.clone();
            let figures = SuiteSpeedup { recipe, implementation, device, dtype, regime, ..SuiteSpeedup::default() };
            lines.push((figures, Vec::new(), Vec::new()));
            lines.len() - 1
        });
        lines[place].1.push(speedup.ratio);
        lines[place].2.push(index);
    }
    let mean = |(line, ratios, of): (SuiteSpeedup, Vec<f64>, Vec<usize>)| {
        let SuiteMean { ratio, lo, hi, .. } = SuiteMean::of(&ratios, SEED)?;
        Some(Mean { together: SuiteSpeedup { cases: ratios.len() as u64, ratio, lo, hi, ..line }, of })
    };
    lines.into_iter().filter_map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::record::Speedup;
    use calorimeter_case::{Case, Suite};

    #[test]
    fn each_recipe_has_one_line_over_its_shapes() {
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
