//! Codes of rows that attention makes, in one kernel.

use std::sync::Arc;

use super::{
    ComputeCapability, Machine, NativeError, ShortAttention,
    kernel::{Extent, Geometry, Kernel},
    nvrtc::Source,
    short_attention,
};
use crate::{DynamicForm, SharedScale};

/// Of so long a head a lane's part of two tokens is half of its registers, and so many warps are as many as have them.
const LONGEST_HEAD: usize = 512;
const MOST_HEADS: usize = 8;

/// Compiles for codes of an output of so many rows and columns, and tells of it, where there is one.
pub(super) fn kernel(
    machine: &Arc<Machine>,
    form: DynamicForm,
    name: &str,
    (rows, columns): (usize, usize),
    heads: usize,
    filled: (usize, usize),
) -> Result<Option<(Kernel, String)>, NativeError> {
    let head = columns / heads;
    if !is_for(form, heads, head, machine.compute_capability()) {
        return Ok(None);
    }
    let x = ("x", 3 * rows * columns * form.kind.width());
    let writes = vec![("codes", filled.0 * filled.1), ("scales", 4 * rows)];
    let extent = Extent { reads: vec![x], writes, sizes: (rows as u64, columns as u64) };
    let blocks = (rows / ShortAttention::TOKENS).min(machine.multiprocessors()? * (MOST_HEADS / heads));
    let geometry = Geometry { blocks: blocks as u32, threads: (32, heads as u32) };
    let macros = macros(name, form, heads, head, filled.1);
    let kernel = Kernel::prepare(machine, Source::ShortAttentionCodes, name, macros, extent, geometry)?;
    let algorithm =
        format!("{name}: {blocks} blocks that take sequences in turn, a warp for each head, by tensor cores");
    Ok(Some((kernel, algorithm)))
}

fn is_for(form: DynamicForm, heads: usize, head: usize, capability: ComputeCapability) -> bool {
    form.shared == SharedScale::Row
        && heads <= MOST_HEADS
        && head <= LONGEST_HEAD
        && short_attention::tiles_are_for(form.kind, head, capability)
}

fn macros(name: &str, form: DynamicForm, heads: usize, head: usize, stride: usize) -> Vec<String> {
    let mut macros = short_attention::of_heads(name, form.kind, heads, head);
    macros.push(format!("STRIDE={stride}ull"));
    macros.extend(form.macros());
    macros
}

#[cfg(test)]
mod tests {
    use super::super::{nvrtc::tests::assert_compiles, quantize_input::tests::every_form};
    use super::*;
    use crate::{Dtype, Prologue};

    #[test]
    fn the_source_compiles_for_every_form_that_it_is_for() {
        for form in every_form().filter(|form| form.prologue == Prologue::Nothing) {
            let is_for = |heads, head| is_for(form, heads, head, ComputeCapability::WARP_GROUPS);
            let halves = form.kind != Dtype::F32 && form.shared == SharedScale::Row;
            assert_eq!(is_for(8, 512), halves, "{form:?}");
            assert!(!is_for(9, 32) && !is_for(8, 544) && !is_for(8, 40), "{form:?}");
            for (heads, head) in [(8, 512), (1, 32)].into_iter().filter(|&(heads, head)| is_for(heads, head)) {
                assert_compiles(Source::ShortAttentionCodes, &macros("attended", form, heads, head, heads * head));
            }
        }
    }
}
