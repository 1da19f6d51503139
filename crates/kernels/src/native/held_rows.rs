//! Rows of an input that multiprocessors hold until their common scale is known.

use super::{
    ComputeCapability, Machine, NativeError,
    kernel::{Geometry, widest},
    row_cut::RowCut,
};
use crate::DynamicForm;

/// How multiprocessors hold x: a block on each, some of its rows in registers and the others in its memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// Of a block, whose rows of threads take rows in turn.
    pub(super) cut: RowCut,
    /// Rows of a block.
    pub(super) rows: usize,
    pub(super) shared_bytes: usize,
}

impl Held {
    const MOST_THREADS: usize = 1024;
    const MOST_ELEMENTS_PER_THREAD: usize = 32;
    /// What a block may have of its memory for rows, and for what it knows of them.
    const MOST_BYTES: usize = 224 << 10;
    const MOST_KNOWN: usize = 2 << 10;

    /// If they can hold it. Rows are copied in pieces of 16 bytes, as Hopper does.
    pub(super) fn new(
        machine: &Machine,
        form: DynamicForm,
        (rows, columns): (usize, usize),
    ) -> Result<Option<Self>, NativeError> {
        if machine.compute_capability() != ComputeCapability::WARP_GROUPS {
            return Ok(None);
        }
        Ok(Self::on(machine.multiprocessors()?, form, (rows, columns)))
    }

    pub(super) fn on(multiprocessors: usize, form: DynamicForm, (rows, columns): (usize, usize)) -> Option<Self> {
        let of_block = rows.div_ceil(multiprocessors);
        let at_once = |cut: &RowCut| Self::MOST_THREADS / cut.threads;
        let cut = RowCut::of_row(form.kind, columns);
        // Where there would be many turns threads keep more of their rows in registers: 4096 x 4096 behind a normalization is
        // faster by some 3 % then, and 1024 rows, which have two turns, would be slower by as much.
        let wide = RowCut::new(columns, widest(form.kind), Self::MOST_ELEMENTS_PER_THREAD);
        let cut = if of_block > 2 * at_once(&cut) { wide } else { cut };
        let cut = RowCut { rows: at_once(&cut).min(of_block), ..cut };
        let shared_bytes = (of_block - cut.rows) * columns * form.kind.width();
        let known = of_block.div_ceil(cut.rows) * (8 + 8 * cut.rows);
        let fits = cut.width == widest(form.kind) && cut.pieces.is_some();
        let fits = fits && shared_bytes <= Self::MOST_BYTES && known <= Self::MOST_KNOWN;
        fits.then_some(Self { cut, rows: of_block, shared_bytes })
    }

    pub(super) fn geometry(&self, rows: usize) -> Geometry {
        let Self { cut, rows: of_block, .. } = self;
        Geometry { blocks: rows.div_ceil(*of_block) as u32, threads: (cut.threads as u32, cut.rows as u32) }
    }

    pub(super) fn describe(&self, name: &str) -> String {
        let Self { cut, rows, .. } = self;
        format!(
            "{name}: {rows} rows held by each block, {} of them in registers, {} threads per row, {} elements per access",
            cut.rows, cut.threads, cut.width
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        nvrtc::{Source, tests::assert_compiles},
        quantize_input::{self, tests::every_form},
    };
    use super::*;
    use crate::{Dtype, SharedScale};

    #[test]
    fn the_source_compiles_for_every_form() {
        let mut found = 0;
        for (at, form) in every_form().filter(|form| form.shared == SharedScale::Tensor).enumerate() {
            let (rows, columns) = ([1, 1000][at % 2], [257, 1000, 4096][at % 3]);
            let Some(held) = Held::on(132, form, (rows, columns)) else { continue };
            let mut macros = quantize_input::macros("held", form, held.cut, columns.next_multiple_of(32));
            macros.push(format!("HELD={}", held.rows));
            assert_compiles(Source::HeldInput, &macros);
            found += 1;
        }
        // Of three lengths of rows the first is not held.
        assert_eq!(found, 3 * 4 * 4 * 2 / 3);
    }

    #[test]
    fn multiprocessors_hold_what_fits_into_them() {
        let form = |kind| every_form().find(|form| form.kind == kind && form.shared == SharedScale::Tensor).unwrap();
        let on =
            |kind, rows, columns| Held::on(132, form(kind), (rows, columns)).map(|held| (held.rows, held.cut.rows));
        assert_eq!(on(Dtype::Bf16, 4096, 4096), Some((32, 8)));
        // 28 rows of 8 KiB in memory are all of it.
        assert_eq!(on(Dtype::Bf16, 36 * 132, 4096), Some((36, 8)));
        assert_eq!(on(Dtype::Bf16, 36 * 132 + 1, 4096), None);
        assert_eq!(on(Dtype::Bf16, 1, 4096), Some((1, 1)));
        assert_eq!(on(Dtype::F32, 1024, 4096), Some((8, 4)));
        assert_eq!(on(Dtype::F32, 1061, 4096), Some((9, 8)));
        // Pieces of 16 bytes do not divide a row, or a thread would keep too many of them.
        assert_eq!(on(Dtype::Bf16, 16, 4100), None);
        assert_eq!(on(Dtype::Bf16, 16, 65536), None);
        for held in (1..40_000).step_by(13).filter_map(|rows| Held::on(132, form(Dtype::F16), (rows, 1000))) {
            assert!(held.rows >= held.cut.rows && held.cut.threads * held.cut.rows <= 1024, "{held:?}");
        }
    }
}
