//! Conversions that both versions share.

use crate::dialects::yaml::Step;
use crate::entries::{MAX_WINDOWS, Timing};
use calorimeter_case::Axes;
use calorimeter_probe::devices::Devices;
use calorimeter_timing::Options;
use calorimeter_zoo::Operator;

/// Key of the list of benchmarks.
pub(super) const BENCHMARKS: Step<'static> = Step::Key(&["benchmarks"]);

/// Maximum elements of a case; larger sizes would overflow derived counts.
const MAX_ELEMENTS: u128 = 1 << 56;

/// Timing with the number of windows that corresponds to a number of runs.
pub(super) fn timing_for_runs(runs: u64) -> Result<Timing, String> {
    let windows = u32::try_from(runs).ok().filter(|windows| *windows <= MAX_WINDOWS);
    let windows = windows.ok_or_else(|| format!("invalid num_runs {runs}: expected at most {MAX_WINDOWS}"))?;
    let default = Options::default();
    Ok(Timing {
        min_windows: Some(windows.max(default.min_windows)),
        max_windows: Some(windows.max(default.max_windows)),
        ..Timing::default()
    })
}

/// Axes of an operator, with the number of devices.
pub(super) fn axes(operator: Operator, mut axes: Vec<(String, u64)>, devices: &Devices) -> Result<Axes, String> {
    // The peer determines the number of devices by a mesh; here all GPUs take part.
    if operator.info().axes.contains(&"devices") && !axes.iter().any(|(name, _)| name == "devices") {
        axes.push(("devices".into(), devices.cuda_count().max(2)));
    }
    let axes = Axes::new(axes).map_err(|error| error.to_string())?;
    let elements = axes.iter().fold(1u128, |product, (_, size)| product.saturating_mul(u128::from(size)));
    if elements > MAX_ELEMENTS {
        return Err(format!("{operator} at {axes} is too large; expected at most 2^56 elements"));
    }
    Ok(axes)
}
