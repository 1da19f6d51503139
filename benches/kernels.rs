//! Rates of the probes that measure peaks: copies and reads of memory, within and beyond the cache, and a chain of
//! dependent steps, on the device of `CALORIMETER_BENCH_DEVICE`.

mod device;

use calorimeter_kernels::probes::{Probe, ProbeError, Probes};
use calorimeter_probe::platforms::{self, ProbeWork};
use calorimeter_timing::{DeviceTime, bench_work};
use calorimeter_zoo::NativeDevices;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn kernels(criterion: &mut Criterion<DeviceTime>) {
    let device = device::device();
    let mut machines = NativeDevices::default();
    let mut probes = platforms::for_device(device)
        .require_probing(device)
        .and_then(|probing| probing.probes(device, &mut machines))
        .unwrap_or_else(|error| panic!("{error}"));
    let mut clock = device::clock(device);
    let mut group = criterion.benchmark_group(format!("kernels on {device}"));
    for mebibytes in [1, 64] {
        type Make = fn(&mut dyn Probes, u64) -> Result<Box<dyn Probe>, ProbeError>;
        let copy: Make = |probes, bytes| probes.copy(bytes, 1);
        let read: Make = |probes, bytes| probes.read(bytes, 1);
        for (name, make) in [("copy", copy), ("read", read)] {
            let mut probe = ProbeWork(make(&mut *probes, mebibytes << 20).unwrap_or_else(|error| panic!("{error}")));
            group.throughput(Throughput::BytesDecimal(probe.0.bytes()));
            group.bench_function(BenchmarkId::new(name, format!("{mebibytes} MiB")), |bencher| {
                bench_work(bencher, &mut *clock, &mut probe);
            });
        }
    }
    group.throughput(Throughput::Elements(10_000));
    let mut spin = ProbeWork(probes.spin(10_000).unwrap_or_else(|error| panic!("{error}")));
    group.bench_function("chain of 10,000 steps", |bencher| bench_work(bencher, &mut *clock, &mut spin));
    group.finish();
}

criterion_group! {
    name = benches;
    config = device::device_criterion();
    targets = kernels
}
criterion_main!(benches);
