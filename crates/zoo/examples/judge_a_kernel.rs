//! `calorimeter-zoo` alone: an operator's inputs, what a kernel of one's own makes of them, and whether that is right.
//!
//! `cargo run -p calorimeter-zoo --example judge_a_kernel`

use calorimeter_recipes::{Dtype, Element};
use calorimeter_shapes::Axes;
use calorimeter_zoo::{Matrix, OperatorProblem, Output, Spec, ZooError};

fn main() -> Result<(), ZooError> {
    let axes = Axes::from([("batch", 2), ("sequence", 16), ("dimension", 64)]);
    let spec = Spec { axes, element: Element::Float(Dtype::F32), output: None };
    let problem = OperatorProblem { operator: "softmax".parse()?, spec, seed: 42 };
    println!("{}: {} operations", problem.operator, problem.operator.flops(&problem.spec));

    let inputs = problem.inputs();
    let references = problem.references(&inputs);
    let judged = problem.judge(&[softmax(&inputs[0], 1.0)], &references, false);
    println!("right: {judged:?}");
    assert!(judged.is_ok());

    // A hundredth too steep: each row still adds up to one.
    let mismatch = problem.judge(&[softmax(&inputs[0], 1.01)], &references, false).expect_err("it is another function");
    println!("wrong: {mismatch}");
    Ok(())
}

/// Each row's exponentials as shares of their sum.
fn softmax(x: &Matrix, slope: f32) -> Output {
    let row = |row: usize| {
        let powers: Vec<f32> = x.row(row).iter().map(|x| (slope * x).exp()).collect();
        let whole: f32 = powers.iter().sum();
        powers.into_iter().map(move |power| power / whole)
    };
    Output { rows: x.rows, cols: x.cols, values: (0..x.rows).flat_map(row).collect() }
}

#[test]
fn it_runs() {
    main().unwrap();
}
