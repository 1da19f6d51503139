//! Quantization kernels against the reference implementation, bit for bit.

use std::sync::Arc;

use calorimeter_kernels::{
    native::{CudaDevice, CudaKernel, MxBlockAxis, ScaleSource},
    rowwise,
};

use super::{gpu, poisoned};

const SOURCES: [ScaleSource; 2] = [ScaleSource::Amax, ScaleSource::Static];

/// Quantized rows and scales by the reference implementation.
fn reference(x: &[u16], columns: usize, scales: ScaleSource) -> (Vec<u8>, Vec<f32>) {
    match scales {
        ScaleSource::Amax => {
            let (codes, scales): (Vec<_>, _) = x.chunks(columns).map(rowwise::quantize_row).unzip();
            (codes.concat(), scales)
        }
        ScaleSource::Static => {
            let scale = rowwise::STATIC_SCALE;
            (x.iter().map(|&x| rowwise::quantize_value(x, scale)).collect(), vec![scale])
        }
    }
}

/// Rows of bf16 bit patterns: zeros, tiny values, values near the maximum, with an infinity, with a NaN, with all
/// exponents, and between -1 and 1.
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
                2 => rowwise::to_bf16(number * 1e-17),
                3 => rowwise::to_bf16(number * 3e38),
                // Any bit pattern except infinities and NaN.
                4..=6 => (bits as u16 & 0x8000) | ((bits >> 16) as u16 % 0x7f80),
                _ => rowwise::to_bf16(number),
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
#[ignore = "needs CUDA"]
fn quantized_rows_match_bit_for_bit() {
    let (device, _guard) = gpu();
    for columns in [1, 7, 31, 1000, 4096, 16384, 32769, 65536] {
        let count = 18;
        let x = rows(count, columns);
        for scales in SOURCES {
            check_rows(&device, &x, count, columns, scales);
        }
    }
}

fn check_rows(device: &Arc<CudaDevice>, x: &[u16], count: usize, columns: usize, scales: ScaleSource) {
    let plan = CudaKernel::quantize_rows(device, scales, count, columns).unwrap();
    let place = format!("{count}x{columns} {scales:?}: {}", plan.algorithm());
    println!("{place}");
    let mut codes = poisoned(device, plan.output_bytes(0));
    let mut found = poisoned(device, plan.output_bytes(1));
    plan.enqueue([&device.upload(&bytes(x)).unwrap()], [&mut codes, &mut found]).unwrap();
    let (exact_codes, exact_scales) = reference(x, columns, scales);
    assert_scales(&found.download().unwrap(), &exact_scales, &place);
    assert_codes(&codes.download().unwrap(), &exact_codes, columns, &place);
}

#[test]
#[ignore = "needs CUDA"]
fn quantized_columns_match_transpose_bit_for_bit() {
    let (device, _guard) = gpu();
    let sizes = [
        // One block, clusters of two to eight, partially filled ones, and incomplete panels.
        (16, 8),
        (1024, 40),
        (1040, 32),
        (2048, 72),
        (4096, 1000),
        (8192, 64),
        (8208, 24),
        (16384, 40),
        // More rows than a cluster covers, and unaligned sizes.
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
        let x = device.upload(&bytes(&x)).unwrap();
        for scales in SOURCES {
            let plan = CudaKernel::quantize_columns(&device, scales, rows_of_x, columns).unwrap();
            let place = format!("{rows_of_x}x{columns} {scales:?}: {}", plan.algorithm());
            println!("{place}");
            let mut codes = poisoned(&device, plan.output_bytes(0));
            let mut found = poisoned(&device, plan.output_bytes(1));
            plan.enqueue([&x], [&mut codes, &mut found]).unwrap();
            let (exact_codes, exact_scales) = reference(&transposed, rows_of_x, scales);
            assert_scales(&found.download().unwrap(), &exact_scales, &place);
            assert_codes(&codes.download().unwrap(), &exact_codes, rows_of_x, &place);
        }
    }
}

/// Quantizes a block without intermediate rounding; returns values and scale.
fn quantize_block(block: &[f32], scales: ScaleSource) -> (Vec<u8>, f32) {
    let largest = block.iter().fold(0.0, |largest: f32, x| largest.max(x.abs()));
    let scale = match scales {
        ScaleSource::Static => rowwise::STATIC_SCALE,
        ScaleSource::Amax if largest / rowwise::MAX_E4M3 < rowwise::MIN_SCALE => 1.0,
        ScaleSource::Amax => largest / rowwise::MAX_E4M3,
    };
    let code = |x: &f32| rowwise::to_e4m3((x / scale).clamp(-rowwise::MAX_E4M3, rowwise::MAX_E4M3));
    (block.iter().map(code).collect(), scale)
}

/// Finite rows, as bit patterns and as f32.
fn finite_rows(count: usize, columns: usize) -> (Vec<u16>, Vec<f32>) {
    let x: Vec<u16> =
        rows(count, columns).into_iter().map(|bits| if bits & 0x7f80 == 0x7f80 { 0x3f80 } else { bits }).collect();
    let wide = x.iter().map(|&bits| rowwise::bf16_to_f32(bits)).collect();
    (x, wide)
}

#[test]
#[ignore = "needs CUDA"]
fn quantized_blocks_match_and_use_cublaslt_layout() {
    const SIDE: usize = 128;
    let (device, _guard) = gpu();
    for (count, columns) in [(1, 128), (18, 384), (256, 640), (384, 128)] {
        let (x, wide) = finite_rows(count, columns);
        let x = device.upload(&bytes(&x)).unwrap();
        let found = |plan: CudaKernel| {
            let (mut codes, mut scales) =
                (poisoned(&device, plan.output_bytes(0)), poisoned(&device, plan.output_bytes(1)));
            plan.enqueue([&x], [&mut codes, &mut scales]).unwrap();
            (codes.download().unwrap(), floats(&scales.download().unwrap()), plan.algorithm())
        };
        for source in SOURCES {
            let (codes, scales, place) =
                found(CudaKernel::quantize_row_blocks(&device, source, count, columns).unwrap());
            let pitch = count.next_multiple_of(4);
            for (at, block) in wide.chunks(SIDE).enumerate() {
                let (row, along) = (at * SIDE / columns, at % (columns / SIDE));
                let (exact, scale) = quantize_block(block, source);
                assert_eq!(scales[along * pitch + row], scale, "{place} row {row} block {along}");
                assert_codes(&codes[at * SIDE..][..SIDE], &exact, SIDE, &place);
            }
            if !count.is_multiple_of(SIDE) {
                assert!(CudaKernel::quantize_square_blocks(&device, source, count, columns).is_err());
                continue;
            }
            let (codes, scales, place) =
                found(CudaKernel::quantize_square_blocks(&device, source, count, columns).unwrap());
            let pitch = (count / SIDE).next_multiple_of(4);
            for (down, across) in
                (0..count / SIDE).flat_map(|down| (0..columns / SIDE).map(move |across| (down, across)))
            {
                let number = |at: usize| wide[(down * SIDE + at % SIDE) * columns + across * SIDE + at / SIDE];
                let (exact, scale) = quantize_block(&(0..SIDE * SIDE).map(number).collect::<Vec<_>>(), source);
                assert_eq!(scales[across * pitch + down], scale, "{place} {down} {across}");
                for (column, exact) in exact.chunks(SIDE).enumerate() {
                    let at = (across * SIDE + column) * count + down * SIDE;
                    assert_codes(&codes[at..][..SIDE], exact, SIDE, &place);
                }
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn mx_fake_quantization_matches_along_both_axes() {
    const BLOCK: usize = 32;
    let (device, _guard) = gpu();
    for (count, columns) in [(1, 32), (32, 1), (64, 33), (96, 64), (1, 4096), (1024, 1000)] {
        let (x, wide) = finite_rows(count, columns);
        let x = device.upload(&bytes(&x)).unwrap();
        for (source, blocks) in
            SOURCES.into_iter().flat_map(|source| [MxBlockAxis::Rows, MxBlockAxis::Columns].map(|b| (source, b)))
        {
            let (along, step) = match blocks {
                MxBlockAxis::Rows => (columns, 1),
                MxBlockAxis::Columns => (count, columns),
            };
            let plan = CudaKernel::mx_fake_quantize(&device, source, blocks, count, columns);
            if !along.is_multiple_of(BLOCK) {
                assert!(plan.is_err());
                continue;
            }
            let plan = plan.unwrap();
            let mut y = poisoned(&device, plan.output_bytes(0));
            plan.enqueue([&x], [&mut y]).unwrap();
            let y: Vec<f32> = y
                .download()
                .unwrap()
                .chunks_exact(2)
                .map(|bits| rowwise::bf16_to_f32(u16::from_le_bytes([bits[0], bits[1]])))
                .collect();
            for first in (0..count * columns).filter(|at| at / step % along % BLOCK == 0) {
                let at: Vec<usize> = (0..BLOCK).map(|i| first + i * step).collect();
                let largest = at.iter().fold(0.0, |largest: f32, &at| largest.max(wide[at].abs()));
                let power = match source {
                    ScaleSource::Static => rowwise::STATIC_SCALE,
                    // Smallest power of two with which no value saturates.
                    ScaleSource::Amax => (-126..=127)
                        .map(|exponent| 2f32.powi(exponent))
                        .find(|power| largest <= rowwise::MAX_E4M3 * power)
                        .unwrap(),
                };
                for at in at {
                    let code = rowwise::to_e4m3((wide[at] / power).clamp(-rowwise::MAX_E4M3, rowwise::MAX_E4M3));
                    assert_eq!(
                        y[at],
                        rowwise::e4m3_to_f32(code) * power,
                        "{} at {at}: {:e}",
                        plan.algorithm(),
                        wide[at]
                    );
                }
            }
        }
    }
}
