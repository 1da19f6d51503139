//! Reader of golden vector files.

use calorimeter_recipes::{Dtype, Weight};
use safetensors::{SafeTensors, tensor::Metadata};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Tensor of a golden file, converted to f32.
pub(crate) struct GoldenTensor {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
    /// Stored as unsigned bytes: quantized integers, or bit patterns of small floats.
    pub is_u8: bool,
}

/// Weight, input and results of another library for a recipe.
pub(crate) struct Golden {
    pub name: String,
    pub dtype: Dtype,
    /// Name of the recipe, or of a variant of it.
    pub recipe: String,
    tensors: HashMap<String, GoldenTensor>,
}

/// Folder of the golden files of torchao.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden")
}

/// Folder of the golden files of ggml.
fn ggml_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ggml")
}

impl Golden {
    /// Reads all golden files of torchao.
    pub(crate) fn all() -> Vec<Self> {
        Self::in_folder(&folder())
    }

    /// Reads all golden files of ggml.
    pub(crate) fn of_ggml() -> Vec<Self> {
        Self::in_folder(&ggml_folder())
    }

    fn in_folder(folder: &Path) -> Vec<Self> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "safetensors"))
            .collect();
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let (_, header): (usize, Metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let metadata = header.metadata().clone().expect("golden files have metadata");
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = file.tensors().into_iter().map(|(name, view)| {
            let data = view.data();
            let (values, bytes): (Vec<f32>, bool) = match view.dtype() {
                safetensors::Dtype::F32 => {
                    (data.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(), false)
                }
                safetensors::Dtype::I32 => {
                    (data.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes) as f32).collect(), false)
                }
                safetensors::Dtype::I8 => (data.iter().map(|&byte| f32::from(byte as i8)).collect(), false),
                safetensors::Dtype::U8 => (data.iter().map(|&byte| f32::from(byte)).collect(), true),
                other => panic!("{name} is stored as {other:?}"),
            };
            (name, GoldenTensor { shape: view.shape().to_vec(), values, is_u8: bytes })
        });
        Self {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            dtype: metadata["dtype"].parse().unwrap(),
            recipe: metadata["recipe"].clone(),
            tensors: tensors.collect(),
        }
    }

    /// Returns a required tensor.
    pub(crate) fn tensor(&self, name: &str) -> &GoldenTensor {
        self.get(name).unwrap_or_else(|| panic!("{} has no {name}", self.name))
    }

    /// Returns an optional tensor.
    pub(crate) fn get(&self, name: &str) -> Option<&GoldenTensor> {
        self.tensors.get(name)
    }

    /// Weight to be quantized; pruned for sparse recipes.
    pub(crate) fn weight(&self) -> Weight {
        self.get("pruned").map_or_else(|| self.dense_weight(), |pruned| self.as_weight(pruned))
    }

    /// Weight before pruning.
    pub(crate) fn dense_weight(&self) -> Weight {
        self.as_weight(self.tensor("weight"))
    }

    fn as_weight(&self, GoldenTensor { shape, values, .. }: &GoldenTensor) -> Weight {
        Weight::new(shape[0], shape[1], values.clone(), self.dtype)
    }
}
