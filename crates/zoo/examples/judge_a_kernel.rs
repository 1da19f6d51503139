//! `calorimeter-zoo` as a library: checks two custom kernels against the reference of an operator.
//!
//! `cargo run -p calorimeter-zoo --example judge_a_kernel`

use calorimeter_zoo::gate::GateResult;
use calorimeter_zoo::{CheckError, Dtype, check};

fn main() -> Result<(), CheckError> {
    println!("softmax: accepted, relative error {:.1e}", check_softmax(softmax)?.rel_l2);
    let error = check_softmax(naive_softmax).expect_err("exp overflows in f32 for large inputs");
    println!("textbook softmax: rejected, {error}");
    Ok(())
}

fn check_softmax(of_row: fn(&[f32]) -> Vec<f32>) -> Result<GateResult, CheckError> {
    let axes = [("batch", 2), ("sequence", 16), ("dimension", 64)];
    check("softmax", &axes, Dtype::F32, |inputs| {
        vec![(0..inputs[0].rows).flat_map(|row| of_row(inputs[0].row(row))).collect()]
    })
}

fn softmax(row: &[f32]) -> Vec<f32> {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    naive_softmax(&row.iter().map(|x| x - max).collect::<Vec<f32>>())
}

fn naive_softmax(row: &[f32]) -> Vec<f32> {
    let sum: f32 = row.iter().map(|x| x.exp()).sum();
    row.iter().map(|x| x.exp() / sum).collect()
}

#[test]
fn example_runs() {
    main().unwrap();
}
