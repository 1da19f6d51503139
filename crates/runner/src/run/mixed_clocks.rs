//! Detection of times in one table that were read from different clocks.

use calorimeter_case::Record;
use std::collections::BTreeMap;

/// Returns a note per implementation, regime and device that was timed by several clocks. This happens if a run is
/// resumed where a clock is missing; a table would show the times as one quantity.
pub(super) fn mixed_clock_notes(records: &[Record]) -> Vec<String> {
    let mut timed: BTreeMap<String, BTreeMap<&str, u64>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.time.time_ns.is_some()) {
        let Some(stopwatch) = record.execution.stopwatch.as_deref() else { continue };
        let case = &record.case;
        let subject = format!("{} on {} in {}", case.implementation, case.device, case.regime);
        *timed.entry(subject).or_default().entry(stopwatch).or_default() += 1;
    }
    let several = timed.into_iter().filter(|(_, clocks)| clocks.len() > 1);
    let line = |(subject, clocks): (String, BTreeMap<&str, u64>)| {
        let clocks: Vec<String> = clocks.into_iter().map(|(clock, cases)| format!("{clock} ({cases})")).collect();
        format!(
            "{subject} was timed by several clocks, {}, whose times are not comparable: measure again with one clock, or \
             compare time_with_gaps_ns where both have it and neither is launch_bound",
            clocks.join(" and ")
        )
    };
    several.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::record::Estimate;
    use calorimeter_case::{Case, Implementation, Status};

    fn record(implementation: Implementation, stopwatch: &str) -> Record {
        let mut record = Record::new(Case { implementation, ..Case::default() }, Status::Ok);
        record.execution.stopwatch = Some(stopwatch.to_owned());
        record.time.time_ns = Some(Estimate { median: 1.0, lo: None, hi: None });
        record
    }

    #[test]
    fn implementation_on_two_clocks_is_reported() {
        use Implementation::{Eager, Native};
        let events = record(Native, "cuda-events");
        let mut records = vec![record(Native, "cupti"), record(Native, "cupti"), record(Eager, "slope")];
        assert_eq!(mixed_clock_notes(&records), [""; 0]);
        let untimed = Record { time: Default::default(), ..events.clone() };
        records.push(untimed);
        assert_eq!(mixed_clock_notes(&records), [""; 0]);
        records.push(events);
        let notes = mixed_clock_notes(&records);
        assert_eq!(notes.len(), 1);
        let expected = "native on cpu in device-cold was timed by several clocks, cuda-events (1) and cupti (2), whose";
        assert!(notes[0].starts_with(expected), "{notes:?}");
    }
}
