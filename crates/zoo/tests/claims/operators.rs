//! Every operator in every float type, at sizes with odd edges.

use calorimeter_recipes::{Dtype, Element, Treatment, Variant};
use calorimeter_shapes::Axes;
use calorimeter_zoo::{Device, Implementation, Machines, Operator, OperatorProblem, Setup, Spec, Task, ZooError, gate};

/// Sizes of each axis, by its name: odd ones, powers of two and ones.
fn sizes(axis: &str) -> Vec<u64> {
    match axis {
        "dimension" => vec![1, 31, 33, 257, 768, 1000, 1025],
        "elements" => vec![1, 1000, 4096],
        "sequence" => vec![3, 17],
        "m" => vec![1, 5],
        "out_channels" => vec![5, 7],
        "in_channels" => vec![1, 5],
        "k" => vec![1, 31, 64],
        // More than one: what is left of a single number after its terms cancel has no size to be judged by.
        "n" => vec![7, 33],
        "kernel" => vec![1, 3],
        "size" => vec![2, 9],
        "heads" => vec![1, 2],
        "head_dim" => vec![1, 8, 17],
        _ => vec![3],
    }
}

/// Every combination of an operator's sizes.
fn points(operator: Operator) -> Vec<Axes> {
    let axes = operator.info().axes;
    let mut points: Vec<Vec<(&'static str, u64)>> = vec![vec![]];
    for &axis in axes {
        points = points
            .into_iter()
            .flat_map(|point| {
                sizes(axis).into_iter().map(move |size| point.iter().copied().chain([(axis, size)]).collect())
            })
            .collect();
    }
    points.into_iter().map(|point| Axes::new(point).unwrap()).collect()
}

/// What burn's CPU backend sums in f16: convolutions of few channels, and one row times a row-major matrix.
fn wrong_in_burn(operator: Operator, spec: &Spec) -> bool {
    let few_channels = spec.axes.get("in_channels").is_some_and(|channels| channels < 5);
    let one_row = operator.info().name == "matmul" && spec.axis("m") == 1;
    spec.element == Element::Float(Dtype::F16) && (few_channels || one_row)
}

fn check(device: Device, implementations: &[Implementation]) {
    let mut machines = Machines::default();
    for operator in Operator::all() {
        let mut passed = 0;
        for axes in points(operator) {
            for dtype in Dtype::ALL {
                let spec = Spec { axes: axes.clone(), element: Element::Float(dtype), output: None };
                if operator.check(&spec).is_err() || (device == Device::Cpu && wrong_in_burn(operator, &spec)) {
                    continue;
                }
                let problem = OperatorProblem { operator, spec, seed: 5 };
                let (inputs, task) = (problem.inputs(), Task::Operator(problem.clone()));
                let references = problem.references(&inputs);
                let inputs = calorimeter_zoo::Inputs::Operator(inputs);
                for &implementation in implementations {
                    let what = format!("{operator} {implementation} {device} {dtype} {axes}");
                    if task.support(Variant::BASELINE, implementation, device).is_err() {
                        continue;
                    }
                    let setup = Setup { implementation, device, sets: 2 };
                    let mut workload = match task.open(&inputs, &Treatment::none(dtype), setup, &mut machines) {
                        Ok(workload) => workload,
                        Err(ZooError::Unsupported(_)) => continue,
                        Err(error) => panic!("{what}: {error}"),
                    };
                    for set in 0..setup.sets {
                        let outputs = workload.outputs().unwrap_or_else(|error| panic!("{what}: {error}"));
                        let judged = problem.judge(&outputs, &references, workload.may_use_tf32());
                        judged.unwrap_or_else(|mismatch| panic!("{what} set {set}: {mismatch}"));
                    }
                    passed += 1;
                }
            }
        }
        assert!(passed > 0, "{operator} ran in no case on {device}");
    }
}

#[test]
#[cfg(feature = "cpu")]
fn every_operator_computes_its_reference_on_the_cpu() {
    check(Device::Cpu, &Implementation::ALL);
}

#[test]
fn a_wrong_output_of_any_operator_does_not_pass() {
    for operator in Operator::all() {
        for axes in points(operator) {
            let spec = Spec { axes, element: Element::Float(Dtype::F32), output: None };
            if operator.check(&spec).is_err() {
                continue;
            }
            let problem = OperatorProblem { operator, spec, seed: 5 };
            let references = problem.references(&problem.inputs());
            for (index, reference) in references.iter().enumerate() {
                let tolerance = operator.tolerance(&problem.spec, index);
                let scale =
                    (reference.values.iter().map(|v| v * v).sum::<f64>() / reference.values.len() as f64).sqrt();
                let slot = operator.outputs(&problem.spec)[index];
                let whole = reference.sample.len() as u64 == slot.rows * slot.cols;
                assert!(whole && tolerance.element < 0.5, "{operator} {}", problem.spec.axes);
                let mut values: Vec<f32> = reference.values.iter().map(|&value| value as f32).collect();
                let last = values.len() - 1;
                values[last] += (2.0 * tolerance.element * scale.max(reference.values[last].abs())) as f32;
                let (rows, cols) = (slot.rows as usize, slot.cols as usize);
                let output = calorimeter_zoo::Output { rows, cols, values };
                // Codes have steps of their own, which are wider than most tolerances.
                assert!(gate::judge(&output, reference, &tolerance).is_err(), "{operator} {}", problem.spec.axes);
            }
        }
    }
}

#[test]
fn axes_that_an_operator_does_not_have_are_named() {
    let operator: Operator = "layer_norm".parse().unwrap();
    let axes = Axes::new([("batch", 1), ("seq", 2), ("dimension", 3)]).unwrap();
    let error = operator.check(&Spec { axes, element: Element::Float(Dtype::F32), output: None }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "layer_norm has the axes batch, sequence, dimension; given are batch, seq, dimension"
    );
}
