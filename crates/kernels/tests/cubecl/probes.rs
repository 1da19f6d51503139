//! CubeCL probes against expected results; `-- --nocapture` prints their times.

use crate::devices;
use calorimeter_kernels::probes::{CubeProbes, Probe, ProbeError, Probes};
use std::time::Instant;

const MIB: u64 = 1 << 20;

#[test]
#[ignore = "needs Vulkan"]
fn probes_pass_on_vulkan() {
    let client = devices::vulkan().expect("this test needs a Vulkan adapter; lavapipe suffices");
    let largest = client.properties().memory.max_page_size;
    let mut probes = CubeProbes::new(client);
    check_sizes(&mut probes);
    // The largest buffer of a software adapter.
    check_size(&mut probes, largest.min(128 * MIB), 1);
    check_rejections(&mut probes, largest);
    print_times(&mut probes, 16 * MIB, 100_000);
}

#[test]
#[ignore = "needs CUDA"]
fn probes_pass_on_cuda() {
    let client = devices::cuda();
    let largest = client.properties().memory.max_page_size;
    let mut probes = CubeProbes::new(client);
    check_sizes(&mut probes);
    // More cubes than one grid dimension holds.
    check_size(&mut probes, 2048 * MIB + 16, 1);
    check_rejections(&mut probes, largest);
    print_times(&mut probes, 1024 * MIB, 10_000_000);
}

fn check_sizes(probes: &mut dyn Probes) {
    for steps in [0, 1, 128, 1_234_567] {
        probes.spin(steps).unwrap().check().unwrap();
    }
    // A single vector, a full and a partially filled cube of either kernel, and many cubes.
    for bytes in [16, 16 << 10, (16 << 10) + 16, 32 << 10, (32 << 10) - 16, 3 * MIB + 48] {
        check_size(probes, bytes, 3);
    }
}

fn check_size(probes: &mut dyn Probes, bytes: u64, sets: u32) {
    let mut copy = probes.copy(bytes, sets).unwrap();
    assert_eq!((copy.check(), copy.bytes()), (Ok(()), 2 * bytes), "a copy of {bytes} bytes");
    drop(copy);
    let mut read = probes.read(bytes, sets).unwrap();
    assert_eq!((read.check(), read.bytes()), (Ok(()), bytes), "a read of {bytes} bytes");
    // A second check starts at another buffer set.
    read.launch().unwrap();
    assert_eq!(read.check(), Ok(()));
}

fn check_rejections(probes: &mut dyn Probes, limit: u64) {
    let bytes = limit + 16;
    assert_eq!(probes.copy(bytes, 1).err(), Some(ProbeError::BufferSize { bytes, limit }));
    assert_eq!(probes.read(20, 1).err(), Some(ProbeError::BufferSize { bytes: 20, limit }));
    assert_eq!(probes.read(16, 0).err(), Some(ProbeError::NoSets));
    let steps = 1 << 32;
    assert_eq!(probes.spin(steps).err(), Some(ProbeError::TooManySteps { steps, limit: steps - 1 }));
}

/// Prints the times of the probes, for manual inspection.
fn print_times(probes: &mut dyn Probes, bytes: u64, steps: u64) {
    for steps in [steps, 2 * steps, 4 * steps] {
        println!("spin of {steps} steps: {:.1} us", 1e6 * fastest(&mut *probes.spin(steps).unwrap(), 1));
    }
    for mut probe in [probes.copy(bytes, 2).unwrap(), probes.read(bytes, 2).unwrap()] {
        println!("{} bytes moved: {:.1} GB/s", probe.bytes(), probe.bytes() as f64 / fastest(&mut *probe, 10) / 1e9);
    }
}

/// Seconds per launch: minimum over five batches.
fn fastest(probe: &mut dyn Probe, launches: u32) -> f64 {
    probe.check().unwrap();
    let times = (0..5).map(|_| {
        probe.synchronize().unwrap();
        let start = Instant::now();
        (0..launches).for_each(|_| probe.launch().unwrap());
        probe.synchronize().unwrap();
        start.elapsed() / launches
    });
    times.min().unwrap().as_secs_f64()
}
