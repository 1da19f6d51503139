//! Kernels that reduce to one value, against 64-bit sums.

use calorimeter_kernels::{
    Dtype,
    native::{CudaKernel, PairReduction},
};

use super::{assert_close, encode, gpu, poisoned, round, values};

fn float(bytes: &[u8]) -> f64 {
    f64::from(f32::from_le_bytes(bytes.try_into().unwrap()))
}

#[test]
#[ignore = "needs CUDA"]
fn pair_reductions_match_and_are_deterministic() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        for length in [1, 3, 17, 127, 129, 1000, 8191, 1_000_003, 16 << 20] {
            // All terms are positive, so that nothing cancels.
            let a: Vec<f64> = values(length, 1, kind).into_iter().map(f64::abs).collect();
            let b: Vec<f64> = values(length, 2, kind).into_iter().map(f64::abs).collect();
            let uploaded = [&a, &b].map(|x| device.upload(&encode(x, kind)).unwrap());
            for function in [PairReduction::Dot, PairReduction::MeanSquaredDifference] {
                let plan = CudaKernel::pair_reduction(&device, kind, function, length).unwrap();
                println!("{length}: {}", plan.algorithm());
                let mut y = poisoned(&device, 4);
                let mut run = || {
                    plan.enqueue([&uploaded[0], &uploaded[1]], [&mut y]).unwrap();
                    y.download().unwrap()
                };
                let first = run();
                assert_eq!(first, run(), "{function:?} {kind} {length} twice");
                let pairs = a.iter().zip(&b);
                let exact = match function {
                    PairReduction::Dot => pairs.map(|(a, b)| a * b).sum::<f64>(),
                    PairReduction::MeanSquaredDifference => {
                        pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>() / length as f64
                    }
                };
                let tolerance = 64.0 * f64::from(f32::EPSILON) * exact;
                assert_close(float(&first), exact, tolerance, || format!("{function:?} {kind} {length}"));
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn cross_entropy_matches_for_every_row_length() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        for (rows, columns) in [
            (1, 2),
            (3, 3),
            (5, 17),
            (1000, 127),
            (7, 129),
            (2000, 1000),
            (2050, 1024),
            (700, 4096),
            (300, 32000),
            (3, 128_256),
            (2, 70_001),
        ] {
            // Row means differ and are large enough for exp to overflow without the maximum subtracted.
            let x: Vec<f64> = values(rows * columns, 1, kind)
                .into_iter()
                .enumerate()
                .map(|(at, value)| round(((at / columns) % 9) as f64 * 25.0 - 100.0 + 3.0 * value, kind))
                .collect();
            let targets: Vec<usize> = (0..rows).map(|row| (row * 7919 + columns - 1) % columns).collect();
            let exact = mean_loss(&x, &targets, columns);
            let found = cross_entropy(&device, kind, &x, &targets, columns);
            assert_close(found, exact, 1e-5 * exact.abs() + 1e-5, || format!("{kind} {rows}x{columns}"));
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn cross_entropy_propagates_nan_but_not_masked_classes() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        for columns in [3, 129, 4096] {
            let rows = 9;
            let plain = values(rows * columns, 1, kind);
            let targets = vec![0; rows];
            for wrong in [f64::NAN, f64::INFINITY] {
                let mut x = plain.clone();
                x[5 * columns + columns / 2] = wrong;
                assert!(cross_entropy(&device, kind, &x, &targets, columns).is_nan(), "{kind} {columns} {wrong}");
            }
            // In every second row all classes but the target have probability 0.
            let mut x = plain.clone();
            for row in (0..rows).step_by(2) {
                x[row * columns + 1..(row + 1) * columns].fill(f64::NEG_INFINITY);
            }
            let exact = mean_loss(&x, &targets, columns);
            let found = cross_entropy(&device, kind, &x, &targets, columns);
            assert_close(found, exact, 1e-5 * exact + 1e-6, || format!("{kind} {columns} minus infinity"));
            // Class index out of range.
            let mut targets = targets.clone();
            targets[3] = columns;
            assert!(cross_entropy(&device, kind, &plain, &targets, columns).is_nan(), "{kind} {columns}");
        }
    }
}

fn mean_loss(x: &[f64], targets: &[usize], columns: usize) -> f64 {
    let losses = x.chunks(columns).zip(targets).map(|(row, &target)| {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter().map(|x| (x - largest).exp()).sum::<f64>().ln() + largest - row[target]
    });
    losses.sum::<f64>() / targets.len() as f64
}

fn cross_entropy(
    device: &std::sync::Arc<calorimeter_kernels::native::CudaDevice>,
    kind: Dtype,
    x: &[f64],
    targets: &[usize],
    columns: usize,
) -> f64 {
    let plan = CudaKernel::cross_entropy(device, kind, targets.len(), columns).unwrap();
    println!("{}x{columns}: {}", targets.len(), plan.algorithm());
    let targets: Vec<u8> = targets.iter().flat_map(|&target| (target as i32).to_le_bytes()).collect();
    let (x, targets) = (device.upload(&encode(x, kind)).unwrap(), device.upload(&targets).unwrap());
    let mut y = poisoned(device, 4);
    plan.enqueue([&x, &targets], [&mut y]).unwrap();
    let first = y.download().unwrap();
    plan.enqueue([&x, &targets], [&mut y]).unwrap();
    // Bitwise comparison: NaN has several encodings, but the kernel always writes the same one.
    assert_eq!(first, y.download().unwrap(), "{kind} {columns} twice");
    float(&first)
}
