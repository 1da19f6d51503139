//! Conclusion of a run in words.

use super::escape;
use super::text::{interval, rounded_ratio};
use calorimeter_case::record::{Record, Speedup, Status};
use calorimeter_case::{Case, Verdict};

/// Formulates the largest significant speed-up as one sentence, or why there is none. Returns `None` without speed-ups.
///
/// The speed-up with the highest lower end of its interval counts as the largest: the highest of many noisy ratios is
/// high by chance. Recipes have priority: without them, implementations of the baseline, operators or programs are
/// compared.
pub(super) fn conclusion(records: &[Record]) -> Option<String> {
    let ok = records.iter().filter(|record| record.outcome.status == Status::Ok);
    let compared: Vec<(&Record, &Speedup)> = ok.filter_map(|record| Some((record, record.speedup.as_ref()?))).collect();
    let has_recipes = compared.iter().any(|(record, _)| !record.case.is_baseline());
    let compared: Vec<_> =
        compared.into_iter().filter(|(record, _)| !has_recipes || !record.case.is_baseline()).collect();
    let count = |verdict| compared.iter().filter(|(_, speedup)| speedup.verdict == verdict).count();
    let faster = compared.iter().filter(|(_, speedup)| speedup.verdict == Verdict::Faster);
    let lower_end = |speedup: &Speedup| speedup.lo.unwrap_or(speedup.ratio);
    let best = faster.max_by(|(_, one), (_, other)| lower_end(one).total_cmp(&lower_end(other)));
    // Implementations of the baseline may be faster.
    let from = if has_recipes { " from a recipe" } else { "" };
    let (all, slower, unclear) = (compared.len(), count(Verdict::Slower), count(Verdict::Unclear));
    let sentence = match best {
        Some((record, speedup)) => fastest(record, speedup, records),
        None if all == 0 => return None,
        None if unclear > 0 => {
            format!("No significant speed-up{from}: {unclear} of {all} comparisons are UNCLEAR.")
        }
        None if slower == all => format!("No speed-up{from}: {}.", all_of(all, "slower than the baseline")),
        None if slower == 0 => {
            format!("No speed-up{from}: {}.", all_of(all, "equal to the baseline within the margin"))
        }
        None => format!(
            "No speed-up{from}: {slower} of {all} cases are slower than the baseline, the others equal within the margin."
        ),
    };
    Some(escape(&sentence).into_owned())
}

fn all_of(count: usize, what: &str) -> String {
    match count {
        1 => format!("the compared case is {what}"),
        _ => format!("all {count} compared cases are {what}"),
    }
}

/// Formulates a speed-up, with its workload if there are several.
fn fastest(record: &Record, speedup: &Speedup, records: &[Record]) -> String {
    let Case { element, mode, workload, shape, .. } = &record.case;
    let vs = records.iter().find(|other| other.case.id == speedup.vs).map(|other| &other.case);
    let implementation = vs.map(|vs| format!("{} ", vs.implementation)).unwrap_or_default();
    let (subject, reference) = if mode.is_operator() {
        let reference = vs.map_or_else(|| speedup.vs.to_string(), |vs| vs.implementation.to_string());
        (record.case.implementation.to_string(), reference)
    } else {
        let subject = format!("{} {}", record.case.variant(), record.case.implementation);
        (subject, format!("the {implementation}{element} baseline"))
    };
    let is_only_group = records.iter().all(|other| super::group(&other.case) == super::group(&record.case));
    let place = [workload.to_string(), shape.to_string()].into_iter().filter(|part| !part.is_empty());
    let place = format!(" ({})", place.collect::<Vec<_>>().join(", "));
    let (up_to, place) = if is_only_group { ("", "") } else { ("up to ", place.as_str()) };
    let sqnr = record.accuracy.as_ref().filter(|accuracy| !accuracy.is_exact()).and_then(|accuracy| accuracy.sqnr_db);
    let accuracy = sqnr.map(|sqnr| format!(", at {sqnr:.0} dB SQNR")).unwrap_or_default();
    let Speedup { ratio, lo, hi, .. } = *speedup;
    let interval = interval(ratio, lo, hi).map_or_else(String::new, |width| format!(" ({width})"));
    format!("{subject} is {up_to}{}x{interval} faster than {reference}{accuracy}{place}.", rounded_ratio(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::record::Accuracy;

    fn record(recipe: &str, implementation: &str, vs: &str, ratio: f64, verdict: Verdict) -> Record {
        let case = Case {
            id: format!("{recipe}/{implementation}").into(),
            workload: "linear".into(),
            recipe: recipe.parse().unwrap(),
            implementation: implementation.parse().unwrap(),
            ..Case::default()
        };
        let speedup = Some(Speedup { vs: vs.into(), ratio, verdict, ..Speedup::default() });
        Record { speedup, ..Record::new(case, Status::Ok) }
    }

    #[test]
    fn sentence_matches_expected_text() {
        use Verdict::{Faster, Same, Slower, Unclear};
        let baseline = Record { speedup: None, ..record("baseline", "eager", "", 1.0, Same) };
        let native = record("baseline", "native", "baseline/eager", 3.0, Faster);
        let recipe = |ratio, verdict| record("int8wo", "eager", "baseline/eager", ratio, verdict);
        let accurate = Record {
            accuracy: Some(Box::new(Accuracy { sqnr_db: Some(46.1), rel_l2: Some(0.005), ..Accuracy::default() })),
            ..recipe(1.9, Faster)
        };
        for (records, expected) in [
            (vec![accurate], "int8wo eager is 1.90x faster than the eager f32 baseline, at 46 dB SQNR."),
            (vec![], "baseline native is 3.00x faster than the eager f32 baseline."),
            (
                vec![recipe(0.9, Slower), recipe(1.1, Unclear)],
                "No significant speed-up from a recipe: 1 of 2 comparisons are UNCLEAR.",
            ),
            (vec![recipe(0.9, Slower)], "No speed-up from a recipe: the compared case is slower than the baseline."),
            (
                vec![recipe(1.0, Same), recipe(1.0, Same)],
                "No speed-up from a recipe: all 2 compared cases are equal to the baseline within the margin.",
            ),
            (
                vec![recipe(1.0, Same), recipe(0.5, Slower)],
                "No speed-up from a recipe: 1 of 2 cases are slower than the baseline, the others equal within the margin.",
            ),
        ] {
            let records: Vec<Record> = [baseline.clone(), native.clone()].into_iter().chain(records).collect();
            assert_eq!(conclusion(&records).as_deref(), Some(expected));
        }
        assert_eq!(conclusion(&[baseline]), None);
    }

    #[test]
    fn several_groups_name_the_workload() {
        let fast = record("int8wo", "eager", "baseline/eager", 12.5, Verdict::Faster);
        let mut other = record("int8wo", "eager", "baseline/eager", 2.0, Verdict::Faster);
        other.case.shape = [("m", 8)].into();
        assert_eq!(
            conclusion(&[other, fast]).unwrap(),
            "int8wo eager is up to 12x faster than the f32 baseline (linear)."
        );
    }

    #[test]
    fn precise_speedups_precede_noisy_ones() {
        let interval = |lo, hi, record: Record| {
            let speedup = record.speedup.map(|speedup| Speedup { lo: Some(lo), hi: Some(hi), ..speedup });
            Record { speedup, ..record }
        };
        let precise = interval(1.98, 2.02, record("int8wo", "eager", "", 2.0, Verdict::Faster));
        let noisy = interval(1.05, 5.0, record("mxfp8", "eager", "", 3.0, Verdict::Faster));
        assert_eq!(
            conclusion(&[precise, noisy]).unwrap(),
            "int8wo eager is 2.00x (±1.0%) faster than the f32 baseline."
        );
    }
}
