//! GPUs, through CubeCL.

use super::QuantBackend;
use super::access::cubes;
use super::codes;
use super::kernels::{self, UNITS_PER_ROW, ZeroKind};
use super::product;
use crate::dispatch::{with_rule, with_steps};
use crate::format::{Format, Grouping, HqqIterate, Method, Zero};
use crate::hqq::{LANES, inverse_betas, kept_iterate, stored, stored_zero};
use crate::scalar::hqq::ITERATIONS;
use crate::scalar::rules::{Rule, Terms, TermsLaunch};
use crate::stored::{Reading, Stored};
use crate::{Dtype, Element, FloatType, packing};
use burn::tensor::ops::{FloatTensor, IntTensor};
use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::{empty_device_contiguous_dtype, zeros_client};
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{BoolElement, CubeBackend, CubeRuntime, FloatElement, IntElement};
use cubecl::prelude::*;
use std::ops::Range;

/// Units of a cube whose units work each on their own.
const UNITS: usize = 64;

impl<R: CubeRuntime, F: FloatElement, I: IntElement, BT: BoolElement> QuantBackend for CubeBackend<R, F, I, BT> {
    fn quantize_codes(tensor: FloatTensor<Self>, format: Format) -> Stored<IntTensor<Self>> {
        let tensor = Input::of(tensor);
        match format.method {
            Method::Hqq(iterate) => hqq(&tensor, format, iterate),
            Method::Plain => unreachable!("numbers as they are need no quantizing"),
            Method::Qqq => with_steps!(format.steps, S => { qqq::<R, S>(&tensor, format) }),
            _ => with_rule!(format, T => groups::<R, T>(&tensor, format)),
        }
    }

    fn read(stored: &Stored<IntTensor<Self>>, rows: Range<usize>, reading: Reading, dtype: Dtype) -> FloatTensor<Self> {
        read(stored, rows, reading, dtype)
    }

    fn has_product(device: &Self::Device, weight: &Format, input: DType, rows: usize) -> bool {
        product::takes(&R::client(device), weight, input, rows)
    }

    fn has_code_product(input: &Format, weight: &Format) -> bool {
        codes::takes(input, weight)
    }

    fn product(input: FloatTensor<Self>, weight: &Stored<IntTensor<Self>>) -> Option<FloatTensor<Self>> {
        product::product(input, weight)
    }

    fn product_of_codes(
        input: &Stored<IntTensor<Self>>,
        weight: &Stored<IntTensor<Self>>,
        steps: Dtype,
        dtype: Dtype,
    ) -> Option<FloatTensor<Self>> {
        codes::product(input, weight, steps, dtype)
    }
}

/// A matrix whose rows are contiguous.
struct Input<R: CubeRuntime> {
    tensor: CubeTensor<R>,
    rows: usize,
    cols: usize,
}

impl<R: CubeRuntime> Input<R> {
    fn of(tensor: CubeTensor<R>) -> Self {
        let strides = tensor.meta.strides();
        // Rows may lie apart, as CUDA's pitched tensors do.
        let tensor = if strides[1] == 1 { tensor } else { into_contiguous(tensor) };
        let shape = tensor.meta.shape();
        let (rows, cols) = (shape[0], shape[1]);
        Self { tensor, rows, cols }
    }

    fn arg(&self) -> TensorArg<R> {
        self.tensor.clone().into_tensor_arg()
    }

    fn dtype(&self) -> cubecl::ir::StorageType {
        self.tensor.dtype.into()
    }

    /// Memory for so many words.
    fn words(&self, count: usize) -> CubeTensor<R> {
        let (client, device) = (self.tensor.client.clone(), self.tensor.device.clone());
        empty_device_contiguous_dtype(client, device, Shape::new([count.max(1)]), DType::U32)
    }

    /// Memory for so many words, all zero.
    fn zero_words(&self, count: usize) -> CubeTensor<R> {
        let (client, device) = (self.tensor.client.clone(), self.tensor.device.clone());
        zeros_client(client, device, Shape::new([count.max(1)]), DType::U32)
    }
}

pub(super) fn launch_terms<R: CubeRuntime>(terms: Terms) -> TermsLaunch<R> {
    let Terms { divisor, epsilon, least, most, mask, blank } = terms;
    TermsLaunch::new(divisor, epsilon, least, most, mask, blank)
}

/// The largest magnitude of the whole tensor, as one word.
fn largest<R: CubeRuntime>(input: &Input<R>) -> CubeTensor<R> {
    let (of_rows, of_all) = (input.words(input.rows), input.words(1));
    let (client, units) = (&input.tensor.client, CubeDim::new_1d(UNITS_PER_ROW as u32));
    // SAFETY: the first kernel checks its row, the second reads `rows` words; both write only what was allocated for them.
    unsafe {
        kernels::largest_of_rows::launch_unchecked(
            client,
            cubes(input.rows, 1),
            units,
            input.arg(),
            of_rows.clone().into_array_arg(),
            input.rows,
            input.cols,
            input.dtype(),
        );
        kernels::largest_of_all::launch_unchecked(
            client,
            CubeCount::Static(1, 1, 1),
            units,
            of_rows.into_array_arg(),
            of_all.clone().into_array_arg(),
            input.rows,
        );
    }
    of_all
}

fn groups<R: CubeRuntime, T: Rule>(input: &Input<R>, format: Format) -> Stored<CubeTensor<R>> {
    let (rows, cols) = (input.rows, input.cols);
    let (whole, blocks) = (format.grouping == Grouping::Tensor, matches!(format.grouping, Grouping::Block(_)));
    let looks_at_all = format.looks_at_the_whole_tensor();
    let largest = if looks_at_all { largest(input) } else { input.words(1) };
    let words = format.words_per_row(cols);
    // Small groups that do not end where rows do leave words that nobody writes.
    let filled = !blocks || cols.next_multiple_of(format.group(cols)).is_multiple_of(packing::BLOCK);
    let codes = if filled { input.words(rows * words) } else { input.zero_words(rows * words) };
    let groups = rows * cols.div_ceil(format.group(cols));
    let (scales, zeros) = (input.words(format.scales(rows, cols)), input.words(groups));
    let (units, per_cube) = if blocks { (1, UNITS) } else { (UNITS_PER_ROW, 1) };
    let cube_dim = CubeDim::new_1d(if blocks { UNITS } else { UNITS_PER_ROW } as u32);
    // SAFETY: the kernel checks its group against `rows` and `cols`, and every word it writes belongs to that group.
    unsafe {
        kernels::quantize_groups::launch_unchecked::<T, R>(
            &input.tensor.client,
            cubes(groups, per_cube),
            cube_dim,
            input.arg(),
            largest.clone().into_array_arg(),
            codes.clone().into_array_arg(),
            scales.clone().into_array_arg(),
            zeros.clone().into_array_arg(),
            launch_terms(format.terms()),
            rows,
            cols,
            format.group(cols),
            words,
            format.bits(),
            units,
            blocks,
            whole,
            looks_at_all,
            input.dtype(),
        );
    }
    let zeros = (format.zero != Zero::None).then_some(zeros);
    let outer = (format.method == Method::Nvfp4).then(|| tensor_scale(input, largest));
    Stored { format: format.unpacked(), rows, cols, codes, scales, zeros, outer, kept: None }
}

fn tensor_scale<R: CubeRuntime>(input: &Input<R>, largest: CubeTensor<R>) -> CubeTensor<R> {
    let outer = input.words(1);
    // SAFETY: one unit reads one word and writes one.
    unsafe {
        kernels::nvfp4_outer::launch_unchecked(
            &input.tensor.client,
            CubeCount::Static(1, 1, 1),
            CubeDim::new_1d(1),
            largest.into_array_arg(),
            outer.clone().into_array_arg(),
        );
    }
    outer
}

/// Where the loop stops is decided on the host, for the whole tensor: a weight is quantized once.
fn hqq<R: CubeRuntime>(input: &Input<R>, format: Format, iterate: HqqIterate) -> Stored<CubeTensor<R>> {
    let (rows, cols, group) = (input.rows, input.cols, format.group(input.cols));
    let groups = rows * cols.div_ceil(group);
    let (client, device) = (&input.tensor.client, &input.tensor.device);
    let upload = |values: &[f32]| {
        let handle = client.create_from_slice(f32::as_bytes(values));
        CubeTensor::new_contiguous(client.clone(), device.clone(), Shape::new([values.len()]), handle, DType::F32)
    };
    let (stretches, courses) = (input.words(groups), input.words(groups * (ITERATIONS + 1)));
    let errors = input.words(groups * ITERATIONS);
    // SAFETY: the kernel checks its group; each group has its own stretch, errors and course.
    unsafe {
        kernels::hqq_courses::launch_unchecked(
            client,
            cubes(groups, UNITS),
            CubeDim::new_1d(UNITS as u32),
            input.arg(),
            upload(&inverse_betas()).into_array_arg(),
            stretches.clone().into_array_arg(),
            courses.clone().into_array_arg(),
            errors.clone().into_array_arg(),
            launch_terms(format.terms()),
            rows,
            cols,
            group,
            LANES,
            input.dtype(),
        );
    }
    let download = |tensor: &CubeTensor<R>, count: usize| {
        let bytes = client.read_one_unchecked(tensor.handle.clone());
        f32::from_bytes(&bytes)[..count].to_vec()
    };
    let (host_stretches, host_courses) = (download(&stretches, groups), download(&courses, groups * (ITERATIONS + 1)));
    let host_errors = download(&errors, groups * ITERATIONS);
    let of_rows: Vec<[f64; ITERATIONS]> = host_errors
        .chunks(ITERATIONS * cols.div_ceil(group))
        .zip(host_stretches.chunks(cols.div_ceil(group)))
        .map(|(errors, stretches)| {
            let finite = errors.chunks(ITERATIONS).zip(stretches).filter(|(_, stretch)| stretch.is_finite());
            finite.fold([0.0; ITERATIONS], |sum, (errors, _)| std::array::from_fn(|i| sum[i] + f64::from(errors[i])))
        })
        .collect();
    let kept = kept_iterate(&of_rows, iterate);
    let words = format.words_per_row(cols);
    let codes = input.zero_words(rows * words);
    // SAFETY: the kernel checks its group, and every word it writes belongs to that group.
    unsafe {
        kernels::hqq_codes::launch_unchecked(
            client,
            cubes(groups, UNITS),
            CubeDim::new_1d(UNITS as u32),
            input.arg(),
            stretches.into_array_arg(),
            courses.into_array_arg(),
            codes.clone().into_array_arg(),
            launch_terms(format.terms()),
            rows,
            cols,
            group,
            words,
            kept,
            format.bits(),
            input.dtype(),
        );
    }
    let scale = |stretch: &f32| if stretch.is_nan() { f32::NAN } else { stored(format.scale, 1.0 / stretch) };
    let scales: Vec<f32> = host_stretches.iter().map(scale).collect();
    let zeros = host_courses.chunks(ITERATIONS + 1).zip(&host_stretches);
    let zero = |(course, stretch): (&[f32], &f32)| {
        if stretch.is_nan() { 0.0 } else { stored_zero(&format, course[kept], *stretch) }
    };
    let zeros: Vec<f32> = zeros.map(zero).collect();
    let as_words = |tensor: CubeTensor<R>| CubeTensor { dtype: DType::U32, ..tensor };
    let (scales, zeros) = (as_words(upload(&scales)), Some(as_words(upload(&zeros))));
    Stored { format: format.unpacked(), rows, cols, codes, scales, zeros, outer: None, kept: None }
}

fn qqq<R: CubeRuntime, S: crate::scalar::rounding::Steps>(input: &Input<R>, format: Format) -> Stored<CubeTensor<R>> {
    let (rows, cols, group) = (input.rows, input.cols, format.group(input.cols));
    let words = format.words_per_row(cols);
    let codes = input.zero_words(rows * words);
    let (scales, outer) = (input.words(rows * cols.div_ceil(group)), input.words(rows));
    let one = cols == group;
    // SAFETY: the kernel checks its row, and everything it writes belongs to that row.
    unsafe {
        kernels::qqq_rows::launch_unchecked::<S, R>(
            &input.tensor.client,
            cubes(rows, UNITS),
            CubeDim::new_1d(UNITS as u32),
            input.arg(),
            codes.clone().into_array_arg(),
            scales.clone().into_array_arg(),
            outer.clone().into_array_arg(),
            rows,
            cols,
            group,
            words,
            if one { -7 } else { -8 },
            0,
            one,
            input.dtype(),
        );
    }
    Stored { format: format.unpacked(), rows, cols, codes, scales, zeros: None, outer: Some(outer), kept: None }
}

fn read<R: CubeRuntime>(
    stored: &Stored<CubeTensor<R>>,
    rows: Range<usize>,
    reading: Reading,
    dtype: Dtype,
) -> CubeTensor<R> {
    let shape = stored.shape(&rows, reading);
    let (format, client) = (&stored.format, &stored.codes.client);
    let count = shape[0] * shape[1];
    let output =
        empty_device_contiguous_dtype(client.clone(), stored.codes.device.clone(), Shape::new(shape), dtype.burn());
    let (cubes, cube_dim) = (cubes(count, 256), CubeDim::new_1d(256));
    let elements = |words: &CubeTensor<R>, first: usize, element: Element| {
        // SAFETY: the kernel checks its index against `count`, and so many elements are stored from `first` on.
        unsafe {
            kernels::read_elements::launch_unchecked(
                client,
                cubes.clone(),
                cube_dim,
                words.clone().into_array_arg(),
                output.clone().into_array_arg(),
                first,
                count,
                element,
                output.dtype.into(),
            );
        }
    };
    match (reading, &stored.outer) {
        (Reading::Scales, _) => {
            let whole = format.grouping == Grouping::Tensor;
            elements(&stored.scales, if whole { 0 } else { rows.start * stored.scales_per_row() }, format.scale);
        }
        (Reading::Outer, Some(outer)) => {
            let first = if format.outer_scales(stored.rows) == 1 { 0 } else { rows.start };
            elements(outer, first, Element::Float(Dtype::F32));
        }
        _ => {
            let zero = match format.zero {
                Zero::None if format.rounds_to_integers() => ZeroKind::RoundedToIntegers,
                Zero::None => ZeroKind::None,
                Zero::InSteps(element) => ZeroKind::InSteps(element),
                Zero::InUnits(element) => ZeroKind::InUnits(element),
            };
            // SAFETY: the kernel checks its index, and the rows asked for are rows of the stored tensor.
            unsafe {
                kernels::read_numbers::launch_unchecked(
                    client,
                    cubes,
                    cube_dim,
                    stored.codes.clone().into_array_arg(),
                    stored.scales.clone().into_array_arg(),
                    stored.zeros.as_ref().unwrap_or(&stored.scales).clone().into_array_arg(),
                    stored.kept.as_ref().unwrap_or(&stored.scales).clone().into_array_arg(),
                    output.clone().into_array_arg(),
                    rows.start,
                    rows.len(),
                    stored.cols,
                    format.group(stored.cols),
                    format.words_per_row(stored.cols),
                    format.kept_words_per_row(stored.cols),
                    0,
                    format.element,
                    format.two_of_four,
                    (reading == Reading::Numbers && format.method != Method::Plain).then_some(format.scale),
                    format.grouping == Grouping::Tensor,
                    zero,
                    output.dtype.into(),
                );
            }
        }
    }
    output
}
