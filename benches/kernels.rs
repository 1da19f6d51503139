//! What do the probes reach that peaks are measured by? Copies and reads of memory, beyond the cache and within, and a
//! chain of dependent steps, on the device that `CALORIMETER_BENCH_DEVICE` names.

mod device;

use calorimeter_kernels::probes::{HostProbes, Probe, Probes};
use calorimeter_timing::{DeviceTime, Failure, Work, bench_work};
use calorimeter_zoo::{Device, Machines};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

struct Probed(Box<dyn Probe>);

impl Work for Probed {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(self.0.launch()?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.0.settle()?)
    }
}

/// The probes of a device.
fn probes(device: Device, machines: &mut Machines) -> Result<Box<dyn Probes>, Failure> {
    let _ = &machines;
    match device {
        Device::Cpu => Ok(Box::new(HostProbes)),
        #[cfg(feature = "cuda")]
        Device::Cuda(index) => Ok(Box::new(calorimeter_kernels::probes::NativeProbes::new(machines.native(index)?))),
        #[cfg(feature = "wgpu")]
        Device::Vulkan(_) | Device::Metal(_) => {
            let client = calorimeter_zoo::backends::wgpu::client(device)?;
            Ok(Box::new(calorimeter_kernels::probes::CubeProbes::new(client)))
        }
        other => Err(format!("this build has no probes for {other}; build with `--features cuda` or `wgpu`").into()),
    }
}

fn kernels(criterion: &mut Criterion<DeviceTime>) {
    let device = device::device();
    let mut machines = Machines::default();
    let mut probes = probes(device, &mut machines).unwrap_or_else(|error| panic!("{error}"));
    let mut clock = device::clock(device);
    let mut group = criterion.benchmark_group(format!("kernels on {device}"));
    for mebibytes in [1, 64] {
        type Make = fn(&mut dyn Probes, u64) -> Result<Box<dyn Probe>, calorimeter_kernels::probes::ProbeError>;
        let copy: Make = |probes, bytes| probes.copy(bytes, 1);
        let read: Make = |probes, bytes| probes.read(bytes, 1);
        for (name, make) in [("copy", copy), ("read", read)] {
            let mut probe = Probed(make(&mut *probes, mebibytes << 20).unwrap_or_else(|error| panic!("{error}")));
            group.throughput(Throughput::BytesDecimal(probe.0.bytes()));
            group.bench_function(BenchmarkId::new(name, format!("{mebibytes} MiB")), |bencher| {
                bench_work(bencher, &mut *clock, &mut probe);
            });
        }
    }
    group.throughput(Throughput::Elements(10_000));
    let mut spin = Probed(probes.spin(10_000).unwrap_or_else(|error| panic!("{error}")));
    group.bench_function("chain of 10,000 steps", |bencher| bench_work(bencher, &mut *clock, &mut spin));
    group.finish();
}

criterion_group! {
    name = benches;
    config = device::on_devices();
    targets = kernels
}
criterion_main!(benches);
