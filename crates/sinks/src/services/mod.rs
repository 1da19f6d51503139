//! Formats of continuous benchmarking services, with a metric for each measured case.

mod bencher;
mod github_action_benchmark;
mod open_metrics;

pub use bencher::bencher;
pub use github_action_benchmark::github_action_benchmark;
pub use open_metrics::open_metrics;

use calorimeter_case::record::{Estimate, Record};

/// Measured records with their times.
fn measured_records(records: &[Record]) -> impl Iterator<Item = (&Record, Estimate)> {
    records.iter().filter(|record| record.is_ok()).filter_map(|record| Some((record, record.time.time_ns?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::record::{Speedup, Status};
    use calorimeter_case::{Axes, Case, Verdict};
    use serde_json::json;

    fn records() -> Vec<Record> {
        let case = |id: &str| Case {
            id: id.into(),
            workload: "linear".parse().unwrap(),
            recipe: "int8wo".parse().unwrap(),
            shape: Axes::from([("m", 1)]),
            ..Case::default()
        };
        let mut ok = Record::new(case("a/m1"), Status::Ok);
        ok.time.time_ns = Some(Estimate { median: 1500.0, lo: Some(1450.0), hi: Some(1560.0) });
        let (lo, hi, verdict) = (Some(1.9), Some(2.1), Verdict::Faster);
        ok.speedup = Some(Speedup { vs: "b".into(), ratio: 2.0, lo, hi, verdict, ..Speedup::default() });
        let mut bare = Record::new(case("a \"b\"\\\n"), Status::Ok);
        bare.time.time_ns = Some(Estimate { median: 2.0, lo: None, hi: None });
        let failed = Record::without_time(case("c"), Status::Failed, "it broke");
        vec![ok, bare, failed]
    }

    #[test]
    fn github_action_benchmark_has_time_and_range() {
        let found: serde_json::Value = serde_json::from_str(&github_action_benchmark(&records())).unwrap();
        let first =
            json!({ "name": "a/m1", "unit": "ns", "value": 1500.0, "range": "± 60", "extra": "2.000x FASTER than b" });
        assert_eq!(found, json!([first, { "name": "a \"b\"\\\n", "unit": "ns", "value": 2.0 }]));
    }

    #[test]
    fn bencher_has_measures_with_bounds() {
        let found: serde_json::Value = serde_json::from_str(&bencher(&records())).unwrap();
        let first = json!({
            "latency": { "value": 1500.0, "lower_value": 1450.0, "upper_value": 1560.0 },
            "speedup": { "value": 2.0, "lower_value": 1.9, "upper_value": 2.1 },
        });
        assert_eq!(found, json!({ "a/m1": first, "a \"b\"\\\n": { "latency": { "value": 2.0 } } }));
    }

    #[test]
    fn open_metrics_have_labels_and_an_end() {
        let text = open_metrics(&records());
        let labels = r#"workload="linear",recipe="int8wo",implementation="eager",device="cpu",dtype="f32",shape="m1",regime="device-cold""#;
        for line in [
            "# TYPE calorimeter_time_seconds gauge".to_owned(),
            "# UNIT calorimeter_time_seconds seconds".to_owned(),
            format!(r#"calorimeter_time_seconds{{case="a/m1",{labels},bound="median"}} 1.5e-6"#),
            format!(r#"calorimeter_time_seconds{{case="a/m1",{labels},bound="upper"}} 1.56e-6"#),
            format!(r#"calorimeter_speedup_ratio{{case="a/m1",{labels},bound="lower"}} 1.9e0"#),
            format!(r#"calorimeter_time_seconds{{case="a \"b\"\\\n",{labels},bound="median"}} 2e-9"#),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n\n{text}");
        }
        assert!(text.ends_with("\n# EOF\n"));
        // Samples of a family are contiguous.
        let families: Vec<bool> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.starts_with("calorimeter_time"))
            .collect();
        assert!(families.is_sorted_by(|before, after| before >= after), "{text}");
    }
}
