//! Kernels of linear layers on the CPU: one file per kernel, and the table from which the cheapest is selected.

use super::layer::{Cpu, HostLayer, HostLayerContext};
use crate::LayerSpec;
use crate::layer::{self, KernelTable, LinearShape, Rejection};

/// Declares the modules of the kernels and their table, in order of preference.
macro_rules! layer_kernels {
    ($($module:ident::$kernel:ident,)*) => {
        $(mod $module;)*

        /// Kernels of linear layers on the CPU.
        pub static LAYER_KERNELS: &KernelTable<Cpu> = &[$(&$module::$kernel),*];
    };
}

layer_kernels! {
    floats::Floats,
    int8_weight::Int8WeightOnly,
    int4_weight::Int4WeightOnly,
    block_weight::BlockWeightOnly,
    int8_dynamic::Int8Dynamic,
}

/// Selects the cheapest kernel that accepts a layer, and prepares it with the weight.
pub fn prepare_layer(
    context: &HostLayerContext,
    spec: &LayerSpec,
    shape: LinearShape,
) -> Result<Box<dyn HostLayer>, Rejection> {
    layer::prepare(LAYER_KERNELS, context, &(), spec, shape)
}
