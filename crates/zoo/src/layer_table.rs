//! Table of layer kernels: how each implementation computes the linear layer of each recipe.

use crate::registry::support;
use crate::{Device, Implementation, Model, Problem, Subject};
use calorimeter_kernels::LinearShape;
use calorimeter_kernels::host;
use calorimeter_kernels::layer::{KernelTable, LayerBackend, candidates};
use calorimeter_recipes::{Dtype, QuantConfig, Recipe, RecipeVariant, Sparsity, pair};
use calorimeter_shapes::Shape;

/// Numbers of input rows in the table.
pub const TABLE_ROWS: [usize; 4] = [1, 16, 256, 4096];

/// Row length and number of rows of the weights in the table.
pub const TABLE_SIDE: usize = 4096;

/// Computation of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayerChoice {
    /// A kernel multiplies the weight as it is stored.
    Kernel(&'static str),
    /// burn multiplies an unquantized weight.
    Burn,
    /// burn's operations dequantize the weight in each pass.
    Dequantized,
    /// The implementation does not compute the layer; the text is the reason.
    Unsupported(String),
}

/// Row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerTableRow {
    /// Recipe and sparsity.
    pub variant: RecipeVariant,
    /// Implementation.
    pub implementation: Implementation,
    /// Device; `native` on CUDA stands for an H100 or H200, and `cube` for a GPU with matrix instructions.
    pub device: Device,
    /// Computation for each of [`TABLE_ROWS`].
    pub choices: [LayerChoice; TABLE_ROWS.len()],
}

/// Returns the table of layers with k = n = [`TABLE_SIDE`] in a dtype: the typical recipes, with and without sparsity,
/// under every implementation on every kind of device. No device is needed; devices without a backend in this build are
/// unsupported.
pub fn layer_table(dtype: Dtype) -> Vec<LayerTableRow> {
    let model: Model = "linear".parse().expect("`linear` is a built-in model");
    let sparsities = [Sparsity::SemiStructured, Sparsity::DEFAULT_BLOCK];
    let variants = pair(&Recipe::examples(), &sparsities).into_iter();
    // Some recipes exist only with sparsity.
    let variants = variants.filter(|variant| variant.quant_config(dtype).is_ok());
    let devices = [Device::Cuda(0), Device::Vulkan(0), Device::Metal(0), Device::Cpu];
    let places = devices.into_iter().flat_map(|device| Implementation::ALL.map(|it| (device, it)));
    let places: Vec<_> = places.filter(|(device, it)| Subject::Model(model).has(*it, *device)).collect();
    variants
        .flat_map(|variant| places.iter().map(move |&(device, implementation)| (variant, device, implementation)))
        .map(|(variant, device, implementation)| {
            let choices = TABLE_ROWS.map(|rows| choice(model, variant, (implementation, device), dtype, rows));
            LayerTableRow { variant, implementation, device, choices }
        })
        .collect()
}

fn choice(
    model: Model,
    variant: RecipeVariant,
    (implementation, device): (Implementation, Device),
    dtype: Dtype,
    rows: usize,
) -> LayerChoice {
    let [m, side] = [rows, TABLE_SIDE].map(|size| size as u64);
    let shape = Shape::new(m, side, side).expect("the sizes of the table are positive");
    let problem = Problem { model, shape, dtype, seed: 0 };
    let config = match support(&problem, variant, implementation, device) {
        Ok(config) => config,
        Err(error) => return LayerChoice::Unsupported(error.to_string()),
    };
    match (implementation, device) {
        (Implementation::Native, Device::Cpu) => kernel_of(host::LAYER_KERNELS, &config, rows, &()),
        #[cfg(feature = "native")]
        (Implementation::Native, _) => {
            use calorimeter_kernels::native::{ComputeCapability, LAYER_KERNELS};
            kernel_of(LAYER_KERNELS, &config, rows, &ComputeCapability::HOPPER)
        }
        #[cfg(any(feature = "cuda", feature = "wgpu"))]
        (Implementation::Cube, _) => {
            use calorimeter_kernels::cube::{CubeCapability, layer_kernels};
            let kernels = layer_kernels::<crate::backends::GpuRuntime>();
            match kernel_of(kernels, &config, rows, &CubeCapability::COMPLETE) {
                // Without a kernel for the number of rows, burn's operations compute the layer.
                LayerChoice::Unsupported(_) => LayerChoice::Dequantized,
                kernel => kernel,
            }
        }
        _ if config.weight.is_none() && config.sparsity.is_none() => LayerChoice::Burn,
        _ => LayerChoice::Dequantized,
    }
}

fn kernel_of<B: LayerBackend>(
    table: &KernelTable<B>,
    config: &QuantConfig,
    rows: usize,
    capability: &B::Capability,
) -> LayerChoice {
    let shape = LinearShape { m: rows, k: TABLE_SIDE, n: TABLE_SIDE };
    match candidates(table, &config.layer_spec(rows), shape, capability) {
        Ok(kernels) => LayerChoice::Kernel(kernels.first().map_or("", |kernel| kernel.name())),
        Err(reason) => LayerChoice::Unsupported(reason.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_name_kernels_fallbacks_and_missing_backends() {
        let table = layer_table(Dtype::Bf16);
        let choices = |name: &str, implementation, device| {
            let row = |row: &&LayerTableRow| {
                (row.variant.to_string().as_str(), row.implementation, row.device) == (name, implementation, device)
            };
            table.iter().find(row).map(|row| row.choices.clone())
        };
        let cpu = choices("int8wo", Implementation::Native, Device::Cpu);
        assert_eq!(cpu, Some([(); 4].map(|()| LayerChoice::Kernel("int8 weight"))));
        let eager = choices("int8wo", Implementation::Eager, Device::Cpu).unwrap();
        let missing = eager.iter().all(|choice| matches!(choice, LayerChoice::Unsupported(_)));
        assert!(missing != cfg!(feature = "cpu") && (missing || eager == [(); 4].map(|()| LayerChoice::Dequantized)));
        #[cfg(feature = "native")]
        {
            let names = choices("int4wo-128", Implementation::Native, Device::Cuda(0)).unwrap();
            let expected =
                ["packed weight", "tiled weight, wgmma", "tiled weight, wgmma", "dequantized weight, cuBLASLt"];
            assert_eq!(names, expected.map(LayerChoice::Kernel));
            let baseline = choices("baseline", Implementation::Native, Device::Cuda(0)).unwrap();
            assert_eq!(baseline, ["GEMV", "cuBLASLt", "cuBLASLt", "cuBLASLt"].map(LayerChoice::Kernel));
        }
    }

    #[cfg(feature = "full")]
    #[test]
    fn every_recipe_runs_somewhere() {
        let table = layer_table(Dtype::Bf16);
        let runs = |row: &LayerTableRow| row.choices.iter().any(|it| !matches!(it, LayerChoice::Unsupported(_)));
        for row in &table {
            let mut rows_of_variant = table.iter().filter(|other| other.variant == row.variant);
            assert!(rows_of_variant.any(runs), "{} runs nowhere", row.variant);
        }
    }

    #[cfg(feature = "native")]
    #[test]
    fn recipes_with_quantized_weights_have_cuda_kernels() {
        use calorimeter_case::{Element, MatmulMode};
        for dtype in Dtype::ALL {
            let rows = layer_table(dtype).into_iter();
            for row in rows.filter(|row| (row.implementation, row.device) == (Implementation::Native, Device::Cuda(0)))
            {
                let config = row.variant.quant_config(dtype).unwrap();
                let Some(weight) = config.weight.filter(|_| row.variant.sparsity.is_none()) else { continue };
                // The input is rounded in another format than the weight, or e4m3 products are rounded to f32.
                let is_excluded = row.variant.to_string().starts_with("int8_dynamic_activation_intx_weight")
                    || (dtype == Dtype::F32
                        && weight.element == Element::E4m3
                        && matches!(config.layer_spec(1).matmul, MatmulMode::QuantizedValues(_)));
                let has_kernel = row.choices.iter().all(|choice| matches!(choice, LayerChoice::Kernel(_)));
                assert!(has_kernel != is_excluded, "{} {dtype}: {:?}", row.variant, row.choices);
            }
        }
        // The 2:4 sparse kernels do not read e5m2.
        let table = layer_table(Dtype::Bf16);
        for recipe in ["float8dq-row", "float8dq-tensor"] {
            let variant = RecipeVariant { recipe: recipe.parse().unwrap(), sparsity: Some(Sparsity::SemiStructured) };
            let native = (variant, Implementation::Native, Device::Cuda(0));
            let row = table.iter().find(|row| (row.variant, row.implementation, row.device) == native).unwrap();
            assert!(matches!(row.choices[0], LayerChoice::Unsupported(_)), "{recipe}: {:?}", row.choices);
        }
    }
}
