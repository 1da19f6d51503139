//! Counting allocator as the global allocator of a process.
//!
//! A recording covers all threads of its process, so each test runs in its own process, in which only the test
//! harness's main thread exists besides, and waits. `--nocapture` prints the overhead of the allocator.

use calorimeter_timing::memory::{CountingAllocator, MemoryEvent, Quantity, Recording, RecordingError, Timeline};
use calorimeter_timing::{Arm, Closure, NullObserver, Options, WallClock, measure};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator(System);

/// Runs `body` in a separate process without other activity.
fn run_in_own_process(name: &str, body: fn()) {
    const CHILD: &str = "CALORIMETER_TEST_ALONE";
    if std::env::var_os(CHILD).is_some() {
        await_main_thread();
        return body();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--test-threads=1", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{out}");
    assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
}

/// Waits until the harness's main thread sleeps: it allocates before, and sleeps until the test is over.
fn await_main_thread() {
    let stat = format!("/proc/self/task/{}/stat", std::process::id());
    if !Path::new(&stat).exists() {
        return thread::sleep(Duration::from_millis(500)); // not Linux
    }
    // The state follows the name, which is in parentheses.
    while !fs::read_to_string(&stat).unwrap().rsplit(')').next().unwrap().starts_with(" S") {
        thread::yield_now();
    }
}

fn sizes_and_frees(timeline: &Timeline) -> Vec<(u64, bool)> {
    timeline.events.iter().map(|event| (event.bytes, event.freed)).collect()
}

#[test]
fn allocations_are_recorded_with_size_and_free() {
    run_in_own_process("allocations_are_recorded_with_size_and_free", || {
        let early = vec![1_u8; 1_009];
        let mut recording = Recording::start().unwrap();
        let kept = vec![1_u8; 4_001];
        let zeroed = vec![0_u8; 3_001];
        recording.mark("before inference");
        let mut grown: Vec<u8> = Vec::with_capacity(501);
        grown.reserve_exact(70_001);
        drop(zeroed);
        recording.mark("after inference");
        drop(early);
        drop(grown);
        let timeline = recording.finish();
        drop(vec![1_u8; 99]);

        let expected = [
            (4_001, false),
            (3_001, false),
            (501, false),
            (501, true),
            (70_001, false),
            (3_001, true),
            (1_009, true),
            (70_001, true),
        ];
        assert_eq!(sizes_and_frees(&timeline), expected);
        assert_eq!(timeline.peaks().allocated, Some(4_001 + 3_001 + 70_001));
        let snapshots = timeline.marks.iter().map(|mark| timeline.snapshot(mark.at_ns));
        let at_marks: Vec<_> = snapshots.map(|snapshot| (snapshot.allocated_bytes, snapshot.live_blocks)).collect();
        assert_eq!(at_marks, [(Some(7_002), Some(2)), (Some(74_002), Some(2))]);
        assert_eq!((timeline.freed_older_bytes(), timeline.lost), (1_009, None));
        let totals = timeline.totals.unwrap();
        assert_eq!((totals.change_bytes, totals.peak_bytes), (4_001 - 1_009, 77_003));
        let live = timeline.live_at(timeline.end_ns);
        assert_eq!((live.len(), live[0].address), (1, kept.as_ptr().addr() as u64));
    });
}

#[test]
fn peak_of_several_threads_is_exact() {
    const THREADS: u64 = 6;
    const ROUNDS: u64 = 200;
    run_in_own_process("peak_of_several_threads_is_exact", || {
        let gate = Barrier::new(THREADS as usize + 1);
        let timeline = thread::scope(|scope| {
            for thread in 1..=THREADS {
                let gate = &gate;
                scope.spawn(move || {
                    gate.wait();
                    gate.wait();
                    for _ in 0..ROUNDS {
                        drop(black_box(vec![1_u8; 64 * thread as usize]));
                    }
                    let concurrent = black_box(vec![1_u8; (100_000 * thread) as usize]);
                    gate.wait();
                    drop(concurrent);
                    let remainder = black_box(vec![1_u8; thread as usize]);
                    gate.wait();
                    gate.wait();
                    drop(remainder);
                });
            }
            gate.wait();
            let recording = Recording::start().unwrap();
            for _ in 0..3 {
                gate.wait();
            }
            let timeline = recording.finish();
            gate.wait();
            timeline
        });
        let sum: u64 = (1..=THREADS).sum();
        assert_eq!(timeline.events.len() as u64, THREADS * (2 * ROUNDS + 3));
        assert_eq!(timeline.peaks().allocated, Some(100_000 * sum));
        assert_eq!(timeline.steps(Quantity::Allocated).last().unwrap().1, sum);
        assert_eq!(timeline.live_at(timeline.end_ns).len() as u64, THREADS);
        let totals = timeline.totals.unwrap();
        assert_eq!((totals.change_bytes, totals.peak_bytes), (sum as i64, 100_000 * sum));
        assert_eq!((timeline.lost, timeline.freed_older_bytes()), (None, 0));
    });
}

#[test]
fn contended_addresses_leave_no_block() {
    run_in_own_process("contended_addresses_leave_no_block", || {
        let gate = Barrier::new(5);
        let timeline = thread::scope(|scope| {
            for thread in 0..4_usize {
                let gate = &gate;
                scope.spawn(move || {
                    gate.wait();
                    gate.wait();
                    for round in 0..20_000 {
                        let mut block: Vec<u8> = Vec::with_capacity(16 + round % 7);
                        block.reserve_exact(200 + 8 * thread);
                        drop(black_box(block));
                    }
                    gate.wait();
                    gate.wait();
                });
            }
            gate.wait();
            let recording = Recording::start().unwrap();
            for _ in 0..2 {
                gate.wait();
            }
            let timeline = recording.finish();
            gate.wait();
            timeline
        });
        assert_eq!((timeline.events.len(), timeline.lost), (4 * 20_000 * 4, None));
        assert_eq!((timeline.live_at(timeline.end_ns).len(), timeline.freed_older_bytes()), (0, 0));
        assert_eq!(timeline.totals.unwrap().change_bytes, 0);
    });
}

#[test]
fn only_one_recording_at_a_time() {
    run_in_own_process("only_one_recording_at_a_time", || {
        let first = Recording::start().unwrap();
        assert_eq!(Recording::start().map(|_| ()), Err(RecordingError::AlreadyRecording));
        drop(first);
        drop(black_box(vec![1_u8; 12_345]));
        let timeline = Recording::start().unwrap().finish();
        assert_eq!((timeline.events, timeline.totals.unwrap().peak_bytes), (vec![], 0));
    });
}

#[test]
fn full_buffer_keeps_totals_exact() {
    run_in_own_process("full_buffer_keeps_totals_exact", || {
        const PAIRS: u64 = 2_200_000;
        let recording = Recording::start().unwrap();
        (0..PAIRS).for_each(|_| drop(black_box(Box::new(1_u64))));
        let late = black_box(vec![1_u8; 1_000_003]);
        let timeline = recording.finish();
        drop(late);
        let lost = timeline.lost.unwrap();
        assert_eq!(timeline.events.len() as u64 + lost.events, 2 * PAIRS + 1);
        let kept = |event: &MemoryEvent| event.bytes == 8 && Some(event.at_ns) < lost.from_ns;
        assert!(lost.events > 0 && timeline.events.iter().all(kept));
        assert_eq!(timeline.totals.unwrap().peak_bytes, 1_000_003);
        assert_eq!(timeline.peaks().allocated, Some(1_000_003));
        assert_eq!(timeline.snapshot(timeline.end_ns).allocated_bytes, None);
    });
}

#[test]
fn counting_overhead_is_printed() {
    run_in_own_process("counting_overhead_is_printed", || {
        fn pair(allocator: &dyn GlobalAlloc) {
            let layout = Layout::new::<[u64; 8]>();
            // SAFETY: the layout has a nonzero size, and the block is freed once with the layout of its allocation.
            unsafe {
                let block = black_box(allocator.alloc(layout));
                allocator.dealloc(block, layout);
            }
        }
        let (mut plain, mut counting) = (Closure::new(|| pair(&System)), Closure::new(|| pair(&ALLOCATOR)));
        let (mut a, mut b) = (WallClock::synchronous(), WallClock::synchronous());
        let mut arms = [Arm::new(&mut plain, &mut a), Arm::new(&mut counting, &mut b).against(0)];
        let options = Options { max_time: Duration::from_secs(1), ..Options::default() };
        let outcome = measure(&mut arms, &options, &mut NullObserver);
        let [plain, idle] = [0, 1].map(|arm: usize| outcome[arm].as_ref().unwrap().time.median);

        const PAIRS: u32 = 500_000; // capacity of the buffer
        let recording = Recording::start().unwrap();
        let start = Instant::now();
        (0..PAIRS).for_each(|_| pair(&ALLOCATOR));
        let recorded = start.elapsed().as_nanos() as f64 / f64::from(PAIRS);
        assert_eq!(recording.finish().events.len() as u32, 2 * PAIRS);
        println!(
            "allocation and free: {plain:.1} ns plain, {idle:.1} ns without a recording, {recorded:.1} ns recorded"
        );
    });
}
