//! CPU sensors of Linux below `/sys` and `/proc`.

mod energy;
mod facts;
mod usage;

use super::files::{numbered_entries, read_number, read_text};
use super::{Counters, Sample, Source, Throttle, now};
use energy::RaplEnergy;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use usage::ProcessorUsage;

/// Sensors of this host's CPU. A virtual machine shows none of them, and on most systems only root may read the energy
/// counters.
pub fn processor() -> Box<dyn Source> {
    Box::new(ProcessorSensors { counter_error: Counters::open().err(), ..ProcessorSensors::new(Path::new("/")) })
}

/// Maximum number of clocks read per sample: reading more takes time from the measurement.
const MAX_CLOCKS: usize = 16;
/// Minimum span for power: energy counters are updated about every millisecond.
const MIN_POWER_SPAN: Duration = Duration::from_millis(10);

/// Maximum sensor index per chip: the package's thermometer is among the first.
const MAX_SENSORS_PER_CHIP: u32 = 4;

struct ProcessorSensors {
    root: PathBuf,
    clocks: Vec<PathBuf>,
    /// True if `/proc/cpuinfo` has clocks and no other file has.
    info_has_clocks: bool,
    temperatures: Vec<PathBuf>,
    throttles: Vec<PathBuf>,
    /// Throttle counts at the last sample.
    throttle_count: Option<u64>,
    energy: RaplEnergy,
    /// Time and value of the last energy reading.
    last_energy: Option<(Duration, f64)>,
    share: ProcessorUsage,
    /// Reason why hardware counters are not available.
    counter_error: Option<String>,
}

impl ProcessorSensors {
    fn new(root: &Path) -> Self {
        let cores = numbered_entries(root.join("sys/devices/system/cpu"), "cpu");
        let clocks: Vec<PathBuf> =
            cores.iter().map(|core| core.join("cpufreq/scaling_cur_freq")).filter(|file| file.exists()).collect();
        let counters = ["core_throttle_count", "package_throttle_count"];
        let throttles: Vec<PathBuf> = cores
            .iter()
            .flat_map(|core| counters.map(|counter| core.join("thermal_throttle").join(counter)))
            .filter(|file| file.exists())
            .collect();
        let mut energy = RaplEnergy::new(root);
        Self {
            clocks: clocks.iter().step_by(clocks.len().div_ceil(MAX_CLOCKS).max(1)).cloned().collect(),
            info_has_clocks: clocks.is_empty() && !facts::counted_clocks(root).is_empty(),
            temperatures: thermometers(root),
            throttle_count: sum_counters(&throttles),
            throttles,
            last_energy: energy.joules().map(|joules| (now(), joules)),
            energy,
            share: ProcessorUsage::new(root),
            counter_error: None,
            root: root.to_owned(),
        }
    }

    fn clock_mhz(&self) -> Option<u32> {
        let megahertz: Vec<f64> = if self.info_has_clocks {
            facts::counted_clocks(&self.root)
        } else {
            self.clocks.iter().filter_map(read_number).map(|kilohertz: f64| kilohertz / 1e3).collect()
        };
        let mean = megahertz.iter().sum::<f64>() / megahertz.len() as f64;
        (!megahertz.is_empty()).then(|| mean.round() as u32)
    }

    /// Temperature of the hottest package.
    fn temperature_c(&self) -> Option<f64> {
        let millidegrees = self.temperatures.iter().filter_map(read_number::<i64>).max();
        millidegrees.map(|millidegrees| millidegrees as f64 / 1e3)
    }

    fn power_w(&mut self) -> Option<f64> {
        let spent = self.energy.joules().map(|joules| (now(), joules));
        let ((before, had), (after, has)) = (self.last_energy?, spent?);
        if after - before < MIN_POWER_SPAN {
            return None;
        }
        self.last_energy = spent;
        Some((has - had) / (after - before).as_secs_f64())
    }

    fn throttle(&mut self) -> Vec<Throttle> {
        let before = std::mem::replace(&mut self.throttle_count, sum_counters(&self.throttles));
        let rose = before.zip(self.throttle_count).is_some_and(|(before, now)| now > before);
        if rose { vec![Throttle::Thermal] } else { vec![] }
    }
}

impl Source for ProcessorSensors {
    fn name(&self) -> &'static str {
        "sysfs"
    }

    fn sample(&mut self) -> Sample {
        Sample {
            at: now(),
            clock_mhz: self.clock_mhz(),
            memory_clock_mhz: None,
            power_w: self.power_w(),
            temperature_c: self.temperature_c(),
            throttle: self.throttle(),
        }
    }

    fn joules(&mut self) -> Option<f64> {
        self.energy.joules()
    }

    fn other_users(&mut self, ours: &[u32]) -> Result<Vec<String>, String> {
        self.share.other_users(ours)
    }

    fn facts(&self) -> Value {
        let available = [
            ("clock", self.clock_mhz().is_some()),
            ("temperature", !self.temperatures.is_empty()),
            ("energy", self.energy.is_available()),
            ("throttling", !self.throttles.is_empty()),
            ("event counters", self.counter_error.is_none()),
        ];
        facts::facts(&self.root, available, self.counter_error.as_deref())
    }

    fn policy(&self) -> String {
        facts::policy(&self.root)
    }
}

/// Sum of the counters; `None` if there are none.
fn sum_counters(counters: &[PathBuf]) -> Option<u64> {
    (!counters.is_empty()).then(|| counters.iter().filter_map(read_number::<u64>).sum())
}

/// Thermometers of whole packages: those of the CPU's driver, otherwise the system's thermal zones.
fn thermometers(root: &Path) -> Vec<PathBuf> {
    let chips = numbered_entries(root.join("sys/class/hwmon"), "hwmon");
    let labeled = |label: &str| -> Vec<PathBuf> {
        let inputs = chips.iter().flat_map(|chip| (1..=MAX_SENSORS_PER_CHIP).map(move |n| (chip, n)));
        let says_so = |text: String| text.starts_with(label);
        inputs
            .filter(|(chip, n)| read_text(chip.join(format!("temp{n}_label"))).is_some_and(says_so))
            .map(|(chip, n)| chip.join(format!("temp{n}_input")))
            .collect()
    };
    // Intel's label, then AMD's: Tctl is meant for fans, and too high on some models.
    let found = ["Package id", "Tdie", "Tctl"].into_iter().map(labeled).find(|found| !found.is_empty());
    let is_processor = |kind: &String| kind.starts_with("x86_pkg_temp") || kind.starts_with("cpu");
    found.unwrap_or_else(|| {
        let zones = numbered_entries(root.join("sys/class/thermal"), "thermal_zone").into_iter();
        zones
            .filter(|zone| read_text(zone.join("type")).filter(is_processor).is_some())
            .map(|zone| zone.join("temp"))
            .collect()
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use tempfile::TempDir;

    /// Folder that acts as the root of a file system.
    pub(crate) struct Tree(TempDir);

    impl Tree {
        pub(crate) fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        pub(crate) fn root(&self) -> &Path {
            self.0.path()
        }

        pub(crate) fn write(&self, file: &str, content: &str) {
            let path = self.root().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{content}\n")).unwrap();
        }

        pub(crate) fn remove(&self, file: &str) {
            std::fs::remove_file(self.root().join(file)).unwrap();
        }
    }

    const CPU: &str = "sys/devices/system/cpu/cpu";

    #[test]
    fn clock_is_the_mean_of_cores() {
        let tree = Tree::new();
        for (core, kilohertz) in [(0, "3000000"), (1, "2000000"), (2, "1000499")] {
            tree.write(&format!("{CPU}{core}/cpufreq/scaling_cur_freq"), kilohertz);
        }
        tree.write("proc/cpuinfo", "cpu MHz\t: 5.0\nflags\t: aperfmperf");
        assert_eq!(ProcessorSensors::new(tree.root()).sample().clock_mhz, Some(2000));
    }

    #[test]
    fn many_cores_are_sampled_evenly() {
        let tree = Tree::new();
        for core in 0..100 {
            tree.write(&format!("{CPU}{core}/cpufreq/scaling_cur_freq"), &format!("{core}000"));
        }
        let processor = ProcessorSensors::new(tree.root());
        assert_eq!(processor.clocks.len(), 15);
        assert_eq!(processor.clock_mhz(), Some(49));
    }

    #[test]
    fn nominal_clocks_are_ignored() {
        let tree = Tree::new();
        tree.write("proc/cpuinfo", "cpu MHz\t: 2600.2\nflags\t: fpu hypervisor");
        assert_eq!(ProcessorSensors::new(tree.root()).sample().clock_mhz, None, "that is what it says on the label");
        tree.write("proc/cpuinfo", "cpu MHz\t: 2600.2\nflags\t: fpu aperfmperf\ncpu MHz\t: 2800.4");
        assert_eq!(ProcessorSensors::new(tree.root()).sample().clock_mhz, Some(2700));
    }

    #[test]
    fn throttling_is_reported_once_per_increase() {
        let tree = Tree::new();
        let set = |core: u32, level: &str, count: &str| {
            tree.write(&format!("{CPU}{core}/thermal_throttle/{level}_throttle_count"), count);
        };
        set(0, "core", "7");
        set(0, "package", "2");
        set(1, "core", "0");
        let mut processor = ProcessorSensors::new(tree.root());
        assert_eq!(processor.sample().throttle, []);
        set(1, "core", "1");
        assert_eq!(processor.sample().throttle, [Throttle::Thermal]);
        assert_eq!(processor.sample().throttle, []);
        set(0, "package", "3");
        assert_eq!(processor.sample().throttle, [Throttle::Thermal]);
    }

    #[test]
    fn temperature_is_the_hottest_package() {
        let tree = Tree::new();
        tree.write("sys/class/thermal/thermal_zone0/type", "acpitz");
        tree.write("sys/class/thermal/thermal_zone0/temp", "90000");
        assert_eq!(ProcessorSensors::new(tree.root()).sample().temperature_c, None);
        tree.write("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp");
        tree.write("sys/class/thermal/thermal_zone1/temp", "30000");
        assert_eq!(ProcessorSensors::new(tree.root()).sample().temperature_c, Some(30.0));
        for (chip, input, label, temperature) in [
            (2, 1, "Package id 0", "41000"),
            (2, 2, "Core 0", "99000"),
            (3, 1, "Package id 1", "42500"),
            (4, 1, "Tctl", "80000"),
        ] {
            tree.write(&format!("sys/class/hwmon/hwmon{chip}/temp{input}_label"), label);
            tree.write(&format!("sys/class/hwmon/hwmon{chip}/temp{input}_input"), temperature);
        }
        assert_eq!(ProcessorSensors::new(tree.root()).sample().temperature_c, Some(42.5));
    }

    #[test]
    fn power_is_energy_per_time() {
        let tree = Tree::new();
        let rapl = "sys/class/powercap/intel-rapl:0";
        for (file, content) in [("name", "package-0"), ("energy_uj", "500000"), ("max_energy_range_uj", "1000000")] {
            tree.write(&format!("{rapl}/{file}"), content);
        }
        let mut processor = ProcessorSensors::new(tree.root());
        let (before, _) = processor.last_energy.unwrap();
        std::thread::sleep(MIN_POWER_SPAN);
        tree.write(&format!("{rapl}/energy_uj"), "300000");
        let power = processor.sample().power_w.unwrap();
        let (after, joules) = processor.last_energy.unwrap();
        assert_eq!(joules, 0.8);
        assert_eq!(power, 0.8 / (after - before).as_secs_f64());
        processor.last_energy = Some((now(), joules));
        assert_eq!(processor.sample().power_w, None, "too soon");
    }

    #[test]
    fn missing_sensors_are_absent_not_zero() {
        let tree = Tree::new();
        let mut processor = ProcessorSensors::new(tree.root());
        let sample = processor.sample();
        assert_eq!(sample, Sample { at: sample.at, ..Sample::default() });
        assert!(processor.joules().is_none() && processor.other_users(&[]).is_err());
        assert_eq!(processor.policy(), "unknown");
        let missing = ["clock", "temperature", "energy", "throttling"];
        assert_eq!(processor.facts(), serde_json::json!({ "not_reported": missing }));
    }

    #[test]
    fn unavailable_counters_are_explained() {
        let tree = Tree::new();
        let facts =
            ProcessorSensors { counter_error: Some("not allowed".into()), ..ProcessorSensors::new(tree.root()) }
                .facts();
        assert_eq!(facts["event_counters_refused"], "not allowed");
        assert!(facts["not_reported"].as_array().unwrap().contains(&"event counters".into()), "{facts}");
        assert_eq!(processor().facts().get("event_counters_refused").is_some(), Counters::open().is_err());
    }

    #[test]
    fn local_machine_is_readable() {
        let mut processor = processor();
        println!("{:?}\n{:#}\n{}", processor.sample(), processor.facts(), processor.policy());
        let clock = processor.sample().clock_mhz;
        assert!(clock.is_none_or(|clock| (100..10_000).contains(&clock)), "{clock:?}");
        assert!(processor.sample().temperature_c.is_none_or(|celsius| (-40.0..130.0).contains(&celsius)));
    }
}
