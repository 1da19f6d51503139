//! Calibration plan: a pure function of target and options.

use crate::entries::{DeviceSelection, Entry, HumanDuration, Origin, Size, Timing};
use calorimeter_case::Implementation::{self, Eager, Native};
use calorimeter_case::Regime::{self, DeviceCold, DeviceHot, HostE2e, HostEnqueue};
use calorimeter_probe::calibration::{CalibrationOperation, CalibrationPart, Pattern};
use calorimeter_probe::platforms::{self, DeviceDefaults};
use calorimeter_recipes::{Dtype, Element};
use calorimeter_shapes::Axes;
use calorimeter_zoo::operators::presets::Preset;
use calorimeter_zoo::{Device, Operator, Subject, Task};
use std::time::Duration;

/// Properties of the machine that determine sizes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CalibrationTarget {
    pub device: Device,
    /// True for a GPU emulated in software.
    pub software: bool,
    /// Size of the last-level cache, possibly estimated.
    pub cache_bytes: u64,
    /// Free host memory, if known.
    pub free_bytes: Option<u64>,
}

impl CalibrationTarget {
    fn trials(&self) -> DeviceDefaults {
        platforms::for_device(self.device).defaults(self.software)
    }
}

/// Options of a calibration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CalibrationOptions {
    pub quick: bool,
    pub operations: Vec<CalibrationOperation>,
    pub patterns: Vec<Pattern>,
    /// Requested dtypes.
    pub dtypes: Option<Vec<Dtype>>,
}

impl CalibrationOptions {
    fn dtypes(&self, trials: &DeviceDefaults) -> Vec<Dtype> {
        let default = if self.quick { trials.quick_dtypes } else { trials.dtypes };
        let mut dtypes = Vec::new();
        for &dtype in self.dtypes.as_deref().unwrap_or(default) {
            if !dtypes.contains(&dtype) {
                dtypes.push(dtype);
            }
        }
        dtypes
    }

    /// True if fusion patterns are measured in the dtype at `index` of `types`; a quick plan without explicit dtypes
    /// measures only the last one.
    fn includes_fusion(&self, index: usize, types: usize) -> bool {
        !self.quick || self.dtypes.is_some() || index + 1 == types
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Returns the entries in measuring order; empty if none of the requested operations is available.
pub(crate) fn entries(machine: &CalibrationTarget, wish: &CalibrationOptions) -> Vec<Entry> {
    let mut plan = CalibrationPlan { target: machine, options: wish, entries: Vec::new() };
    let dtypes = wish.dtypes(&machine.trials());
    for (index, &dtype) in dtypes.iter().enumerate() {
        plan.stream(dtype);
        if index == 0 {
            // Cache levels and launch latency do not depend on the dtype.
            plan.cache_ladder(dtype);
            plan.latency(dtype);
            plan.transfers(dtype);
        }
        plan.blas(dtype);
        if wish.includes_fusion(index, dtypes.len()) {
            plan.fusion(dtype);
        }
    }
    plan.entries
}

/// Timing of every case.
fn timing(quick: bool, trials: &DeviceDefaults) -> Timing {
    let milliseconds = |count| Some(HumanDuration(Duration::from_millis(count)));
    if !quick {
        return Timing { max_time: milliseconds(3000), ..Timing::default() };
    }
    Timing {
        min_time: milliseconds(50),
        max_time: Some(HumanDuration(trials.quick_case_time)),
        warm_up: milliseconds(50),
        max_warm_up: milliseconds(500),
        ..Timing::default()
    }
}

/// Array size that exceeds the cache by far, within the limits of memory and time.
pub(crate) fn array_bytes(machine: &CalibrationTarget, quick: bool) -> u64 {
    let target_bytes = (4 * machine.cache_bytes).next_power_of_two().max(256 * MIB);
    let trials = machine.trials();
    let max_buffer = if quick { trials.quick_array_bytes } else { trials.max_buffer_bytes };
    // Two buffer sets of three arrays, host copies of them, and intermediate results.
    let memory_limit = machine.free_bytes.map_or(u64::MAX, |free| 1 << (free / 24).max(MIB).ilog2());
    target_bytes.min(max_buffer).min(memory_limit)
}

struct CalibrationPlan<'a> {
    target: &'a CalibrationTarget,
    options: &'a CalibrationOptions,
    entries: Vec<Entry>,
}

impl CalibrationPlan<'_> {
    fn stream(&mut self, dtype: Dtype) {
        use CalibrationOperation::{StreamAdd, StreamCopy, StreamScale, StreamTriad};
        let elements = array_bytes(self.target, self.options.quick) / dtype.bytes();
        for operation in [StreamCopy, StreamScale, StreamAdd, StreamTriad] {
            self.entry(operation, dtype, &[DeviceCold], &sizes_along("elements", [elements]));
        }
    }

    /// Copies from below the smallest cache to beyond the largest.
    fn cache_ladder(&mut self, dtype: Dtype) {
        let (largest, step) = (array_bytes(self.target, self.options.quick), if self.options.quick { 4 } else { 2 });
        let sizes = std::iter::successors(Some(16 * KIB), |bytes| Some(bytes * step));
        let mut sizes: Vec<u64> = sizes.take_while(|&bytes| bytes < largest).chain([largest]).collect();
        sizes.dedup();
        let sizes = sizes_along("elements", sizes.iter().map(|bytes| bytes / dtype.bytes()));
        self.entry(CalibrationOperation::Cache, dtype, &[DeviceHot], &sizes);
    }

    fn latency(&mut self, dtype: Dtype) {
        let regimes = [DeviceHot, HostE2e, HostEnqueue];
        self.entry(CalibrationOperation::Latency, dtype, &regimes, &sizes_along("elements", [1]));
    }

    fn transfers(&mut self, dtype: Dtype) {
        let sizes: &[u64] = if self.options.quick { &[1, 16, 64] } else { &[1, 4, 16, 64, 256, 1024] };
        let sizes = sizes_along("data_size_mib", sizes.iter().copied());
        self.entry(CalibrationOperation::Transfer, dtype, &[DeviceCold], &sizes);
    }

    fn blas(&mut self, dtype: Dtype) {
        let quick = self.options.quick;
        let vectors: &[u64] = if quick { &[1_000, 100_000, 1_000_000] } else { &VECTOR_LENGTHS };
        for operation in [CalibrationOperation::Dot, CalibrationOperation::Axpy] {
            self.entry(operation, dtype, &[DeviceCold], &sizes_along("n", vectors.iter().copied()));
        }
        let squares: &[u64] = if quick { &[64, 256, 1024] } else { &[32, 64, 128, 256, 512, 1024, 2048] };
        let sizes: Vec<Axes> = squares.iter().map(|&n| Axes::from([("m", n), ("k", n)])).collect();
        self.entry(CalibrationOperation::Gemv, dtype, &[DeviceCold], &sizes);
        // `gemm` and `matmul` are the same operator at different sizes.
        let [gemm, matmul] = [CalibrationOperation::Gemm, CalibrationOperation::Matmul]
            .map(|one| self.options.operations.contains(&one));
        let product = if gemm { CalibrationOperation::Gemm } else { CalibrationOperation::Matmul };
        let (gemm, matmul) = (if gemm { squares } else { &[] }, if matmul { self.matmul_sizes() } else { &[] });
        let mut sizes = [gemm, matmul].concat();
        sizes.sort_unstable();
        sizes.dedup();
        let sizes: Vec<Axes> = sizes.iter().map(|&n| Axes::from([("m", n), ("k", n), ("n", n)])).collect();
        self.entry(product, dtype, &[DeviceCold], &sizes);
    }

    fn matmul_sizes(&self) -> &'static [u64] {
        let trials = self.target.trials();
        if self.options.quick { trials.quick_matmul_sizes } else { trials.matmul_sizes }
    }

    /// Plans each pattern in every implementation that the device might support, so that unsupported ones are recorded.
    fn fusion(&mut self, dtype: Dtype) {
        let implementations = self.target.trials().fusion_implementations;
        for pattern in &self.options.patterns {
            let Some(operator) = operator(pattern.operator) else { continue };
            let sizes: Vec<Axes> = match self.options.quick {
                true => Preset::Quick.sizes(operator).pop().into_iter().collect(),
                false => Preset::Guide.sizes(operator).into_iter().take(MAX_FUSION_SIZES).collect(),
            };
            self.push(CalibrationPart::Fusion, operator, dtype, &[DeviceCold], implementations.to_vec(), &sizes);
        }
    }

    /// Plans an operation, if requested, in every available implementation; a quick plan uses only `native`, or `eager`
    /// without it.
    fn entry(&mut self, operation: CalibrationOperation, dtype: Dtype, regimes: &[Regime], sizes: &[Axes]) {
        if !self.options.operations.contains(&operation) {
            return;
        }
        for name in operation.operators() {
            let (Some(operator), Some(first)) = (operator(name), sizes.first()) else { continue };
            let mut implementations = implementations(operator, first, dtype, self.target.device);
            if self.options.quick {
                let first = if implementations.contains(&Native) { Native } else { Eager };
                implementations.retain(|&one| one == first);
            }
            if !implementations.is_empty() {
                self.push(operation.part(), operator, dtype, regimes, implementations, sizes);
            }
        }
    }

    fn push(
        &mut self,
        part: CalibrationPart,
        operator: Operator,
        dtype: Dtype,
        regimes: &[Regime],
        implementations: Vec<Implementation>,
        sizes: &[Axes],
    ) {
        let origin = Origin::command("calibration");
        let sizes = sizes.iter().cloned().map(Size::custom).collect();
        self.entries.push(Entry {
            name: Some(part.to_string()),
            element: Element::Float(dtype),
            device: Some(DeviceSelection::Single(self.target.device)),
            implementations: Some(implementations),
            regimes: Some(regimes.to_vec()),
            timing: timing(self.options.quick, &self.target.trials()),
            ..Entry::new(origin, Subject::Operator(operator), sizes)
        });
    }
}

/// Maximum number of sizes per fusion pattern.
const MAX_FUSION_SIZES: usize = 3;

/// Sizes along one axis.
fn sizes_along(axis: &'static str, values: impl IntoIterator<Item = u64>) -> Vec<Axes> {
    values.into_iter().map(|value| Axes::from([(axis, value)])).collect()
}

const VECTOR_LENGTHS: [u64; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Looks up an operator of this version by name.
pub(crate) fn operator(name: &str) -> Option<Operator> {
    Operator::all().into_iter().find(|operator| operator.info().name == name)
}

/// Implementations of an operator, determined without opening the device.
fn implementations(operator: Operator, size: &Axes, dtype: Dtype, device: Device) -> Vec<Implementation> {
    // A simulated device supports everything; use the implementations of the CPU instead.
    let device = if platforms::for_device(device).is_simulated() { Device::Cpu } else { device };
    let task = Task::new(Subject::Operator(operator), size, Element::Float(dtype), None, 0);
    task.map(|task| task.implementations(device)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::{Overrides, resolve};
    use crate::plan::Plan;
    use calorimeter_probe::calibration::PATTERNS;
    use calorimeter_probe::devices::Devices;
    use calorimeter_sinks::Case;

    const GIB: u64 = 1 << 30;
    const CPU: CalibrationTarget =
        CalibrationTarget { device: Device::Cpu, software: false, cache_bytes: 480 * MIB, free_bytes: Some(20 * GIB) };
    const GPU: CalibrationTarget = CalibrationTarget { device: Device::Cuda(0), cache_bytes: 50 * MIB, ..CPU };

    fn options(quick: bool) -> CalibrationOptions {
        let patterns = PATTERNS.to_vec();
        CalibrationOptions { quick, operations: CalibrationOperation::ALL.into(), patterns, dtypes: None }
    }

    fn cases(machine: &CalibrationTarget, wish: &CalibrationOptions) -> Vec<Case> {
        let entries = resolve(entries(machine, wish), &Overrides::default(), &Devices::simulated([])).unwrap();
        Plan::new(entries, None).cases().map(|(case, _)| case).collect()
    }

    fn sizes(cases: &[Case], part: CalibrationPart, workload: &str, axis: &str) -> Vec<u64> {
        let of = cases.iter().filter(|case| case.name == part.word() && case.workload == workload);
        let mut sizes: Vec<u64> = of.filter_map(|case| case.shape.get(axis)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    #[test]
    fn plans_resolve_without_duplicate_cases() {
        for (machine, quick) in [(&CPU, true), (&CPU, false), (&GPU, true), (&GPU, false)] {
            let cases = cases(machine, &options(quick));
            assert!(cases.iter().all(|case| !case.id.contains('#')), "{cases:?}");
        }
    }

    #[test]
    fn arrays_exceed_the_cache_if_memory_allows() {
        for (cache, free, quick, bytes) in [
            (50 * MIB, Some(100 * GIB), false, 256 * MIB),
            (96 * MIB, Some(100 * GIB), true, 512 * MIB),
            (1000 * MIB, Some(100 * GIB), false, GIB),
            (50 * MIB, Some(4 * GIB), false, 128 * MIB),
            (50 * MIB, None, false, 256 * MIB),
        ] {
            let machine = CalibrationTarget { cache_bytes: cache, free_bytes: free, ..GPU };
            assert_eq!(array_bytes(&machine, quick), bytes, "{machine:?}");
        }
        assert_eq!([true, false].map(|quick| array_bytes(&CPU, quick)), [256 * MIB, 512 * MIB]);
    }

    #[test]
    fn ladder_spans_cache_to_stream_array_sizes() {
        for (quick, steps, last) in [(true, 8, 64 * MIB), (false, 16, 128 * MIB)] {
            let elements = sizes(&cases(&CPU, &options(quick)), CalibrationPart::Cache, "stream_copy", "elements");
            assert_eq!((elements.len(), elements[0], *elements.last().unwrap()), (steps, 4 * KIB, last));
        }
    }

    #[test]
    fn matmul_sizes_depend_on_plan_and_device() {
        let largest = |machine, quick| {
            sizes(&cases(machine, &options(quick)), CalibrationPart::Blas, "matmul", "m").last().copied()
        };
        assert_eq!([largest(&CPU, true), largest(&CPU, false)], [Some(1024), Some(2048)]);
        assert_eq!([largest(&GPU, true), largest(&GPU, false)], [Some(2048), Some(8192)]);
    }

    #[test]
    fn unrequested_operations_are_not_planned() {
        let only = |operations: &[CalibrationOperation]| CalibrationOptions {
            operations: operations.into(),
            patterns: vec![],
            ..options(true)
        };
        let cases = cases(&CPU, &only(&[CalibrationOperation::StreamAdd]));
        let planned: Vec<_> =
            cases.iter().map(|case| (case.workload.as_str(), case.implementation.name().as_str())).collect();
        assert_eq!(planned, [("stream_add", "native")]);
        assert_eq!(entries(&CPU, &only(&[CalibrationOperation::Transfer])), []);
    }

    #[test]
    fn quick_plans_compare_patterns_once_within_a_minute() {
        let planned = |dtypes| cases(&GPU, &CalibrationOptions { dtypes, ..options(true) });
        let compared = |cases: &[Case]| {
            let of = cases.iter().filter(|case| case.name == CalibrationPart::Fusion.word());
            let of = of.filter(|case| case.implementation == Eager);
            of.map(|case| (case.workload, case.element)).collect::<Vec<_>>()
        };
        let usual = planned(None);
        let patterns: Vec<_> = PATTERNS.iter().map(|one| (one.operator.into(), Dtype::Bf16.into())).collect();
        assert_eq!(compared(&usual), patterns);
        assert_eq!(compared(&planned(Some(vec![Dtype::F32, Dtype::Bf16]))).len(), 2 * PATTERNS.len());
        // Measuring time, and the time for window calibration and warm-up on a GPU.
        let seconds = usual.len() as f64 * (0.2 + 0.13);
        assert!(seconds < 45.0, "{} cases, {seconds} s", usual.len());
    }

    #[test]
    fn gpus_are_calibrated_in_every_float_dtype() {
        let cases = cases(&GPU, &options(false));
        for dtype in Dtype::ALL {
            assert!(
                cases.iter().any(|case| case.element == dtype.into() && case.name == CalibrationPart::Stream.word()),
                "{dtype}"
            );
        }
        assert!(cases.iter().any(|case| case.name == CalibrationPart::Fusion.word() && case.implementation == Native));
    }
}
