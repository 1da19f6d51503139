//! Comparison of two machines by their calibration profiles: speed, energy and price.

use super::operation_profiles::OperationProfile;
use super::profile::CalibrationProfile;
use calorimeter_timing::geometric_mean;
use serde::Serialize;
use std::collections::BTreeMap;

/// Comparison of two machines.
#[derive(Debug, Serialize)]
pub struct MachineComparison {
    pub schema: &'static str,
    pub version: u32,
    pub a: String,
    pub b: String,
    pub peaks: Vec<PeakPair>,
    /// By operation, dtype and implementation.
    pub operations: Vec<OperationPair>,
    /// Ratios over all operations.
    pub all: Option<Ratios>,
    /// Purchase or hourly prices of the two machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<[f64; 2]>,
}

/// Peak of both machines.
#[derive(Debug, Serialize)]
pub struct PeakPair {
    pub kind: String,
    pub unit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<f64>,
    /// B divided by A.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
}

/// Operation at all sizes that both profiles contain.
#[derive(Debug, Serialize)]
pub struct OperationPair {
    pub operation: String,
    #[serde(flatten)]
    pub ratios: Ratios,
}

/// Performance of B relative to A: geometric means over sizes.
#[derive(Debug, Serialize)]
pub struct Ratios {
    pub sizes: usize,
    /// Ratio of the speeds.
    pub speed: f64,
    /// Ratio of the work per joule, if both machines measured energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_joule: Option<f64>,
    /// Ratio of the speed per price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_price: Option<f64>,
}

/// Size that both profiles contain.
struct ProfilePair<'a> {
    a: &'a OperationProfile,
    b: &'a OperationProfile,
}

/// Compares two profiles.
pub fn compare_machines(
    profiles: &[CalibrationProfile; 2],
    prices: Option<[f64; 2]>,
) -> Result<MachineComparison, String> {
    let [a, b] = profiles;
    let mut by_operation: BTreeMap<String, Vec<ProfilePair>> = BTreeMap::new();
    for (key, one) in &a.operation_profiles {
        let Some(other) = b.operation_profiles.get(key) else { continue };
        let OperationProfile { operation_type, precision, implementation, .. } = one;
        let name = format!("{operation_type} {precision} {implementation}");
        by_operation.entry(name).or_default().push(ProfilePair { a: one, b: other });
    }
    let operations: Vec<OperationPair> = by_operation
        .iter()
        .filter_map(|(operation, pairs)| {
            Some(OperationPair { operation: operation.clone(), ratios: ratios(pairs.iter(), prices)? })
        })
        .collect();
    let peaks = peaks(a, b);
    if operations.is_empty() && peaks.iter().all(|peak| peak.ratio.is_none()) {
        return Err("the two profiles have neither peaks nor operations in common".into());
    }
    let all = ratios(by_operation.values().flatten(), prices);
    let name = |profile: &CalibrationProfile| profile.environment.hardware_name.clone();
    let (schema, version) = ("calorimeter-machines", 1);
    Ok(MachineComparison { schema, version, a: name(a), b: name(b), peaks, operations, all, prices })
}

fn peaks(a: &CalibrationProfile, b: &CalibrationProfile) -> Vec<PeakPair> {
    let mut kinds: Vec<&String> = a.peaks.keys().chain(b.peaks.keys()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let pair = |kind: &String| {
        let [one, other] = [a, b].map(|profile| profile.peaks.get(kind));
        let unit = one.or(other).map(|peak| peak.unit.clone()).unwrap_or_default();
        let [a, b] = [one, other].map(|peak| peak.map(|peak| peak.measured));
        let ratio = a.zip(b).map(|(a, b)| b / a).filter(|ratio| ratio.is_finite());
        PeakPair { kind: kind.clone(), unit, a, b, ratio }
    };
    kinds.into_iter().map(pair).collect()
}

fn ratios<'a>(pairs: impl Iterator<Item = &'a ProfilePair<'a>> + Clone, prices: Option<[f64; 2]>) -> Option<Ratios> {
    let ratios_of = |figure: fn(&OperationProfile) -> Option<f64>| -> Vec<f64> {
        let ratio = |pair: &ProfilePair| Some(figure(pair.a)? / figure(pair.b)?);
        pairs.clone().filter_map(ratio).filter(|ratio| ratio.is_finite() && *ratio > 0.0).collect()
    };
    let times = ratios_of(|operation| operation.median_latency_ms);
    let joules = ratios_of(|operation| operation.joules);
    let sizes = times.len();
    let speed = geometric_mean(times)?;
    let per_price = prices.map(|[a, b]| speed * a / b);
    Some(Ratios { sizes, speed, per_joule: geometric_mean(joules), per_price })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::ProfileLabels;
    use calorimeter_sinks::journal::{Header, JournalContents};

    fn profile(name: &str, millis: f64, joules: Option<f64>) -> CalibrationProfile {
        let header = Header::default();
        let journal = JournalContents { header, records: vec![], resumed: vec![], summary: None, warnings: vec![] };
        let labels = ProfileLabels { hardware: Some(name.into()), ..ProfileLabels::default() };
        let mut profile = CalibrationProfile::from_journal(&journal, &labels);
        let operation = OperationProfile {
            operation_type: "gemm".into(),
            precision: "bf16".into(),
            implementation: "native".into(),
            median_latency_ms: Some(millis),
            joules,
            ..OperationProfile::default()
        };
        profile.operation_profiles.insert("gemm/native/bf16/m8".into(), operation);
        profile
    }

    #[test]
    fn speed_energy_and_price_ratios_are_separate() {
        let profiles = [profile("old", 2.0, Some(3.0)), profile("new", 1.0, Some(2.0))];
        let machines = compare_machines(&profiles, Some([1.0, 4.0])).unwrap();
        let all = machines.all.unwrap();
        assert_eq!((all.sizes, all.speed, all.per_joule, all.per_price), (1, 2.0, Some(1.5), Some(0.5)));
        assert_eq!(machines.operations[0].operation, "gemm bf16 native");
        let without = compare_machines(&[profile("old", 2.0, None), profile("new", 1.0, Some(2.0))], None).unwrap();
        assert_eq!(without.all.map(|all| (all.per_joule, all.per_price)), Some((None, None)));
    }
}
