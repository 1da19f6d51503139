//! Rows of an input that blocks turn into codes one after another.

use super::{
    ComputeCapability, Machine, NativeError,
    kernel::{Geometry, widest},
    row_cut::RowCut,
};
use crate::{Dtype, DynamicForm, Prologue};

/// How blocks take rows in turn, while the next are on their way into their memory: worth it where making numbers of a row takes as
/// long as reading it.
#[derive(Debug, Clone, Copy)]
pub(super) struct InTurns {
    pub(super) cut: RowCut,
    pub(super) geometry: Geometry,
    /// Blocks of a multiprocessor.
    resident: usize,
    pub(super) shared_bytes: usize,
}

impl InTurns {
    /// Turns that a block's memory holds.
    const STAGES: usize = 2;
    /// What is done once for a row counts less then, and copies keep memory busy with few threads.
    const ELEMENTS_PER_THREAD: usize = 64;
    /// Shorter rows gain nothing.
    const LEAST_COLUMNS: usize = 8192;
    /// With fewer the first copies, which nothing hides, are too many of all.
    const LEAST_TURNS: usize = 4;
    /// What blocks may have of a multiprocessor's memory.
    const MOST_BYTES: usize = 216 << 10;

    /// If there is such a way. Rows are copied in pieces of 16 bytes, as Hopper does.
    pub(super) fn new(machine: &Machine, form: DynamicForm, size: (usize, usize)) -> Result<Option<Self>, NativeError> {
        if machine.compute_capability() != ComputeCapability::WARP_GROUPS {
            return Ok(None);
        }
        Ok(Self::on(machine.multiprocessors()?, form, size))
    }

    pub(super) fn on(multiprocessors: usize, form: DynamicForm, (rows, columns): (usize, usize)) -> Option<Self> {
        let cut = RowCut::new(columns, widest(form.kind), Self::ELEMENTS_PER_THREAD);
        let cut = RowCut { pieces: Some((columns / cut.width).div_ceil(cut.threads)), ..cut };
        let shared_bytes = Self::STAGES * cut.rows * columns * form.kind.width();
        let resident = (2048 / (cut.threads * cut.rows)).min(Self::MOST_BYTES / shared_bytes);
        let turns = rows.div_ceil(cut.rows);
        let gains = matches!(form.prologue, Prologue::Activation(_))
            && columns >= Self::LEAST_COLUMNS
            && form.kind != Dtype::F32;
        let fits = cut.width == widest(form.kind) && resident > 0;
        let enough = turns >= Self::LEAST_TURNS * resident * multiprocessors;
        (gains && fits && enough).then(|| Self {
            cut,
            geometry: Geometry {
                blocks: (resident * multiprocessors) as u32,
                threads: (cut.threads as u32, cut.rows as u32),
            },
            resident,
            shared_bytes,
        })
    }

    pub(super) fn macros(self) -> [String; 2] {
        [format!("BLOCKS={}", self.resident), format!("STAGES={}", Self::STAGES)]
    }

    pub(super) fn describe(self, name: &str) -> String {
        let Self { cut, geometry, .. } = self;
        format!(
            "{name}: {} blocks that take rows in turn, {} at a time, {} turns in a block's memory, {} threads per row, {} elements per access",
            geometry.blocks,
            cut.rows,
            Self::STAGES,
            cut.threads,
            cut.width
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

    #[test]
    fn long_rows_behind_an_activation_are_taken_in_turn() {
        let mut found = 0;
        for form in every_form() {
            let on = |rows, columns| InTurns::on(132, form, (rows, columns));
            let gains = matches!(form.prologue, Prologue::Activation(_)) && form.kind != Dtype::F32;
            assert_eq!(on(16384, 16384).is_some(), gains, "{form:?}");
            // Too few turns, short rows, rows without whole accesses and rows too long for registers.
            for (rows, columns) in [(1583, 16384), (1 << 20, 4096), (1 << 20, 8196), (1 << 20, 65536)] {
                assert!(on(rows, columns).is_none(), "{form:?} {rows} {columns}");
            }
            for (rows, columns) in [(1584, 16384), (100_001, 8192), (100_001, 32768)] {
                let Some(turns) = on(rows, columns) else { continue };
                found += 1;
                // What a multiprocessor has, of which each block takes 1 KiB for itself.
                let resident = turns.resident * (turns.shared_bytes + (1 << 10));
                assert!(
                    turns.cut.threads * turns.cut.rows * turns.resident <= 2048 && resident <= 228 << 10,
                    "{turns:?}"
                );
                let mut macros = quantize_input::macros("in_turns", form, turns.cut, columns);
                macros.extend(turns.macros());
                macros.push("LAST_FIRST=true".into());
                assert_compiles(Source::QuantizeInput, &macros);
            }
        }
        // bf16 and f16, four kinds of codes under two kinds of scales, three sizes.
        assert_eq!(found, 2 * 4 * 2 * 3);
    }
}
