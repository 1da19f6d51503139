//! NVIDIA sensors through NVML, loaded at run time.

mod lock;

pub use lock::nvml_lock;

use super::{Sample, Source, Throttle, now, source};
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id as field;
use nvml_wrapper::{Device, Nvml};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::OnceLock;

/// Sensors of the GPU with this UUID, in the format of CUDA and `nvidia-smi -L`, or why they are not available.
pub fn nvml(uuid: &str) -> Result<Box<dyn Source>, String> {
    Ok(Box::new(NvmlGpu::find(uuid)?))
}

/// Library names: distributions include the version, toolkits and some containers do not.
const LIBRARY_NAMES: &[&str] = if cfg!(windows) { &["nvml.dll"] } else { &["libnvidia-ml.so.1", "libnvidia-ml.so"] };

/// Loads the library once, which takes a while, for the rest of the process, because devices borrow from it.
fn library() -> Result<&'static Nvml, String> {
    static LIBRARY: OnceLock<Result<Nvml, String>> = OnceLock::new();
    LIBRARY.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Nvml, String> {
    let mut missing = vec![];
    for name in LIBRARY_NAMES {
        match Nvml::builder().lib_path(OsStr::new(name)).init() {
            Ok(library) => return Ok(library),
            Err(NvmlError::LibloadingError(error)) => missing.push(error.to_string()),
            Err(error) => return Err(format!("cannot initialize NVML ({name}): {error}")),
        }
    }
    Err(format!("cannot load NVML, which is part of NVIDIA's driver: {}", missing.join("; ")))
}

struct NvmlGpu {
    device: Device<'static>,
    /// Parent GPU of a MIG slice; slices share clock, cooling and power.
    parent: Option<Device<'static>>,
    /// True for a GPU in MIG mode, whose power and energy cannot be attributed to a slice.
    is_partitioned: bool,
    /// Throttle times at the last sample.
    throttle_times: [Option<u64>; THROTTLE_COUNTERS.len()],
}

/// Counters of the time throttled for each reason, which catch throttling between two samples.
const THROTTLE_COUNTERS: [(u32, Throttle); 4] = [
    (field::NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP, Throttle::PowerCap),
    (field::NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, Throttle::Thermal),
    (field::NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, Throttle::Thermal),
    (field::NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, Throttle::PowerBrake),
];

impl NvmlGpu {
    fn find(uuid: &str) -> Result<Self, String> {
        let library = library()?;
        // CUDA reports the UUID of a slice without the MIG prefix.
        let slice = format!("MIG-{}", uuid.trim_start_matches("GPU-"));
        let device = library.device_by_uuid(uuid).or_else(|error| library.device_by_uuid(slice).map_err(|_| error));
        let device = device.map_err(|error| format!("NVML cannot open the GPU {uuid}: {error}"))?;
        let parent = device.mig_parent_device().ok();
        let divided = parent.is_some() || device.mig_mode().is_ok_and(|mode| mode.current == 1);
        let mut gpu = Self { device, parent, is_partitioned: divided, throttle_times: [None; THROTTLE_COUNTERS.len()] };
        gpu.throttle_times = gpu.read_throttle_times();
        Ok(gpu)
    }

    fn physical_device(&self) -> &Device<'static> {
        self.parent.as_ref().unwrap_or(&self.device)
    }

    fn field_values<const N: usize>(&self, ids: [u32; N]) -> [Option<u64>; N] {
        let mut answers = self.physical_device().field_values_for(&ids.map(FieldId)).unwrap_or_default().into_iter();
        use nvml_wrapper::enums::device::SampleValue::{U32, U64};
        ids.map(|_| match answers.next()?.ok()?.value.ok()? {
            U32(value) => Some(value.into()),
            U64(value) => Some(value),
            _ => None,
        })
    }

    fn read_throttle_times(&self) -> [Option<u64>; THROTTLE_COUNTERS.len()] {
        self.field_values(THROTTLE_COUNTERS.map(|(id, _)| id))
    }

    fn clock_mhz(&self, clock: Clock) -> Option<u32> {
        self.physical_device().clock_info(clock).ok()
    }

    /// Instantaneous power; the plain query of GPUs since Ampere returns the mean of a second.
    fn power_w(&self) -> Option<f64> {
        let [instant] = self.field_values([field::NVML_FI_DEV_POWER_INSTANT]);
        let milliwatts = instant.or_else(|| self.physical_device().power_usage().ok().map(u64::from));
        milliwatts.filter(|_| !self.is_partitioned).map(|milliwatts| milliwatts as f64 / 1e3)
    }

    fn used_joules(&self) -> Option<f64> {
        let millijoules = self.physical_device().total_energy_consumption().ok().filter(|_| !self.is_partitioned);
        millijoules.map(|millijoules| millijoules as f64 / 1e3)
    }

    fn temperature_c(&self) -> Option<f64> {
        self.physical_device().temperature(TemperatureSensor::Gpu).ok().map(f64::from)
    }

    fn throttle(&mut self) -> Vec<Throttle> {
        let bits = self.physical_device().current_throttle_reasons().map_or(0, |reasons| reasons.bits());
        let counted = self.read_throttle_times();
        let before = std::mem::replace(&mut self.throttle_times, counted);
        let mut reasons = Throttle::from_bits(bits);
        reasons.extend(increased(before, self.throttle_times));
        reasons.sort_unstable();
        reasons.dedup();
        reasons
    }

    /// Graphics and memory clock, if both are available.
    fn clocks(&self, read: impl Fn(Clock) -> Result<u32, NvmlError>) -> Option<String> {
        Some(format!("{}/{} MHz", read(Clock::Graphics).ok()?, read(Clock::Memory).ok()?))
    }

    fn application_clocks(&self) -> Option<String> {
        self.clocks(|clock| self.physical_device().applications_clock(clock))
    }

    fn power_limit_w(&self) -> Option<u32> {
        self.physical_device().enforced_power_limit().ok().map(|milliwatts| milliwatts / 1000)
    }

    fn auto_boost(&self) -> Option<bool> {
        self.physical_device().auto_boosted_clocks_enabled().ok().map(|boost| boost.is_enabled)
    }

    fn clock_offsets(&self) -> Option<String> {
        let device = self.physical_device();
        Some(format!("{}/{} MHz", device.gpc_clock_vf_offset().ok()?, device.mem_clock_vf_offset().ok()?))
    }
}

/// Reasons whose counters have increased.
fn increased(
    before: [Option<u64>; THROTTLE_COUNTERS.len()],
    now: [Option<u64>; THROTTLE_COUNTERS.len()],
) -> impl Iterator<Item = Throttle> {
    let pairs = before.into_iter().zip(now).zip(THROTTLE_COUNTERS);
    pairs.filter(|((before, now), _)| before.is_some() && now > before).map(|(_, (_, reason))| reason)
}

impl Source for NvmlGpu {
    fn name(&self) -> &'static str {
        "nvml"
    }

    fn sample(&mut self) -> Sample {
        Sample {
            at: now(),
            clock_mhz: self.clock_mhz(Clock::SM),
            memory_clock_mhz: self.clock_mhz(Clock::Memory),
            power_w: self.power_w(),
            temperature_c: self.temperature_c(),
            throttle: self.throttle(),
        }
    }

    fn joules(&mut self) -> Option<f64> {
        self.used_joules()
    }

    fn other_users(&mut self, ours: &[u32]) -> Result<Vec<String>, String> {
        let device = &self.device;
        let computing = device.running_compute_processes();
        let computing = computing.map_err(|error| format!("NVML cannot list its processes: {error}"))?;
        let lists = [Ok(computing), device.running_graphics_processes(), device.mps_running_compute_processes()];
        // One process may be in several lists.
        let all: BTreeMap<u32, UsedGpuMemory> =
            lists.into_iter().flatten().flatten().map(|process| (process.pid, process.used_gpu_memory)).collect();
        let foreign = all.into_iter().filter(|(pid, _)| *pid != std::process::id() && !ours.contains(pid));
        let lines = foreign.filter_map(|(pid, memory)| match device.nvml().sys_process_name(pid, 256) {
            // In a container NVML may use process ids of the host: the process may be one of this container.
            Err(NvmlError::NotFound) if !ours.is_empty() => None,
            name => Some(process_line(pid, name.ok().as_deref(), &memory)),
        });
        Ok(lines.collect())
    }

    fn facts(&self) -> Value {
        let device = self.physical_device();
        let link = |generation: Result<u32, NvmlError>, width: Result<u32, NvmlError>| {
            Some(format!("generation {}, {} lanes", generation.ok()?, width.ok()?).into())
        };
        source::known_fields([
            ("name", self.device.name().ok().map(Value::from)),
            ("driver", device.nvml().sys_driver_version().ok().map(Value::from)),
            ("vbios", device.vbios_version().ok().map(Value::from)),
            ("pci", device.pci_info().ok().map(|pci| pci.bus_id.into())),
            ("pcie", link(device.current_pcie_link_gen(), device.current_pcie_link_width())),
            ("highest_pcie", link(device.max_pcie_link_gen(), device.max_pcie_link_width())),
            ("power_limit_w", self.power_limit_w().map(Value::from)),
            ("default_power_limit_w", device.power_management_limit_default().ok().map(|limit| (limit / 1000).into())),
            ("highest_clocks", self.clocks(|clock| device.max_clock_info(clock)).map(Value::from)),
            ("application_clocks", self.application_clocks().map(Value::from)),
            (
                "default_application_clocks",
                self.clocks(|clock| device.default_applications_clock(clock)).map(Value::from),
            ),
            ("clock_offsets", self.clock_offsets().map(Value::from)),
            ("auto_boost", self.auto_boost().map(Value::from)),
            ("locked_clocks", Some("NVML does not tell".into())),
            ("persistence_mode", device.is_in_persistent_mode().ok().map(Value::from)),
            ("compute_mode", device.compute_mode().ok().map(|mode| format!("{mode:?}").into())),
            ("ecc", device.is_ecc_enabled().ok().map(|ecc| ecc.currently_enabled.into())),
            ("mig", device.mig_mode().ok().map(|mode| (mode.current == 1).into())),
            (
                "not_reported",
                source::not_reported([
                    ("clock", self.clock_mhz(Clock::SM).is_some()),
                    ("memory clock", self.clock_mhz(Clock::Memory).is_some()),
                    ("power", self.power_w().is_some()),
                    ("energy", self.used_joules().is_some()),
                    ("temperature", self.temperature_c().is_some()),
                    ("throttling", device.current_throttle_reasons().is_ok()),
                    ("throttling between samples", self.read_throttle_times().iter().all(Option::is_some)),
                    ("other processes", self.device.running_compute_processes().is_ok()),
                ]),
            ),
        ])
    }

    fn policy(&self) -> String {
        source::join_policy([
            self.application_clocks().map(|clocks| format!("application clocks {clocks}")),
            self.clock_offsets().map(|offsets| format!("clock offsets {offsets}")),
            self.auto_boost().map(|on| format!("auto boost {}", if on { "on" } else { "off" })),
            self.power_limit_w().map(|watts| format!("power limit {watts} W")),
        ])
    }
}

/// Formats one process on the device. Folders are omitted: they may contain a user name.
fn process_line(pid: u32, name: Option<&str>, memory: &UsedGpuMemory) -> String {
    let program = name.and_then(|name| name.split_whitespace().next()).and_then(|path| path.rsplit(['/', '\\']).next());
    // In a container NVML may use process ids of the host.
    let program_name =
        program.map_or_else(|| "not visible here; possibly this process under another id".into(), str::to_owned);
    match memory {
        UsedGpuMemory::Used(bytes) => {
            format!("process {pid} ({program_name}) uses {} MiB of device memory", bytes >> 20)
        }
        UsedGpuMemory::Unavailable => format!("process {pid} ({program_name}) uses the device"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn missing_library_or_device_is_explained() {
        let unknown = "GPU-00000000-0000-0000-0000-000000000000";
        let error = nvml(unknown).err().unwrap();
        println!("{error}");
        let names = if library().is_ok() { &[unknown] } else { LIBRARY_NAMES };
        assert!(names.iter().any(|name| error.contains(name)), "{error}");
    }

    #[test]
    fn counters_catch_throttling_between_samples() {
        let before = [Some(5), Some(0), None, Some(9)];
        let all = |now| increased(before, now).collect::<Vec<_>>();
        assert_eq!(all(before), []);
        assert_eq!(all([Some(6), Some(0), Some(3), Some(9)]), [Throttle::PowerCap]);
        assert_eq!(all([None, Some(1), None, Some(10)]), [Throttle::Thermal, Throttle::PowerBrake]);
    }

    #[test]
    fn process_lines_omit_folders() {
        for (name, memory, expected) in [
            (Some("/home/ann/bin/train --fast"), UsedGpuMemory::Used(3 << 20), "(train) uses 3 MiB of device memory"),
            (Some("C:\\tools\\game.exe"), UsedGpuMemory::Unavailable, "(game.exe) uses the device"),
            (None, UsedGpuMemory::Unavailable, "(not visible here"),
        ] {
            let line = process_line(812, name, &memory);
            assert!(line.contains(expected) && line.starts_with("process 812") && !line.contains("ann"), "{line}");
        }
    }

    #[test]
    #[ignore = "needs CUDA"]
    fn gpu_reports_all_sensors() {
        let uuid = library().unwrap().device_by_index(0).unwrap().uuid().unwrap();
        let mut gpu = nvml(&uuid).unwrap();
        println!("{:#}\n{}\n{:?}", gpu.facts(), gpu.policy(), gpu.other_users(&[]));
        let (start, before) = (now(), gpu.joules().expect("an energy counter"));
        std::thread::sleep(Duration::from_secs(1));
        let mean = (gpu.joules().unwrap() - before) / (now() - start).as_secs_f64();
        let asked = now();
        let sample = gpu.sample();
        println!("{sample:?} in {:?}, {mean:.1} W by the energy counter", now() - asked);
        let holds =
            |range: std::ops::Range<f64>, value: f64| assert!(range.contains(&value), "{value} not in {range:?}");
        holds(100.0..4000.0, sample.clock_mhz.unwrap().into());
        holds(100.0..20_000.0, sample.memory_clock_mhz.unwrap().into());
        holds(5.0..2000.0, sample.power_w.unwrap());
        holds(10.0..110.0, sample.temperature_c.unwrap());
        holds(5.0..2000.0, mean);
        assert_eq!(gpu.policy(), nvml(&uuid).unwrap().policy());
        let facts = gpu.facts();
        assert!(["name", "driver", "power_limit_w"].iter().all(|fact| facts.get(fact).is_some()), "{facts}");
    }
}
