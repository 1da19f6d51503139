//! `memory.html`: memory of a case over time, its peaks compared with the baseline, and its largest blocks.
//!
//! The page is self-contained: its data are embedded as JSON, and its script draws them.

mod downsample;
mod profile;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{SinkError, atomic};

pub use calorimeter_case::record::PeakBound;
use downsample::downsample;
pub use profile::{MemoryBlock, MemoryMark, MemoryProfile, PeakBytes};

/// Writes the page into the directory of the case and returns its path.
pub fn write(dir: &Path, case_id: &str, profiles: &[MemoryProfile]) -> Result<PathBuf, SinkError> {
    let path = dir.join("memory.html");
    let html = to_html(case_id, profiles).map_err(|cause| SinkError::format(&path, cause))?;
    atomic::write(&path, html.as_bytes())?;
    Ok(path)
}

const TEMPLATE: &str = include_str!("memory_page/template.html");
const DATA_PLACEHOLDER: &str = "{{data}}";

/// Number of listed blocks per profile.
const MAX_LISTED_BLOCKS: usize = 64;

/// Number of time intervals of all lines of a page. Each has at most four points.
const MAX_INTERVALS: usize = 6000;

/// Maximum number of time intervals per line; more could not be distinguished on a screen.
const MAX_INTERVALS_PER_LINE: usize = 2000;

fn to_html(case_id: &str, profiles: &[MemoryProfile]) -> Result<String, String> {
    let lines = profiles.iter().flat_map(MemoryProfile::lines).filter(|line| !line.is_empty()).count();
    let intervals = (MAX_INTERVALS / lines.max(1)).clamp(1, MAX_INTERVALS_PER_LINE);
    let page = MemoryPageData {
        case: case_id,
        profiles: profiles.iter().map(|profile| DrawnProfile::new(profile, intervals)).collect(),
        comparisons: comparisons(profiles)?,
    };
    let json = serde_json::to_string(&page).map_err(|cause| cause.to_string())?;
    // These characters occur only in strings, where the escapes are equivalent; unescaped they could end the script
    // element.
    let json = json.replace('<', r"\u003c").replace('>', r"\u003e").replace('&', r"\u0026");
    Ok(TEMPLATE.replacen(DATA_PLACEHOLDER, &json, 1))
}

/// Data of the page's script.
#[derive(Serialize)]
struct MemoryPageData<'a> {
    case: &'a str,
    profiles: Vec<DrawnProfile<'a>>,
    comparisons: Vec<PeakComparison>,
}

#[derive(Serialize)]
struct DrawnProfile<'a> {
    label: &'a str,
    source: &'a str,
    end_ns: u64,
    lost_from_ns: Option<u64>,
    /// Allocated, active, reserved.
    lines: [Vec<(u64, u64)>; 3],
    marks: &'a [MemoryMark],
    bound: PeakBound,
    peak_at_ns: Option<u64>,
    blocks: Vec<ListedBlock<'a>>,
    block_count: usize,
    /// Reason for an empty list.
    no_blocks: Option<&'static str>,
    notes: &'a [String],
}

impl<'a> DrawnProfile<'a> {
    fn new(profile: &'a MemoryProfile, intervals: usize) -> DrawnProfile<'a> {
        let mut largest: Vec<&MemoryBlock> = profile.blocks.iter().collect();
        largest.sort_by_key(|block| std::cmp::Reverse(block.bytes));
        DrawnProfile {
            label: &profile.label,
            source: &profile.source,
            end_ns: profile.end_ns,
            lost_from_ns: profile.lost_from_ns,
            lines: profile.lines().map(|line| downsample(line, profile.end_ns, intervals)),
            marks: &profile.marks,
            bound: profile.peaks.bound,
            peak_at_ns: profile.peak_at_ns,
            blocks: largest.into_iter().take(MAX_LISTED_BLOCKS).map(ListedBlock::new).collect(),
            block_count: profile.blocks.len(),
            no_blocks: profile.blocks.is_empty().then(|| missing_blocks_reason(profile)),
            notes: &profile.notes,
        }
    }
}

fn missing_blocks_reason(profile: &MemoryProfile) -> &'static str {
    if profile.source == "pool-statistics" {
        return "The pool reports totals only, not single blocks.";
    }
    match profile.lost_from_ns {
        Some(_) => "The events at this time were lost.",
        None => "No block was alive.",
    }
}

#[derive(Serialize)]
struct ListedBlock<'a> {
    /// Text, because JavaScript numbers have 53 bits.
    address: String,
    bytes: u64,
    since_ns: u64,
    what: Option<&'a str>,
}

impl<'a> ListedBlock<'a> {
    fn new(block: &'a MemoryBlock) -> ListedBlock<'a> {
        let address = format!("{:#x}", block.address);
        ListedBlock { address, bytes: block.bytes, since_ns: block.since_ns, what: block.what.as_deref() }
    }
}

/// Peaks of a profile, with those of its baseline if it has one.
#[derive(Debug, PartialEq, Serialize)]
struct PeakComparison {
    profile: usize,
    against: Option<usize>,
    rows: Vec<PeakRow>,
}

#[derive(Debug, PartialEq, Serialize)]
struct PeakRow {
    quantity: &'static str,
    baseline: Option<u64>,
    this: Option<u64>,
    /// Peak of the baseline divided by this one, if both are exact.
    saving: Option<f64>,
}

/// Comparison of each profile with its baseline. Profiles that serve only as baselines are omitted.
fn comparisons(profiles: &[MemoryProfile]) -> Result<Vec<PeakComparison>, String> {
    let is_baseline = |index| profiles.iter().any(|profile| profile.against == Some(index));
    let mut comparisons = Vec::new();
    for (index, profile) in profiles.iter().enumerate() {
        if profile.against.is_none() && is_baseline(index) {
            continue;
        }
        let baseline = profile.against.map(|against| find_baseline(profile, against, profiles)).transpose()?;
        let baselines = baseline.map(|baseline| baseline.peaks).unwrap_or_default();
        let exact = [profile.peaks.bound, baselines.bound] == [PeakBound::Exact; 2];
        let saving = |baseline, this| saving(baseline, this).filter(|_| exact);
        let rows = (profile.peaks.with_names().into_iter().zip(baselines.with_names()))
            .filter(|((_, this), (_, baseline))| this.or(*baseline).is_some())
            .map(|((quantity, this), (_, baseline))| PeakRow {
                quantity,
                baseline,
                this,
                saving: saving(baseline, this),
            })
            .collect();
        comparisons.push(PeakComparison { profile: index, against: profile.against, rows });
    }
    Ok(comparisons)
}

fn find_baseline<'a>(
    profile: &MemoryProfile,
    against: usize,
    profiles: &'a [MemoryProfile],
) -> Result<&'a MemoryProfile, String> {
    let label = &profile.label;
    let baseline = profiles.get(against).ok_or_else(|| format!("missing baseline of {label:?}"))?;
    if baseline.source != profile.source {
        let (ours, theirs) = (&profile.source, &baseline.source);
        return Err(format!("cannot compare {label:?}: recorded by {ours}, but its baseline by {theirs}"));
    }
    Ok(baseline)
}

fn saving(baseline: Option<u64>, this: Option<u64>) -> Option<f64> {
    match (baseline?, this?) {
        (_, 0) => None,
        (baseline, this) => Some(baseline as f64 / this as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(label: &str, allocated: u64) -> MemoryProfile {
        MemoryProfile {
            label: label.into(),
            source: "host-allocator".into(),
            end_ns: 1_000,
            allocated: vec![(0, 0), (10, allocated), (20, 0)],
            peaks: PeakBytes { allocated: Some(allocated), ..PeakBytes::default() },
            ..MemoryProfile::default()
        }
    }

    fn against(baseline: usize, profile: MemoryProfile) -> MemoryProfile {
        MemoryProfile { against: Some(baseline), ..profile }
    }

    /// Data of the page's script.
    fn data(html: &str) -> serde_json::Value {
        let (_, rest) = html.split_once(r#"<script type="application/json" id="data">"#).unwrap();
        serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
    }

    #[test]
    fn page_is_self_contained() {
        let dir = tempfile::tempdir().unwrap();
        let path = write(&dir.path().join("case"), "linear/int8wo", &[profile("int8wo eager", 5)]).unwrap();
        assert_eq!(path, dir.path().join("case/memory.html"));
        let html = std::fs::read_to_string(path).unwrap();
        for reference in ["://", "src=", "href", "url(", "@import", "fetch(", "import("] {
            assert!(!html.contains(reference), "{reference}");
        }
        assert_eq!(data(&html)["case"], "linear/int8wo");
    }

    #[test]
    fn data_cannot_become_markup() {
        let hostile = r#"</script><script>alert("1")</script><!-- & '{{data}}' \u003c"#;
        let mut hostile_profile = profile(hostile, 5);
        hostile_profile.notes = vec![hostile.into()];
        hostile_profile.marks = vec![MemoryMark { at_ns: 1, name: hostile.into() }];
        hostile_profile.blocks = vec![MemoryBlock { what: Some(hostile.into()), ..MemoryBlock::default() }];
        let html = to_html(hostile, &[hostile_profile]).unwrap();
        let harmless = to_html("case", &[profile("label", 5)]).unwrap();
        for tag in ["<script", "</script", "<!--"] {
            assert_eq!(html.matches(tag).count(), harmless.matches(tag).count(), "{tag}");
        }
        let data = data(&html);
        let drawn = &data["profiles"][0];
        let texts = [&data["case"], &drawn["label"], &drawn["notes"][0], &drawn["marks"][0]["name"]];
        assert!(texts.into_iter().chain([&drawn["blocks"][0]["what"]]).all(|text| text == hostile), "{data}");
    }

    #[test]
    fn saving_is_the_ratio_of_peaks() {
        let mut device = against(2, profile("int8wo fused", 0));
        device.peaks.reserved = Some(64);
        let profiles = [
            profile("baseline eager", 400),
            against(0, profile("int8wo eager", 100)),
            profile("baseline fused", 300),
            device,
            profile("alone", 7),
        ];
        let row = |quantity, baseline, this, saving| PeakRow { quantity, baseline, this, saving };
        let compared = |profile, against, rows| PeakComparison { profile, against, rows };
        assert_eq!(
            comparisons(&profiles).unwrap(),
            [
                compared(1, Some(0), vec![row("allocated", Some(400), Some(100), Some(4.0))]),
                compared(
                    3,
                    Some(2),
                    vec![row("allocated", Some(300), Some(0), None), row("reserved", None, Some(64), None)]
                ),
                compared(4, None, vec![row("allocated", None, Some(7), None)]),
            ]
        );
    }

    #[test]
    fn inexact_peaks_have_no_saving() {
        for (theirs, ours) in [
            (PeakBound::AtLeast, PeakBound::Exact),
            (PeakBound::Exact, PeakBound::AtLeast),
            (PeakBound::Exact, PeakBound::Unknown),
        ] {
            let mut profiles = [profile("baseline eager", 400), against(0, profile("int8wo eager", 100))];
            profiles[0].peaks.bound = theirs;
            profiles[1].peaks.bound = ours;
            let row = PeakRow { quantity: "allocated", baseline: Some(400), this: Some(100), saving: None };
            assert_eq!(comparisons(&profiles).unwrap()[0].rows, [row]);
        }
    }

    #[test]
    fn missing_blocks_are_explained() {
        let block = MemoryBlock { bytes: 1, ..MemoryBlock::default() };
        let profiles = [
            MemoryProfile { source: "pool-statistics".into(), ..profile("int8wo fused", 5) },
            MemoryProfile { lost_from_ns: Some(3), ..profile("lost", 5) },
            profile("nothing", 0),
            MemoryProfile { blocks: vec![block], ..profile("int8wo eager", 5) },
        ];
        let html = to_html("case", &profiles).unwrap();
        let data = data(&html);
        let why = |index: usize| data["profiles"][index]["no_blocks"].as_str();
        assert_eq!(why(0), Some("The pool reports totals only, not single blocks."));
        assert_eq!([why(1), why(2)], [Some("The events at this time were lost."), Some("No block was alive.")]);
        assert_eq!(why(3), None);
        assert!(html.contains("profile.no_blocks"));
    }

    #[test]
    fn invalid_baselines_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let device = MemoryProfile { source: "cupti".into(), ..profile("baseline eager", 9) };
        for (profiles, named) in [
            (vec![against(3, profile("int8wo eager", 9))], "int8wo eager"),
            (vec![device, against(0, profile("int8wo eager", 9))], "cupti"),
        ] {
            let error = write(dir.path(), "case", &profiles).unwrap_err();
            let SinkError::Format { path, cause } = error else { panic!("{error:?}") };
            assert!(path.ends_with("memory.html") && cause.to_string().contains(named), "{cause}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn largest_blocks_are_listed() {
        let block =
            |index: u64| MemoryBlock { address: index << 32, bytes: index * 7919 % 1_000, ..MemoryBlock::default() };
        let blocks = (0..1_000).map(block).collect();
        let data = data(&to_html("case", &[MemoryProfile { blocks, ..profile("int8wo eager", 5) }]).unwrap());
        let drawn = &data["profiles"][0];
        let listed: Vec<u64> =
            drawn["blocks"].as_array().unwrap().iter().map(|block| block["bytes"].as_u64().unwrap()).collect();
        assert_eq!(listed, (936..1_000).rev().collect::<Vec<_>>());
        assert_eq!(drawn["block_count"], 1_000);
        assert!(drawn["blocks"][0]["address"].as_str().unwrap().starts_with("0x"));
    }

    #[test]
    fn long_profiles_fit_into_a_megabyte() {
        let wide = 4_000_000_000_000;
        let line: Vec<(u64, u64)> =
            (0..1_000_000).map(|index| (index * 60_000_000, wide + index * 7919 % 999_983)).collect();
        let highest = line.iter().map(|point| point.1).max().unwrap();
        let full = MemoryProfile {
            end_ns: 60_000_000_000_000,
            allocated: line.clone(),
            active: line.clone(),
            reserved: line,
            ..profile("int8wo eager", highest)
        };
        let html = to_html("case", &[full.clone(), full.clone(), full.clone(), full]).unwrap();
        assert!(html.len() < 1_000_000, "{}", html.len());
        let data = data(&html);
        for line in data["profiles"][3]["lines"].as_array().unwrap() {
            let drawn = line.as_array().unwrap().iter().map(|point| point[1].as_u64().unwrap());
            assert_eq!(drawn.max(), Some(highest));
        }
    }
}
