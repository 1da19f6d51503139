//! What is said of how buffer sets differ is what references do, and what sets are given.

use crate::operators::{is_model, many_sizes, points, types};
use calorimeter_shapes::Axes;
use calorimeter_zoo::{Operator, OperatorProblem, Output, Sample, Slot, Spec};

/// An operator at a size, in the first numbers that it takes.
fn problem(operator: Operator, axes: Axes) -> Option<OperatorProblem> {
    let specs = types(operator).into_iter().map(|(element, output)| Spec {
        axes: axes.clone(),
        element,
        output,
        training: None,
    });
    let spec = specs.into_iter().find(|spec| operator.check(spec).is_ok())?;
    Some(OperatorProblem { operator, spec, seed: 5 })
}

fn whole(slot: &Slot) -> Sample {
    Sample { rows: (0..slot.rows as usize).collect(), cols: (0..slot.cols as usize).collect() }
}

#[test]
fn references_of_every_operator_move_as_it_says() {
    let mut differ = Vec::new();
    let all = || Operator::all().into_iter().filter(|operator| !is_model(operator));
    for operator in all() {
        for problem in points(operator, many_sizes).into_iter().filter_map(|axes| problem(operator, axes)) {
            let OperatorProblem { spec, .. } = &problem;
            let (inputs, moves) = (problem.gate_inputs(), operator.moves(spec));
            problem.check_moves(&inputs).unwrap();
            // The second set was just looked at in places; this one is looked at everywhere.
            let set = 2;
            let moved = moves.inputs_of_set(&inputs, set);
            for (output, slot) in operator.outputs(spec).iter().enumerate() {
                let sample = whole(slot);
                let expected = operator.reference(spec, &inputs, output, &sample);
                let size = expected.iter().fold(0.0, |size: f64, value| size.max(value.abs()));
                // f32 holds a reference well enough to see where it is.
                let values = operator.reference(spec, &moved, output, &sample).into_iter().map(|value| value as f32);
                let mut outputs = vec![Output { rows: 0, cols: 0, values: Vec::new() }; output];
                outputs.push(Output { rows: sample.rows.len(), cols: sample.cols.len(), values: values.collect() });
                let found = moves.as_of_first_set(outputs, set).pop().unwrap();
                let near = |(&a, &b): (&f32, &f64)| (f64::from(a) - b).abs() <= 1e-5 * size;
                assert!(found.values.iter().zip(&expected).all(near), "{operator} {}", spec.axes);
            }
            if moves.differ() {
                differ.push(operator.info().name);
            }
        }
    }
    for operator in all().filter(|operator| problem(*operator, sixes(*operator)).is_some()) {
        assert!(differ.contains(&operator.info().name), "all sets of {operator} are alike");
    }
}

/// A size at which everything exists that exists at all.
fn sixes(operator: Operator) -> Axes {
    let size = |axis: &str| match axis {
        "devices" => 2,
        "kernel" => 3,
        "k" | "n" => 256,
        _ => 6,
    };
    Axes::new(operator.info().axes.iter().map(|&axis| (axis, size(axis)))).unwrap()
}
