//! Products with weights of which whole blocks are zero, against 64-bit arithmetic, and their times.

use std::sync::Arc;

use calorimeter_kernels::{
    Dtype,
    native::{BlockForm, BlockLinear, BlockWeight, LinearShape, Machine, NativeError},
};

use super::{decode, encode, epsilon, gpu, micros, poisoned, values};

/// The kept columns of blocks of a row of blocks.
fn kept_of(row: usize, kept: usize, of: usize) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..kept).map(|at| (at * of / kept + row) % of).collect();
    kept.sort_unstable();
    kept
}

fn weight(machine: &Machine, form: BlockForm, values: &[f64], k: usize, n: usize) -> BlockWeight {
    let BlockForm { kind, side, kept, .. } = form;
    let places = (0..n / side).flat_map(|row| kept_of(row, kept, k / side));
    let places: Vec<u8> = places.flat_map(|place| (place as u32).to_le_bytes()).collect();
    BlockWeight { values: machine.upload(&encode(values, kind)).unwrap(), places: machine.upload(&places).unwrap() }
}

#[test]
fn products_with_blocks_are_right_at_any_side() {
    let Some((machine, _turn)) = gpu() else { return };
    // Sides, kept blocks of all, and rows of blocks.
    let sides =
        [(64, 7, 64, 3), (16, 1, 5, 9), (32, 4, 4, 2), (20, 2, 7, 4), (1, 3, 17, 5), (128, 2, 3, 2), (48, 5, 9, 1)];
    for kind in Dtype::ALL {
        for (turn, (side, kept, of, rows)) in sides.into_iter().enumerate() {
            for m in [1, 3, 16, 17, 64, 65, 129, 300] {
                let form = BlockForm { kind, side, kept, added: (turn + m) % 2 == 0 };
                check(&machine, form, LinearShape { m, k: side * of, n: side * rows });
            }
        }
    }
}

fn check(machine: &Arc<Machine>, form: BlockForm, shape: LinearShape) {
    let (BlockForm { kind, side, kept, added }, LinearShape { m, k, n }) = (form, shape);
    let linear = BlockLinear::new(machine, form, shape).unwrap();
    let place = format!("{form:?} {shape}: {}", linear.algorithm());
    let (x, of_w, addend) = (values(m * k, 1, kind), values(n * kept * side, 2, kind), values(m * n, 3, kind));
    let (device_x, w) = (machine.upload(&encode(&x, kind)).unwrap(), weight(machine, form, &of_w, k, n));
    let device_added = machine.upload(&encode(&addend, kind)).unwrap();
    let mut y = poisoned(machine, linear.y_bytes());
    linear.enqueue(&device_x, &w, added.then_some(&device_added), &mut y).unwrap();
    for (at, found) in decode(&y.download().unwrap(), kind).into_iter().enumerate() {
        let (i, j) = (at / n, at % n);
        let (mut exact, mut squares) = (0.0, 0.0);
        for (b, column) in kept_of(j / side, kept, k / side).into_iter().enumerate() {
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
fn sizes_that_are_no_blocks_are_refused() {
    let Some((machine, _turn)) = gpu() else { return };
    let form = BlockForm { kind: Dtype::Bf16, side: 64, kept: 2, added: false };
    let of = |form, k| BlockLinear::new(&machine, form, LinearShape { m: 8, k, n: 128 }).map(|_| ());
    assert_eq!(of(form, 100), Err(NativeError::NotInBlocks { side: 64, k: 100, n: 128 }));
    let error = of(BlockForm { kept: 5, ..form }, 256).unwrap_err().to_string();
    assert!(error.contains("kept blocks") && error.contains("between 1 and 4"), "{error}");
}

/// Prints what products reach, for a person to judge. Weights go round through more than the L2 cache holds, as far as 20 do.
#[test]
fn times_of_products_with_blocks() {
    let Some((machine, _turn)) = gpu() else { return };
    let (kind, size, side) = (Dtype::Bf16, 4096, 64);
    for kept in [7, 32] {
        let form = BlockForm { kind, side, kept, added: false };
        let of_w = values(size * kept * side, 2, kind);
        let sets: Vec<BlockWeight> = (0..20).map(|_| weight(&machine, form, &of_w, size, size)).collect();
        for m in [1, 16, 32, 64, 128, 512, 1024, 4096] {
            let linear = BlockLinear::new(&machine, form, LinearShape { m, k: size, n: size }).unwrap();
            let x = machine.upload(&encode(&values(m * size, 1, kind), kind)).unwrap();
            let mut y = poisoned(&machine, linear.y_bytes());
            let time = micros(&machine, sets.len(), |set| linear.enqueue(&x, &sets[set], None, &mut y).unwrap());
            println!("{kept} kept of 64, m={m}: {time:.1} us: {}", linear.algorithm());
        }
    }
}
