//! Digests of a matrix on the device: samples, and a check for non-finite elements.
//!
//! Memory is read as 32-bit words, and the host extracts 16-bit elements from them. Traffic: a sector per sample, and
//! the matrix once. Roofline: memory bandwidth.

use super::CubeError;
use super::matrix::{MatrixLayout, cubes};
use crate::Dtype;
use cubecl::prelude::*;
use cubecl::server::Handle;

/// Units per cube.
const UNITS: usize = 256;
/// Words per unit.
const WORDS_PER_UNIT: usize = 16;
/// Bytes per word.
const WORD: usize = 4;

/// Reads the elements at the intersections of some rows and columns, as bytes in row-major order. Waits for the result.
/// `None` if the matrix is not a whole number of words, or has more elements than u32 can count.
pub fn sample<R: Runtime>(
    client: &ComputeClient<R>,
    size: MatrixLayout,
    x: &Handle,
    rows: &[usize],
    cols: &[usize],
) -> Result<Option<Vec<u8>>, CubeError> {
    let count = rows.len() * cols.len();
    let Some(words) = words(size, x)?.filter(|_| count > 0) else { return Ok(None) };
    for (at, limit) in [(rows.iter().max(), size.rows), (cols.iter().max(), size.cols)] {
        if at.is_none_or(|&at| at >= limit) {
            return Err(CubeError::TooLarge { rows: size.rows, cols: size.cols });
        }
    }
    let uploaded = |indices: &[usize]| {
        let bytes: Vec<u8> = indices.iter().flat_map(|&at| (at as u32).to_le_bytes()).collect();
        client.create_from_slice(&bytes)
    };
    let each = WORD / size.kind.width();
    let (found, ran) = (client.empty(count * WORD), client.create_from_slice(&[0; WORD]));
    // SAFETY: the memory was checked to hold `words` words, and the indices are within the matrix; the kernel checks
    // `count` before it reads or writes.
    unsafe {
        gather::launch_unchecked::<R>(
            client,
            cubes(client, count.div_ceil(UNITS)),
            CubeDim::new_1d(UNITS as u32),
            AddressType::from_len_signed(size.len().max(count)),
            ArrayArg::from_raw_parts(x.clone(), words),
            ArrayArg::from_raw_parts(uploaded(rows), rows.len()),
            ArrayArg::from_raw_parts(uploaded(cols), cols.len()),
            ArrayArg::from_raw_parts(found.clone(), count),
            ArrayArg::from_raw_parts(ran.clone(), 1),
            size.cols,
            cols.len(),
            count,
            each,
        );
    }
    let found = read(client, found)?;
    has_run(client, ran)?;
    if each == 1 {
        return Ok(Some(found));
    }
    let width = size.kind.width();
    let (mut numbers, mut words) = (vec![0; count * width], found.chunks(WORD));
    let places = rows.iter().flat_map(|row| cols.iter().map(move |col| row * size.cols + col));
    for (number, place) in numbers.chunks_mut(width).zip(places) {
        if let Some(word) = words.next() {
            number.copy_from_slice(&word[place % each * width..][..width]);
        }
    }
    Ok(Some(numbers))
}

/// True if all elements are finite. Waits for the result. `None` if the matrix is not a whole number of words.
pub fn is_finite<R: Runtime>(
    client: &ComputeClient<R>,
    size: MatrixLayout,
    x: &Handle,
) -> Result<Option<bool>, CubeError> {
    let Some(words) = words(size, x)? else { return Ok(None) };
    let exponents: &[u32] = match size.kind {
        Dtype::F32 => &[0x7f80_0000],
        Dtype::F16 => &[0x7c00, 0x7c00_0000],
        Dtype::Bf16 => &[0x7f80, 0x7f80_0000],
    };
    let (found, ran) = (client.create_from_slice(&[0; WORD]), client.create_from_slice(&[0; WORD]));
    // SAFETY: the memory was checked to hold `words` words, and the kernel checks `words` before it reads.
    unsafe {
        find_non_finite::launch_unchecked::<R>(
            client,
            cubes(client, words.div_ceil(UNITS * WORDS_PER_UNIT)),
            CubeDim::new_1d(UNITS as u32),
            AddressType::from_len_signed(words),
            ArrayArg::from_raw_parts(x.clone(), words),
            ArrayArg::from_raw_parts(found.clone(), 1),
            ArrayArg::from_raw_parts(ran.clone(), 1),
            words,
            exponents[0],
            exponents[exponents.len() - 1],
        );
    }
    let found = read(client, found)?;
    has_run(client, ran)?;
    Ok(Some(found.iter().all(|&byte| byte == 0)))
}

/// Returns the number of words of a matrix.
fn words(size: MatrixLayout, x: &Handle) -> Result<Option<usize>, CubeError> {
    let bytes = size.rows.checked_mul(size.cols).and_then(|numbers| numbers.checked_mul(size.kind.width()));
    let Some(bytes) = bytes.filter(|&bytes| bytes <= isize::MAX as usize) else {
        return Err(CubeError::TooLarge { rows: size.rows, cols: size.cols });
    };
    let (needs, has) = (bytes as u64, x.size_in_used());
    if has < needs {
        return Err(CubeError::TooSmall { operand: "x", needs, has });
    }
    let counted = bytes > 0 && bytes.is_multiple_of(WORD) && u32::try_from(size.len()).is_ok();
    Ok(counted.then_some(bytes / WORD))
}

fn read<R: Runtime>(client: &ComputeClient<R>, handle: Handle) -> Result<Vec<u8>, CubeError> {
    let bytes = client.read_one(handle).map_err(|error| CubeError::Device { why: format!("{error:?}") })?;
    Ok(bytes.to_vec())
}

/// A runtime may silently skip a kernel that it cannot launch; every kernel here writes a word that proves it ran.
fn has_run<R: Runtime>(client: &ComputeClient<R>, ran: Handle) -> Result<(), CubeError> {
    match read(client, ran)?.iter().any(|&byte| byte != 0) {
        true => Ok(()),
        false => Err(CubeError::Device { why: "the digest kernel did not run".into() }),
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn gather(
    x: &Array<u32>,
    rows: &Array<u32>,
    cols: &Array<u32>,
    y: &mut Array<u32>,
    ran: &mut Array<u32>,
    width: usize,
    sampled: usize,
    count: usize,
    #[comptime] each: usize,
) {
    let at = CUBE_POS * comptime!(UNITS) + UNIT_POS as usize;
    if at < count {
        let place = rows[at / sampled] as usize * width + cols[at % sampled] as usize;
        y[at] = x[place / each];
        if at + 1 == count {
            ran[0] = 1u32;
        }
    }
}

/// Sets `found` if the exponent of an element is all ones. Concurrent writes are equal.
#[cube(launch_unchecked, address_type = "dynamic")]
fn find_non_finite(x: &Array<u32>, found: &mut Array<u32>, ran: &mut Array<u32>, words: usize, low: u32, high: u32) {
    let first = CUBE_POS * comptime!(UNITS * WORDS_PER_UNIT) + UNIT_POS as usize;
    for piece in 0..WORDS_PER_UNIT {
        let at = first + piece * UNITS;
        if at < words {
            let word = x[at];
            if word & low == low || word & high == high {
                found[0] = 1u32;
            }
            if at + 1 == words {
                ran[0] = 1u32;
            }
        }
    }
}
