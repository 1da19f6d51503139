//! Matrices cast to 8-bit floats and back in as few readings as their grouping allows, on GPUs through CubeCL. What comes out
//! are the numbers that [`quantize`](super::QuantBackend::quantize) and [`read`](super::QuantBackend::read) give.

use super::cast_kernels::{self as kernels, BLOCK, CastForm, PARTS, UNITS};
use super::cube::launch_terms;
use crate::Element;
use crate::dispatch::with_rule;
use crate::format::{Format, Grouping, Method, Zero};
use crate::scalar::rules::Rule;
use crate::stored::Reading;
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::ops::permute;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

/// A matrix after a cast.
pub struct Cast<R: CubeRuntime> {
    /// What codes stand for, or codes and scales, in f32.
    pub numbers: CubeTensor<R>,
    /// The scales of its rows, or the one of all, where they are not in the numbers.
    pub scales: Option<CubeTensor<R>>,
}

/// Whether there are kernels for a format.
pub fn is_castable(format: &Format) -> bool {
    let floats = matches!((format.element, format.method), (Element::E4m3 | Element::E5m2, Method::Floats { .. }))
        || matches!((format.element, format.method), (Element::E4m3, Method::Mx(_)));
    let grouped = match format.grouping {
        Grouping::Tensor | Grouping::Row => true,
        Grouping::Block(size) => size as usize == BLOCK,
    };
    floats && grouped && format.zero == Zero::None && !format.two_of_four
}

/// A matrix cast to a format that [is castable](is_castable): codes alone, with scales that belong to rows or to all, or all
/// that they stand for.
pub fn cast<R: CubeRuntime>(tensor: CubeTensor<R>, format: Format, reading: Reading) -> Cast<R> {
    with_rule!(format, T => cast_by::<R, T>(&Lines::of(tensor), format, reading))
}

fn cast_by<R: CubeRuntime, T: Rule>(lines: &Lines<R>, format: Format, reading: Reading) -> Cast<R> {
    let form = CastForm { element: format.element, scaled: reading == Reading::Numbers };
    let cast = match format.grouping {
        Grouping::Tensor => cast_whole::<R, T>(lines, format, form),
        Grouping::Row if lines.columns => cast_across::<R, T>(lines, format, form),
        Grouping::Row => cast_along::<R, T>(lines, format, form),
        Grouping::Block(_) if lines.columns => cast_blocks_across::<R, T>(lines, format, form),
        Grouping::Block(_) => cast_blocks_along::<R, T>(lines, format, form),
    };
    let numbers = if lines.columns { permute(cast.numbers, &[1, 0]) } else { cast.numbers };
    Cast { numbers, scales: cast.scales.filter(|_| reading == Reading::Codes) }
}

/// All numbers share a scale: their largest is found part by part before any can be rounded.
fn cast_whole<R: CubeRuntime, T: Rule>(lines: &Lines<R>, format: Format, form: CastForm) -> Cast<R> {
    let (numbers, scales, width) = (lines.numbers(), lines.floats(1), lines.width());
    let (pieces, stride) = (lines.len / width, lines.stride / width);
    let client = &lines.tensor.client;
    let cubes_of = |per_unit: usize| (lines.count * pieces).div_ceil(UNITS * per_unit).max(1);
    let parts = cubes_of(TURNS).min(PARTS);
    let largest = lines.floats(parts);
    // SAFETY: both kernels check positions against lines and their lengths; each cube of the first writes its own part, and
    // the second reads as many as there are.
    unsafe {
        kernels::largest_of_parts::launch_unchecked::<R>(
            client,
            CubeCount::Static(parts as u32, 1, 1),
            CubeDim::new_1d(UNITS as u32),
            width,
            lines.arg(width),
            accesses(&largest, 1),
            lines.count,
            pieces,
            stride,
            lines.dtype(),
        );
        kernels::cast_whole::launch_unchecked::<T, R>(
            client,
            CubeCount::Static(cubes_of(2 * TURNS).min(CUBES) as u32, 1, 1),
            CubeDim::new_1d(UNITS as u32),
            width,
            lines.arg(width),
            accesses(&largest, 1),
            accesses(&numbers, width),
            accesses(&scales, 1),
            launch_terms(format.terms()),
            parts,
            lines.count,
            pieces,
            stride,
            form,
            lines.dtype(),
        );
    }
    Cast { numbers, scales: Some(scales) }
}

/// A cube for each row, which lies in one line.
fn cast_along<R: CubeRuntime, T: Rule>(lines: &Lines<R>, format: Format, form: CastForm) -> Cast<R> {
    let (numbers, scales, width) = (lines.numbers(), lines.floats(lines.count), lines.width());
    let (pieces, stride) = (lines.len / width, lines.stride / width);
    let units = pieces.div_ceil(TURNS).next_power_of_two().clamp(32, lines.most_units());
    let turns = pieces.div_ceil(units);
    // SAFETY: the kernel checks its line and its position in it, and scales are as many as lines.
    unsafe {
        kernels::cast_along::launch_unchecked::<T, R>(
            &lines.tensor.client,
            cubes(lines.count),
            CubeDim::new_1d(units as u32),
            width,
            lines.arg(width),
            accesses(&numbers, width),
            accesses(&scales, 1),
            launch_terms(format.terms()),
            lines.count,
            pieces,
            stride,
            units,
            kept(turns, width),
            form,
            lines.dtype(),
        );
    }
    Cast { numbers, scales: Some(scales) }
}

/// A cube for some rows that lie beside each other, each across all lines.
fn cast_across<R: CubeRuntime, T: Rule>(lines: &Lines<R>, format: Format, form: CastForm) -> Cast<R> {
    let (numbers, scales, width) = (lines.numbers(), lines.floats(lines.len), lines.width());
    let (pieces, stride) = (lines.len / width, lines.stride / width);
    let beside = BESIDE / width;
    let most = (lines.most_units() / beside).max(1);
    let high = lines.count.div_ceil(TURNS).next_power_of_two().min(most);
    let turns = lines.count.div_ceil(high);
    // SAFETY: the kernel checks its position in a line and each line, and scales are as many as a line has numbers.
    unsafe {
        kernels::cast_across::launch_unchecked::<T, R>(
            &lines.tensor.client,
            cubes(pieces.div_ceil(beside)),
            CubeDim::new_2d(beside as u32, high as u32),
            width,
            lines.arg(width),
            accesses(&numbers, width),
            accesses(&scales, 1),
            launch_terms(format.terms()),
            lines.count,
            pieces,
            stride,
            beside,
            high,
            kept(turns, width),
            form,
            lines.dtype(),
        );
    }
    Cast { numbers, scales: Some(scales) }
}

/// Some neighboring units for each block, which lies in one line.
fn cast_blocks_along<R: CubeRuntime, T: Rule>(lines: &Lines<R>, format: Format, form: CastForm) -> Cast<R> {
    let (numbers, width) = (lines.numbers(), lines.width());
    let (pieces, stride, padded) = (lines.len / width, lines.stride / width, lines.len.div_ceil(BLOCK) * BLOCK / width);
    // SAFETY: the kernel checks its line and its position in it.
    unsafe {
        kernels::cast_blocks_along::launch_unchecked::<T, R>(
            &lines.tensor.client,
            cubes((lines.count * padded).div_ceil(UNITS)),
            CubeDim::new_1d(UNITS as u32),
            width,
            lines.arg(width),
            accesses(&numbers, width),
            launch_terms(format.terms()),
            lines.count,
            pieces,
            padded,
            stride,
            form,
            lines.dtype(),
        );
    }
    Cast { numbers, scales: None }
}

/// A unit for each block, which lies across lines.
fn cast_blocks_across<R: CubeRuntime, T: Rule>(lines: &Lines<R>, format: Format, form: CastForm) -> Cast<R> {
    let numbers = lines.numbers();
    // SAFETY: the kernel checks its position in a line and each line.
    unsafe {
        kernels::cast_blocks_across::launch_unchecked::<T, R>(
            &lines.tensor.client,
            cubes((lines.count.div_ceil(BLOCK) * lines.len).div_ceil(UNITS)),
            CubeDim::new_1d(UNITS as u32),
            lines.arg(1),
            accesses(&numbers, 1),
            launch_terms(format.terms()),
            lines.count,
            lines.len,
            lines.stride,
            form,
            lines.dtype(),
        );
    }
    Cast { numbers, scales: None }
}

/// Accesses that a unit keeps in registers: all, or none, and they are read again.
fn kept(turns: usize, width: usize) -> Option<usize> {
    (turns * width <= KEPT).then_some(turns)
}

/// A product of codes times the scales of its rows and of its columns, each as many as there are, or one; rounded once.
pub fn scaled<R: CubeRuntime>(product: CubeTensor<R>, scales: [CubeTensor<R>; 2], dtype: DType) -> CubeTensor<R> {
    let lines = match Lines::of(product) {
        Lines { tensor, columns: true, .. } => Lines::of(into_contiguous(tensor)),
        lines => lines,
    };
    let output = floats(&lines.tensor, Shape::new([lines.count, lines.len]), dtype);
    let width = lines.width();
    let (pieces, stride) = (lines.len / width, lines.stride / width);
    let [by_row, by_col] = &scales;
    let each = [by_row, by_col].map(|scales| scales.meta.shape()[0] > 1);
    // SAFETY: the kernel checks its position, and there are as many scales as rows and columns, or one, which is then asked for.
    unsafe {
        kernels::scaled::launch_unchecked::<R>(
            &lines.tensor.client,
            cubes((lines.count * pieces).div_ceil(UNITS)),
            CubeDim::new_1d(UNITS as u32),
            width,
            lines.arg(width),
            accesses(by_row, 1),
            accesses(by_col, 1),
            accesses(&output, width),
            lines.count,
            pieces,
            stride,
            each[0],
            each[1],
            output.dtype.into(),
        );
    }
    output
}

/// Bytes of the widest access, to which memory must then be aligned.
const WIDEST: u64 = 16;
/// Cubes in one dimension of a launch, at most.
const CUBES: usize = 65_535;
/// Accesses of a unit where rows are long enough.
const TURNS: usize = 4;
/// Numbers that a unit keeps in registers, at most.
const KEPT: usize = 32;
/// Rows that a cube takes where they lie beside each other.
const BESIDE: usize = 32;

/// A matrix as it lies in memory: rows or columns, whichever are contiguous.
struct Lines<R: CubeRuntime> {
    tensor: CubeTensor<R>,
    /// How many there are.
    count: usize,
    /// Numbers in each.
    len: usize,
    /// From one to the next.
    stride: usize,
    /// Whether they are columns.
    columns: bool,
}

impl<R: CubeRuntime> Lines<R> {
    fn of(tensor: CubeTensor<R>) -> Self {
        let (shape, strides) = (tensor.meta.shape(), tensor.meta.strides());
        let ([rows, cols], [of_row, of_col]) = ([shape[0], shape[1]], [strides[0], strides[1]]);
        if of_col == 1 {
            return Self { tensor, count: rows, len: cols, stride: of_row, columns: false };
        }
        if of_row == 1 {
            return Self { tensor, count: cols, len: rows, stride: of_col, columns: true };
        }
        let tensor = into_contiguous(tensor);
        Self { tensor, count: rows, len: cols, stride: cols, columns: false }
    }

    /// Numbers in one access, which lie in one line.
    fn width(&self) -> usize {
        let offset = self.tensor.handle.offset_start.unwrap_or(0);
        let fits = |&width: &usize| {
            self.len.is_multiple_of(width) && self.stride.is_multiple_of(width) && offset.is_multiple_of(WIDEST)
        };
        self.tensor.client.io_optimized_vector_sizes(4).filter(|&width| width <= TURNS).find(fits).unwrap_or(1)
    }

    fn arg(&self, width: usize) -> ArrayArg<R> {
        let reach = (self.count.max(1) - 1) * self.stride + self.len;
        // SAFETY: a tensor's last line ends within its memory.
        unsafe { ArrayArg::from_raw_parts(self.tensor.handle.clone(), reach / width) }
    }

    fn dtype(&self) -> StorageType {
        self.tensor.dtype.into()
    }

    /// Memory for as many numbers in f32, line by line.
    fn numbers(&self) -> CubeTensor<R> {
        floats(&self.tensor, Shape::new([self.count, self.len]), DType::F32)
    }

    /// Memory for so many numbers.
    fn floats(&self, count: usize) -> CubeTensor<R> {
        floats(&self.tensor, Shape::new([count]), DType::F32)
    }

    /// Units of a cube, at most.
    fn most_units(&self) -> usize {
        // Powers of two halve down to one.
        let most = self.tensor.client.properties().hardware.max_units_per_cube as usize;
        1 << most.clamp(UNITS, 1024).ilog2()
    }
}

fn floats<R: CubeRuntime>(like: &CubeTensor<R>, shape: Shape, dtype: DType) -> CubeTensor<R> {
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape, dtype)
}

/// A contiguous tensor as whole accesses.
fn accesses<R: CubeRuntime>(tensor: &CubeTensor<R>, width: usize) -> ArrayArg<R> {
    let elements: usize = tensor.meta.shape().iter().product();
    // SAFETY: the tensor is contiguous and holds so many elements.
    unsafe { ArrayArg::from_raw_parts(tensor.handle.clone(), elements / width) }
}

/// At least so many cubes, in a shape that every device takes.
fn cubes(count: usize) -> CubeCount {
    let layers = count.div_ceil(CUBES).max(1);
    CubeCount::Static(count.div_ceil(layers).max(1) as u32, layers as u32, 1)
}

#[cfg(test)]
mod tests;
