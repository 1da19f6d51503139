//! The probes in CubeCL against what they should compute; `-- --nocapture` prints their times.

use crate::devices;
use calorimeter_kernels::probes::{CubeProbes, Probe, ProbeError, Probes};
use std::time::Instant;

const MIB: u64 = 1 << 20;

#[test]
fn probes_are_right_on_vulkan() {
    let Some(client) = devices::vulkan() else {
        assert!(std::env::var_os("CI").is_none(), "CI installs a Vulkan driver; none was found");
        println!("no Vulkan adapter here: nothing was checked");
        return;
    };
    let largest = client.properties().memory.max_page_size;
    let mut probes = CubeProbes::new(client);
    are_right(&mut probes);
    // All that a software adapter gives.
    are_right_at(&mut probes, largest.min(128 * MIB), 1);
    refuse_what_cannot_be(&mut probes, largest);
    take_time(&mut probes, 16 * MIB, 100_000);
}

#[test]
fn probes_are_right_on_cuda() {
    let Some(client) = devices::cuda() else { return };
    let largest = client.properties().memory.max_page_size;
    let mut probes = CubeProbes::new(client);
    are_right(&mut probes);
    // More cubes than one dimension of a launch takes.
    are_right_at(&mut probes, 2048 * MIB + 16, 1);
    refuse_what_cannot_be(&mut probes, largest);
    take_time(&mut probes, 1024 * MIB, 10_000_000);
}

fn are_right(probes: &mut dyn Probes) {
    for steps in [0, 1, 128, 1_234_567] {
        probes.spin(steps).unwrap().check().unwrap();
    }
    // One access, a whole and a partly filled cube of either kernel, and many of them.
    for bytes in [16, 16 << 10, (16 << 10) + 16, 32 << 10, (32 << 10) - 16, 3 * MIB + 48] {
        are_right_at(probes, bytes, 3);
    }
}

fn are_right_at(probes: &mut dyn Probes, bytes: u64, sets: u32) {
    let mut copy = probes.copy(bytes, sets).unwrap();
    assert_eq!((copy.check(), copy.bytes()), (Ok(()), 2 * bytes), "a copy of {bytes} bytes");
    drop(copy);
    let mut read = probes.read(bytes, sets).unwrap();
    assert_eq!((read.check(), read.bytes()), (Ok(()), bytes), "a read of {bytes} bytes");
    // A second check begins where the first ended.
    read.launch().unwrap();
    assert_eq!(read.check(), Ok(()));
}

fn refuse_what_cannot_be(probes: &mut dyn Probes, limit: u64) {
    let bytes = limit + 16;
    assert_eq!(probes.copy(bytes, 1).err(), Some(ProbeError::BufferSize { bytes, limit }));
    assert_eq!(probes.read(20, 1).err(), Some(ProbeError::BufferSize { bytes: 20, limit }));
    assert_eq!(probes.read(16, 0).err(), Some(ProbeError::NoSets));
    let steps = 1 << 32;
    assert_eq!(probes.spin(steps).err(), Some(ProbeError::TooManySteps { steps, limit: steps - 1 }));
}

/// Prints what the probes take, for a person to judge.
fn take_time(probes: &mut dyn Probes, bytes: u64, steps: u64) {
    for steps in [steps, 2 * steps, 4 * steps] {
        println!("spin of {steps} steps: {:.1} us", 1e6 * fastest(&mut *probes.spin(steps).unwrap(), 1));
    }
    for mut probe in [probes.copy(bytes, 2).unwrap(), probes.read(bytes, 2).unwrap()] {
        println!("{} bytes moved: {:.1} GB/s", probe.bytes(), probe.bytes() as f64 / fastest(&mut *probe, 10) / 1e9);
    }
}

/// Seconds for one of some launches in a row, the least of five times.
fn fastest(probe: &mut dyn Probe, launches: u32) -> f64 {
    probe.check().unwrap();
    let times = (0..5).map(|_| {
        probe.settle().unwrap();
        let start = Instant::now();
        (0..launches).for_each(|_| probe.launch().unwrap());
        probe.settle().unwrap();
        start.elapsed() / launches
    });
    times.min().unwrap().as_secs_f64()
}
