//! Block-sparse GEMM against 64-bit arithmetic, and its times.

use std::sync::Arc;

use calorimeter_kernels::{
    Dtype,
    native::{BlockLinearPlan, BlockLinearSpec, BlockSparseWeight, CudaDevice, LinearShape, NativeError},
};

use super::{decode, encode, epsilon, gpu, micros, poisoned, values};

/// Columns of the nonzero blocks of a block row.
fn kept_columns(row: usize, kept: usize, of: usize) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..kept).map(|at| (at * of / kept + row) % of).collect();
    kept.sort_unstable();
    kept
}

fn weight(device: &CudaDevice, spec: BlockLinearSpec, values: &[f64], k: usize, n: usize) -> BlockSparseWeight {
    let BlockLinearSpec { kind, side, blocks_per_row: kept, .. } = spec;
    let places = (0..n / side).flat_map(|row| kept_columns(row, kept, k / side));
    let places: Vec<u8> = places.flat_map(|place| (place as u32).to_le_bytes()).collect();
    BlockSparseWeight {
        values: device.upload(&encode(values, kind)).unwrap(),
        column_indices: device.upload(&places).unwrap(),
    }
}

#[test]
#[ignore = "needs CUDA"]
fn block_sparse_gemm_matches_for_every_block_size() {
    let (device, _guard) = gpu();
    // Block size, nonzero blocks, blocks per block row, block rows.
    let sides =
        [(64, 7, 64, 3), (16, 1, 5, 9), (32, 4, 4, 2), (20, 2, 7, 4), (1, 3, 17, 5), (128, 2, 3, 2), (48, 5, 9, 1)];
    for kind in Dtype::ALL {
        for (turn, (side, kept, of, rows)) in sides.into_iter().enumerate() {
            for m in [1, 3, 16, 17, 64, 65, 129, 300] {
                let spec = BlockLinearSpec { kind, side, blocks_per_row: kept, has_addend: (turn + m) % 2 == 0 };
                check(&device, spec, LinearShape { m, k: side * of, n: side * rows });
            }
        }
    }
}

fn check(device: &Arc<CudaDevice>, spec: BlockLinearSpec, shape: LinearShape) {
    let (BlockLinearSpec { kind, side, blocks_per_row: kept, has_addend: added }, LinearShape { m, k, n }) =
        (spec, shape);
    let linear = BlockLinearPlan::new(device, spec, shape).unwrap();
    let place = format!("{spec:?} {shape}: {}", linear.algorithm());
    let (x, of_w, addend) = (values(m * k, 1, kind), values(n * kept * side, 2, kind), values(m * n, 3, kind));
    let (device_x, w) = (device.upload(&encode(&x, kind)).unwrap(), weight(device, spec, &of_w, k, n));
    let device_added = device.upload(&encode(&addend, kind)).unwrap();
    let mut y = poisoned(device, linear.y_bytes());
    linear.enqueue(&device_x, &w, added.then_some(&device_added), &mut y).unwrap();
    for (at, found) in decode(&y.download().unwrap(), kind).into_iter().enumerate() {
        let (i, j) = (at / n, at % n);
        let (mut exact, mut squares) = (0.0, 0.0);
        for (b, column) in kept_columns(j / side, kept, k / side).into_iter().enumerate() {
            for l in 0..side {
                let term = x[i * k + column * side + l] * of_w[j * kept * side + b * side + l];
                (exact, squares) = (exact + term, squares + term * term);
            }
        }
        let sums = 16.0 * f64::from(f32::EPSILON) * ((kept * side) as f64).sqrt() * squares.sqrt();
        let exact = exact + if added { addend[at] } else { 0.0 };
        let tolerance = epsilon(kind) * exact.abs() + sums;
        assert!((found - exact).abs() <= tolerance, "{place} at [{i}, {j}]: {found:e} instead of {exact:e}");
    }
}

#[test]
#[ignore = "needs CUDA"]
fn unaligned_block_sizes_are_rejected() {
    let (device, _guard) = gpu();
    let spec = BlockLinearSpec { kind: Dtype::Bf16, side: 64, blocks_per_row: 2, has_addend: false };
    let of = |spec, k| BlockLinearPlan::new(&device, spec, LinearShape { m: 8, k, n: 128 }).map(|_| ());
    assert_eq!(of(spec, 100), Err(NativeError::WeightBlockSize { side: 64, k: 100, n: 128 }));
    let error = of(BlockLinearSpec { blocks_per_row: 5, ..spec }, 256).unwrap_err();
    assert!(matches!(error, NativeError::InvalidSize { limit: 4, value: 5, .. }), "{error}");
}

/// Prints GEMM times, for manual inspection. 20 rotating weights exceed the L2 cache.
#[test]
#[ignore = "needs CUDA"]
fn times_of_block_sparse_gemms() {
    let (device, _guard) = gpu();
    let (kind, size, side) = (Dtype::Bf16, 4096, 64);
    for kept in [7, 32] {
        let spec = BlockLinearSpec { kind, side, blocks_per_row: kept, has_addend: false };
        let of_w = values(size * kept * side, 2, kind);
        let sets: Vec<BlockSparseWeight> = (0..20).map(|_| weight(&device, spec, &of_w, size, size)).collect();
        for m in [1, 16, 32, 64, 128, 512, 1024, 4096] {
            let linear = BlockLinearPlan::new(&device, spec, LinearShape { m, k: size, n: size }).unwrap();
            let x = device.upload(&encode(&values(m * size, 1, kind), kind)).unwrap();
            let mut y = poisoned(&device, linear.y_bytes());
            let time = micros(&device, sets.len(), |set| linear.enqueue(&x, &sets[set], None, &mut y).unwrap());
            println!("{kept} of 64 blocks, m={m}: {time:.1} us: {}", linear.algorithm());
        }
    }
}
