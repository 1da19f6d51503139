//! Fused casts give the dequantized values of the host bit for bit.

use super::{cast, is_castable};
use crate::format::{Format, Grouping, MxScaling, QuantMethod};
use crate::packed_tensor::{TensorPart, read_rows};
use crate::quantize::quantize;
use crate::{Dtype, Element, Float8Training, FloatType, TrainingRecipe};
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData, TensorPrimitive};
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeBackend, CubeRuntime};
use burn_wgpu::{WgpuDevice, WgpuRuntime};

type EagerCube<R> = CubeBackend<R, f32, i32, u8>;

/// A single value, all access widths, partial blocks, and sizes that exceed the registers of a unit: rows beyond 32,768
/// values and columns beyond 1024.
const SIZES: [[usize; 2]; 10] =
    [[1, 1], [3, 17], [17, 3], [129, 127], [127, 1000], [1000, 129], [64, 96], [2, 40_000], [1001, 1030], [64, 1030]];

/// Values over seven decades; the second row is zero.
fn test_values(rows: usize, cols: usize) -> Vec<f32> {
    let number = |at: usize| {
        let mixed = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let noise = (mixed >> 40) as f32 / (1u32 << 23) as f32 - 1.0;
        if at / cols == 1 { 0.0 } else { noise * f32::powi(10.0, (mixed % 7) as i32 - 3) }
    };
    (0..rows * cols).map(number).collect()
}

fn formats() -> [Format; 7] {
    use Grouping::{Block, Row, Tensor};
    let floats = |element, grouping| {
        Format::float8(element, grouping, Dtype::F32).with_method(QuantMethod::Floats { epsilon: 1e-12 })
    };
    [
        floats(Element::E4m3, Tensor),
        floats(Element::E5m2, Tensor),
        floats(Element::E4m3, Row),
        floats(Element::E5m2, Row),
        power_of_two_scaled(Row),
        power_of_two_scaled(Tensor),
        power_of_two_scaled(Block(32)),
    ]
}

fn power_of_two_scaled(grouping: Grouping) -> Format {
    Format { grouping, ..Format::mx(Element::E4m3, MxScaling::Ceil) }
}

fn tensor<B: Backend>(values: Vec<f32>, size: [usize; 2], device: &B::Device) -> Tensor<B, 2> {
    Tensor::from_data(TensorData::new(values, size), (device, Dtype::F32.burn()))
}

/// The matrix in row-major layout, in column-major layout, and as an unaligned view of a wider matrix.
fn layouts<B: Backend>(values: &[f32], [rows, cols]: [usize; 2], device: &B::Device) -> [Tensor<B, 2>; 3] {
    let columns = (0..values.len()).map(|at| values[at % rows * cols + at / rows]).collect();
    let wider = values.chunks(cols).flat_map(|row| [&[3e8], row, &[f32::NAN; 3]].concat()).collect();
    let wider = tensor::<B>(wider, [rows, cols + 4], device);
    let own = tensor(values.to_vec(), [rows, cols], device);
    [own, tensor(columns, [cols, rows], device).transpose(), wider.slice([0..rows, 1..cols + 1])]
}

fn values<R: CubeRuntime>(tensor: CubeTensor<R>) -> Vec<f32> {
    let data = match tensor.meta.shape().len() {
        1 => Tensor::<EagerCube<R>, 1>::from_primitive(TensorPrimitive::Float(tensor)).into_data(),
        _ => Tensor::<EagerCube<R>, 2>::from_primitive(TensorPrimitive::Float(tensor)).into_data(),
    };
    data.to_vec().expect("casts are in f32")
}

fn assert_same(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let differs = |(a, b): (&f32, &f32)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan());
    let wrong = found.iter().zip(expected).position(differs).map(|at| (at, found[at], expected[at]));
    assert_eq!(wrong, None, "{what}");
}

fn check<R: CubeRuntime>(device: &R::Device)
where
    EagerCube<R>: Backend<Device = R::Device, FloatTensorPrimitive = CubeTensor<R>>,
{
    for size @ [rows, cols] in SIZES {
        let finite = test_values(rows, cols);
        let mut infinite = finite.clone();
        infinite[rows * cols / 3] = f32::NEG_INFINITY;
        infinite[rows * cols / 2] = f32::NAN;
        for (held, what) in [(finite, "finite"), (infinite, "not finite")] {
            let matrices = layouts::<EagerCube<R>>(&held, size, device);
            for format in formats() {
                let stored = quantize(&held, cols, format).with_f32_scales().to_packed();
                let read = |reading| read_rows(&stored.as_refs().map(Vec::as_slice), 0..rows, reading);
                for (matrix, layout) in matrices.iter().zip(["rows", "columns", "a view"]) {
                    let what = format!("{size:?} {what}, {layout}, {format:?}");
                    let own = || matrix.clone().into_primitive().tensor();
                    let found = cast(own(), format, TensorPart::Values);
                    assert!(found.scales.is_none());
                    assert_same(&values(found.values), &read(TensorPart::Values), &what);
                    if !matches!(format.grouping, Grouping::Block(_)) {
                        let found = cast(own(), format, TensorPart::QuantizedValues);
                        assert_same(
                            &values(found.values),
                            &read(TensorPart::QuantizedValues),
                            &format!("codes of {what}"),
                        );
                        let scales = values(found.scales.expect("scales are separate"));
                        assert_same(&scales, &read(TensorPart::Scales), &format!("scales of {what}"));
                    }
                }
            }
        }
    }
}

#[test]
fn recipes_use_castable_formats() {
    for recipe in TrainingRecipe::ALL {
        let Float8Training { output, grad_input, grad_weight, .. } = recipe.training();
        for operands in [output, grad_input, grad_weight].into_iter().flatten() {
            assert!([operands.left, operands.right].iter().flatten().all(is_castable), "{recipe}: {operands:?}");
        }
    }
}

#[test]
#[ignore = "needs Vulkan"]
fn vulkan_casts_match_host() {
    check::<WgpuRuntime>(&WgpuDevice::Cpu);
}

#[test]
#[ignore = "needs CUDA"]
fn cuda_casts_match_host() {
    check::<cubecl::cuda::CudaRuntime>(&burn_cuda::CudaDevice::new(0));
}
