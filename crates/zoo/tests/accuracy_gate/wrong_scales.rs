//! Quantized layers on real devices with modified weights, as a kernel with wrong scales would read them. The gate must
//! reject each.

use calorimeter_recipes::{Dtype, Recipe, Weight};
use calorimeter_shapes::Shape;
use calorimeter_zoo::{Device, Implementation, NativeDevices, Problem, Setup, Tensors, ZooError, open};

/// Recipe, and the number of elements along k that share a scale.
const RECIPES: &[(&str, usize)] = &[
    ("int8wo", K),
    ("float8dq-row", K),
    ("mxfp8", 32),
    ("int8dq", K),
    ("int4wo-128", 128),
    ("q8_0", 32),
    ("q4_0", 32),
];
const K: usize = 256;

/// Factor of a block of weights, given the amax of all blocks and the index of the block.
type Tampering = fn(&[f32], usize) -> f32;

const TAMPERINGS: &[(&str, Tampering)] = &[
    ("unchanged", |_, _| 1.0),
    ("scales of one row off by 2 %", |tops, block| if block * 48 / tops.len() == 5 { 1.02 } else { 1.0 }),
    // A power of two, because scales of mxfp8 are powers of two.
    ("scales rotated by one", |tops, block| {
        let exponent = |block: usize| tops[block].log2().floor();
        (exponent((block + tops.len() - 1) % tops.len()) - exponent(block)).exp2()
    }),
];

fn tamper(tensors: &Tensors, block: usize, tampering: Tampering, dtype: Dtype) -> Tensors {
    let weight = &tensors.weights[0];
    let top = |block: &[f32]| block.iter().fold(0.0, |top: f32, value| top.max(value.abs()));
    let tops: Vec<f32> = weight.values().chunks(block).map(top).collect();
    let blocks = weight.values().chunks(block).enumerate();
    let values = blocks.flat_map(|(at, values)| {
        let factor = tampering(&tops, at);
        values.iter().map(move |value| factor * value)
    });
    let weight = Weight::new(weight.n(), weight.k(), values.collect(), dtype);
    Tensors { weights: vec![weight], ..tensors.clone() }
}

fn check(device: Device, implementations: &[Implementation], dtypes: &[Dtype]) {
    let (mut machines, mut wrong) = (NativeDevices::default(), Vec::new());
    for &dtype in dtypes {
        let shape = Shape::new(33, K as u64, 48).unwrap();
        let problem = Problem { model: "linear".parse().unwrap(), shape, dtype, seed: 7 };
        let tensors = problem.gate_tensors();
        for (recipe, block) in RECIPES {
            let treatment = recipe.parse::<Recipe>().unwrap().quant_config(dtype, None).unwrap();
            let reference = problem.reference(&tensors, &treatment).unwrap();
            for &implementation in implementations {
                for (name, tampering) in TAMPERINGS {
                    let setup = Setup { implementation, device, sets: 1 };
                    let read = tamper(&tensors, *block, *tampering, dtype);
                    let mut workload = match open(&problem, &read, &treatment, setup, &mut machines) {
                        Err(ZooError::Unsupported(why))
                            if dtype != Dtype::F32 || implementation == Implementation::Native =>
                        {
                            println!("{recipe} {dtype} {device}: {why}");
                            continue;
                        }
                        opened => opened.unwrap(),
                    };
                    let output = workload.output().unwrap();
                    let judged = problem.judge(&treatment, &output, &reference, workload.may_use_tf32());
                    if judged.is_ok() != (*name == "unchanged") {
                        wrong.push(format!("{recipe} {dtype} {implementation} {device}, {name}: {judged:?}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
#[cfg(feature = "cpu")]
fn wrong_weight_scales_are_rejected_on_cpu() {
    check(Device::Cpu, &[Implementation::Eager, Implementation::Native], &[Dtype::F32, Dtype::Bf16]);
}

#[test]
#[ignore = "needs Vulkan"]
#[cfg(feature = "wgpu")]
fn wrong_weight_scales_are_rejected_on_vulkan() {
    check(Device::Vulkan(0), &[Implementation::Eager, Implementation::Fused], &[Dtype::F32]);
}

#[test]
#[ignore = "needs CUDA"]
#[cfg(feature = "cuda")]
fn wrong_weight_scales_are_rejected_on_cuda() {
    check(Device::Cuda(0), &[Implementation::Eager, Implementation::Fused], &[Dtype::F32, Dtype::Bf16]);
}
