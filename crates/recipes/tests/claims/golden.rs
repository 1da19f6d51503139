//! Quantization, compared bit for bit with torchao.

use crate::file::{Golden, Numbers};
use calorimeter_recipes::format::{Format, Grouping, Method, MxScaling, Zero};
use calorimeter_recipes::{Codes, Dtype, Element, FloatType, Recipe, Sparsity, Treatment};
use calorimeter_recipes::{Quantized, quantize::quantize};
use std::collections::BTreeSet;

/// Files of variants without a recipe.
const UNCHECKED: [(&str, &str); 2] = [
    ("int8_dynamic_activation_intx_weight-4-32-true.f32.bf16scale", "scales cast to bf16 before the codes are found"),
    ("int8_dynamic_activation_intx_weight-4-32-true.f32.v1", "ranges that need not take in zero"),
];

/// All files with a matching recipe or variant.
pub fn checked() -> impl Iterator<Item = Golden> {
    Golden::all().into_iter().filter(|golden| !UNCHECKED.iter().any(|(name, _)| golden.name == *name))
}

/// Configuration of the recipe or variant of a file.
pub fn treatment(golden: &Golden) -> Treatment {
    let (name, sparsity) = match golden.recipe.strip_suffix("+semi") {
        Some(name) => (name, Some(Sparsity::SemiStructured)),
        None => (golden.recipe.as_str(), None),
    };
    let of = |name: &str| name.parse::<Recipe>().unwrap().treatment(golden.dtype, sparsity).unwrap();
    let mx = |recipe: &str, element| {
        let format = Format::mx(element, MxScaling::Floor);
        Treatment { weight: Some(format), input: Some(format), ..of(recipe) }
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
fn quantized(values: &[f32], cols: usize, format: Format, without_tensor_scale: bool) -> Quantized {
    if !without_tensor_scale {
        return quantize(values, cols, format);
    }
    // Without a tensor scale means a scale of one, which an additional row with amax 2688 produces.
    let mut values = values.to_vec();
    values.resize(values.len() + cols, 2688.0);
    let mut quantized = quantize(&values, cols, format);
    assert_eq!(quantized.outer, [1.0]);
    let (rows, groups) = (quantized.rows - 1, cols / format.group(cols));
    quantized.rows = rows;
    quantized.codes.truncate(rows * format.words_per_row(cols));
    quantized.scales.truncate(rows * groups);
    quantized
}

/// Index of the scale of element `i`.
pub fn group_of(format: &Format, cols: usize, i: usize) -> usize {
    match format.grouping {
        Grouping::Tensor => 0,
        _ => i / cols * cols.div_ceil(format.group(cols)) + i % cols / format.group(cols),
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
    let ours = quantized(values, cols, format, golden.recipe == "nvfp4_no_global_scale");
    let part = |name: &str| golden.get(&format!("{prefix}{name}"));
    let what = |name: &str| format!("{} {prefix}{name}", golden.name);

    let codes = golden.tensor(&format!("{prefix}codes"));
    // Symmetric values may be stored unsigned, with an offset of half the range.
    let signed = matches!(format.element, Element::Signed(_));
    let middle = if signed && codes.bytes { format.middle() } else { 0.0 };
    let number = |code: u8| if signed { format.element.decode(code.into()) + middle } else { f32::from(code) };
    let our_codes: Vec<f32> = ours.codes().into_iter().map(number).collect();
    let numbers = ours.dequantize();
    differences.compare(&what("codes"), &our_codes, &codes.values, |i| {
        // In torchao 0 / 0, and in f16 also 0 times an infinite inverse scale, is NaN and quantizes to an arbitrary
        // value; here it is zero.
        let scale =
            if format.method == Method::Qqq { ours.outer[i / cols] } else { ours.scales[group_of(&format, cols, i)] };
        let undefined = values[i] == 0.0 && format.steps.round(1.0 / scale).is_infinite();
        our_codes[i] == codes.values[i] || (undefined && numbers[i] == 0.0)
    });

    let decoded = |theirs: &Numbers| -> Vec<f32> {
        let decode = |&value: &f32| if theirs.bytes { format.scale.decode(value as u32) } else { value };
        theirs.values.iter().map(decode).collect()
    };
    let mut scales = |name: &str, ours: &[f32]| {
        let Some(theirs) = part(name).map(decoded) else { return };
        // For a row of zeros the relative group scale of QQQ is NaN in torchao and zero here.
        differences
            .compare(&what(name), ours, &theirs, |i| ours[i] == theirs[i] || (theirs[i].is_nan() && ours[i] == 0.0));
    };
    assert!(part("scales").is_some() && (part("zeros").is_some() || format.zero == Zero::None), "{}", golden.name);
    match format.method {
        Method::Qqq => {
            scales("scales", &ours.outer);
            scales("group_scales", &ours.scales);
        }
        _ => scales("scales", &ours.scales),
    }
    scales("tensor_scale", &ours.outer);

    let Some(zeros) = part("zeros") else { return };
    let sums = matches!(format.method, Method::Hqq(_)) && format.zero.element() == Some(Element::Float(Dtype::F32));
    let our_zeros = if format.zero == Zero::None { vec![middle; zeros.values.len()] } else { ours.zeros };
    differences.compare(&what("zeros"), &our_zeros, &zeros.values, |i| {
        // torchao adds HQQ's sums in another order; after rounding to 16 bits the results are identical.
        let last_bits = if sums { 2.0 * f32::EPSILON * format.middle() * ours.scales[i] } else { 0.0 };
        (our_zeros[i] - zeros.values[i]).abs() <= last_bits
    });
}

#[test]
fn codes_scales_and_zeros_are_torchaos() {
    let mut differences = Differences::default();
    for golden in checked() {
        let config = treatment(&golden);
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
fn pruned_weights_are_torchaos() {
    for golden in Golden::all() {
        let Some(pruned) = golden.get("pruned") else { continue };
        assert_eq!(Sparsity::SemiStructured.prune(&golden.dense_weight()).values(), pruned.values, "{}", golden.name);
    }
}

#[test]
fn every_file_of_the_folder_is_known() {
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(crate::file::folder().join("summary.json")).unwrap()).unwrap();
    let made = summary["cases"].as_array().unwrap().iter().filter_map(|case| case["file"].as_str());
    let known: BTreeSet<String> = made.chain(["summary.json", "README.md"]).chain([]).map(str::to_owned).collect();
    let found = std::fs::read_dir(crate::file::folder()).unwrap();
    let found: BTreeSet<String> = found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(found, known);
}
