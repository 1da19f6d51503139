//! Inputs of layers as codes, in the rows that a product reads.

use std::sync::Arc;

use super::{
    ComputeCapability, LayerNorm, LinearShape, Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    row_cut::RowCut,
    sizes::{MULTIPROCESSORS, checked_size},
};
use crate::{DynamicCodes, DynamicForm, Prologue, SharedScale};

/// The kernels that turn x into codes and scales, and those codes and scales.
#[derive(Debug)]
pub(super) struct QuantiseInput {
    way: Way,
    /// Rows of `stride` codes; what fills them up is 0.
    pub(super) codes: Memory,
    /// One for each row, or one for all.
    pub(super) scales: Memory,
    pub(super) algorithm: String,
}

/// How codes come about.
#[derive(Debug)]
enum Way {
    /// Each row has its scale.
    Rows(Kernel),
    /// All have one, which a kernel of its own finds.
    Twice { largest: Kernel, state: Memory, quantise: Kernel },
    /// The same by one kernel, which holds x meanwhile.
    Held { kernel: Kernel, slots: Memory },
}

impl QuantiseInput {
    /// Compiles for x[rows, columns], whose codes stand in at least `filled.0` rows of `filled.1` codes.
    pub(super) fn new(
        machine: &Arc<Machine>,
        form: DynamicForm,
        (rows, columns): (usize, usize),
        filled: (usize, usize),
    ) -> Result<Self, NativeError> {
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let cut = RowCut::of_row(form.kind, columns);
        let codes_bytes = filled.0 * filled.1;
        let x = ("x", rows * columns * form.kind.width());
        let sizes = (rows as u64, columns as u64);
        let name = name(form);
        // At most `rows`, which was checked.
        let geometry =
            Geometry { blocks: rows.div_ceil(cut.rows) as u32, threads: (cut.threads as u32, cut.rows as u32) };
        let again = |looks: usize| format!("row read {looks} times");
        let looks = match form.prologue {
            Prologue::Nothing | Prologue::Activation(_) => 0,
            Prologue::RmsNorm => 1,
            Prologue::LayerNorm => 2,
        };
        let prepare = |source: Source, name: &str, cut: RowCut, extent: Extent, geometry: Geometry| {
            Kernel::prepare(machine, source, name, macros(name, form, cut, filled.1), extent, geometry)
        };
        let state = |words: usize| -> Result<Memory, NativeError> {
            let mut state = Memory::allocate(machine.stream(), 4 * words)?;
            state.fill(0)?;
            Ok(state)
        };
        let held = match form.shared {
            SharedScale::Tensor => Held::new(machine, form, (rows, columns))?,
            SharedScale::Row => None,
        };
        let (way, algorithm) = match (form.shared, held) {
            (SharedScale::Row, _) => {
                let writes = vec![("codes", codes_bytes), ("scales", 4 * rows)];
                let extent = Extent { reads: vec![x], writes, sizes };
                let kernel = prepare(Source::QuantiseInput, &name, cut, extent, geometry)?;
                (Way::Rows(kernel), cut.describe(&name, &again(looks + 2)))
            }
            (SharedScale::Tensor, Some(held)) => {
                let (name, geometry) = (format!("held_{name}"), held.geometry(rows));
                let blocks = geometry.blocks as usize;
                let mut macros = macros(&name, form, held.cut, filled.1);
                macros.push(format!("HELD={}", held.rows));
                let writes = vec![("codes", codes_bytes), ("scale", 4), ("slots", 8 * blocks)];
                let extent = Extent { reads: vec![x], writes, sizes };
                let kernel = Kernel::prepare(machine, Source::HeldInput, &name, macros, extent, geometry)?;
                let kernel = kernel.with_shared(held.shared_bytes)?.at_once();
                let algorithm = held.describe(&name);
                (Way::Held { kernel, slots: state(2 * blocks)? }, algorithm)
            }
            (SharedScale::Tensor, None) => {
                let of_largest = format!("largest_{name}");
                let blocks = geometry.blocks.min(resident_blocks(cut));
                let extent = Extent { reads: vec![x], writes: vec![("scale", 4), ("state", 8)], sizes };
                let geometry_of_largest = Geometry { blocks, ..geometry };
                let largest = prepare(Source::LargestInput, &of_largest, cut, extent, geometry_of_largest)?;
                let reads = vec![x, ("scale", 4)];
                let extent = Extent { reads, writes: vec![("codes", codes_bytes)], sizes };
                let quantise = prepare(Source::QuantiseInput, &name, cut, extent, geometry)?;
                let found = cut.describe(&format!("{of_largest} in {blocks} blocks"), &again(looks + 1));
                let algorithm = format!("{found}; then {}", cut.describe(&name, &again(looks + 1)));
                (Way::Twice { largest, state: state(2)?, quantise }, algorithm)
            }
        };
        let scales = match form.shared {
            SharedScale::Row => 4 * rows,
            SharedScale::Tensor => 4,
        };
        // What fills rows up is written once.
        let mut codes = Memory::allocate(machine.stream(), codes_bytes)?;
        codes.fill(0)?;
        Ok(Self { way, codes, scales: Memory::allocate(machine.stream(), scales)?, algorithm })
    }

    /// Enqueues one run.
    pub(super) fn enqueue(&mut self, x: &Memory) -> Result<(), NativeError> {
        let Self { way, codes, scales, .. } = self;
        match way {
            Way::Rows(kernel) => kernel.enqueue_all(&[x], &mut [codes, scales]),
            Way::Held { kernel, slots } => kernel.enqueue_all(&[x], &mut [codes, scales, slots]),
            Way::Twice { largest, state, quantise } => {
                largest.enqueue_all(&[x], &mut [scales, state])?;
                quantise.enqueue_all(&[x, scales], &mut [codes])
            }
        }
    }
}

/// How multiprocessors hold x: a block on each, some of its rows in registers and the others in its memory.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// Of a block, whose rows of threads take rows in turn.
    cut: RowCut,
    /// Rows of a block.
    rows: usize,
    shared_bytes: usize,
}

impl Held {
    const MOST_THREADS: usize = 1024;
    const MOST_ELEMENTS_PER_THREAD: usize = 32;
    /// What a block may have of its memory for rows, and for what it knows of them.
    const MOST_BYTES: usize = 224 << 10;
    const MOST_KNOWN: usize = 2 << 10;

    /// If they can hold it. Rows are copied in pieces of 16 bytes, as Hopper does.
    fn new(machine: &Machine, form: DynamicForm, (rows, columns): (usize, usize)) -> Result<Option<Self>, NativeError> {
        if machine.compute_capability() != ComputeCapability::WARP_GROUPS {
            return Ok(None);
        }
        Ok(Self::on(machine.multiprocessors()?, form, (rows, columns)))
    }

    fn on(multiprocessors: usize, form: DynamicForm, (rows, columns): (usize, usize)) -> Option<Self> {
        let of_block = rows.div_ceil(multiprocessors);
        let at_once = |cut: &RowCut| Self::MOST_THREADS / cut.threads;
        let cut = RowCut::of_row(form.kind, columns);
        // Where there would be many turns threads keep more of their rows in registers: 4096 x 4096 behind a normalisation is
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

    fn geometry(&self, rows: usize) -> Geometry {
        let Self { cut, rows: of_block, .. } = self;
        Geometry { blocks: rows.div_ceil(*of_block) as u32, threads: (cut.threads as u32, cut.rows as u32) }
    }

    fn describe(&self, name: &str) -> String {
        let Self { cut, rows, .. } = self;
        format!(
            "{name}: {rows} rows held by each block, {} of them in registers, {} threads per row, {} elements per access",
            cut.rows, cut.threads, cut.width
        )
    }
}

/// As many blocks as all multiprocessors hold at once.
pub(super) fn resident_blocks(cut: RowCut) -> u32 {
    (MULTIPROCESSORS * 2048 / (cut.threads * cut.rows)) as u32
}

fn name(form: DynamicForm) -> String {
    let before = match form.prologue {
        Prologue::Nothing => String::new(),
        Prologue::LayerNorm => "normalised_".into(),
        Prologue::RmsNorm => "rms_normalised_".into(),
        Prologue::Activation(function) => format!("{function}_"),
    };
    let of = match form.shared {
        SharedScale::Row => "rows",
        SharedScale::Tensor => "tensor",
    };
    format!("{before}{}_{of}_{}", form.codes.name(), form.kind)
}

fn macros(name: &str, form: DynamicForm, cut: RowCut, stride: usize) -> Vec<String> {
    let mut macros = common_macros(name, form.kind, cut.width);
    macros.extend(cut.macros());
    macros.push(format!("EPSILON={:e}f", LayerNorm::EPSILON));
    macros.push(format!("STRIDE={stride}ull"));
    macros.extend(form.macros());
    match form.prologue {
        Prologue::Nothing => {}
        Prologue::LayerNorm => macros.push("LAYER_NORM".into()),
        Prologue::RmsNorm => macros.push("RMS_NORM".into()),
        Prologue::Activation(function) => macros.push(format!("PROLOGUE={function}")),
    }
    macros
}

impl DynamicForm {
    /// What sources need to know of codes and scales.
    pub(super) fn macros(self) -> Vec<String> {
        let codes: &[&str] = match self.codes {
            DynamicCodes::Int8 => &["CODES_INT8"],
            DynamicCodes::E4m3 => &["CODES_E4M3"],
            DynamicCodes::Int4 => &["CODES_INT8", "COLUMNS_IN_F32", "CODES_IN_F32", "WHOLE_RANGE"],
            DynamicCodes::Int4InGroups => &["CODES_INT8", "COLUMNS_IN_F32", "CODES_IN_F32"],
        };
        let mut macros: Vec<String> = codes.iter().map(|name| name.to_string()).collect();
        if self.shared == SharedScale::Tensor {
            macros.push("TENSOR".into());
        }
        macros
    }

    /// What sources that end a layer need to know besides.
    pub(super) fn end_macros(self) -> Vec<String> {
        let activated = self.activation.map(|activation| format!("ACTIVATE={activation}"));
        activated.into_iter().chain(self.added.then(|| "ADDED".into())).collect()
    }

    /// How kernels that end a layer are told apart.
    pub(super) fn end_name(self) -> String {
        let activated = self.activation.map(|activation| format!("_{activation}")).unwrap_or_default();
        format!("{activated}{}_{}", if self.added { "_added" } else { "" }, self.kind)
    }

    /// The scales of rows and columns that they read: bytes of each.
    pub(super) fn scales(self, shape: LinearShape) -> [(&'static str, usize); 2] {
        // Those of weights of half bytes are f32, too.
        let of_column = if self.codes == DynamicCodes::Int8 { self.kind.width() } else { 4 };
        let (rows, columns) = match self.shared {
            SharedScale::Row => (shape.m, shape.n),
            SharedScale::Tensor => (1, 1),
        };
        [("row scales", 4 * rows), ("column scales", of_column * columns)]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;
    use crate::{Activation, Dtype, Float8Sums};

    /// Every form without anything after the product.
    pub(in crate::native) fn every_form() -> impl Iterator<Item = DynamicForm> {
        let kinds = Dtype::ALL.into_iter();
        let every = [DynamicCodes::Int8, DynamicCodes::E4m3, DynamicCodes::Int4, DynamicCodes::Int4InGroups];
        let codes = kinds.flat_map(move |kind| every.map(|codes| (kind, codes)));
        let shared = codes.flat_map(|form| [SharedScale::Row, SharedScale::Tensor].map(|shared| (form, shared)));
        shared.flat_map(|((kind, codes), shared)| {
            let before = [Prologue::Nothing, Prologue::LayerNorm, Prologue::RmsNorm];
            let before = before.into_iter().chain([Prologue::Activation(Activation::Gelu)]);
            let sums = Float8Sums::Promoted;
            before.map(move |prologue| DynamicForm {
                kind,
                codes,
                shared,
                sums,
                prologue,
                activation: None,
                added: false,
            })
        })
    }

    #[test]
    fn the_sources_compile_for_every_form_and_way_to_cut_a_row() {
        for (at, form) in every_form().enumerate() {
            // Each form has a third of the ways: short, long and too long, in wide accesses and without.
            for columns in [1, 257, 1000, 4096, 65536, 70001].into_iter().skip(at % 3).step_by(3) {
                let macros = macros("quantise", form, RowCut::of_row(form.kind, columns), columns.next_multiple_of(32));
                assert_compiles(Source::QuantiseInput, &macros);
                if form.shared == SharedScale::Tensor {
                    assert_compiles(Source::LargestInput, &macros);
                    for rows in [1, 1000] {
                        let Some(held) = Held::on(132, form, (rows, columns)) else { continue };
                        let mut macros = super::macros("held", form, held.cut, columns.next_multiple_of(32));
                        macros.push(format!("HELD={}", held.rows));
                        assert_compiles(Source::HeldInput, &macros);
                    }
                }
            }
        }
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
