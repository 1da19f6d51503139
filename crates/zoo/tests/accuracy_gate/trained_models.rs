//! Training passes of models under each recipe, on all devices of this machine. Autodiff, hand-written backward passes,
//! forward passes and whole steps are compared with one reference.

use calorimeter_recipes::{Dtype, Element, QuantConfig, Recipe, RecipeVariant};
use calorimeter_shapes::Axes;
use calorimeter_zoo::parts::record_parts;
use calorimeter_zoo::{Activation, Device, Implementation, NativeDevices, Setup, Task, ZooError};

const PASSES: [&str; 7] = ["forward", "backward", "forward_backward", "adamw", "sgd", "adamw_step", "sgd_step"];
const RECIPES: [&str; 6] =
    ["baseline", "tensorwise", "rowwise", "rowwise_with_gw_hp", "mxfp8", "rowwise-without-input-grad_output"];

/// Enough rows to rotate by rows, and too few, so that hidden columns rotate.
const SIZES: [[u64; 3]; 2] = [[64, 96, 32], [33, 40, 64]];
/// Sizes for models of sequences, with and without rotation by rows.
const SEQUENCES: [[u64; 3]; 2] = [[4, 64, 1], [1, 40, 1]];

fn task(model: &str, pass: &str, [m, k, n]: [u64; 3], dtype: Dtype) -> Task {
    let axes = Axes::from([("m", m), ("k", k), ("n", n)]);
    Task::new(format!("{model}_{pass}").parse().unwrap(), &axes, Element::Float(dtype), None, 9).unwrap()
}

fn treatment(task: &Task, recipe: &str) -> QuantConfig {
    task.treatment(RecipeVariant::from(recipe.parse::<Recipe>().unwrap())).unwrap()
}

/// Checks every pass on two buffer sets; unsupported ones must report why. Returns the number of correct cases.
fn check(
    models: &[&str],
    (device, implementations): (Device, &[Implementation]),
    dtypes: &[Dtype],
    sizes: &[[u64; 3]],
) -> u32 {
    let (mut machines, mut wrong, mut right) = (NativeDevices::default(), Vec::new(), 0);
    for (model, pass) in models.iter().flat_map(|model| PASSES.map(|pass| (model, pass))) {
        for (&size, &dtype) in sizes.iter().flat_map(|size| dtypes.iter().map(move |dtype| (size, dtype))) {
            let task = task(model, pass, size, dtype);
            let inputs = task.gate_inputs();
            for recipe in if ["adamw", "sgd"].contains(&pass) { &RECIPES[..1] } else { &RECIPES } {
                let treatment = treatment(&task, recipe);
                let references = task.references(&inputs, &treatment).unwrap();
                for &implementation in implementations {
                    let setup = Setup { implementation, device, sets: 2 };
                    let mut workload = match task.open(&inputs, &treatment, None, setup, &mut machines) {
                        Err(ZooError::Unsupported(why)) if why.starts_with("`native`") => continue,
                        Err(ZooError::Unsupported(why)) if why.contains("no `cube`") => {
                            assert!(*recipe == "baseline" && pass.ends_with("ward"), "{model}_{pass} {recipe}: {why}");
                            continue;
                        }
                        opened => opened.unwrap(),
                    };
                    for set in [0, 1] {
                        let outputs = task.rotate_back(workload.outputs().unwrap(), set);
                        if let Err(why) = task.judge(&treatment, &outputs, &references, workload.may_use_tf32()) {
                            wrong.push(format!(
                                "{model}_{pass} {recipe} {implementation} {dtype} {size:?} {set}: {why}"
                            ));
                        }
                    }
                    let one_pass = || workload.launch().and_then(|()| workload.synchronize());
                    let parts = record_parts(Vec::new(), one_pass).unwrap();
                    assert_eq!(parts.iter().map(|part| part.name).collect::<Vec<_>>(), task.parts(), "{model}_{pass}");
                    right += 1;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    right
}

const BOTH: [Dtype; 2] = [Dtype::F32, Dtype::Bf16];
const CPU: (Device, &[Implementation]) = (Device::Cpu, &[Implementation::Eager]);

#[test]
fn ln_linear_passes_match_references_on_cpu() {
    let [first, second] = SIZES;
    // Each activation once.
    for (at, activation) in Activation::ALL.iter().enumerate() {
        check(&[&*format!("ln_linear_{activation}")], CPU, &BOTH[at % 2..][..1], &[[first, second][at / 2 % 2]]);
    }
    check(&["ln_linear_gelu"], CPU, &BOTH, &SIZES);
}

#[test]
fn swiglu_mlp_passes_match_references_on_cpu() {
    check(&["swiglu_mlp"], CPU, &BOTH, &SIZES);
}

#[test]
fn transformer_block_passes_in_f32_match_references_on_cpu() {
    check(&["transformer_block"], CPU, &[Dtype::F32], &SEQUENCES);
}

#[test]
fn transformer_block_passes_in_bf16_match_references_on_cpu() {
    check(&["transformer_block"], CPU, &[Dtype::Bf16], &SEQUENCES);
}

#[test]
#[ignore = "needs Vulkan"]
#[cfg(feature = "wgpu")]
fn model_passes_match_references_on_vulkan() {
    use Implementation::{Cube, Eager, Fused};
    let by = |implementations: &'static [Implementation]| (Device::Vulkan(0), implementations);
    check(&["ln_linear_gelu"], by(&[Eager, Fused, Cube]), &[Dtype::F32], &[[64, 32, 64]]);
    check(&["swiglu_mlp"], by(&[Eager, Cube]), &[Dtype::F32], &[[64, 32, 64]]);
    check(&["transformer_block"], by(&[Fused, Cube]), &[Dtype::F32], &[[2, 32, 1]]);
}

#[test]
#[ignore = "needs CUDA"]
#[cfg(feature = "cuda")]
fn model_passes_match_references_on_cuda() {
    let all = &[Implementation::Eager, Implementation::Fused, Implementation::Cube];
    let cuda: (_, &[Implementation]) = (Device::Cuda(0), all);
    check(&["ln_linear_relu", "ln_linear_gelu", "swiglu_mlp"], cuda, &BOTH, &SIZES);
    check(&["transformer_block"], cuda, &BOTH, &SEQUENCES);
}

#[test]
#[ignore = "needs CUDA"]
#[cfg(feature = "native")]
fn native_model_passes_match_references_on_cuda() {
    let native: (_, &[Implementation]) = (Device::Cuda(0), &[Implementation::Native]);
    let names = Activation::ALL.map(|activation| format!("ln_linear_{activation}"));
    let models: Vec<&str> = names.iter().map(String::as_str).chain(["swiglu_mlp"]).collect();
    // Per model: both optimizers and the five other passes under the baseline in both dtypes, and the five under three
    // recipes in bf16.
    let of_size = |models: u32| models * (7 + 7 + 5 * 3);
    assert_eq!(check(&models, native, &BOTH, &[[64, 96, 32], [272, 400, 144]]), 2 * of_size(8));
    assert_eq!(check(&["transformer_block"], native, &BOTH, &[[4, 128, 1], [1, 512, 1]]), 2 * of_size(1));
    // Sizes that are not multiples of 16 have no float8 kernels.
    assert_eq!(check(&models, native, &BOTH, &[[33, 127, 40], [1, 3, 17]]), 2 * 8 * (7 + 7));
    assert_eq!(check(&["transformer_block"], native, &BOTH, &[[1, 40, 1]]), 7 + 7);
}
