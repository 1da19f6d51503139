//! Kernel records, events and graphs on an NVIDIA GPU. The tests depend on times and fail if the GPU has other users.

use crate::spin::{Trouble, gpu, lock_gpu};
use calorimeter_case::Warning;
use calorimeter_timing::cuda::{ActivityKinds, CudaEvents, Cupti, GraphClock, KernelClock, TrafficMeter};
use calorimeter_timing::{Failure, Stopwatch, Work, median};
use cudarc::driver::sys::CUevent_flags;
use std::num::NonZeroU32;
use std::time::Instant;

/// Interleaved windows of each clock.
const REPEATS: usize = 15;

fn cupti() -> &'static Cupti {
    Cupti::load().unwrap_or_else(|reason| panic!("{reason}"))
}

fn window(clock: &mut dyn Stopwatch, work: &mut dyn Work, launches: u32) -> f64 {
    clock.window(work, launches).and_then(|reading| reading.resolve()).unwrap() as f64
}

fn middle(samples: impl IntoIterator<Item = f64>) -> f64 {
    median(&samples.into_iter().collect::<Vec<_>>()).unwrap()
}

/// Host time of a number of launches including synchronization.
fn wall(work: &mut dyn Work, launches: u32) -> Result<f64, Failure> {
    let begun = Instant::now();
    (0..launches).try_for_each(|_| work.launch())?;
    work.synchronize()?;
    Ok(begun.elapsed().as_nanos() as f64)
}

#[test]
fn cupti_loads_or_explains() {
    let _turn = lock_gpu();
    match Cupti::load() {
        Ok(cupti) => println!("CUPTI loads; its time is {} ns", cupti.now()),
        Err(reason) => {
            println!("{reason}");
            assert!(["libcupti", "CUPTI"].iter().any(|name| reason.contains(name)), "{reason}");
            assert_eq!(Cupti::load().unwrap_err(), reason);
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn cupti_records_every_launch() {
    let (gpu, _turn) = gpu();
    let cupti = cupti();
    let (mut spins, mut idles) = (gpu.spins(5.0), gpu.idles());
    let before = cupti.now();
    let ((), seen) = cupti
        .record(ActivityKinds::ALL, || {
            (0..5).try_for_each(|_| spins.launch())?;
            (0..3).try_for_each(|_| idles.launch())?;
            gpu.touch_memory(1 << 20)?;
            idles.synchronize()
        })
        .unwrap();
    let after = cupti.now();
    assert_eq!(seen.dropped, 0);
    let names: Vec<&str> = seen.kernels.iter().map(|kernel| &*kernel.name).collect();
    assert_eq!(names.iter().filter(|&&name| name == "spin").count(), 5, "{names:?}");
    assert_eq!(names.iter().filter(|&&name| name == "idle").count(), 3, "{names:?}");
    assert_eq!(names.len(), 8, "{names:?}");
    assert!(seen.kernels.iter().all(|kernel| kernel.stream == seen.kernels[0].stream));
    assert_eq!(seen.copies.iter().map(|copy| (copy.what, copy.bytes)).collect::<Vec<_>>(), [("memset", 1 << 20)]);
    let memory: Vec<_> = seen.memory.iter().map(|event| (event.freed, event.kind)).collect();
    assert_eq!(memory, [(false, "device"), (true, "device")], "{:?}", seen.memory);
    let [allocated, freed] = &seen.memory[..] else { unreachable!() };
    assert_eq!((allocated.bytes, allocated.address), (1 << 20, freed.address));
    for kernel in &seen.kernels {
        let call = seen.calls.iter().find(|call| call.correlation == kernel.correlation).expect("the launching call");
        assert!(call.name.starts_with("cuLaunchKernel"), "{call:?} {kernel:?}");
        // The clocks of host and device are aligned to about a millisecond.
        assert!(
            before < kernel.start_ns + 1_000_000 && kernel.end_ns < after + 1_000_000,
            "{before} {kernel:?} {after}"
        );
    }
    let first = &seen.kernels[0];
    let after = first.start_ns.cast_signed() - before.cast_signed();
    println!("first kernel: {after} ns after recording began, {} ns long", first.end_ns - first.start_ns);
}

#[test]
#[ignore = "needs CUDA"]
fn kernel_clock_agrees_with_events() {
    let (gpu, _turn) = gpu();
    let (mut kernels, mut events) = (KernelClock::new(cupti()), CudaEvents::new(gpu.stream.clone()));
    let mut work = gpu.spins(1000.0);
    let turns: Vec<[f64; 3]> = (0..REPEATS)
        .map(|_| [window(&mut kernels, &mut work, 1), window(&mut events, &mut work, 1), wall(&mut work, 1).unwrap()])
        .collect();
    let [kernel, event, wall] = [0, 1, 2].map(|clock| middle(turns.iter().map(|turn| turn[clock])));
    println!("a spin of 1 ms: kernel clock {kernel:.0} ns, events {event:.0} ns, wall {wall:.0} ns");
    assert!((kernel / event - 1.0).abs() < 0.01, "{kernel} {event}");
    assert!(kernel <= wall, "{kernel} {wall}");
    let step = kernels.resolution(&mut gpu.spins(5.0)).unwrap();
    println!("kernel clock: {step:?}; events: {:?}", events.resolution(&mut gpu.idles()).unwrap());
    assert!(step.empty_ns == 0 && step.step_ns > 0);
}

#[test]
#[ignore = "needs CUDA"]
fn double_steps_take_double_time() {
    let (gpu, _turn) = gpu();
    let mut clock = KernelClock::new(cupti());
    let mut single = gpu.spins(1000.0);
    let mut double = gpu.steps(2 * single.steps);
    let turns: Vec<[f64; 2]> =
        (0..REPEATS).map(|_| [window(&mut clock, &mut single, 1), window(&mut clock, &mut double, 1)]).collect();
    let ratio = middle(turns.iter().map(|turn| turn[1] / turn[0]));
    println!("twice the steps take {ratio:.4} times as long");
    assert!((ratio - 2.0).abs() < 0.02, "{ratio}");
}

#[test]
#[ignore = "needs CUDA"]
fn events_exclude_host_launch_rate() {
    let (gpu, _turn) = gpu();
    const LAUNCHES: u32 = 64;
    let (mut events, mut kernels) = (CudaEvents::new(gpu.stream.clone()), KernelClock::new(cupti()));
    let mut work = gpu.idles();
    let plugged = middle((0..REPEATS).map(|_| window(&mut events, &mut work, LAUNCHES))) / f64::from(LAUNCHES);
    let unplugged = middle((0..REPEATS).map(|_| {
        let start = gpu.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
        (0..LAUNCHES).for_each(|_| work.launch().unwrap());
        let end = gpu.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
        f64::from(start.elapsed_ms(&end).unwrap()) * 1e6
    })) / f64::from(LAUNCHES);
    let running = window(&mut kernels, &mut work, LAUNCHES) / f64::from(LAUNCHES);
    println!("an empty kernel: {plugged:.0} ns by events, {unplugged:.0} ns without a plug, {running:.0} ns running");
    assert!(plugged < 4000.0, "{plugged}");
    assert_eq!(events.warning(), None);
}

#[test]
#[ignore = "needs CUDA"]
fn stream_blocker_cannot_deadlock() {
    let (gpu, _turn) = gpu();
    let mut events = CudaEvents::new(gpu.stream.clone());
    let waited = window(&mut events, &mut gpu.spins(5.0).with(Trouble::Waits), 4);
    assert_eq!(events.warning(), Some(Warning::early_windows(1)));
    let queued = window(&mut events, &mut gpu.spins(5.0), 5000) / 5000.0;
    println!("4 waiting launches: {waited:.0} ns; 5000 launches of 5 us: {queued:.0} ns each; {:?}", events.warning());
    assert!(queued >= 4000.0, "{queued}");
    let failed = events.window(&mut gpu.spins(5.0).with(Trouble::FailsAfter(2)), 4).err().unwrap();
    assert_eq!(failed.to_string(), "this launch fails");
    assert!(window(&mut events, &mut gpu.spins(5.0), 4) > 0.0);
}

#[test]
#[ignore = "needs CUDA"]
fn graph_clock_agrees_with_kernel_clock() {
    let (gpu, _turn) = gpu();
    const UNIT: NonZeroU32 = NonZeroU32::new(16).unwrap();
    const LAUNCHES: u32 = 4 * UNIT.get();
    let (mut graphs, mut kernels) = (GraphClock::new(gpu.stream.clone(), UNIT), KernelClock::new(cupti()));
    let mut work = gpu.spins(20.0);
    let turns: Vec<[f64; 2]> = (0..REPEATS)
        .map(|_| [window(&mut graphs, &mut work, LAUNCHES), window(&mut kernels, &mut work, LAUNCHES)])
        .collect();
    let [graph, kernel] = [0, 1].map(|clock| middle(turns.iter().map(|turn| turn[clock])) / f64::from(LAUNCHES));
    println!("a spin of 20 us: {graph:.0} ns in a graph, {kernel:.0} ns by the kernel clock");
    assert!((graph / kernel - 1.0).abs() < 0.1, "{graph} {kernel}");
    assert_eq!((graphs.launch_multiple(), graphs.warning()), (16, None));
    assert!(
        graphs.window(&mut work, 17).err().unwrap().to_string().contains("17 launches are not a multiple of the 16")
    );
}

#[test]
#[ignore = "needs CUDA"]
fn failed_capture_leaves_the_stream_usable() {
    let (gpu, _turn) = gpu();
    let mut clock = GraphClock::new(gpu.stream.clone(), NonZeroU32::new(2).unwrap());
    let error = clock.window(&mut gpu.spins(5.0).with(Trouble::Waits), 2).err().unwrap().to_string();
    assert!(error.contains("captured"), "{error}");
    assert!(window(&mut clock, &mut gpu.spins(5.0), 2) > 0.0);
    assert!(window(&mut CudaEvents::new(gpu.stream.clone()), &mut gpu.spins(5.0), 2) > 0.0);
}

/// Recording writes a timestamp before and after each kernel. The half microsecond is included in wall time but not in
/// windows of the kernel clock, which must not exceed times without records.
#[test]
#[ignore = "needs CUDA"]
fn cupti_overhead_is_below_3_percent() {
    let (gpu, _turn) = gpu();
    const LAUNCHES: u32 = 960;
    const UNIT: NonZeroU32 = NonZeroU32::new(64).unwrap();
    let (cupti, mut work) = (cupti(), gpu.spins(10.0));
    let (mut graphs, mut kernels) = (GraphClock::new(gpu.stream.clone(), UNIT), KernelClock::new(cupti));
    let mut walls = Vec::new();
    let turns: Vec<[f64; 2]> = (0..20)
        .map(|_| {
            let bare = wall(&mut work, LAUNCHES).unwrap();
            let (recorded, seen) = cupti.record(ActivityKinds::DEVICE, || wall(&mut work, LAUNCHES)).unwrap();
            assert_eq!((seen.kernels.len(), seen.dropped), (LAUNCHES as usize, 0));
            walls.push(recorded / bare);
            [window(&mut graphs, &mut work, LAUNCHES), window(&mut kernels, &mut work, LAUNCHES)]
        })
        .collect();
    let [graph, kernel] = [0, 1].map(|clock| middle(turns.iter().map(|turn| turn[clock])) / f64::from(LAUNCHES));
    println!(
        "a spin of 10 us: {kernel:.0} ns with records, {graph:.0} ns in a graph without; wall time x {:.4}",
        middle(walls)
    );
    assert!(kernel < 1.03 * graph && kernel > 0.8 * graph, "{kernel} {graph}");
}

#[test]
#[ignore = "needs CUDA"]
fn failed_work_leaves_cupti_usable() {
    let (gpu, _turn) = gpu();
    let mut clock = KernelClock::new(cupti());
    let failed = clock.window(&mut gpu.spins(5.0).with(Trouble::FailsAfter(2)), 4).err().unwrap();
    assert_eq!(failed.to_string(), "this launch fails");
    let kernels = clock.kernels(&mut gpu.spins(5.0), 4).unwrap();
    assert_eq!(kernels.iter().map(|kernel| (&*kernel.name, kernel.calls)).collect::<Vec<_>>(), [("spin", 4)]);
    assert!(window(&mut clock, &mut gpu.spins(5.0), 1) > 1000.0);
    let nested =
        cupti().record(ActivityKinds::DEVICE, || Ok(cupti().record(ActivityKinds::DEVICE, || Ok(())).is_err()));
    assert!(nested.unwrap().0, "one recording at a time");
}

#[test]
#[ignore = "needs CUDA"]
fn traffic_counters_match_copied_bytes() {
    let (gpu, _turn) = gpu();
    const BYTES: u64 = 1 << 29;
    let blocks = gpu.two_blocks(BYTES as usize).unwrap();
    let copies = |count| move || gpu.copy_memory(blocks, BYTES as usize, count);
    copies(2)().unwrap();
    let mut meter = TrafficMeter::open(0).unwrap_or_else(|reason| panic!("{reason}"));
    let idle = meter.measure(|| gpu.idles().synchronize()).unwrap();
    let same_thread = meter.measure(copies(8)).unwrap();
    let other_thread = meter.measure(|| std::thread::scope(|scope| scope.spawn(copies(8)).join().unwrap())).unwrap();
    println!("nothing: {idle:?}; 4 GiB copied: {same_thread:?}; by another thread: {other_thread:?}");
    assert!(idle.read + idle.written < BYTES / 100, "{idle:?}");
    for bytes in [same_thread.read, same_thread.written, other_thread.read, other_thread.written] {
        let ratio = bytes as f64 / (8 * BYTES) as f64;
        assert!((ratio - 1.0).abs() < 0.03, "{ratio} of what was copied");
    }
    let failed = meter.measure(|| Err("this fails".into())).unwrap_err();
    assert_eq!(failed.to_string(), "this fails");
    assert!(meter.measure(copies(1)).unwrap().read > BYTES / 2);
}

#[test]
#[ignore = "needs CUDA"]
fn traffic_counters_leave_clocks_unchanged() {
    let (gpu, _turn) = gpu();
    const LAUNCHES: u32 = 200;
    let (mut clock, mut work) = (KernelClock::new(cupti()), gpu.spins(10.0));
    let mut times = || {
        let turns: Vec<[f64; 2]> = (0..4 * REPEATS)
            .map(|_| [window(&mut clock, &mut work, LAUNCHES), wall(&mut work, LAUNCHES).unwrap()])
            .collect();
        [0, 1].map(|clock| middle(turns.iter().map(|turn| turn[clock])) / f64::from(LAUNCHES))
    };
    times();
    let before = times();
    let mut meter = TrafficMeter::open(0).unwrap_or_else(|reason| panic!("{reason}"));
    meter.measure(|| gpu.spins(10.0).launch().and_then(|()| gpu.idles().synchronize())).unwrap();
    let open = times();
    drop(meter);
    let after = times();
    println!(
        "kernel and wall time of a launch: {before:.0?} ns, {open:.0?} with counters open, {after:.0?} after them"
    );
    for (before, after) in before.iter().zip(after) {
        assert!((after / before - 1.0).abs() < 0.02, "{before} {after}");
    }
}
