//! Layers that GEMM kernels on packed weights compute, layouts of the weights, and sizes of the launches.

use crate::cube::decode::DequantMode;
use crate::format::{Format, Grouping, QuantMethod, ZeroPoint};
use crate::layer::{LinearShape, Rejection};
use crate::{Dtype, Element, LayerSpec, MatmulMode};
use cubecl::prelude::*;

/// Values of a packing block; every row of a packed tensor is padded to a multiple of it.
pub(super) const BLOCK: usize = Format::PACKING_BLOCK;

/// Maximum cubes in one dimension of a launch.
const MAX_CUBES_PER_DIM: usize = 65_535;

/// Returns the weight format of a layer whose only quantized operand is a weight that GEMM kernels dequantize: with
/// word-aligned groups and a single level of scales.
pub(super) fn dequantized_format(spec: &LayerSpec) -> Result<Format, Rejection> {
    let is_supported = |format: &Format| {
        let groups = match format.grouping {
            Grouping::Row => true,
            Grouping::Block(group) => group.is_multiple_of(BLOCK as u32) || group == 16,
            Grouping::Tensor => false,
        };
        let levels = !matches!(format.method, QuantMethod::Unquantized | QuantMethod::Qqq | QuantMethod::Nvfp4);
        let LayerSpec { dtype, matmul, precision_hint, .. } = *spec;
        let expected = LayerSpec { matmul, precision_hint, ..LayerSpec::weight_only(dtype, *format) };
        groups && levels && !format.sparse_2to4 && *spec == expected
    };
    let expected = "a quantized weight with one level of scales, without sparsity, and an unquantized input";
    spec.weight.filter(is_supported).ok_or(Rejection::Spec(expected))
}

/// Layout of a packed weight, as a compile-time parameter of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PackedLayout {
    /// Values per row (k).
    pub cols: usize,
    /// Words of quantized values per row.
    pub words_per_row: usize,
    /// Values of a row that share a scale.
    pub group: usize,
    pub element: Element,
    pub scale: Element,
    pub zero: DequantMode,
}

impl PackedLayout {
    pub(super) fn new(format: &Format, cols: usize) -> Self {
        Self {
            cols,
            words_per_row: format.words_per_row(cols),
            group: format.group_size(cols),
            element: format.element,
            scale: format.scale,
            zero: DequantMode::of_format(format),
        }
    }

    /// Packing blocks per row.
    pub(super) fn blocks(&self) -> usize {
        self.cols.div_ceil(BLOCK)
    }

    pub(super) fn groups_per_row(&self) -> usize {
        self.cols.div_ceil(self.group)
    }

    /// Values of a run of `run_len` values that share a scale.
    pub(super) fn values_per_scale(&self, run_len: usize) -> usize {
        if self.groups_per_row() == 1 { run_len } else { self.group.min(run_len) }
    }

    /// True if each row has a single scale without zero point, which is applied in the epilogue.
    pub(super) fn scales_in_epilogue(&self) -> bool {
        self.groups_per_row() == 1 && self.zero == DequantMode::ScaleOnly
    }
}

/// Index of a scale; a row consists of runs of `run_len` values, and a run of parts that share a scale. The last run of
/// a row may extend beyond its groups.
#[cube]
pub(super) fn scale_index(
    row: usize,
    run: usize,
    #[comptime] part: usize,
    #[comptime] run_len: usize,
    #[comptime] weight: PackedLayout,
) -> usize {
    let group = (run * run_len + comptime!(part * weight.values_per_scale(run_len))) / comptime!(weight.group);
    row * comptime!(weight.groups_per_row()) + min(group, comptime!(weight.groups_per_row() - 1))
}

/// Formats of an int8 layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Int8Formats {
    /// Format of the weight.
    pub weight: Format,
    /// Dtype to which accumulators and scales are rounded.
    pub steps: Dtype,
}

/// Returns the formats of a layer with weight and input in int8 and one scale per row.
pub(super) fn int8_formats(spec: &LayerSpec) -> Result<Int8Formats, Rejection> {
    let is_int8 = |format: Format| {
        format.element == Element::Signed(8)
            && format.grouping == Grouping::Row
            && format.zero == ZeroPoint::None
            && !format.sparse_2to4
            && !format.rounds_to_int8()
    };
    let LayerSpec { dtype, weight, input, matmul, precision_hint, .. } = *spec;
    match (weight, input, matmul) {
        (Some(weight), Some(input), MatmulMode::QuantizedValues(steps))
            if is_int8(weight)
                && is_int8(input)
                && *spec == (LayerSpec { precision_hint, ..LayerSpec::dynamic(dtype, weight, input, matmul) }) =>
        {
            Ok(Int8Formats { weight, steps })
        }
        _ => Err(Rejection::Spec("a dense weight and an input in int8 with one scale per row")),
    }
}

/// Checks the number of input rows.
pub(super) fn check_rows(shape: LinearShape, max: usize) -> Result<(), Rejection> {
    if shape.m > max { Err(Rejection::Size { what: "m", max, value: shape.m }) } else { Ok(()) }
}

/// Grid of at least `weight_cubes` cubes along the weight rows, and `input_cubes` along the input rows, in a shape that
/// every device supports.
pub(super) fn grid(weight_cubes: usize, input_cubes: usize) -> CubeCount {
    let layers = weight_cubes.div_ceil(MAX_CUBES_PER_DIM);
    CubeCount::Static(weight_cubes.div_ceil(layers) as u32, layers as u32, input_cubes as u32)
}
