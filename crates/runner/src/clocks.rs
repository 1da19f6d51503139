//! Which stopwatch times what.

use calorimeter_case::Regime;
use calorimeter_timing::{EndToEnd, Enqueue, Failure, Stopwatch, WallClock, Work};
use calorimeter_zoo::Implementation;
use calorimeter_zoo::{Device, Machines, Setup};
#[cfg(feature = "cuda")]
use std::num::NonZeroU32;

/// Whether a regime exists for an implementation on a device; the error says why not.
pub fn supported(regime: Regime, implementation: Implementation, device: Device) -> Result<(), String> {
    let native_on_cuda = matches!(device, Device::Cuda(_)) && implementation == Implementation::Native;
    match (regime, device) {
        (_, Device::Mock) => Ok(()),
        (Regime::Graph, _) if !native_on_cuda => Err(format!(
            "graph: only `native` on cuda enqueues on a stream that can be captured, not `{implementation}` on {device}"
        )),
        (Regime::HostEnqueue, Device::Cpu) => {
            Err("host-enqueue: work on the cpu has been done when the call returns; host-e2e is its time".into())
        }
        _ => Ok(()),
    }
}

/// A stopwatch, with a remark where it is not the one that should be.
type Choice = (Box<dyn Stopwatch>, Option<String>);

/// The stopwatch for work of a setup in a regime.
pub fn stopwatch(
    regime: Regime,
    setup: Setup,
    machines: &mut Machines,
    work: &mut dyn Work,
) -> Result<Choice, Failure> {
    match regime {
        Regime::HostE2e => Ok((Box::new(EndToEnd), None)),
        Regime::HostEnqueue => Ok((Box::new(Enqueue), None)),
        Regime::Graph => graph(setup, machines),
        Regime::DeviceCold | Regime::DeviceHot => device(setup, machines, work),
    }
}

#[cfg(feature = "cuda")]
fn graph(setup: Setup, machines: &mut Machines) -> Result<Choice, Failure> {
    let Device::Cuda(index) = setup.device else { return Err("only cuda has graphs".into()) };
    let stream = machines.native(index)?.stream().clone();
    // Every buffer set once, or what is replayed would stay in the cache.
    let captured = NonZeroU32::new(setup.sets).unwrap_or(NonZeroU32::MIN);
    Ok((Box::new(calorimeter_timing::cuda::GraphClock::new(stream, captured)), None))
}

#[cfg(not(feature = "cuda"))]
fn graph(_: Setup, _: &mut Machines) -> Result<Choice, Failure> {
    Err("this build has no CUDA; build with `--features cuda`".into())
}

fn device(setup: Setup, machines: &mut Machines, work: &mut dyn Work) -> Result<Choice, Failure> {
    let _ = (&machines, &work);
    match setup.device {
        Device::Cpu => Ok((Box::new(WallClock::synchronous()), None)),
        #[cfg(feature = "cuda")]
        Device::Cuda(index) => Ok(match calorimeter_timing::cuda::Cupti::load() {
            Ok(cupti) => (Box::new(calorimeter_timing::cuda::KernelClock::new(cupti)), None),
            Err(why) if setup.implementation == Implementation::Native => {
                let stream = machines.native(index)?.stream().clone();
                let remark = format!("no kernel records ({why}); times are those between CUDA events");
                (Box::new(calorimeter_timing::cuda::CudaEvents::new(stream)), Some(remark))
            }
            Err(why) => {
                (Box::new(WallClock::slope()), Some(format!("no kernel records ({why}); times are wall-clock slopes")))
            }
        }),
        // The device's timestamps bracket a closure that runs on the device's own thread, where draining a fusion queue
        // waits for that very thread: fused work is timed from outside.
        #[cfg(feature = "wgpu")]
        Device::Vulkan(_) | Device::Metal(_) if setup.implementation != Implementation::Fused => {
            let client = calorimeter_zoo::backends::wgpu::client(setup.device)?;
            let slope = |why: &str| -> Choice {
                (Box::new(WallClock::slope()), Some(format!("{why}; times are wall-clock slopes")))
            };
            Ok(match calorimeter_timing::Timestamps::new(client) {
                None => slope("the adapter has no timestamp queries"),
                Some(timestamps) if timestamps.covers(work)? => (Box::new(timestamps), None),
                Some(_) => slope("a launch is longer than the compute pass that timestamps can bracket"),
            })
        }
        _ => Ok((Box::new(WallClock::slope()), None)),
    }
}

/// The name of the clock that will be used, for `doctor`; no device is touched.
pub fn expected(device: Device) -> String {
    match device {
        Device::Cpu => "wall".into(),
        #[cfg(feature = "cuda")]
        Device::Cuda(_) => match calorimeter_timing::cuda::Cupti::load() {
            Ok(_) => "cupti".into(),
            Err(why) => format!("slope for burn, cuda-events for native: {why}"),
        },
        #[cfg(not(feature = "cuda"))]
        Device::Cuda(_) => "none in this build".into(),
        Device::Vulkan(_) | Device::Metal(_) => "timestamps for eager, slope for fused".into(),
        Device::Mock => "mock".into(),
    }
}
