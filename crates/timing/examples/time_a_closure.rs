//! `calorimeter-timing` alone: does it pay to add floats up in eight lanes? Two closures of ours, one answer with its
//! interval.
//!
//! `cargo run -p calorimeter-timing --example time_a_closure`

use calorimeter_timing::{Arm, Closure, Estimate, Options, Quiet, TimingError, WallClock, measure};
use std::hint::black_box;

fn main() -> Result<(), TimingError> {
    let values: Vec<f32> = (0..1 << 16).map(|i| (i % 1000) as f32 / 1000.0).collect();
    let mut one = Closure::new(|| in_one_lane(black_box(&values)));
    let mut eight = Closure::new(|| in_eight_lanes(black_box(&values)));

    // The second arm is compared with the first; their windows alternate, so that both meet the same machine.
    let (mut clock, mut other_clock) = (WallClock::synchronous(), WallClock::synchronous());
    let mut arms = [Arm::new(&mut one, &mut clock), Arm::new(&mut eight, &mut other_clock).against(0)];
    let mut measured = measure(&mut arms, &Options::default(), &mut Quiet).into_iter();
    let (Some(one), Some(eight)) = (measured.next(), measured.next()) else { unreachable!("one answer for each arm") };
    let (one, eight) = (one?, eight?);

    println!("one lane     {}", microseconds(&one.time));
    println!("eight lanes  {}", microseconds(&eight.time));
    if let Some(speedup) = eight.comparison {
        let verdict = speedup.verdict;
        println!("eight lanes are {verdict}: {:.2}x {}", speedup.ratio, interval(speedup.lo, speedup.hi, 1.0));
    }
    if !(one.converged && eight.converged) {
        println!("this machine is too busy for the precision that was asked for");
    }
    Ok(())
}

fn in_one_lane(values: &[f32]) -> f32 {
    values.iter().sum()
}

fn in_eight_lanes(values: &[f32]) -> f32 {
    let mut lanes = [0.0; 8];
    for chunk in values.chunks_exact(8) {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += value);
    }
    lanes.iter().sum()
}

fn microseconds(time: &Estimate) -> String {
    format!("{:8.3} us {}", time.median / 1e3, interval(time.lo, time.hi, 1e3))
}

fn interval(lo: Option<f64>, hi: Option<f64>, unit: f64) -> String {
    match (lo, hi) {
        (Some(lo), Some(hi)) => format!("[{:.3}, {:.3}]", lo / unit, hi / unit),
        _ => "[too few windows for an interval]".to_owned(),
    }
}
