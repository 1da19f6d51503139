//! Packed weights as the numbers that they stand for.

use std::sync::Arc;

use super::{
    LinearShape, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    sizes::checked_size,
};
use crate::PackedForm;

/// The kernel that writes a packed weight in the type of x.
#[derive(Debug)]
pub(super) struct UnpackWeight {
    pub(super) kernel: Kernel,
    pub(super) algorithm: String,
}

const THREADS: usize = 128;
/// So that each thread has four loads in flight.
const PIECES: usize = 4;

impl UnpackWeight {
    /// Compiles for sizes and a form that were checked.
    pub(super) fn new(machine: &Arc<Machine>, form: PackedForm, shape: LinearShape) -> Result<Self, NativeError> {
        let LinearShape { k, n, .. } = shape;
        let name = format!("unpack_{}_{}", form.codes.name(), form.factors());
        let width = width(form, k);
        let blocks = checked_size("the number of blocks", n * (k / width).div_ceil(THREADS * PIECES))?;
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let writes = vec![("w", shape.w_bytes(form.factors()))];
        let extent = Extent { reads: form.reads(shape), writes, sizes: (n as u64, k as u64) };
        let macros = macros(&name, form, k);
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::UnpackWeight, &name, macros, extent, geometry)?,
            algorithm: format!("{name}: {THREADS} threads per block, {PIECES} accesses of {width} numbers per thread"),
        })
    }
}

/// Numbers in an access: 16 bytes of them, where rows allow it.
fn width(form: PackedForm, k: usize) -> usize {
    let most = widest(form.factors());
    if k.is_multiple_of(most) { most } else { 1 }
}

fn macros(name: &str, form: PackedForm, k: usize) -> Vec<String> {
    let mut macros = common_macros(name, form.factors(), width(form, k));
    macros.extend(form.macros(k));
    macros.extend([format!("THREADS={THREADS}"), format!("PIECES={PIECES}")]);
    macros
}

#[cfg(test)]
mod tests {
    use super::super::{nvrtc::tests::assert_compiles, packed_form::tests::every_form};
    use super::*;

    #[test]
    fn the_source_compiles_for_every_form_and_access() {
        for (at, form) in every_form().into_iter().enumerate() {
            for k in [129, 1000, 4096].into_iter().skip(at % 3).step_by(3) {
                assert_compiles(Source::UnpackWeight, &macros("unpack", form, k));
            }
        }
    }
}
