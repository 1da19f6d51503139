//! Standalone use of `calorimeter-timing`: compares two summations of floats, with one and with eight accumulators.
//!
//! `cargo run -p calorimeter-timing --example time_a_closure`

use calorimeter_timing::{Options, TimingError, compare};
use std::hint::black_box;

fn main() -> Result<(), TimingError> {
    let values: Vec<f32> = (0..1 << 16).map(|i| (i % 1000) as f32 / 1000.0).collect();
    let (one, eight) = (|| in_one_lane(black_box(&values)), || in_eight_lanes(black_box(&values)));

    // The windows of both closures alternate, so that drift affects them alike.
    let compared = compare(one, eight, &Options::default())?;
    println!("one lane     {}", compared.baseline.time);
    println!("eight lanes  {}", compared.candidate.time);
    println!("eight lanes are {}", compared.comparison);
    if !compared.converged() {
        println!("not converged: this machine is too noisy for the requested precision");
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
