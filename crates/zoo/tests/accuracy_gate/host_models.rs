//! CPU kernels: support and accuracy of each recipe, on shapes that are not multiples of the block sizes.

use calorimeter_recipes::{Dtype, Recipe};
use calorimeter_shapes::Shape;
use calorimeter_zoo::{Device, Implementation, NativeDevices, Problem, Setup, open, support};

const RECIPES: [&str; 13] = [
    "baseline",
    "int8wo",
    "int8dq",
    "int8dq_prefill_wo_decode",
    "int4wo-32",
    "int4wo-64",
    "int4wo-128",
    "int4wo-256",
    "int4wo-32-hqq",
    "int4wo-128-hqq",
    "uintx-4-64-hqq",
    "q8_0",
    "q4_0",
];

/// Sizes on both sides of a dot product, a vector, a panel and a block of 128.
const SHAPES: [(u64, u64, u64); 7] =
    [(1, 1, 1), (1, 1000, 129), (3, 17, 127), (17, 129, 33), (127, 3, 17), (129, 127, 3), (20, 257, 70)];

fn linear((m, k, n): (u64, u64, u64), dtype: Dtype) -> Problem {
    Problem { model: "linear".parse().unwrap(), shape: Shape::new(m, k, n).unwrap(), dtype, seed: 5 }
}

#[test]
fn supported_recipes_match_references_on_ragged_sizes() {
    let mut machines = NativeDevices::default();
    for dtype in [Dtype::F32, Dtype::Bf16] {
        for (problem, recipe) in
            SHAPES.iter().map(|&shape| linear(shape, dtype)).flat_map(|problem| RECIPES.map(|recipe| (problem, recipe)))
        {
            let case = format!("{recipe} {dtype} {}", problem.shape);
            let variant = recipe.parse::<Recipe>().unwrap().into();
            let treatment = support(&problem, variant, Implementation::Native, Device::Cpu);
            let treatment = treatment.unwrap_or_else(|why| panic!("{case}: {why}"));
            for tensors in [problem.tensors(), problem.gate_tensors()] {
                let reference = problem.reference(&tensors, &treatment).unwrap();
                let setup = Setup { implementation: Implementation::Native, device: Device::Cpu, sets: 2 };
                let mut workload = open(&problem, &tensors, &treatment, setup, &mut machines).unwrap();
                for set in 0..setup.sets {
                    let output = problem.rotate_back(workload.output().unwrap(), set);
                    let judged = problem.judge(&treatment, &output, &reference, false);
                    judged.unwrap_or_else(|mismatch| panic!("{case} set {set}: {mismatch}"));
                    let last = workload.last_outputs(set).unwrap().unwrap().remove(0);
                    assert_eq!(problem.rotate_back(last, set), output, "{case}");
                }
                assert_eq!(workload.weight_bytes(), problem.weight_bytes(&treatment), "{case}");
                assert!(workload.kernel().unwrap().contains(" threads"), "{case}");
                assert_eq!(workload.quantization_time().is_some(), recipe != "baseline", "{case}");
            }
        }
    }
}

#[test]
fn layer_norm_and_activations_match_references() {
    let models = ["relu", "sigmoid", "leakyrelu", "relu6", "gelu", "silu", "hardswish"];
    for (activation, recipe) in models.into_iter().flat_map(|name| ["baseline", "int8dq"].map(|recipe| (name, recipe)))
    {
        for dtype in [Dtype::F32, Dtype::Bf16] {
            let problem =
                Problem { model: format!("ln_linear_{activation}").parse().unwrap(), ..linear((9, 200, 45), dtype) };
            let treatment = recipe.parse::<Recipe>().unwrap().quant_config(dtype, None).unwrap();
            let tensors = problem.gate_tensors();
            let reference = problem.reference(&tensors, &treatment).unwrap();
            let setup = Setup { implementation: Implementation::Native, device: Device::Cpu, sets: 1 };
            let mut workload = open(&problem, &tensors, &treatment, setup, &mut NativeDevices::default()).unwrap();
            let judged = problem.judge(&treatment, &workload.output().unwrap(), &reference, false);
            judged.unwrap_or_else(|mismatch| panic!("{activation} {recipe} {dtype}: {mismatch}"));
        }
    }
}

#[test]
fn unsupported_recipes_name_supported_ones() {
    let why = |recipe: &str, dtype: Dtype, k: u64| {
        let variant = recipe.parse::<Recipe>().unwrap().into();
        let problem = linear((8, k, 64), dtype);
        support(&problem, variant, Implementation::Native, Device::Cpu).unwrap_err().to_string()
    };
    for (recipe, dtype) in [("float8wo", Dtype::F32), ("uintx-4-64", Dtype::Bf16), ("int8wo", Dtype::F16)] {
        let reason = why(recipe, dtype, 64);
        let names = reason.split([' ', ',']).collect::<Vec<_>>();
        assert!(["int8wo", "int8dq", "int4wo-128"].iter().all(|name| names.contains(name)), "{recipe}: {reason}");
        for example in Recipe::examples().iter().map(ToString::to_string) {
            let is_named = names.contains(&example.as_str());
            assert_eq!(is_named, RECIPES.contains(&example.as_str()), "{example} in the reason of {recipe}: {reason}");
        }
        let parts = ["int8dq_prefill_wo_decode", "f32", "bf16", "`eager`"];
        assert!(parts.iter().all(|part| reason.contains(part)), "{recipe}: {reason}");
    }
    let too_long = why("int8dq", Dtype::F32, 131_041);
    assert!(too_long.contains("131040") && too_long.contains("131041"), "{too_long}");
}
