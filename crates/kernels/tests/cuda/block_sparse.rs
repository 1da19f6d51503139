//! Block-sparse GEMM against 64-bit arithmetic, and its times.

use calorimeter_kernels::{
    Dtype, LayerSpec, Sparsity,
    native::{LayerPlan, LinearShape, NativeError},
};

use super::gpu;
use super::layers::{check, print_times};

fn layer(dtype: Dtype, percent: u8, block_size: u16) -> LayerSpec {
    LayerSpec { sparsity: Some(Sparsity::Block { percent, block_size }), ..LayerSpec::unquantized(dtype) }
}

#[test]
#[ignore = "needs CUDA"]
fn block_sparse_gemm_matches_for_every_block_size() {
    let (device, _guard) = gpu();
    // Block size, percentage of zero blocks, nonzero blocks, blocks per block row, block rows.
    let cases = [
        (64, 90, 7, 64, 3),
        (16, 90, 1, 5, 9),
        (32, 10, 4, 4, 2),
        (20, 75, 2, 7, 4),
        (1, 85, 3, 17, 5),
        (128, 50, 2, 3, 2),
        (48, 50, 5, 9, 1),
    ];
    for dtype in Dtype::ALL {
        for (turn, (block_size, percent, retained, blocks, block_rows)) in cases.into_iter().enumerate() {
            let (spec, side) = (layer(dtype, percent, block_size), usize::from(block_size));
            let (k, n) = (side * blocks, side * block_rows);
            assert_eq!(spec.sparsity.unwrap().retained_blocks_per_row(k), Some(retained));
            for m in [1, 3, 16, 17, 64, 65, 129, 300] {
                let spec = LayerSpec { has_addend: (turn + m) % 2 == 0, ..spec };
                check(&device, &spec, LinearShape { m, k, n });
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn partial_and_missing_blocks_are_rejected() {
    let (device, _guard) = gpu();
    let error = |percent, k| {
        LayerPlan::new(&device, &layer(Dtype::Bf16, percent, 64), LinearShape { m: 8, k, n: 128 }).unwrap_err()
    };
    assert_eq!(error(50, 100), NativeError::WeightBlockSize { side: 64, k: 100, n: 128 });
    assert!(matches!(error(100, 256), NativeError::InvalidSize { limit: 4, value: 0, .. }));
}

/// Prints GEMM times, for manual inspection.
#[test]
#[ignore = "needs CUDA"]
fn times_of_block_sparse_gemms() {
    let (device, _guard) = gpu();
    for percent in [90, 50] {
        let spec = layer(Dtype::Bf16, percent, 64);
        print_times(&device, &spec, [4096, 4096], 20, &[1, 16, 32, 64, 128, 512, 1024, 4096]);
    }
}
