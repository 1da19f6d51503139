//! Comparison of a buffer with the cyclic rotation of another.
//!
//! Data flow: each unit compares a few words, and sets a flag on a mismatch. Traffic: both buffers once. Roofline:
//! memory bandwidth.

use super::CubeError;
use super::matrix::cubes;
use cubecl::ir::features::TypeUsage;
use cubecl::ir::{ElemType, UIntKind};
use cubecl::prelude::*;
use cubecl::server::Handle;

/// Units per cube.
const UNITS: usize = 256;
/// Words per unit.
const WORDS_PER_UNIT: usize = 4;

/// True if the first `bytes` bytes of `y` are those of `x` with each line rotated right by `by` bytes. Waits for the
/// result. `None` if the device has no integer type that divides line and shift.
pub fn is_rotated<R: Runtime>(
    client: &ComputeClient<R>,
    x: &Handle,
    y: &Handle,
    bytes: usize,
    line: usize,
    by: usize,
) -> Result<Option<bool>, CubeError> {
    for (operand, handle) in [("x", x), ("y", y)] {
        let (needs, has) = (bytes as u64, handle.size_in_used());
        if has < needs {
            return Err(CubeError::TooSmall { operand, needs, has });
        }
    }
    let kinds = [(4, UIntKind::U32), (2, UIntKind::U16), (1, UIntKind::U8)];
    let fits = |(width, kind): &(usize, UIntKind)| {
        let stored = client.properties().type_usage(StorageType::Scalar(ElemType::UInt(*kind)));
        [bytes, line, by].iter().all(|bytes| bytes.is_multiple_of(*width)) && stored.contains(TypeUsage::Buffer)
    };
    let Some((width, kind)) = kinds.into_iter().find(fits).filter(|_| bytes > 0 && by < line) else {
        return Ok(None);
    };
    let (words, line, by) = (bytes / width, line / width, by / width);
    let found = client.create_from_slice(&[0; 8]);
    // SAFETY: both buffers were checked to hold `words` words, and the kernel checks `words` before it reads.
    unsafe {
        let words_of = |handle: &Handle| ArrayArg::from_raw_parts(handle.clone(), words);
        differs::launch_unchecked::<R>(
            client,
            cubes(client, words.div_ceil(UNITS * WORDS_PER_UNIT)),
            CubeDim::new_1d(UNITS as u32),
            AddressType::from_len_signed(words),
            words_of(x),
            words_of(y),
            ArrayArg::from_raw_parts(found.clone(), 2),
            words,
            line,
            by,
            StorageType::Scalar(ElemType::UInt(kind)),
        );
    }
    let found = client.read_one(found).map_err(|error| CubeError::Device { why: format!("{error:?}") })?;
    // A runtime may silently skip a kernel that it cannot launch; the second word proves that the kernel ran.
    Ok(Some(found[..4].iter().all(|&byte| byte == 0) && found[4..].iter().any(|&byte| byte != 0)))
}

/// Sets the first word of `found` on a mismatch, and the second word at the end of the data. Concurrent writes are
/// equal.
#[cube(launch_unchecked, address_type = "dynamic")]
fn differs<I: Int>(
    x: &Array<I>,
    y: &Array<I>,
    found: &mut Array<u32>,
    words: usize,
    line: usize,
    by: usize,
    #[define(I)] _kind: StorageType,
) {
    let first = CUBE_POS * comptime!(UNITS * WORDS_PER_UNIT) + UNIT_POS as usize;
    #[unroll]
    for piece in 0..WORDS_PER_UNIT {
        let at = first + piece * UNITS;
        if at < words {
            let within = at % line;
            let back = select(within < by, within + line - by, within - by);
            if x[at - within + back] != y[at] {
                found[0] = 1u32;
            }
            if at + 1 == words {
                found[1] = 1u32;
            }
        }
    }
}
