//! Fused casts of matrices to 8-bit floats and back to f32, on GPUs through CubeCL, with the minimum number of passes
//! for each granularity. Results equal [`quantize`](super::QuantBackend::quantize) followed by
//! [`read`](super::QuantBackend::read).

use super::cast_kernels::{self as kernels, BLOCK, CastSpec, MAX_PARTIAL_AMAX, UNITS_PER_CUBE};
use super::cube::launch_params;
use crate::Element;
use crate::dispatch::with_rule;
use crate::format::{Format, Grouping, QuantMethod, ZeroPoint};
use crate::packed_tensor::TensorPart;
use crate::scalar::rules::QuantParams;
use crate::scalar::rules::QuantRule;
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::ops::permute;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

/// Result of a cast.
pub(crate) struct CastMatrix<R: CubeRuntime> {
    /// Values in f32, with or without scales applied.
    pub values: CubeTensor<R>,
    /// Row scales or the tensor scale, if they are not applied to the values.
    pub scales: Option<CubeTensor<R>>,
}

/// True if cast kernels exist for a format.
pub(crate) fn is_castable(format: &Format) -> bool {
    let floats = matches!((format.element, format.method), (Element::E4m3 | Element::E5m2, QuantMethod::Floats { .. }))
        || matches!((format.element, format.method), (Element::E4m3, QuantMethod::Mx(_)));
    let grouped = match format.grouping {
        Grouping::Tensor | Grouping::Row => true,
        Grouping::Block(size) => size as usize == BLOCK,
    };
    floats && grouped && format.zero == ZeroPoint::None && !format.sparse_2to4
}

/// Casts a matrix to a format that [is castable](is_castable): to quantized values with separate row or tensor scales,
/// or to dequantized values.
pub(crate) fn cast<R: CubeRuntime>(tensor: CubeTensor<R>, format: Format, reading: TensorPart) -> CastMatrix<R> {
    with_rule!(format, T => cast_with::<R, T>(&MatrixLines::new(tensor), format, reading))
}

fn cast_with<R: CubeRuntime, T: QuantRule>(
    lines: &MatrixLines<R>,
    format: Format,
    reading: TensorPart,
) -> CastMatrix<R> {
    let form = CastSpec { element: format.element, scaled: reading == TensorPart::Values };
    let cast = match format.grouping {
        Grouping::Tensor => cast_per_tensor::<R, T>(lines, format, form),
        Grouping::Row if lines.is_column_major => cast_strided_rows::<R, T>(lines, format, form),
        Grouping::Row => cast_contiguous_rows::<R, T>(lines, format, form),
        Grouping::Block(_) if lines.is_column_major => cast_strided_blocks::<R, T>(lines, format, form),
        Grouping::Block(_) => cast_contiguous_blocks::<R, T>(lines, format, form),
    };
    let values = if lines.is_column_major { permute(cast.values, &[1, 0]) } else { cast.values };
    CastMatrix { values, scales: cast.scales.filter(|_| reading == TensorPart::QuantizedValues) }
}

/// Casts with a tensor scale: the first kernel computes partial amax, the second reduces them and casts.
fn cast_per_tensor<R: CubeRuntime, T: QuantRule>(
    lines: &MatrixLines<R>,
    format: Format,
    form: CastSpec,
) -> CastMatrix<R> {
    let (values, scales, width) = (lines.empty_values(), lines.empty_vector(1), lines.width());
    let (pieces, stride) = (lines.len / width, lines.stride / width);
    let client = &lines.tensor.client;
    let cubes_of = |per_unit: usize| (lines.count * pieces).div_ceil(UNITS_PER_CUBE * per_unit).max(1);
    let parts = cubes_of(ACCESSES_PER_UNIT).min(MAX_PARTIAL_AMAX);
    let partial_amax = lines.empty_vector(parts);
    // SAFETY: both kernels check positions against the number and length of lines. Each cube of the first writes its
    // own partial amax, and the second reads `parts` of them.
    unsafe {
        kernels::partial_amax::launch_unchecked::<R>(
            client,
            CubeCount::Static(parts as u32, 1, 1),
            CubeDim::new_1d(UNITS_PER_CUBE as u32),
            width,
            lines.arg(width),
            vector_arg(&partial_amax, 1),
            lines.count,
            pieces,
            stride,
            lines.dtype(),
        );
        kernels::cast_per_tensor::launch_unchecked::<T, R>(
            client,
            CubeCount::Static(cubes_of(2 * ACCESSES_PER_UNIT).min(MAX_CUBES_PER_DIM) as u32, 1, 1),
            CubeDim::new_1d(UNITS_PER_CUBE as u32),
            width,
            lines.arg(width),
            vector_arg(&partial_amax, 1),
            vector_arg(&values, width),
            vector_arg(&scales, 1),
            launch_params(QuantParams::of_format(&format)),
            parts,
            lines.count,
            pieces,
            stride,
            form,
            lines.dtype(),
        );
    }
    CastMatrix { values, scales: Some(scales) }
}

/// Casts with row scales, one cube per contiguous row.
fn cast_contiguous_rows<R: CubeRuntime, T: QuantRule>(
    lines: &MatrixLines<R>,
    format: Format,
    form: CastSpec,
) -> CastMatrix<R> {
    let (values, scales, width) = (lines.empty_values(), lines.empty_vector(lines.count), lines.width());
    let (pieces, stride) = (lines.len / width, lines.stride / width);
    let units = pieces.div_ceil(ACCESSES_PER_UNIT).next_power_of_two().clamp(32, lines.max_units());
    let accesses_per_unit = pieces.div_ceil(units);
    // SAFETY: the kernel checks line and position, and there is one scale per line.
    unsafe {
        kernels::cast_contiguous_rows::launch_unchecked::<T, R>(
            &lines.tensor.client,
            cube_count(lines.count),
            CubeDim::new_1d(units as u32),
            width,
            lines.arg(width),
            vector_arg(&values, width),
            vector_arg(&scales, 1),
            launch_params(QuantParams::of_format(&format)),
            lines.count,
            pieces,
            stride,
            units,
            register_accesses(accesses_per_unit, width),
            form,
            lines.dtype(),
        );
    }
    CastMatrix { values, scales: Some(scales) }
}

/// Casts with row scales of a column-major matrix: one cube for several adjacent rows.
fn cast_strided_rows<R: CubeRuntime, T: QuantRule>(
    lines: &MatrixLines<R>,
    format: Format,
    form: CastSpec,
) -> CastMatrix<R> {
    let (values, scales, width) = (lines.empty_values(), lines.empty_vector(lines.len), lines.width());
    let (pieces, stride) = (lines.len / width, lines.stride / width);
    let units_x = ROWS_PER_CUBE / width;
    let max_units_y = (lines.max_units() / units_x).max(1);
    let units_y = lines.count.div_ceil(ACCESSES_PER_UNIT).next_power_of_two().min(max_units_y);
    let accesses_per_unit = lines.count.div_ceil(units_y);
    // SAFETY: the kernel checks line and position, and there is one scale per position of a line.
    unsafe {
        kernels::cast_strided_rows::launch_unchecked::<T, R>(
            &lines.tensor.client,
            cube_count(pieces.div_ceil(units_x)),
            CubeDim::new_2d(units_x as u32, units_y as u32),
            width,
            lines.arg(width),
            vector_arg(&values, width),
            vector_arg(&scales, 1),
            launch_params(QuantParams::of_format(&format)),
            lines.count,
            pieces,
            stride,
            units_x,
            units_y,
            register_accesses(accesses_per_unit, width),
            form,
            lines.dtype(),
        );
    }
    CastMatrix { values, scales: Some(scales) }
}

/// Casts with block scales: several adjacent units per contiguous block.
fn cast_contiguous_blocks<R: CubeRuntime, T: QuantRule>(
    lines: &MatrixLines<R>,
    format: Format,
    form: CastSpec,
) -> CastMatrix<R> {
    let (values, width) = (lines.empty_values(), lines.width());
    let (pieces, stride, padded) = (lines.len / width, lines.stride / width, lines.len.div_ceil(BLOCK) * BLOCK / width);
    // SAFETY: the kernel checks line and position.
    unsafe {
        kernels::cast_contiguous_blocks::launch_unchecked::<T, R>(
            &lines.tensor.client,
            cube_count((lines.count * padded).div_ceil(UNITS_PER_CUBE)),
            CubeDim::new_1d(UNITS_PER_CUBE as u32),
            width,
            lines.arg(width),
            vector_arg(&values, width),
            launch_params(QuantParams::of_format(&format)),
            lines.count,
            pieces,
            padded,
            stride,
            form,
            lines.dtype(),
        );
    }
    CastMatrix { values, scales: None }
}

/// Casts with block scales of a column-major matrix: one unit per strided block.
fn cast_strided_blocks<R: CubeRuntime, T: QuantRule>(
    lines: &MatrixLines<R>,
    format: Format,
    form: CastSpec,
) -> CastMatrix<R> {
    let values = lines.empty_values();
    // SAFETY: the kernel checks line and position.
    unsafe {
        kernels::cast_strided_blocks::launch_unchecked::<T, R>(
            &lines.tensor.client,
            cube_count((lines.count.div_ceil(BLOCK) * lines.len).div_ceil(UNITS_PER_CUBE)),
            CubeDim::new_1d(UNITS_PER_CUBE as u32),
            lines.arg(1),
            vector_arg(&values, 1),
            launch_params(QuantParams::of_format(&format)),
            lines.count,
            lines.len,
            lines.stride,
            form,
            lines.dtype(),
        );
    }
    CastMatrix { values, scales: None }
}

/// Accesses of a unit if all their values fit its registers; otherwise `None`, and memory is read twice.
fn register_accesses(accesses_per_unit: usize, width: usize) -> Option<usize> {
    (accesses_per_unit * width <= MAX_REGISTER_VALUES).then_some(accesses_per_unit)
}

/// Multiplies a matmul result by row and column scales, each per row or column or a single one, and rounds once.
pub(crate) fn apply_scales<R: CubeRuntime>(
    product: CubeTensor<R>,
    scales: [CubeTensor<R>; 2],
    dtype: DType,
) -> CubeTensor<R> {
    let lines = match MatrixLines::new(product) {
        MatrixLines { tensor, is_column_major: true, .. } => MatrixLines::new(into_contiguous(tensor)),
        lines => lines,
    };
    let output = empty_floats(&lines.tensor, Shape::new([lines.count, lines.len]), dtype);
    let width = lines.width();
    let (pieces, stride) = (lines.len / width, lines.stride / width);
    let [row_scales, col_scales] = &scales;
    let is_per_row = [row_scales, col_scales].map(|scales| scales.meta.shape()[0] > 1);
    // SAFETY: the kernel checks its position, and each operand has one scale per row or a single one, as the flags
    // state.
    unsafe {
        kernels::apply_scales::launch_unchecked::<R>(
            &lines.tensor.client,
            cube_count((lines.count * pieces).div_ceil(UNITS_PER_CUBE)),
            CubeDim::new_1d(UNITS_PER_CUBE as u32),
            width,
            lines.arg(width),
            vector_arg(row_scales, 1),
            vector_arg(col_scales, 1),
            vector_arg(&output, width),
            lines.count,
            pieces,
            stride,
            is_per_row[0],
            is_per_row[1],
            output.dtype.into(),
        );
    }
    output
}

/// Bytes of the widest memory access, which must be aligned to its size.
const MAX_ACCESS_BYTES: u64 = 16;
/// Maximum cubes in one dimension of a launch.
const MAX_CUBES_PER_DIM: usize = 65_535;
/// Accesses per unit, if rows are long enough; also the widest vector in elements.
const ACCESSES_PER_UNIT: usize = 4;
/// Maximum values that a unit holds in registers.
const MAX_REGISTER_VALUES: usize = 32;
/// Adjacent rows per cube for column-major matrices.
const ROWS_PER_CUBE: usize = 32;

/// Memory layout of a matrix as contiguous lines: rows, or columns if these are contiguous.
struct MatrixLines<R: CubeRuntime> {
    tensor: CubeTensor<R>,
    /// Number of lines.
    count: usize,
    /// Values per line.
    len: usize,
    /// Distance between lines.
    stride: usize,
    /// True if lines are columns.
    is_column_major: bool,
}

impl<R: CubeRuntime> MatrixLines<R> {
    fn new(tensor: CubeTensor<R>) -> Self {
        let (shape, strides) = (tensor.meta.shape(), tensor.meta.strides());
        let ([rows, cols], [row_stride, col_stride]) = ([shape[0], shape[1]], [strides[0], strides[1]]);
        if col_stride == 1 {
            return Self { tensor, count: rows, len: cols, stride: row_stride, is_column_major: false };
        }
        if row_stride == 1 {
            return Self { tensor, count: cols, len: rows, stride: col_stride, is_column_major: true };
        }
        let tensor = into_contiguous(tensor);
        Self { tensor, count: rows, len: cols, stride: cols, is_column_major: false }
    }

    /// Vector width, in values, that never crosses the end of a line.
    fn width(&self) -> usize {
        let offset = self.tensor.handle.offset_start.unwrap_or(0);
        let fits = |&width: &usize| {
            self.len.is_multiple_of(width)
                && self.stride.is_multiple_of(width)
                && offset.is_multiple_of(MAX_ACCESS_BYTES)
        };
        self.tensor
            .client
            .io_optimized_vector_sizes(4)
            .filter(|&width| width <= ACCESSES_PER_UNIT)
            .find(fits)
            .unwrap_or(1)
    }

    fn arg(&self, width: usize) -> ArrayArg<R> {
        let extent = (self.count.max(1) - 1) * self.stride + self.len;
        // SAFETY: the last line ends within the memory of the tensor.
        unsafe { ArrayArg::from_raw_parts(self.tensor.handle.clone(), extent / width) }
    }

    fn dtype(&self) -> StorageType {
        self.tensor.dtype.into()
    }

    /// Allocates an f32 value for each value of the matrix, line by line.
    fn empty_values(&self) -> CubeTensor<R> {
        empty_floats(&self.tensor, Shape::new([self.count, self.len]), DType::F32)
    }

    /// Allocates `count` f32 values.
    fn empty_vector(&self, count: usize) -> CubeTensor<R> {
        empty_floats(&self.tensor, Shape::new([count]), DType::F32)
    }

    /// Maximum units of a cube, rounded down to a power of two.
    fn max_units(&self) -> usize {
        // Tree reductions need a power of two.
        let limit = self.tensor.client.properties().hardware.max_units_per_cube as usize;
        1 << limit.clamp(UNITS_PER_CUBE, 1024).ilog2()
    }
}

fn empty_floats<R: CubeRuntime>(like: &CubeTensor<R>, shape: Shape, dtype: DType) -> CubeTensor<R> {
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape, dtype)
}

/// Kernel argument for a contiguous tensor that is accessed in vectors of `width` elements.
fn vector_arg<R: CubeRuntime>(tensor: &CubeTensor<R>, width: usize) -> ArrayArg<R> {
    let elements: usize = tensor.meta.shape().iter().product();
    // SAFETY: the tensor is contiguous and holds `elements` elements.
    unsafe { ArrayArg::from_raw_parts(tensor.handle.clone(), elements / width) }
}

/// At least `count` cubes, in a shape that every device supports.
fn cube_count(count: usize) -> CubeCount {
    let layers = count.div_ceil(MAX_CUBES_PER_DIM).max(1);
    CubeCount::Static(count.div_ceil(layers).max(1) as u32, layers as u32, 1)
}

#[cfg(test)]
mod tests;
