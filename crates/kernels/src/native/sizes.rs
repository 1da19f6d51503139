//! Size checks, and the GPU size that tiles are chosen for.

use super::{LinearShape, NativeError};

/// Multiprocessors of an H100 or H200; grids are sized for them.
pub(super) const MULTIPROCESSORS: usize = 132;

/// Returns an error unless `value` is between 1 and 2³¹-1, the range of grid dimensions and of cuBLASLt sizes.
pub(super) fn check_size(what: &'static str, value: usize) -> Result<usize, NativeError> {
    let limit = i32::MAX as usize;
    if (1..=limit).contains(&value) { Ok(value) } else { Err(NativeError::InvalidSize { what, limit, value }) }
}

/// Returns an error unless the rows and columns of a matrix are in the range of [`check_size`].
pub(super) fn check_matrix(rows: usize, columns: usize) -> Result<(), NativeError> {
    check_size("the number of rows", rows)?;
    check_size("the length of a row", columns).map(|_| ())
}

/// Returns an error unless `length` elements fit a grid of which a block processes at least `per_block` elements.
pub(super) fn check_elements(length: usize, per_block: usize) -> Result<(), NativeError> {
    let limit = i32::MAX as usize * per_block;
    if (1..=limit).contains(&length) {
        return Ok(());
    }
    Err(NativeError::InvalidSize { what: "the number of elements", limit, value: length })
}

/// Returns an error unless cuBLASLt accepts the sizes and their products cannot overflow.
pub(super) fn check_shape(LinearShape { m, k, n }: LinearShape) -> Result<LinearShape, NativeError> {
    Ok(LinearShape { m: check_size("m", m)?, k: check_size("k", k)?, n: check_size("n", n)? })
}
