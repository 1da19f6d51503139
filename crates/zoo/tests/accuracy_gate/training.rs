//! Training passes of a linear layer under each recipe: correct passes are accepted, typical bugs of hand-written
//! backward passes are rejected.

use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::training::OperandFormats;
use calorimeter_recipes::{Dtype, Element, QuantConfig, QuantizedTensor, Recipe, RecipeVariant};
use calorimeter_shapes::Axes;
use calorimeter_zoo::gate::Mismatch;
use calorimeter_zoo::parts::record_parts;
use calorimeter_zoo::{Device, Implementation, Inputs, Matrix, NativeDevices, Output, Setup, Task, ZooError};

const RECIPES: [&str; 9] = [
    "baseline",
    "tensorwise",
    "tensorwise-fast",
    "rowwise",
    "rowwise_with_gw_hp",
    "mxfp8",
    "tensorwise-without-input",
    "rowwise-without-weight",
    "mxfp8-without-input-grad_output",
];
const PASSES: [&str; 7] = [
    "linear_forward",
    "linear_backward",
    "linear_forward_backward",
    "linear_adamw",
    "linear_sgd",
    "linear_adamw_step",
    "linear_sgd_step",
];
const OPTIMIZERS: [&str; 2] = ["linear_adamw", "linear_sgd"];

fn task(pass: &str, [m, k, n]: [u64; 3], dtype: Dtype) -> Task {
    let axes = Axes::from([("m", m), ("k", k), ("n", n)]);
    Task::new(pass.parse().unwrap(), &axes, Element::Float(dtype), None, 9).unwrap()
}

fn treatment(task: &Task, recipe: &str) -> QuantConfig {
    task.treatment(RecipeVariant::from(recipe.parse::<Recipe>().unwrap())).unwrap()
}

/// Checks every pass; unsupported ones must report why. Returns the number of correct cases.
fn check(device: Device, implementations: &[Implementation], dtypes: &[Dtype], sizes: &[[u64; 3]]) -> u32 {
    let (mut machines, mut right) = (NativeDevices::default(), 0);
    for &implementation in implementations {
        for pass in PASSES {
            for &dtype in dtypes {
                for &size in sizes {
                    let task = task(pass, size, dtype);
                    for recipe in if OPTIMIZERS.contains(&pass) { &RECIPES[..1] } else { &RECIPES } {
                        let case = format!("{pass} {recipe} {implementation} {device} {dtype} {size:?}");
                        let treatment = treatment(&task, recipe);
                        let inputs = task.gate_inputs();
                        let setup = Setup { implementation, device, sets: 2 };
                        let mut workload = match task.open(&inputs, &treatment, None, setup, &mut machines) {
                            Err(ZooError::Unsupported(why))
                                if why.starts_with("`native`") || why.contains("no `cube`") =>
                            {
                                continue;
                            }
                            opened => opened.unwrap(),
                        };
                        let references = task.references(&inputs, &treatment).unwrap();
                        for set in [0, 1] {
                            let outputs = task.rotate_back(workload.outputs().unwrap(), set);
                            let tf32 = workload.may_use_tf32();
                            if let Err(why) = task.judge(&treatment, &outputs, &references, tf32) {
                                panic!("{case}, set {set}: {why}");
                            }
                        }
                        let pass = || workload.launch().and_then(|()| workload.synchronize());
                        let parts = record_parts(Vec::new(), pass).unwrap();
                        assert_eq!(parts.iter().map(|part| part.name).collect::<Vec<_>>(), task.parts(), "{case}");
                        right += 1;
                    }
                }
            }
        }
    }
    right
}

#[test]
fn linear_passes_match_references_on_cpu() {
    let sizes = [[64, 96, 32], [1, 3, 17], [129, 127, 40], [33, 64, 1]];
    check(Device::Cpu, &[Implementation::Eager], &[Dtype::F32, Dtype::Bf16], &sizes);
}

#[test]
#[ignore = "needs Vulkan"]
#[cfg(feature = "wgpu")]
fn linear_passes_match_references_on_vulkan() {
    check(Device::Vulkan(0), &[Implementation::Eager, Implementation::Fused], &[Dtype::F32], &[[64, 32, 40]]);
    // Both optimizers and both whole steps under the baseline, and the five other passes under every other recipe.
    let right = check(Device::Vulkan(0), &[Implementation::Cube], &[Dtype::F32], &[[129, 127, 40]]);
    let recipes = RECIPES.len() as u32;
    assert_eq!(right, 4 + 5 * (recipes - 1));
}

#[test]
#[ignore = "needs CUDA"]
#[cfg(feature = "cuda")]
fn linear_passes_match_references_on_cuda() {
    let sizes = [[64, 96, 32], [129, 127, 40], [512, 1024, 768]];
    let all = [Implementation::Eager, Implementation::Fused, Implementation::Cube];
    check(Device::Cuda(0), &all, &[Dtype::F32, Dtype::Bf16], &sizes);
}

#[test]
#[ignore = "needs CUDA"]
#[cfg(feature = "native")]
fn native_linear_passes_match_references_on_cuda() {
    // Kernel tiles are 128 and 256 wide: less than one tile, one tile, and one tile plus a remainder.
    let sizes = [[64, 96, 32], [128, 256, 128], [272, 400, 144], [512, 1024, 768], [16, 4096, 16]];
    let (native, dtypes) = (&[Implementation::Native], [Dtype::F32, Dtype::Bf16]);
    // Both optimizers and the five other passes under the baseline, and the five under four recipes in bf16.
    assert_eq!(check(Device::Cuda(0), native, &dtypes, &sizes), 5 * (7 + 7 + 5 * 4));
    let ragged = [[129, 127, 40], [1, 3, 17], [1000, 17, 3]];
    assert_eq!(check(Device::Cuda(0), native, &dtypes, &ragged), 3 * (7 + 7));
}

/// Outputs that a pass would return for these inputs, as f32.
fn reference_outputs(task: &Task, inputs: &[Matrix], treatment: &QuantConfig) -> Vec<Output> {
    let references = task.references(&Inputs::Operator(inputs.to_vec()), treatment).unwrap();
    let output = |reference: &calorimeter_zoo::Reference| {
        let (rows, cols) = (reference.sample.rows.len(), reference.sample.cols.len());
        Output { rows, cols, values: reference.values.iter().map(|value| *value as f32).collect() }
    };
    references.iter().map(output).collect()
}

fn transpose(matrix: &Matrix) -> Matrix {
    let Matrix { rows, cols, values } = matrix;
    let values: Vec<f32> = (0..rows * cols).map(|at| values[at % rows * cols + at / rows]).collect();
    Matrix { rows: *cols, cols: *rows, values: values.into() }
}

#[test]
fn backward_bugs_are_rejected() {
    // Square matrices, so that no bug is detected by a shape.
    let task = task("linear_backward", [96, 96, 96], Dtype::F32);
    let Inputs::Operator(inputs) = task.gate_inputs() else { panic!("operator inputs are matrices") };
    let [x, w, g] = &inputs[..] else { panic!("three inputs") };
    let plain = treatment(&task, "baseline");
    for recipe in RECIPES {
        let treatment = treatment(&task, recipe);
        let references = task.references(&Inputs::Operator(inputs.clone()), &treatment).unwrap();
        let judged = |outputs: &[Output]| task.judge(&treatment, outputs, &references, false);
        let right = reference_outputs(&task, &inputs, &treatment);
        judged(&right).unwrap_or_else(|why| panic!("{recipe}: correct outputs: {why}"));
        let [grad_input, grad_weight] = &right[..] else { panic!("two outputs") };
        let refused = |case: &str, outputs: &[Output]| {
            assert!(judged(outputs).is_err(), "{recipe}: {case} passes");
        };
        let of = |x: &Matrix, w: &Matrix, g: &Matrix, treatment: &QuantConfig| {
            reference_outputs(&task, &[x.clone(), w.clone(), g.clone()], treatment)
        };
        refused("swapped gradients", &[grad_weight.clone(), grad_input.clone()]);
        refused("weights not transposed", &of(x, &transpose(w), g, &treatment));
        refused("input not transposed", &of(&transpose(x), w, g, &treatment));
        refused("gradient not transposed", &of(x, w, &transpose(g), &treatment));
        let twice = |output: &Output| Output {
            values: output.values.iter().map(|value| 2.0 * value).collect(),
            ..output.clone()
        };
        refused("gradient of the previous step not cleared", &[grad_input.clone(), twice(grad_weight)]);
        let stale = |output: &Output| Output { values: vec![0.0; output.values.len()], ..output.clone() };
        refused("gradient not written", &[grad_input.clone(), stale(grad_weight)]);
        let scaled = |output: &Output| Output {
            values: output.values.iter().map(|value| 1.01 * value).collect(),
            ..output.clone()
        };
        refused("1 % too large", &[scaled(grad_input), grad_weight.clone()]);
        let Some(training) = treatment.training.map(|recipe| recipe.training()) else { continue };
        let whole = |operands: &OperandFormats| operands.left.is_some() && operands.right.is_some();
        if let (Some(forward), Some(backward)) = (training.output.filter(whole), training.grad_input.filter(whole)) {
            let codes = |of: &Matrix, format| quantize(&of.values, of.cols, format);
            let number = |of: QuantizedTensor| Matrix { values: of.dequantize().into(), ..g.clone() };
            let weight = transpose(&number(codes(&transpose(w), backward.right.unwrap())));
            let with =
                |gradient: QuantizedTensor| [of(x, &weight, &number(gradient), &plain)[0].clone(), grad_weight.clone()];
            let own = codes(g, backward.left.unwrap());
            judged(&with(own.clone())).unwrap_or_else(|why| panic!("{recipe}: correct outputs: {why}"));
            let scales = codes(x, forward.left.unwrap()).scales;
            refused(
                "scale of the forward pass",
                &with({
                    let mut of_forward = own.clone();
                    of_forward.scales = scales;
                    of_forward
                }),
            );
            if own.scales.len() > 1 {
                let mut rolled = own;
                rolled.scales.rotate_right(1);
                refused("scales rotated by one", &with(rolled));
            }
        }
        let mut not_finite = right.clone();
        not_finite[1].values[7] = f32::INFINITY;
        assert!(matches!(judged(&not_finite), Err(Mismatch::NotFinite { .. })), "{recipe}");
    }
}

#[test]
fn optimizer_bugs_are_rejected() {
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let task = task("linear_adamw", [8, 64, 48], dtype);
        let treatment = treatment(&task, "baseline");
        let Inputs::Operator(inputs) = task.gate_inputs() else { panic!("operator inputs are matrices") };
        let references = task.references(&Inputs::Operator(inputs.clone()), &treatment).unwrap();
        let judged = |outputs: &[Output]| task.judge(&treatment, outputs, &references, false);
        let right = reference_outputs(&task, &inputs, &treatment);
        judged(&right).unwrap();
        let as_it_was = |input: usize| {
            let Matrix { rows, cols, values } = &inputs[input];
            Output { rows: *rows, cols: *cols, values: values.to_vec() }
        };
        let [weight, mean, square] = &right[..] else { panic!("three outputs") };
        let mutants = [
            ("weights not updated", [as_it_was(0), mean.clone(), square.clone()]),
            ("first moment not updated", [weight.clone(), as_it_was(2), square.clone()]),
            ("second moment not updated", [weight.clone(), mean.clone(), as_it_was(3)]),
            ("swapped moments", [weight.clone(), square.clone(), mean.clone()]),
        ];
        for (case, outputs) in mutants {
            assert!(judged(&outputs).is_err(), "{dtype}: {case} passes");
        }
    }
}
