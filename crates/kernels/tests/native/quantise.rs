//! The quantisers against the definition, to the bit.

use std::sync::Arc;

use calorimeter_kernels::{
    native::{Machine, Quantise, ScaleSource},
    rowwise,
};

use super::{gpu, poisoned};

const SOURCES: [ScaleSource; 2] = [ScaleSource::Largest, ScaleSource::Static];

/// Codes row after row, and the scales, as the host defines them.
fn reference(x: &[u16], columns: usize, scales: ScaleSource) -> (Vec<u8>, Vec<f32>) {
    match scales {
        ScaleSource::Largest => {
            let (codes, scales): (Vec<_>, _) = x.chunks(columns).map(rowwise::quantise_row).unzip();
            (codes.concat(), scales)
        }
        ScaleSource::Static => {
            let scale = rowwise::STATIC_SCALE;
            (x.iter().map(|&x| rowwise::code(x, scale)).collect(), vec![scale])
        }
    }
}

/// Rows of bf16 bit patterns: of zeros, of next to nothing, of nearly the largest there is, with an infinity, with a NaN,
/// of every exponent at once, and of numbers between -1 and 1.
fn rows(count: usize, columns: usize) -> Vec<u16> {
    let mut state = columns as u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 32) as u32
    };
    let mut x = Vec::with_capacity(count * columns);
    for row in 0..count {
        let start = x.len();
        for _ in 0..columns {
            let bits = next();
            let number = bits as f32 / (1u32 << 31) as f32 - 1.0;
            x.push(match row % 9 {
                1 => (bits & 0x8000) as u16,
                2 => rowwise::bf16(number * 1e-17),
                3 => rowwise::bf16(number * 3e38),
                // All but infinities and NaN.
                4..=6 => (bits as u16 & 0x8000) | ((bits >> 16) as u16 % 0x7f80),
                _ => rowwise::bf16(number),
            });
        }
        match row % 9 {
            5 => x[start + columns / 2] = 0xff80,
            6 => x[start + columns / 2] = 0x7fc0,
            _ => {}
        }
    }
    x
}

fn bytes(x: &[u16]) -> Vec<u8> {
    x.iter().flat_map(|bits| bits.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn assert_codes(found: &[u8], exact: &[u8], columns: usize, place: &str) {
    assert_eq!(found.len(), exact.len(), "{place}");
    if let Some(at) = (0..found.len()).find(|&at| found[at] != exact[at]) {
        let [found, exact] = [found[at], exact[at]];
        panic!("{place} at [{}, {}]: {found:#04x} instead of {exact:#04x}", at / columns, at % columns);
    }
}

fn assert_scales(found: &[u8], exact: &[f32], place: &str) {
    for (at, (found, exact)) in floats(found).iter().zip(exact).enumerate() {
        let same = found.to_bits() == exact.to_bits() || found.is_nan() && exact.is_nan();
        assert!(same, "{place}, scale {at}: {found:e} instead of {exact:e}");
    }
}

#[test]
fn quantised_rows_are_the_definition_to_the_bit() {
    let Some((machine, _turn)) = gpu() else { return };
    for columns in [1, 7, 31, 1000, 4096, 16384, 32769, 65536] {
        let count = 18;
        let x = rows(count, columns);
        for scales in SOURCES {
            check_rows(&machine, &x, count, columns, scales);
        }
    }
}

fn check_rows(machine: &Arc<Machine>, x: &[u16], count: usize, columns: usize, scales: ScaleSource) {
    let plan = Quantise::rows(machine, scales, count, columns).unwrap();
    let place = format!("{count}x{columns} {scales:?}: {}", plan.algorithm());
    println!("{place}");
    let mut codes = poisoned(machine, plan.codes_bytes());
    let mut found = poisoned(machine, plan.scales_bytes());
    plan.enqueue(&machine.upload(&bytes(x)).unwrap(), &mut codes, &mut found).unwrap();
    let (exact_codes, exact_scales) = reference(x, columns, scales);
    assert_scales(&found.download().unwrap(), &exact_scales, &place);
    assert_codes(&codes.download().unwrap(), &exact_codes, columns, &place);
}

#[test]
fn quantised_columns_are_the_definition_of_the_transpose_to_the_bit() {
    let Some((machine, _turn)) = gpu() else { return };
    let sizes = [
        // One block, clusters of two to eight, partly filled ones, and panels that are cut off.
        (16, 8),
        (1024, 40),
        (1040, 32),
        (2048, 72),
        (4096, 1000),
        (8192, 64),
        (8208, 24),
        (16384, 40),
        // More rows than a cluster holds, and no whole accesses.
        (16400, 16),
        (1, 1),
        (7, 31),
        (31, 7),
        (1000, 24),
        (4096, 31),
    ];
    for (rows_of_x, columns) in sizes {
        let transposed = rows(columns, rows_of_x);
        let x: Vec<u16> =
            (0..rows_of_x * columns).map(|at| transposed[at % columns * rows_of_x + at / columns]).collect();
        let x = machine.upload(&bytes(&x)).unwrap();
        for scales in SOURCES {
            let plan = Quantise::columns(&machine, scales, rows_of_x, columns).unwrap();
            let place = format!("{rows_of_x}x{columns} {scales:?}: {}", plan.algorithm());
            println!("{place}");
            let mut codes = poisoned(&machine, plan.codes_bytes());
            let mut found = poisoned(&machine, plan.scales_bytes());
            plan.enqueue(&x, &mut codes, &mut found).unwrap();
            let (exact_codes, exact_scales) = reference(&transposed, rows_of_x, scales);
            assert_scales(&found.download().unwrap(), &exact_scales, &place);
            assert_codes(&codes.download().unwrap(), &exact_codes, rows_of_x, &place);
        }
    }
}
