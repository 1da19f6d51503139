//! Buffer set rotation: references rotate with the inputs as operators declare.

use crate::operators::{dtype_pairs, is_model_pass, many_sizes, shapes};
use calorimeter_shapes::Axes;
use calorimeter_zoo::{Operator, OperatorProblem, Output, OutputSample, OutputSlot, Spec};

/// Problem of an operator at a shape, in the first supported dtypes.
fn problem(operator: Operator, axes: Axes) -> Option<OperatorProblem> {
    let specs = dtype_pairs(operator).into_iter().map(|(element, output)| Spec {
        axes: axes.clone(),
        element,
        output,
        training: None,
    });
    let spec = specs.into_iter().find(|spec| operator.check(spec).is_ok())?;
    Some(OperatorProblem { operator, spec, seed: 5 })
}

fn whole_output(slot: &OutputSlot) -> OutputSample {
    OutputSample { rows: (0..slot.rows as usize).collect(), cols: (0..slot.cols as usize).collect() }
}

#[test]
fn references_rotate_as_declared() {
    let mut differ = Vec::new();
    let all = || Operator::all().into_iter().filter(|operator| !is_model_pass(operator));
    for operator in all() {
        for problem in shapes(operator, many_sizes).into_iter().filter_map(|axes| problem(operator, axes)) {
            let OperatorProblem { spec, .. } = &problem;
            let (inputs, moves) = (problem.gate_inputs(), operator.set_rotation(spec));
            problem.check_set_rotation(&inputs).unwrap();
            // The check above samples set 1; set 2 is compared completely.
            let set = 2;
            let moved = moves.inputs_of_set(&inputs, set);
            for (output, slot) in operator.outputs(spec).iter().enumerate() {
                let sample = whole_output(slot);
                let expected = operator.reference(spec, &inputs, output, &sample);
                let size = expected.iter().fold(0.0, |size: f64, value| size.max(value.abs()));
                // f32 is precise enough to identify the rotation.
                let values = operator.reference(spec, &moved, output, &sample).into_iter().map(|value| value as f32);
                let mut outputs = vec![Output { rows: 0, cols: 0, values: Vec::new() }; output];
                outputs.push(Output { rows: sample.rows.len(), cols: sample.cols.len(), values: values.collect() });
                let found = moves.rotate_back(outputs, set).pop().unwrap();
                let near = |(&a, &b): (&f32, &f64)| (f64::from(a) - b).abs() <= 1e-5 * size;
                assert!(found.values.iter().zip(&expected).all(near), "{operator} {}", spec.axes);
            }
            if moves.sets_differ() {
                differ.push(operator.info().name);
            }
        }
    }
    for operator in all().filter(|operator| problem(*operator, common_axes(*operator)).is_some()) {
        assert!(differ.contains(&operator.info().name), "all sets of {operator} are equal");
    }
}

/// Shape that every operator supports.
fn common_axes(operator: Operator) -> Axes {
    let size = |axis: &str| match axis {
        "devices" => 2,
        "kernel" => 3,
        "k" | "n" => 256,
        _ => 6,
    };
    Axes::new(operator.info().axes.iter().map(|&axis| (axis, size(axis)))).unwrap()
}
