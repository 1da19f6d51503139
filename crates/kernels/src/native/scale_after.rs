//! What cuBLASLt does not do with the f32 sums of a product: scales, and roundings to another type than the factors'.

use std::sync::Arc;

use super::{
    Float8Output, LinearShape, Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    sizes::checked_size,
};

/// The kernel that applies scales to the sums of a product, and those sums.
#[derive(Debug)]
pub(super) struct ScaleAfter {
    pub(super) kernel: Kernel,
    pub(super) sums: Memory,
}

const THREADS: usize = 256;

impl ScaleAfter {
    pub(super) fn new(machine: &Arc<Machine>, shape: LinearShape, output: Float8Output) -> Result<Self, NativeError> {
        let LinearShape { m, n, .. } = shape;
        let width = if n.is_multiple_of(4) { 4 } else { 1 };
        let name = "scale_product";
        let bytes = 4 * m * n;
        let mut reads = vec![("sums", bytes)];
        if output.inputs() > 2 {
            reads.extend([("row scales", 4 * m), ("column scales", 4 * n)]);
        }
        if output == Float8Output::Added {
            reads.push(("added", bytes));
        }
        let extent = Extent { reads, writes: vec![("y", shape.y_bytes(output.kind()))], sizes: (m as u64, n as u64) };
        let blocks = checked_size("the number of blocks", m * (n / width).div_ceil(THREADS))?;
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let macros = macros(name, output, width);
        let kernel = Kernel::prepare(machine, Source::ScaleProduct, name, macros, extent, geometry)?;
        Ok(Self { kernel, sums: Memory::allocate(machine.stream(), bytes)? })
    }
}

fn macros(name: &str, output: Float8Output, width: usize) -> Vec<String> {
    let mut macros = common_macros(name, output.kind(), width);
    macros.push(format!("THREADS={THREADS}"));
    macros.push(format!("INPUTS={}", output.inputs()));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;
    use crate::Dtype;

    #[test]
    fn the_source_compiles_for_every_output() {
        use Float8Output::{Added, Plain, Scaled};
        for output in Dtype::ALL.into_iter().flat_map(|kind| [Plain(kind), Scaled(kind)]).chain([Added]) {
            for width in [1, 4] {
                assert_compiles(Source::ScaleProduct, &macros("scale_product", output, width));
            }
        }
    }
}
