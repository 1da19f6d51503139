//! `calorimeter-zoo` as a library: generates the inputs of an operator, runs two custom kernels on them, and checks the
//! outputs.
//!
//! `cargo run -p calorimeter-zoo --example judge_a_kernel`

use calorimeter_recipes::{Dtype, Element};
use calorimeter_shapes::Axes;
use calorimeter_zoo::{Matrix, OperatorProblem, Output, Spec, ZooError};

fn main() -> Result<(), ZooError> {
    let axes = Axes::from([("batch", 2), ("sequence", 16), ("dimension", 64)]);
    let spec = Spec { axes, element: Element::Float(Dtype::F32), output: None, training: None };
    let problem = OperatorProblem { operator: "softmax".parse()?, spec, seed: 42 };
    println!("{}: {} operations", problem.operator, problem.operator.flops(&problem.spec));

    let inputs = problem.inputs();
    let references = problem.references(&inputs);
    let check = |kernel: fn(&[f32]) -> Vec<f32>| problem.judge(&[map_rows(&inputs[0], kernel)], &references, false);

    let accuracy = check(softmax).expect("the row maximum is subtracted");
    println!("softmax: accepted, relative error {:.1e}", accuracy.rel_l2);
    let mismatch = check(naive_softmax).expect_err("exp overflows in f32 for large inputs");
    println!("textbook softmax: rejected, {mismatch}");
    Ok(())
}

fn map_rows(x: &Matrix, kernel: fn(&[f32]) -> Vec<f32>) -> Output {
    Output { rows: x.rows, cols: x.cols, values: (0..x.rows).flat_map(|row| kernel(x.row(row))).collect() }
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
