//! Accuracy of every model, recipe and dtype on all devices of this machine.

use calorimeter_recipes::{Dtype, QuantConfig, Recipe, RecipeVariant, Sparsity};
use calorimeter_shapes::Shape;
use calorimeter_zoo::{Device, Implementation, Model, NativeDevices, Problem, Setup, ZooError, gate, open, support};

/// Small sizes, some odd; `k` is a multiple of 8, the number of attention heads.
const SHAPES: [(u64, u64, u64); 3] = [(1, 32, 8), (7, 40, 13), (33, 64, 65)];

fn check(
    device: Device,
    implementations: &[Implementation],
    models: &[String],
    variants: &[RecipeVariant],
    shapes: &[(u64, u64, u64)],
) {
    let mut machines = NativeDevices::default();
    let mut passed = 0;
    for model in models {
        let model: Model = model.parse().unwrap();
        for dtype in Dtype::ALL {
            for &(m, k, n) in shapes {
                let problem = Problem { model, shape: Shape::new(m, k, n).unwrap(), dtype, seed: 7 };
                let input_sets = [("plain", problem.tensors()), ("gate", problem.gate_tensors())];
                for (variant, (input_set, tensors)) in
                    variants.iter().flat_map(|&variant| input_sets.iter().map(move |input_set| (variant, input_set)))
                {
                    // The mock device accepts every variant that exists at this size.
                    let treatment = match support(&problem, variant, Implementation::Eager, Device::Mock(0)) {
                        Ok(treatment) => treatment,
                        Err(error) => {
                            assert!(variant.sparsity.is_some(), "{model} {variant} {device}: {error}");
                            continue;
                        }
                    };
                    let reference = problem.reference(tensors, &treatment).unwrap();
                    for &implementation in implementations {
                        let case =
                            format!("{model} {variant} {implementation} {device} {dtype} {m} {k} {n} {input_set}");
                        let setup = Setup { implementation, device, sets: 2 };
                        let mut workload = match open(&problem, tensors, &treatment, setup, &mut machines) {
                            Ok(workload) => workload,
                            Err(ZooError::Unsupported(why)) => {
                                let is_own_kernel =
                                    matches!(implementation, Implementation::Native | Implementation::Cube);
                                let is_allowed = dtype != Dtype::F32 || is_own_kernel;
                                assert!(is_allowed, "{case}: {why}");
                                continue;
                            }
                            Err(error) => panic!("{case}: {error}"),
                        };
                        let mut first_output = None;
                        for set in 0..setup.sets {
                            // The outputs of the first set are downloaded; where supported, the device compares the
                            // outputs of later sets with them.
                            let matches_first = workload
                                .device_check()
                                .map_or(Ok(None), |check| check.run_and_match())
                                .unwrap_or_else(|e| panic!("{case}: {e}"));
                            let output = match matches_first {
                                Some(_) => workload.last_outputs(set).map(|kept| kept.unwrap_or_default().remove(0)),
                                None => workload.output(),
                            };
                            let output = output.unwrap_or_else(|e| panic!("{case}: {e}"));
                            let output = problem.rotate_back(output, set);
                            let first = first_output.get_or_insert_with(|| output.clone());
                            assert!(matches_first != Some(true) || output == *first, "{case}");
                            let judged = problem.judge(&treatment, &output, &reference, workload.may_use_tf32());
                            judged.unwrap_or_else(|mismatch| panic!("{case} set {set}: {mismatch}"));
                        }
                        assert_eq!(workload.weight_bytes(), problem.weight_bytes(&treatment), "{case}");
                        passed += 1;
                    }
                }
            }
        }
    }
    assert!(passed >= models.len() * shapes.len() * 2, "only {passed} cases ran on {device}");
}

/// Every recipe, and every sparsity with a small block.
fn every_variant() -> Vec<RecipeVariant> {
    let plain =
        Recipe::examples().into_iter().map(RecipeVariant::from).filter(|variant| variant.to_string() != "marlin");
    let semi = Recipe::examples().into_iter().filter(|recipe| recipe.supports_semi_structured());
    let semi = semi.map(|recipe| RecipeVariant { recipe, sparsity: Some(Sparsity::SemiStructured) });
    let blocks =
        RecipeVariant { sparsity: Some(Sparsity::Block { percent: 50, block_size: 8 }), ..RecipeVariant::BASELINE };
    plain.chain(semi).chain([blocks]).collect()
}

/// The baseline, a recipe that scales the matmul output, and a weight-only recipe.
fn few_variants() -> Vec<RecipeVariant> {
    ["baseline", "int8dq", "int4wo-32"].map(|name| name.parse::<Recipe>().unwrap().into()).to_vec()
}

fn every_model() -> Vec<String> {
    Model::infos().into_iter().map(|info| info.name).collect()
}

/// Few models for GPUs, where each new shape is autotuned for many seconds. Shapes have more than one row: burn 0.21
/// fuses a vector-matrix product incorrectly with the operation behind it (burn issue 5122), which runs report as a
/// mismatch.
#[cfg(any(feature = "wgpu", feature = "native"))]
fn gpu_models() -> Vec<String> {
    ["linear", "ln_linear_gelu", "transformer_block"].map(str::to_owned).to_vec()
}

#[test]
fn models_match_references_on_cpu() {
    check(Device::Cpu, &[Implementation::Eager, Implementation::Native], &every_model(), &few_variants(), &SHAPES);
}

/// Every recipe in one model.
fn check_recipes_on_cpu(model: &str, shapes: &[(u64, u64, u64)]) {
    let implementations = [Implementation::Eager, Implementation::Native];
    check(Device::Cpu, &implementations, &[model.to_owned()], &every_variant(), shapes);
}

#[test]
fn recipes_of_linear_match_references_on_cpu() {
    check_recipes_on_cpu("linear", &SHAPES);
}

#[test]
fn recipes_of_fused_layers_match_references_on_cpu() {
    check_recipes_on_cpu("ln_linear_gelu", &SHAPES);
}

#[test]
fn recipes_of_transformer_blocks_match_references_on_cpu() {
    check_recipes_on_cpu("transformer_block", &SHAPES[..2]);
}

#[test]
fn recipes_of_large_transformer_blocks_match_references_on_cpu() {
    check_recipes_on_cpu("transformer_block", &SHAPES[2..]);
}

#[test]
fn seed_determines_the_tensors() {
    let shape = Shape::new(64, 96, 32).unwrap();
    let problem = |seed| Problem { model: "linear".parse().unwrap(), shape, dtype: Dtype::Bf16, seed };
    assert_eq!(problem(1).tensors(), problem(1).tensors());
    assert_ne!(problem(1).tensors().input, problem(2).tensors().input);
}

#[test]
fn one_percent_weight_error_is_rejected() {
    let problem = Problem {
        model: "linear".parse().unwrap(),
        shape: Shape::new(16, 256, 16).unwrap(),
        dtype: Dtype::F32,
        seed: 3,
    };
    let plain = QuantConfig::unquantized(problem.dtype);
    let mut tensors = problem.tensors();
    let reference = problem.reference(&tensors, &plain).unwrap();
    let mut values = tensors.weights[0].values().to_vec();
    values[5 * 256 + 17] *= 1.01;
    tensors.weights[0] = calorimeter_recipes::Weight::new(16, 256, values, Dtype::F32);
    let setup = Setup { implementation: Implementation::Eager, device: Device::Cpu, sets: 1 };
    let mut workload = open(&problem, &tensors, &plain, setup, &mut NativeDevices::default()).unwrap();
    let verdict = gate::judge(&workload.output().unwrap(), &reference, &problem.tolerance(&plain, false));
    assert!(matches!(verdict, Err(gate::Mismatch::Element { col: 5, .. })), "{verdict:?}");
}

#[cfg(feature = "wgpu")]
#[test]
#[ignore = "needs Vulkan"]
fn models_match_references_on_vulkan() {
    let implementations = [Implementation::Eager, Implementation::Fused];
    let with_cube = [Implementation::Eager, Implementation::Fused, Implementation::Cube];
    check(Device::Vulkan(0), &with_cube, &gpu_models(), &few_variants(), &SHAPES[1..2]);
    check(Device::Vulkan(0), &implementations, &gpu_models()[..1], &every_variant(), &SHAPES[1..2]);
}

#[cfg(feature = "cuda")]
#[test]
#[ignore = "needs CUDA"]
fn models_match_references_on_cuda() {
    let implementations = [Implementation::Eager, Implementation::Fused, Implementation::Native];
    check(Device::Cuda(0), &implementations, &gpu_models(), &few_variants(), &SHAPES[1..2]);
}

/// Only `native`, which is not autotuned: every split-K configuration, and weights that are unpacked for cuBLASLt.
#[cfg(feature = "native")]
#[test]
#[ignore = "needs CUDA"]
fn native_packed_weights_match_references_on_cuda() {
    let packed =
        ["int8wo", "float8wo", "int4wo-32", "int4wo-128", "int4wo-128-hqq", "gemlitewo-4", "gemlitewo-8", "fp6"];
    let uintx =
        ["uintx-1-64", "uintx-3-64", "uintx-4-32", "uintx-6-16", "uintx-8-20", "uintx-5-96-hqq", "uintx-8-64-hqq"];
    let names = packed.into_iter().chain(uintx).chain(["mxfp8", "mxfp4", "nvfp4", "q8_0", "q4_0"]);
    let variants: Vec<RecipeVariant> = names.map(|name| name.parse::<Recipe>().unwrap().into()).collect();
    let models = ["linear", "ln_linear_gelu"].map(str::to_owned);
    let shapes = [(1, 1000, 129), (17, 127, 1000), (96, 320, 64)];
    check(Device::Cuda(0), &[Implementation::Native], &models, &variants, &shapes);
}

/// Only `cube`, in layers whose other operations are not autotuned.
#[cfg(feature = "cuda")]
#[test]
#[ignore = "needs CUDA"]
fn cubecl_stored_weights_match_references_on_cuda() {
    let names = ["int8wo", "float8wo", "int4wo-32", "int4wo-128-hqq", "uintx-3-64", "fp6", "gemlitewo-4"];
    let variants = names.map(|name| name.parse::<Recipe>().unwrap().into());
    let linear = ["linear".to_owned()];
    check(Device::Cuda(0), &[Implementation::Cube], &linear, &variants, &[(1, 1000, 129), (17, 128, 1000)]);
}

/// Only `native`: matmuls of quantized weights and inputs, at sizes with full and with partial tensor core fragments.
#[cfg(feature = "native")]
#[test]
#[ignore = "needs CUDA"]
fn native_dynamic_quantization_matches_references_on_cuda() {
    let names = ["int8dq", "int8dq_prefill_wo_decode", "float8dq-row", "float8dq-tensor"];
    let names = names.into_iter().chain(["int8adq-int4w-symm", "marlin-qqq", "q8_0", "q4_0"]);
    let variants = names.map(|name| name.parse::<Recipe>().unwrap().into()).collect::<Vec<RecipeVariant>>();
    let shapes = [(1, 1000, 129), (3, 17, 127), (17, 129, 1000), (127, 127, 3), (96, 320, 64), (129, 1000, 256)];
    let linear = ["linear".to_owned()];
    check(Device::Cuda(0), &[Implementation::Native], &linear, &variants, &shapes);
    let layers: Vec<String> =
        gpu_models().into_iter().chain(["ln_linear_silu".into()]).filter(|name| name.starts_with("ln_")).collect();
    check(Device::Cuda(0), &[Implementation::Native], &layers, &variants, &shapes[2..]);
}

/// Only `native`: 2:4 and block sparsity, with every recipe that supports them.
#[cfg(feature = "native")]
#[test]
#[ignore = "needs CUDA"]
fn native_sparse_weights_match_references_on_cuda() {
    let variant = |name: &str, sparsity| RecipeVariant { recipe: name.parse().unwrap(), sparsity: Some(sparsity) };
    let names = ["baseline", "marlin", "int8dq"];
    let semi_structured: Vec<RecipeVariant> =
        names.iter().map(|name| variant(name, Sparsity::SemiStructured)).collect();
    let models = ["linear", "ln_linear_gelu"].map(str::to_owned);
    let shapes = [(1, 1000, 129), (17, 128, 1000), (96, 320, 64), (129, 1000, 256)];
    check(Device::Cuda(0), &[Implementation::Native], &models, &semi_structured, &shapes);
    let blocks =
        ["block-0.9-64", "block-0.75-32", "block-0.5-20"].map(|name| variant("baseline", name.parse().unwrap()));
    check(
        Device::Cuda(0),
        &[Implementation::Native],
        &models,
        &blocks,
        &[(1, 640, 320), (17, 320, 640), (300, 960, 320)],
    );
}

/// Only `native`: few rows (packed weights), many rows, full and partial heads.
#[cfg(feature = "native")]
#[test]
#[ignore = "needs CUDA"]
fn native_transformer_blocks_match_references_on_cuda() {
    let names = ["baseline", "int8wo", "float8wo", "int4wo-32", "int8dq", "float8dq-row", "float8dq-tensor"];
    let names = names.into_iter().chain(["uintx-4-32", "uintx-3-32-hqq", "fp6", "mxfp8", "nvfp4"]);
    let variants: Vec<RecipeVariant> = names.map(|name| name.parse::<Recipe>().unwrap().into()).collect();
    let block = ["transformer_block".to_owned()];
    check(Device::Cuda(0), &[Implementation::Native], &block, &variants, &[(1, 40, 1), (3, 64, 1), (9, 512, 1)]);
}

#[cfg(feature = "native")]
#[test]
fn unsupported_native_recipes_name_supported_ones() {
    let shape = Shape::new(1, 64, 64).unwrap();
    let problem = Problem { model: "linear".parse().unwrap(), shape, dtype: Dtype::Bf16, seed: 1 };
    let supported = |name: &str, sparsity| {
        let variant = RecipeVariant { recipe: name.parse().unwrap(), sparsity };
        support(&problem, variant, Implementation::Native, Device::Cuda(0)).map_err(|error| error.to_string())
    };
    for name in ["baseline", "int8wo", "float8wo", "int4wo-32", "int4wo-128", "int4wo-256", "int4wo-32-hqq"]
        .into_iter()
        .chain(["int8dq", "int8dq_prefill_wo_decode", "float8dq-row", "float8dq-tensor"])
        .chain(["uintx-3-64", "uintx-8-64-hqq", "gemlitewo-4", "gemlitewo-8", "fp6", "mxfp8", "mxfp4", "nvfp4"])
        .chain(["int8adq-int4w-symm", "marlin-qqq"])
    {
        assert!(supported(name, None).is_ok(), "{name}");
    }
    let (semi, blocks) = (Some(Sparsity::SemiStructured), Some(Sparsity::DEFAULT_BLOCK));
    for name in ["baseline", "int8dq", "marlin"] {
        assert!(supported(name, semi).is_ok(), "{name}");
    }
    assert!(supported("baseline", blocks).is_ok());
    for (name, sparsity) in [("int8wo", semi), ("float8dq-row", semi), ("int8dq", blocks)] {
        let why = supported(name, sparsity).unwrap_err();
        assert!(why.contains("2:4 sparsity with baseline, ") && why.contains("int8dq"), "{why}");
        assert!(!why.contains("int8wo") && !why.contains("nvfp4"), "{why}");
    }
    let variant: RecipeVariant = "float8dq-row".parse::<Recipe>().unwrap().into();
    let why = |problem: &Problem, variant| {
        support(problem, variant, Implementation::Native, Device::Cuda(0)).unwrap_err().to_string()
    };
    let single = Problem { dtype: Dtype::F32, ..problem };
    assert!(why(&single, variant).contains("bf16 or f16"), "{}", why(&single, variant));
    let long = Problem { shape: Shape::new(8, 132_105, 64).unwrap(), ..problem };
    let variant = "int8dq".parse::<Recipe>().unwrap().into();
    assert!(why(&long, variant).contains("132104"), "{}", why(&long, variant));
}

#[test]
fn memory_includes_padded_values_and_accumulators() {
    let treatment = "int8dq".parse::<Recipe>().unwrap().quant_config(Dtype::Bf16, None).unwrap();
    for (m, k, n) in [(1, 1, 1), (3, 129, 17), (1000, 1000, 1000)] {
        let shape = Shape::new(m, k, n).unwrap();
        let problem = Problem { model: "linear".parse().unwrap(), shape, dtype: Dtype::Bf16, seed: 1 };
        let (rows, codes, sums) = (m.max(32), k.next_multiple_of(32), 4 * n.next_multiple_of(16));
        let tensors = 2 * m * (k + n) + problem.weight_bytes(&treatment);
        assert!(problem.memory(&treatment) >= tensors + rows * (codes + sums), "{m} {k} {n}");
    }
}
