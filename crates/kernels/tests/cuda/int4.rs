//! int4 weights with int8 inputs against 64-bit arithmetic on the quantized values, and their times.

use calorimeter_kernels::{
    Activation, Dtype, Format, LayerSpec, MatmulMode,
    format::Grouping,
    layer::Rejection,
    native::{LayerPlan, LinearShape, NativeError},
};

use super::layers::{HostWeight, check, int8_input, print_times, upload};
use super::{gpu, poisoned};

/// int4 with one scale per row, and QQQ.
fn layers(dtype: Dtype) -> [LayerSpec; 2] {
    let symmetric = |bits| Format::symmetric(bits, Grouping::Row, dtype, Dtype::F32);
    let qqq = Format::qqq(Grouping::Block(128), dtype);
    [(symmetric(4), symmetric(8)), (qqq, int8_input(dtype, Dtype::F32))]
        .map(|(weight, input)| LayerSpec::dynamic(dtype, weight, input, MatmulMode::QuantizedValues(Dtype::F32)))
}

#[test]
#[ignore = "needs CUDA"]
fn int4_by_int8_gemm_matches_at_ragged_sizes() {
    let (device, _guard) = gpu();
    // The fused kernel with one row and few, with and without split-K; then the widening kernel with more rows.
    let few = [(1, 4096, 257), (3, 17, 127), (8, 129, 1000), (17, 1000, 129), (64, 127, 3), (1, 1, 1), (33, 8192, 48)];
    let many = [(65, 1000, 17), (127, 129, 1000), (130, 256, 128), (300, 1000, 64)];
    for spec in Dtype::ALL.into_iter().flat_map(layers) {
        for (turn, (m, k, n)) in few.into_iter().chain(many).enumerate() {
            let activation = [Some(Activation::Relu), None][turn % 2];
            check(&device, &spec, LinearShape { m, k, n });
            check(&device, &LayerSpec { activation, has_addend: turn % 3 > 0, ..spec }, LinearShape { m, k, n });
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn bad_int4_weight_sizes_are_rejected() {
    let (device, _guard) = gpu();
    // Products of int4 with one scale per row are scaled by 16 during accumulation.
    for (spec, max_k) in layers(Dtype::Bf16).into_iter().zip([i32::MAX / (128 * 128), i32::MAX / (127 * 128)]) {
        for m in [2, 100] {
            let mut plan = LayerPlan::new(&device, &spec, LinearShape { m, k: 256, n: 64 }).unwrap();
            let (x, mut y) = (poisoned(&device, plan.x_bytes()), poisoned(&device, plan.y_bytes()));
            let mut short = HostWeight::new(&spec, [64, 256]).stored;
            short.codes.pop();
            let short = plan.prepack(upload(&device, short)).unwrap();
            let error = plan.enqueue(&x, &short, None, &mut y).unwrap_err();
            let (needed, found) = (64 * 128, 64 * 128 - 1);
            assert_eq!(error, NativeError::BufferSize { what: "quantized values", needed, found });
        }
        let max = max_k as usize;
        let error = LayerPlan::new(&device, &spec, LinearShape { m: 1, k: max + 1, n: 1 }).unwrap_err();
        let expected = Rejection::Size { what: "k (accumulated in 32 bits)", max, value: max + 1 };
        assert_eq!(error, NativeError::Rejected(expected));
    }
}

/// Prints layer times, for manual inspection.
#[test]
#[ignore = "needs CUDA"]
fn times_of_int4_layers() {
    let (device, _guard) = gpu();
    for spec in layers(Dtype::Bf16) {
        print_times(&device, &spec, [4096, 4096], 16, &[1, 8, 16, 32, 48, 64, 65, 128, 512, 4096]);
    }
}
