//! Packed-weight GEMM against 64-bit arithmetic on the dequantized weights, and its times.

use calorimeter_kernels::{
    Dtype, Element, Format, LayerSpec, MatmulMode,
    format::{Grouping, MxScaling, ZeroPoint},
    native::{LayerPlan, LinearShape, NativeError},
};

use super::layers::{HostWeight, check, print_times};
use super::{gpu, poisoned};

/// int8, e4m3 and int4 in groups of 128.
fn common_layers(dtype: Dtype) -> [LayerSpec; 3] {
    let formats = [
        Format::symmetric(8, Grouping::Row, dtype, dtype),
        Format::float8(Element::E4m3, Grouping::Row, dtype),
        Format::tinygemm(Grouping::Block(128), dtype),
    ];
    formats.map(|format| LayerSpec::weight_only(dtype, format))
}

/// int4 in other groups, and with scales of another dtype.
fn other_int4_layers(dtype: Dtype) -> [LayerSpec; 3] {
    [(32, dtype), (64, dtype), (256, Dtype::Bf16)]
        .map(|(size, scale)| LayerSpec::weight_only(dtype, Format::tinygemm(Grouping::Block(size), scale)))
}

/// Low-bit formats with integer and floating-point zero points, and fp6.
fn low_bit_layers(dtype: Dtype) -> Vec<LayerSpec> {
    let float = Element::Float(dtype);
    let asymmetric = |(bits, size)| Format::asymmetric(Element::Unsigned(bits), Grouping::Block(size), dtype);
    let centered = |bits| Format { element: Element::Unsigned(bits), ..Format::tinygemm(Grouping::Block(32), dtype) };
    let mut formats: Vec<_> = (1..=8).map(|bits| asymmetric((bits, 64))).chain((1..=8).map(centered)).collect();
    // Groups that end within a vector access.
    formats.extend([(8, 20), (8, 4), (4, 8), (4, 40), (6, 16), (2, 48), (5, 96)].map(asymmetric));
    formats.extend(
        [64, 16].map(|size| Format::hqq(4, Grouping::Block(size), dtype, dtype, ZeroPoint::BeforeScale(float))),
    );
    formats.push(Format { scale: float, ..Format::float8(Element::E3m2, Grouping::Row, dtype) });
    formats.push(Format::symmetric(4, Grouping::Block(128), dtype, dtype));
    formats.into_iter().map(|format| LayerSpec::weight_only(dtype, format)).collect()
}

/// Formats with a fake-quantized input.
fn microscaling_layers(dtype: Dtype) -> [LayerSpec; 3] {
    let mx = |element| Format::mx(element, MxScaling::Ceil);
    [mx(Element::E4m3), mx(Element::E2m1), Format::nvfp4()]
        .map(|format| LayerSpec::dynamic(dtype, format, format, MatmulMode::Values))
}

/// Sizes with one row and few rows, with and without split-K, with several tiles of x, with a dequantized weight for
/// cuBLASLt, and with rows that cuBLASLt rejects.
const RAGGED: [(usize, usize, usize); 7] =
    [(1, 4096, 257), (3, 17, 127), (8, 129, 1000), (17, 1000, 129), (64, 127, 3), (127, 129, 17), (1, 1, 1)];

#[test]
#[ignore = "needs CUDA"]
fn packed_gemm_matches_at_ragged_sizes() {
    // Tiled kernel, for formats that support it: with and without split-K, all tile widths, and partial tiles.
    let tiled = [
        (33, 8192, 48),
        (65, 1000, 17),
        (130, 256, 128),
        (9, 1032, 129),
        (20, 64, 1000),
        (100, 8, 136),
        (300, 1096, 384),
    ];
    // Every size with the common bf16 formats, a quarter of the sizes with the others, because each case compiles a
    // kernel.
    check_some(&tiled, |dtype| common_layers(dtype).to_vec(), |dtype| if dtype == Dtype::Bf16 { 1 } else { 4 });
    check_some(&tiled, |dtype| other_int4_layers(dtype).to_vec(), |_| 4);
}

#[test]
#[ignore = "needs CUDA"]
fn low_bit_gemm_matches_at_ragged_sizes() {
    let others = [(2, 3, 17), (33, 1096, 48), (130, 256, 128)];
    // Two sizes per bf16 format, one per other format.
    check_some(&others, low_bit_layers, |dtype| if dtype == Dtype::Bf16 { 5 } else { 10 });
}

#[test]
#[ignore = "needs CUDA"]
fn microscaling_gemm_matches_at_ragged_sizes() {
    let others = [(33, 1096, 48), (130, 256, 128), (1030, 64, 72)];
    check_some(&others, |dtype| microscaling_layers(dtype).to_vec(), |_| 1);
}

/// Checks the layers of all dtypes at every `stride`th of the ragged and the other sizes.
fn check_some(
    others: &[(usize, usize, usize)],
    layers: impl Fn(Dtype) -> Vec<LayerSpec>,
    stride: impl Fn(Dtype) -> usize,
) {
    let (device, _guard) = gpu();
    for dtype in Dtype::ALL {
        for (at, spec) in layers(dtype).into_iter().enumerate() {
            for (turn, &(m, k, n)) in RAGGED.iter().chain(others).enumerate() {
                if (at + turn).is_multiple_of(stride(dtype)) {
                    check(&device, &LayerSpec { has_addend: turn % 2 == 1, ..spec }, LinearShape { m, k, n });
                }
            }
        }
    }
}

/// Sizes of matrix-vector products: one and several iterations, vector and scalar accesses, odd numbers of weight rows.
const ONE_ROW: [(usize, usize); 6] = [(4096, 257), (2880, 48), (7168, 131), (1000, 129), (129, 3), (28672, 20)];

#[test]
#[ignore = "needs CUDA"]
fn packed_matrix_vector_products_match() {
    let (device, _guard) = gpu();
    for dtype in [Dtype::F16, Dtype::Bf16] {
        let layers = common_layers(dtype).into_iter().chain(other_int4_layers(dtype)).chain(low_bit_layers(dtype));
        for (at, spec) in layers.chain(microscaling_layers(dtype)).enumerate() {
            // Every size for the common formats, two for the others, because each case compiles a kernel.
            let stride = if at < 3 { 1 } else { 3 };
            for (turn, (k, n)) in ONE_ROW.into_iter().enumerate().skip(at % stride).step_by(stride) {
                let spec = LayerSpec { has_addend: turn % 2 == 1, ..spec };
                check(&device, &spec, LinearShape { m: 1, k, n });
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn unquantized_layers_with_few_rows_match() {
    let (device, _guard) = gpu();
    for dtype in Dtype::ALL {
        for (turn, (k, n)) in ONE_ROW.into_iter().enumerate() {
            for m in [1, 2 + turn % 3] {
                let spec = LayerSpec { has_addend: turn % 2 == 1, ..LayerSpec::unquantized(dtype) };
                check(&device, &spec, LinearShape { m, k, n });
            }
        }
    }
}

/// Streamed kernel, for formats that support it: every number of warps, one and two resident blocks, tiles that do not
/// divide evenly among blocks, one and several parts per tile, and odd numbers of rows.
#[test]
#[ignore = "needs CUDA"]
fn streamed_int4_gemm_matches() {
    let (device, _guard) = gpu();
    let shapes = [(1, 2048, 16400), (5, 2560, 26224), (8, 3072, 21856), (1, 3584, 9376), (7, 28672, 2352)];
    for dtype in [Dtype::F16, Dtype::Bf16] {
        let [.., int4] = common_layers(dtype);
        let symmetric = Format::symmetric(4, Grouping::Block(128), dtype, dtype);
        for spec in [int4, LayerSpec::weight_only(dtype, symmetric)] {
            for (turn, (m, k, n)) in shapes.into_iter().enumerate() {
                check(&device, &LayerSpec { has_addend: turn % 2 == 1, ..spec }, LinearShape { m, k, n });
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA and a Hopper GPU"]
fn weight_prepacked_for_another_plan_is_rejected() {
    let (device, _guard) = gpu();
    let (k, n) = (256, 128);
    let [spec, ..] = common_layers(Dtype::Bf16);
    let [one, mut some] = [1, 32].map(|m| LayerPlan::new(&device, &spec, LinearShape { m, k, n }).unwrap());
    let [is_tiled, other_is_tiled] = [&one, &some].map(|plan| plan.algorithm().contains("tiled"));
    assert!(!is_tiled && other_is_tiled, "the plans differ in the layout of the weight");
    let weight = HostWeight::new(&spec, [n, k]).prepack(&device, &one);
    let (x, mut y) = (poisoned(&device, some.x_bytes()), poisoned(&device, some.y_bytes()));
    assert_eq!(some.enqueue(&x, &weight, None, &mut y), Err(NativeError::PlanMismatch));
}

/// Prints times of GEMMs, for manual inspection: with a large weight and few rows, and on both sides of the threshold
/// for dequantization.
#[test]
#[ignore = "needs CUDA"]
fn times_of_products_with_packed_weights() {
    let (device, _guard) = gpu();
    for spec in common_layers(Dtype::Bf16) {
        print_times(&device, &spec, [28672, 8192], 2, &[1, 2, 4, 8]);
        print_times(&device, &spec, [4096, 4096], 9, &[1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]);
    }
}

/// Prints GEMM times of low-bit and microscaling formats, and of the common formats for comparison.
#[test]
#[ignore = "needs CUDA"]
fn times_of_low_bit_and_microscaling_gemms() {
    let (device, _guard) = gpu();
    let has_small_groups =
        |spec: &LayerSpec| matches!(spec.weight.unwrap().grouping, Grouping::Block(size) if size < 64);
    let low_bit = low_bit_layers(Dtype::Bf16).into_iter().filter(|spec| !has_small_groups(spec));
    for spec in microscaling_layers(Dtype::Bf16).into_iter().chain(low_bit).chain(common_layers(Dtype::Bf16)) {
        print_times(&device, &spec, [4096, 4096], 9, &[1, 16, 32, 64, 128, 512, 1024]);
    }
}
