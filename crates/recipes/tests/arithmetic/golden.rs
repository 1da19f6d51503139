//! Quantization, compared bit for bit with torchao.

use crate::golden_file::{Golden, GoldenTensor};
use calorimeter_recipes::format::{Format, Grouping, MxScaling, QuantMethod, ZeroPoint};
use calorimeter_recipes::{Dtype, Element, ElementCodec, FloatType, QuantConfig, Recipe, Sparsity};
use calorimeter_recipes::{QuantizedTensor, prune, quantize::quantize};
use std::collections::BTreeSet;

/// Files of variants without a recipe.
const UNCHECKED: [(&str, &str); 2] = [
    ("int8_dynamic_activation_intx_weight-4-32-true.f32.bf16scale", "scales cast to bf16 before the codes are found"),
    ("int8_dynamic_activation_intx_weight-4-32-true.f32.v1", "ranges that need not take in zero"),
];

/// All files with a matching recipe or variant.
pub(crate) fn checked() -> impl Iterator<Item = Golden> {
    Golden::all().into_iter().filter(|golden| !UNCHECKED.iter().any(|(name, _)| golden.name == *name))
}

/// Configuration of the recipe or variant of a file.
pub(crate) fn quant_config(golden: &Golden) -> QuantConfig {
    let (name, sparsity) = match golden.recipe.strip_suffix("+semi") {
        Some(name) => (name, Some(Sparsity::SemiStructured)),
        None => (golden.recipe.as_str(), None),
    };
    let of = |name: &str| name.parse::<Recipe>().unwrap().quant_config(golden.dtype, sparsity).unwrap();
    let mx = |recipe: &str, element| {
        let format = Format::mx(element, MxScaling::Floor);
        QuantConfig { weight: Some(format), input: Some(format), ..of(recipe) }
    };
    match name {
        "mxfp8_floor" => mx("mxfp8", Element::E4m3),
        "mxfp4_floor" => mx("mxfp4", Element::E2m1),
        "mxfp8_rceil" => of("mxfp8"),
        "mxfp4_rceil" => of("mxfp4"),
        "nvfp4_no_global_scale" => of("nvfp4"),
        // In torchao a group size of 0 means whole rows.
        "int8_dynamic_activation_intx_weight-4-0-true" => {
            let mut config = of("int8_dynamic_activation_intx_weight-4-32-true");
            config.weight.iter_mut().for_each(|weight| weight.grouping = Grouping::Row);
            config
        }
        name => of(name),
    }
}

/// Quantizes a tensor of a file; `without_tensor_scale` if torchao used no tensor scale.
fn quantize_golden(values: &[f32], cols: usize, format: Format, without_tensor_scale: bool) -> QuantizedTensor {
    if !without_tensor_scale {
        return quantize(values, cols, format);
    }
    // Without a tensor scale means a scale of one, which an additional row with amax 2688 produces.
    let mut values = values.to_vec();
    values.resize(values.len() + cols, 2688.0);
    let mut quantized = quantize(&values, cols, format);
    assert_eq!(quantized.outer_scales, [1.0]);
    let (rows, groups) = (quantized.rows - 1, cols / format.group_size(cols));
    quantized.rows = rows;
    quantized.codes.truncate(rows * format.words_per_row(cols));
    quantized.scales.truncate(rows * groups);
    quantized
}

/// Index of the scale of element `i`.
pub(crate) fn scale_index(format: &Format, cols: usize, i: usize) -> usize {
    match format.grouping {
        Grouping::Tensor => 0,
        _ => i / cols * cols.div_ceil(format.group_size(cols)) + i % cols / format.group_size(cols),
    }
}

/// List of differences.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    /// Records whether two lists differ; `same` compares the elements at an index.
    fn compare(&mut self, what: &str, ours: &[f32], theirs: &[f32], same: impl Fn(usize) -> bool) {
        if ours.len() != theirs.len() {
            self.0.push(format!("{what}: {}, torchao {}", ours.len(), theirs.len()));
            return;
        }
        let differing: Vec<usize> = (0..ours.len()).filter(|&i| !same(i)).collect();
        if let Some(&i) = differing.first() {
            let count = format!("{} of {} differ", differing.len(), ours.len());
            self.0.push(format!("{what}: {count}, the first at {i}: {:e}, torchao {:e}", ours[i], theirs[i]));
        }
    }
}

/// Compares a quantized tensor with the tensors of the file whose names begin with `prefix`.
fn compare(golden: &Golden, values: &[f32], cols: usize, format: Format, prefix: &str, differences: &mut Differences) {
    let ours = quantize_golden(values, cols, format, golden.recipe == "nvfp4_no_global_scale");
    let part = |name: &str| golden.get(&format!("{prefix}{name}"));
    let what = |name: &str| format!("{} {prefix}{name}", golden.name);

    let codes = golden.tensor(&format!("{prefix}codes"));
    // Symmetric values may be stored unsigned, with an offset of half the range.
    let signed = matches!(format.element, Element::Signed(_));
    let middle = if signed && codes.is_u8 { format.midpoint() } else { 0.0 };
    let number = |code: u8| if signed { format.element.decode(code.into()) + middle } else { f32::from(code) };
    let our_codes: Vec<f32> = ours.codes().into_iter().map(number).collect();
    let numbers = ours.dequantize();
    differences.compare(&what("codes"), &our_codes, &codes.values, |i| {
        // In torchao 0 / 0, and in f16 also 0 times an infinite inverse scale, is NaN and quantizes to an arbitrary
        // value; here it is zero.
        let scale = if format.method == QuantMethod::Qqq {
            ours.outer_scales[i / cols]
        } else {
            ours.scales[scale_index(&format, cols, i)]
        };
        let undefined = values[i] == 0.0 && format.compute_dtype.round(1.0 / scale).is_infinite();
        our_codes[i] == codes.values[i] || (undefined && numbers[i] == 0.0)
    });

    let decoded = |theirs: &GoldenTensor| -> Vec<f32> {
        let decode = |&value: &f32| if theirs.is_u8 { format.scale.decode(value as u32) } else { value };
        theirs.values.iter().map(decode).collect()
    };
    let mut scales = |name: &str, ours: &[f32]| {
        let Some(theirs) = part(name).map(decoded) else { return };
        // For a row of zeros the relative group scale of QQQ is NaN in torchao and zero here.
        differences
            .compare(&what(name), ours, &theirs, |i| ours[i] == theirs[i] || (theirs[i].is_nan() && ours[i] == 0.0));
    };
    assert!(part("scales").is_some() && (part("zeros").is_some() || format.zero == ZeroPoint::None), "{}", golden.name);
    match format.method {
        QuantMethod::Qqq => {
            scales("scales", &ours.outer_scales);
            scales("group_scales", &ours.scales);
        }
        _ => scales("scales", &ours.scales),
    }
    scales("tensor_scale", &ours.outer_scales);

    let Some(zeros) = part("zeros") else { return };
    let sums =
        matches!(format.method, QuantMethod::Hqq(_)) && format.zero.element() == Some(Element::Float(Dtype::F32));
    let our_zeros = if format.zero == ZeroPoint::None { vec![middle; zeros.values.len()] } else { ours.zeros };
    differences.compare(&what("zeros"), &our_zeros, &zeros.values, |i| {
        // torchao adds HQQ's sums in another order; after rounding to 16 bits the results are identical.
        let last_bits = if sums { 2.0 * f32::EPSILON * format.midpoint() * ours.scales[i] } else { 0.0 };
        (our_zeros[i] - zeros.values[i]).abs() <= last_bits
    });
}

#[test]
fn quantization_matches_torchao() {
    let mut differences = Differences::default();
    for golden in checked() {
        let config = quant_config(&golden);
        let (weight, input) = (golden.weight(), golden.tensor("input"));
        let format = config.weight.expect("golden recipes quantize weights");
        compare(&golden, weight.values(), weight.k(), format, "", &mut differences);
        if let Some(format) = config.input.filter(|_| golden.get("input_codes").is_some()) {
            compare(&golden, &input.values, input.shape[1], format, "input_", &mut differences);
        }
    }
    assert!(differences.0.is_empty(), "{}", differences.0.join("\n"));
}

#[test]
fn pruning_matches_torchao() {
    for golden in Golden::all() {
        let Some(pruned) = golden.get("pruned") else { continue };
        assert_eq!(prune(Sparsity::SemiStructured, &golden.dense_weight()).values(), pruned.values, "{}", golden.name);
    }
}

#[test]
fn golden_folder_matches_summary() {
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(crate::golden_file::folder().join("summary.json")).unwrap()).unwrap();
    let made = summary["cases"].as_array().unwrap().iter().filter_map(|case| case["file"].as_str());
    let known: BTreeSet<String> = made.chain(["summary.json", "README.md"]).chain([]).map(str::to_owned).collect();
    let found = std::fs::read_dir(crate::golden_file::folder()).unwrap();
    let found: BTreeSet<String> = found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(found, known);
}
