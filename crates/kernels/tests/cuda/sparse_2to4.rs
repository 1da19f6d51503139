//! 2:4 sparse layers against 64-bit arithmetic on the dequantized weights, and their times.

use calorimeter_kernels::{
    Activation, Dtype, Format, LayerSpec, Sparsity,
    format::Grouping,
    layer::Rejection,
    native::{LayerPlan, LinearShape, NativeError},
};

use super::layers::{HostWeight, byte_layers, check, print_times, upload};
use super::{gpu, poisoned};

/// Floats, int4, and 8-bit values.
fn layers(dtype: Dtype) -> impl Iterator<Item = LayerSpec> {
    let int4 = LayerSpec::weight_only(dtype, Format::symmetric(4, Grouping::Block(128), dtype, dtype));
    let dense = [LayerSpec::unquantized(dtype), int4].into_iter().chain(byte_layers(dtype));
    dense.map(|spec| LayerSpec { sparsity: Some(Sparsity::SemiStructured), ..spec })
}

#[test]
#[ignore = "needs CUDA"]
fn sparse_2to4_gemm_matches_at_ragged_sizes() {
    let (device, _guard) = gpu();
    let few = [(1, 4096, 257), (3, 20, 127), (8, 132, 1000), (17, 1000, 129), (64, 128, 3), (1, 4, 1), (33, 8192, 48)];
    let many = [(65, 1000, 17), (127, 132, 1000), (130, 256, 128), (300, 1000, 300)];
    for spec in Dtype::ALL.into_iter().flat_map(layers) {
        for (turn, (m, k, n)) in few.into_iter().chain(many).enumerate() {
            let activation = Some(Activation::Relu).filter(|_| spec.input.is_some() && turn % 2 == 0);
            check(&device, &LayerSpec { activation, has_addend: turn % 3 > 0, ..spec }, LinearShape { m, k, n });
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn unaligned_k_and_mismatched_plans_are_rejected() {
    let (device, _guard) = gpu();
    let float = |dtype| layers(dtype).next().unwrap();
    let plan = |k, dtype| LayerPlan::new(&device, &float(dtype), LinearShape { m: 8, k, n: 64 });
    let rejection = plan(66, Dtype::Bf16).map(drop).unwrap_err();
    assert_eq!(rejection, NativeError::Rejected(Rejection::Multiple { what: "k", factor: 4, value: 66 }));
    let (mut sparse, dense) = (plan(64, Dtype::Bf16).unwrap(), plan(64, Dtype::F32).unwrap());
    assert!(sparse.skips_zeros() && !dense.skips_zeros());
    let weight = HostWeight::new(&float(Dtype::F32), [64, 64]);
    let (x, mut y) = (poisoned(&device, sparse.x_bytes()), poisoned(&device, sparse.y_bytes()));
    let other = weight.prepack(&device, &dense);
    assert_eq!(sparse.enqueue(&x, &other, None, &mut y).unwrap_err(), NativeError::PlanMismatch);
    let mut short = weight.stored;
    short.positions.as_mut().unwrap().pop();
    let error = sparse.prepack(upload(&device, short)).unwrap_err();
    assert!(matches!(error, NativeError::BufferSize { what: "metadata", .. }), "{error}");
}

/// Prints layer times, for manual inspection.
#[test]
#[ignore = "needs CUDA"]
fn times_of_sparse_2to4_layers() {
    let (device, _guard) = gpu();
    for spec in layers(Dtype::Bf16) {
        print_times(&device, &spec, [4096, 4096], 8, &[1, 8, 16, 32, 64, 128, 256, 512, 1024, 4096]);
    }
}
