//! Graphics platform: Vulkan and Metal adapters through wgpu.

use super::device_defaults::DeviceDefaults;
use super::{Advice, Platform, Probing, Sensing, StopwatchChoice};
use crate::devices::{DeviceFacts, DiscoveredDevice};
use calorimeter_case::{Device, Dtype, Implementation, Warning};
use calorimeter_kernels::probes::{CubeProbes, Probes};
use calorimeter_timing::telemetry::{Source, last_level_cache, processor};
use calorimeter_timing::{Failure, Timestamps, WallClock, Work};
use calorimeter_zoo::backends::wgpu::{INTEL, adapters, client};
use calorimeter_zoo::{DeviceKind, NativeDevices, Setup};
use std::time::Duration;

/// Vulkan and Metal adapters.
#[derive(Debug)]
pub(super) struct Graphics;

impl Platform for Graphics {
    fn kinds(&self) -> &'static [DeviceKind] {
        &[DeviceKind::Vulkan, DeviceKind::Metal]
    }

    fn find(&self) -> Vec<DiscoveredDevice> {
        let device = |index: usize| {
            if cfg!(target_os = "macos") { Device::Metal(index as u16) } else { Device::Vulkan(index as u16) }
        };
        adapters()
            .into_iter()
            .enumerate()
            .map(|(index, adapter)| DiscoveredDevice {
                device: device(index),
                identity: format!("{} {}", adapter.name, adapter.driver),
                name: adapter.name,
                driver: adapter.driver,
                software: adapter.software,
                stated_gbps: None,
                // Graphics APIs do not report cache sizes.
                cache: if adapter.software { last_level_cache() } else { None },
                intel: adapter.vendor == INTEL && !adapter.software,
            })
            .collect()
    }

    fn advice(&self, found: bool) -> Option<Advice> {
        let remedy = "No Vulkan adapter: install the GPU's Vulkan driver and a loader (Debian, Ubuntu: libvulkan1, and \
                      mesa-vulkan-drivers for AMD, Intel or a software adapter).";
        (!found).then(|| remedy.to_owned().into())
    }

    fn stopwatch(&self, setup: Setup, _: &mut NativeDevices, work: &mut dyn Work) -> Result<StopwatchChoice, Failure> {
        // Timestamps bracket a closure on the device's own thread. Draining a fusion queue there would wait for that
        // thread, so that fused work uses the wall clock.
        if setup.implementation == Implementation::Fused {
            return Ok((Box::new(WallClock::slope()), None));
        }
        let slope = |why: &str| -> StopwatchChoice {
            (Box::new(WallClock::slope()), Some(Warning::fallback_clock(why, "wall-clock slopes")))
        };
        Ok(match Timestamps::new(client(setup.device)?) {
            None => slope("the adapter has no timestamp queries"),
            Some(timestamps) if timestamps.covers(work)? => (Box::new(timestamps), None),
            Some(_) => slope("a launch is longer than the compute pass that timestamps can bracket"),
        })
    }

    fn clock(&self) -> String {
        "timestamps for eager, slope for fused".into()
    }

    fn needs_kernel_tracer(&self) -> bool {
        true
    }

    fn defaults(&self, software: bool) -> DeviceDefaults {
        let trials = DeviceDefaults {
            // Largest buffer that all of these APIs support.
            max_buffer_bytes: 64 << 20,
            quick_array_bytes: 64 << 20,
            // More adapters support f16 than bf16.
            quick_dtypes: &[Dtype::F32, Dtype::F16],
            ..DeviceDefaults::default()
        };
        if !software {
            return trials;
        }
        DeviceDefaults {
            quick_case_time: Duration::from_millis(500),
            peak_matmul_sizes: &[64, 128],
            noise_matmul_sizes: &[64],
            noise_add_lengths: &[1 << 10, 1 << 18],
            matmul_sizes: &[64, 256],
            quick_matmul_sizes: &[64, 256],
            dtypes: &[Dtype::F32],
            quick_dtypes: &[Dtype::F32],
            ..trials
        }
    }

    fn sensing(&self) -> Option<&dyn Sensing> {
        Some(self)
    }

    fn probing(&self) -> Option<&dyn Probing> {
        Some(self)
    }
}

// ANCHOR: sensors
impl Sensing for Graphics {
    // An emulated GPU has the sensors of the processor.
    fn sensors(&self, device: Device, facts: &DeviceFacts) -> Result<Box<dyn Source>, String> {
        if facts.software { Ok(processor()) } else { Err(format!("no sensors for {device}")) }
    }
}
// ANCHOR_END: sensors

impl Probing for Graphics {
    fn probes(&self, device: Device, _: &mut NativeDevices) -> Result<Box<dyn Probes>, Failure> {
        Ok(Box::new(CubeProbes::new(client(device)?)))
    }

    fn autotunes_matmul(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_users_have_a_reason() {
        let why = Graphics.other_users(Device::Vulkan(0), &DeviceFacts::default()).unwrap_err();
        assert!(why.contains("vulkan"), "{why}");
    }
}
