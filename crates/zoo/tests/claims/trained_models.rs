//! The passes of models that are trained, under each recipe, on every device that is here.

use calorimeter_recipes::{Dtype, Element, Recipe, Treatment, Variant};
use calorimeter_shapes::Axes;
use calorimeter_zoo::{Device, Implementation, Machines, Setup, Task};

const RECIPES: [&str; 5] = ["baseline", "tensorwise", "rowwise", "rowwise_with_gw_hp", "mxfp8"];
const PASSES: [&str; 7] = ["forward", "backward", "forward_backward", "adamw", "sgd", "adamw_step", "sgd_step"];
const LN_LINEAR: [&str; 7] = [
    "ln_linear_relu",
    "ln_linear_sigmoid",
    "ln_linear_leakyrelu",
    "ln_linear_relu6",
    "ln_linear_gelu",
    "ln_linear_silu",
    "ln_linear_hardswish",
];

fn task(model: &str, pass: &str, [m, k, n]: [u64; 3], dtype: Dtype) -> Task {
    let axes = Axes::from([("m", m), ("k", k), ("n", n)]);
    Task::new(format!("{model}_{pass}").parse().unwrap(), &axes, Element::Float(dtype), None, 9).unwrap()
}

fn treatment(task: &Task, recipe: &str) -> Treatment {
    task.treatment(Variant::from(recipe.parse::<Recipe>().unwrap())).unwrap()
}

/// Every pass is right, on each of two buffer sets.
fn check(models: &[&str], device: Device, implementations: &[Implementation], dtypes: &[Dtype], sizes: &[[u64; 3]]) {
    let mut machines = Machines::default();
    let mut wrong = Vec::new();
    for &model in models {
        for (pass, &size) in PASSES.iter().flat_map(|pass| sizes.iter().map(move |size| (pass, size))) {
            for (&implementation, &dtype) in implementations.iter().flat_map(|of| dtypes.iter().map(move |d| (of, d))) {
                let task = task(model, pass, size, dtype);
                for recipe in if ["adamw", "sgd"].contains(pass) { &RECIPES[..1] } else { &RECIPES } {
                    let treatment = treatment(&task, recipe);
                    for inputs in [task.gate_inputs(), task.inputs()] {
                        let setup = Setup { implementation, device, sets: 2 };
                        let mut workload = task.open(&inputs, &treatment, setup, &mut machines).unwrap();
                        let references = task.references(&inputs, &treatment).unwrap();
                        for set in [0, 1] {
                            let outputs = task.as_of_first_set(workload.outputs().unwrap(), set);
                            let tf32 = workload.may_use_tf32();
                            let what = format!("{model}_{pass} {recipe} {implementation} {device} {dtype} {size:?}");
                            if std::env::var_os("SLACK").is_some() {
                                let Task::Operator(problem) = &task else { unreachable!() };
                                let spec =
                                    calorimeter_zoo::Spec { training: treatment.training, ..problem.spec.clone() };
                                for (i, (o, r)) in outputs.iter().zip(&references).enumerate() {
                                    let t = problem.operator.tolerance(&spec, i);
                                    let got = o.sampled(&r.sample);
                                    let p: f64 = r.values.iter().map(|v| v * v).sum();
                                    let e: f64 = got.iter().zip(&r.values).map(|(a, b)| (a - b).powi(2)).sum();
                                    println!("{what} out {i}: {:.3} of {:.2e}", (e / p).sqrt() / t.rel_l2, t.rel_l2);
                                }
                            }
                            if let Err(why) = task.judge(&treatment, &outputs, &references, tf32) {
                                wrong.push(format!("{what}, set {set}: {why}"));
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_pass_of_ln_linear_is_right_on_the_cpu_under_every_recipe() {
    let sizes = [[64, 96, 32], [33, 40, 17]];
    check(&LN_LINEAR, Device::Cpu, &[Implementation::Eager], &[Dtype::F32, Dtype::Bf16], &sizes);
}

#[test]
fn every_pass_of_a_gated_mlp_is_right_on_the_cpu_under_every_recipe() {
    let sizes = [[64, 96, 32], [33, 40, 17]];
    check(&["swiglu_mlp"], Device::Cpu, &[Implementation::Eager], &[Dtype::F32, Dtype::Bf16], &sizes);
}

#[test]
fn every_pass_of_a_transformer_block_is_right_on_the_cpu_under_every_recipe() {
    let sizes = [[4, 64, 1], [3, 40, 1]];
    check(&["transformer_block"], Device::Cpu, &[Implementation::Eager], &[Dtype::F32, Dtype::Bf16], &sizes);
}
