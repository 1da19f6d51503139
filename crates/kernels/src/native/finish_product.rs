//! Sums of codes as the numbers that they stand for.

use std::sync::Arc;

use super::{
    LinearShape, Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    sizes::checked_size,
};
use crate::DynamicForm;

/// The kernel that applies the scales of rows and columns, and what follows, to the sums of a product, and those sums.
#[derive(Debug)]
pub(super) struct FinishProduct {
    kernel: Kernel,
    pub(super) sums: Memory,
    pub(super) algorithm: String,
}

const THREADS: usize = 256;
/// Rows of a thread: so many loads are in flight.
const ROWS: usize = 4;

impl FinishProduct {
    /// Compiles for y[m, n]. The sums stand in `filled.0` rows of `filled.1`, a multiple of four.
    pub(super) fn new(
        machine: &Arc<Machine>,
        form: DynamicForm,
        shape: LinearShape,
        filled: (usize, usize),
    ) -> Result<Self, NativeError> {
        let LinearShape { m, n, .. } = shape;
        let name = format!("finish_{}{}", form.codes.name(), form.end_name());
        let width = width(n);
        let sums = 4 * filled.0 * filled.1;
        let mut reads = vec![("sums", sums)];
        reads.extend(form.scales(shape));
        reads.extend(form.added.then(|| ("added", shape.y_bytes(form.kind))));
        let writes = vec![("y", shape.y_bytes(form.kind))];
        let extent = Extent { reads, writes, sizes: (m as u64, n as u64) };
        let blocks = checked_size("the number of blocks", m.div_ceil(ROWS) * (n / width).div_ceil(THREADS))?;
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let macros = macros(&name, form, width, filled.1);
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::FinishProduct, &name, macros, extent, geometry)?,
            sums: Memory::allocate(machine.stream(), sums)?,
            algorithm: format!("{name}: {THREADS} threads per block, {ROWS} accesses of {width} sums per thread"),
        })
    }

    /// Enqueues one run, on the sums that a product has left.
    pub(super) fn enqueue(
        &self,
        [rows, columns]: [&Memory; 2],
        added: Option<&Memory>,
        y: &mut Memory,
    ) -> Result<(), NativeError> {
        let inputs: Vec<&Memory> = [&self.sums, rows, columns].into_iter().chain(added).collect();
        self.kernel.enqueue_all(&inputs, &mut [y])
    }
}

/// Sums in an access: 16 bytes of them, where the rows of y allow it.
fn width(n: usize) -> usize {
    if n.is_multiple_of(4) { 4 } else { 1 }
}

fn macros(name: &str, form: DynamicForm, width: usize, stride: usize) -> Vec<String> {
    let mut macros = common_macros(name, form.kind, width);
    macros.extend([format!("THREADS={THREADS}"), format!("ROWS={ROWS}"), format!("STRIDE={stride}ull")]);
    macros.extend(form.macros());
    macros.extend(form.end_macros());
    macros
}

#[cfg(test)]
mod tests {
    use super::super::{nvrtc::tests::assert_compiles, quantize_input::tests::every_form};
    use super::*;
    use crate::Activation;

    #[test]
    fn the_source_compiles_for_every_form_and_activation() {
        let activations = Activation::ALL.map(Some).into_iter().chain([None]).cycle();
        for (form, activation) in every_form().zip(activations) {
            for (n, added) in [(17, true), (4096, false)] {
                let form = DynamicForm { activation, added, ..form };
                assert_compiles(Source::FinishProduct, &macros("finish", form, width(n), n.next_multiple_of(16)));
            }
        }
    }
}
