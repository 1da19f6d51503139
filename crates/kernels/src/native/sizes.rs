//! Sizes that the interfaces can take, and of the GPUs that work is cut up for.

use super::{LinearShape, NativeError};

/// The multiprocessors of an H100 or H200, for which work is cut up.
pub(super) const MULTIPROCESSORS: usize = 132;

/// Checks that there are between 1 and 2³¹-1 of something, which every size of a grid and of cuBLASLt must be.
pub(super) fn checked_size(what: &'static str, value: usize) -> Result<usize, NativeError> {
    let limit = i32::MAX as usize;
    if (1..=limit).contains(&value) { Ok(value) } else { Err(NativeError::InvalidSize { what, limit, value }) }
}

/// Sizes that cuBLASLt can take, and whose products cannot overflow.
pub(super) fn checked_shape(LinearShape { m, k, n }: LinearShape) -> Result<LinearShape, NativeError> {
    Ok(LinearShape { m: checked_size("m", m)?, k: checked_size("k", k)?, n: checked_size("n", n)? })
}
