//! Kernel names on Vulkan and Metal: timestamp queries do not report them, so that a separate worker collects them.

use crate::worker::{
    AssignedCase, Assignment, AssignmentPurpose, EventFilter, Executor, WorkerError, WorkerEvent, WorkerListener,
};
use calorimeter_probe::devices::DiscoveredDevice;
use calorimeter_probe::platforms;
use std::collections::HashMap;
use std::time::Duration;

/// Second executor, created on first use, whose workers trace kernels instead of timing.
#[derive(Default)]
pub(super) struct KernelTracer(Option<Option<Box<dyn Executor>>>);

impl KernelTracer {
    /// Traces the kernels of each case, if a case requests them and the platform's clocks do not report them.
    pub(super) fn trace(
        &mut self,
        assignment: &mut Assignment,
        device: &DiscoveredDevice,
        timeout: Duration,
        executor: &dyn Executor,
        listener: &mut dyn WorkerListener,
    ) -> Result<(), WorkerError> {
        let wanted = |one: &AssignedCase| one.case.profiler || one.case.fusion.is_some();
        let hidden = platforms::for_device(device.device).needs_kernel_tracer();
        if !hidden || !assignment.purpose.is_timed() || !assignment.cases.iter().any(wanted) {
            return Ok(());
        }
        let Some(tracer) = self.0.get_or_insert_with(|| executor.kernel_tracer()) else { return Ok(()) };
        let mut traced = HashMap::new();
        // Failures are ignored, because they recur when the case is measured.
        let mut collector = EventFilter::new(listener, |event, listener| match event {
            WorkerEvent::Progress { .. } => listener.on_event(event),
            WorkerEvent::KernelsTraced { case, kernels } if kernels.passes > 0 => drop(traced.insert(case, kernels)),
            _ => {}
        });
        let tracing = Assignment { purpose: AssignmentPurpose::TraceKernels, ..assignment.clone() };
        tracer.run(&tracing, device, timeout, &mut collector)?;
        for one in &mut assignment.cases {
            one.kernels = traced.remove(&one.case.id);
        }
        Ok(())
    }
}
