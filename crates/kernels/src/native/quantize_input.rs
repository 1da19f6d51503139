//! Inputs of layers as codes, in the rows that a product reads.

use std::sync::Arc;

use super::{
    LayerNorm, LinearShape, Machine, NativeError, ShortAttention, attended_rows,
    driver::Memory,
    held_rows::Held,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    row_cut::RowCut,
    rows_in_turn::InTurns,
    short_attention,
    sizes::{MULTIPROCESSORS, checked_size},
};
use crate::{Activation, DynamicCodes, DynamicForm, Prologue, SharedScale};

/// The kernels that turn x into codes and scales, and those codes and scales.
#[derive(Debug)]
pub(super) struct QuantizeInput {
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
    Twice { largest: Kernel, state: Memory, quantize: Kernel },
    /// The same by one kernel, which holds x meanwhile.
    Held { kernel: Kernel, slots: Memory },
    /// Attention finds it while it makes what codes are made of.
    Mixed { attention: Kernel, mixed: Memory, state: Memory, quantize: Kernel },
    /// Of what attention has made.
    After { attention: ShortAttention, mixed: Memory, then: Box<Way> },
}

impl QuantizeInput {
    /// Compiles for x[rows, columns], whose codes stand in at least `filled.0` rows of `filled.1` codes.
    pub(super) fn new(
        machine: &Arc<Machine>,
        form: DynamicForm,
        (rows, columns): (usize, usize),
        filled: (usize, usize),
    ) -> Result<Self, NativeError> {
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let size = (rows, columns);
        let (way, algorithm) = match form.prologue {
            Prologue::ShortAttention { heads } => {
                if heads == 0 || !rows.is_multiple_of(ShortAttention::TOKENS) || !columns.is_multiple_of(heads) {
                    return Err(NativeError::NotInSequences { rows, columns, heads });
                }
                attended(machine, form, size, heads, filled)?
            }
            _ => way(machine, form, size, filled)?,
        };
        let scales = match form.shared {
            SharedScale::Row => 4 * rows,
            SharedScale::Tensor => 4,
        };
        // What fills rows up is written once.
        let mut codes = Memory::allocate(machine.stream(), filled.0 * filled.1)?;
        codes.fill(0)?;
        Ok(Self { way, codes, scales: Memory::allocate(machine.stream(), scales)?, algorithm })
    }

    /// Enqueues one run.
    pub(super) fn enqueue(&mut self, x: &Memory) -> Result<(), NativeError> {
        let Self { way, codes, scales, .. } = self;
        way.enqueue(x, codes, scales)
    }
}

impl Way {
    fn enqueue(&mut self, x: &Memory, codes: &mut Memory, scales: &mut Memory) -> Result<(), NativeError> {
        match self {
            Self::Rows(kernel) => kernel.enqueue_all(&[x], &mut [codes, scales]),
            Self::Held { kernel, slots } => kernel.enqueue_all(&[x], &mut [codes, scales, slots]),
            Self::Twice { largest, state, quantize } => {
                largest.enqueue_all(&[x], &mut [scales, state])?;
                quantize.enqueue_all(&[x, scales], &mut [codes])
            }
            Self::Mixed { attention, mixed, state, quantize } => {
                attention.enqueue_all(&[x], &mut [mixed, scales, state])?;
                quantize.enqueue_all(&[mixed, scales], &mut [codes])
            }
            Self::After { attention, mixed, then } => {
                attention.enqueue_memory(x, mixed)?;
                then.enqueue(mixed, codes, scales)
            }
        }
    }
}

/// What is done once for a row, sums and scale, is a good part of all: behind products, which hold the clock down, RMS norm and codes of
/// 16384 rows of 4096 take 56 us so, and 73 with half as many.
const ELEMENTS_PER_THREAD: usize = 32;

/// How codes of what attention makes come about, and that in words.
fn attended(
    machine: &Arc<Machine>,
    form: DynamicForm,
    size: (usize, usize),
    heads: usize,
    filled: (usize, usize),
) -> Result<(Way, String), NativeError> {
    if let Some((kernel, algorithm)) = attended_rows::kernel(machine, form, &name(form), size, heads, filled)? {
        return Ok((Way::Rows(kernel), algorithm));
    }
    let (rows, columns) = size;
    let (sequences, head) = (rows / ShortAttention::TOKENS, columns / heads);
    let mixed = Memory::allocate(machine.stream(), rows * columns * form.kind.width())?;
    let of_mixed = DynamicForm { prologue: Prologue::Nothing, ..form };
    let scaled = match form.shared {
        SharedScale::Row => None,
        SharedScale::Tensor => short_attention::by_tiles(machine, form.kind, sequences, (heads, head), Some(form))?,
    };
    if let Some((attention, algorithm)) = scaled {
        let (quantize, then) = quantize(machine, of_mixed, size, filled, true)?;
        let way = Way::Mixed { attention, mixed, state: zeros(machine, 2)?, quantize };
        return Ok((way, format!("{algorithm}; then {then}")));
    }
    let attention = ShortAttention::new(machine, form.kind, sequences, heads, head)?;
    let (then, described) = way(machine, of_mixed, size, filled)?;
    let algorithm = format!("{}; then {described}", attention.algorithm());
    Ok((Way::After { attention, mixed, then: Box::new(then) }, algorithm))
}

/// How codes of x[rows, columns] come about, but for attention, and that in words.
fn way(
    machine: &Arc<Machine>,
    form: DynamicForm,
    size: (usize, usize),
    filled: (usize, usize),
) -> Result<(Way, String), NativeError> {
    let (rows, columns) = size;
    if form.shared == SharedScale::Row {
        let (kernel, algorithm) = quantize(machine, form, size, filled, true)?;
        return Ok((Way::Rows(kernel), algorithm));
    }
    let name = name(form);
    let x = ("x", rows * columns * form.kind.width());
    let sizes = (rows as u64, columns as u64);
    if let Some(held) = Held::new(machine, form, size)? {
        let (name, geometry) = (format!("held_{name}"), held.geometry(rows));
        let blocks = geometry.blocks as usize;
        let mut macros = macros(&name, form, held.cut, filled.1);
        macros.push(format!("HELD={}", held.rows));
        let codes = ("codes", filled.0 * filled.1);
        let extent = Extent { reads: vec![x], writes: vec![codes, ("scale", 4), ("slots", 8 * blocks)], sizes };
        let kernel = Kernel::prepare(machine, Source::HeldInput, &name, macros, extent, geometry)?;
        let kernel = kernel.with_shared(held.shared_bytes)?.at_once();
        return Ok((Way::Held { kernel, slots: zeros(machine, 2 * blocks)? }, held.describe(&name)));
    }
    let of_largest = format!("largest_{name}");
    let (cut, geometry) = cut(form, size);
    let blocks = geometry.blocks.min(resident_blocks(cut));
    let extent = Extent { reads: vec![x], writes: vec![("scale", 4), ("state", 8)], sizes };
    let macros = whole_macros(&of_largest, form, cut, filled.1, size);
    let largest =
        Kernel::prepare(machine, Source::LargestInput, &of_largest, macros, extent, Geometry { blocks, ..geometry })?;
    // It reads the last rows first, and the first ones last.
    let (quantize, described) = quantize(machine, form, size, filled, false)?;
    let found = cut.describe(&format!("{of_largest} in {blocks} blocks"), &again(looks(form.prologue) + 1));
    Ok((Way::Twice { largest, state: zeros(machine, 2)?, quantize }, format!("{found}; then {described}")))
}

/// The kernel that makes codes, of rows that have their own scales or under one that is known, and that in words. It begins with
/// the rows that were last dealt with.
fn quantize(
    machine: &Arc<Machine>,
    form: DynamicForm,
    size: (usize, usize),
    filled: (usize, usize),
    last_first: bool,
) -> Result<(Kernel, String), NativeError> {
    let (rows, columns) = size;
    let x = ("x", rows * columns * form.kind.width());
    let codes = ("codes", filled.0 * filled.1);
    let (reads, writes, own) = match form.shared {
        SharedScale::Row => (vec![x], vec![codes, ("scales", 4 * rows)], 1),
        SharedScale::Tensor => (vec![x, ("scale", 4)], vec![codes], 0),
    };
    let extent = Extent { reads, writes, sizes: (rows as u64, columns as u64) };
    let name = name(form);
    let prepare = |cut, geometry, more: &[String]| {
        let mut macros = whole_macros(&name, form, cut, filled.1, size);
        macros.push(format!("LAST_FIRST={last_first}"));
        macros.extend_from_slice(more);
        Kernel::prepare(machine, Source::QuantizeInput, &name, macros, extent, geometry)
    };
    if let Some(turns) = InTurns::new(machine, form, size)? {
        let kernel = prepare(turns.cut, turns.geometry, &turns.macros())?.with_shared(turns.shared_bytes)?;
        return Ok((kernel, turns.describe(&name)));
    }
    let (cut, geometry) = cut(form, size);
    let algorithm = cut.describe(&name, &again(looks(form.prologue) + own + 1));
    Ok((prepare(cut, geometry, &[])?, algorithm))
}

fn cut(form: DynamicForm, (rows, columns): (usize, usize)) -> (RowCut, Geometry) {
    let cut = RowCut::new(columns, widest(form.kind), ELEMENTS_PER_THREAD);
    // At most `rows`, which was checked.
    (cut, Geometry { blocks: rows.div_ceil(cut.rows) as u32, threads: (cut.threads as u32, cut.rows as u32) })
}

/// How often a row is looked at before numbers are made of it.
fn looks(prologue: Prologue) -> usize {
    match prologue {
        Prologue::Nothing | Prologue::Activation(_) | Prologue::ShortAttention { .. } => 0,
        Prologue::RmsNorm => 1,
        Prologue::LayerNorm => 2,
    }
}

fn again(looks: usize) -> String {
    format!("row read {looks} times")
}

fn zeros(machine: &Arc<Machine>, words: usize) -> Result<Memory, NativeError> {
    let mut zeros = Memory::allocate(machine.stream(), 4 * words)?;
    zeros.fill(0)?;
    Ok(zeros)
}

/// As many blocks as all multiprocessors hold at once.
pub(super) fn resident_blocks(cut: RowCut) -> u32 {
    (MULTIPROCESSORS * 2048 / (cut.threads * cut.rows)) as u32
}

fn name(form: DynamicForm) -> String {
    let before = match form.prologue {
        Prologue::Nothing => String::new(),
        Prologue::LayerNorm => "normalized_".into(),
        Prologue::RmsNorm => "rms_normalized_".into(),
        Prologue::Activation(function) => format!("{function}_"),
        Prologue::ShortAttention { .. } => "attended_".into(),
    };
    let of = match form.shared {
        SharedScale::Row => "rows",
        SharedScale::Tensor => "tensor",
    };
    format!("{before}{}_{of}_{}", form.codes.name(), form.kind)
}

/// Where a kernel goes over all rows of an input, as many as it is cut for at a time.
fn whole_macros(name: &str, form: DynamicForm, cut: RowCut, stride: usize, size: (usize, usize)) -> Vec<String> {
    let mut macros = macros(name, form, cut, stride);
    macros.push(cut.whole(size));
    macros
}

pub(super) fn macros(name: &str, form: DynamicForm, cut: RowCut, stride: usize) -> Vec<String> {
    let mut macros = common_macros(name, form.kind, cut.width);
    macros.extend(cut.macros());
    macros.push(format!("EPSILON={:e}f", LayerNorm::EPSILON));
    macros.push(format!("STRIDE={stride}ull"));
    macros.extend(form.macros());
    match form.prologue {
        Prologue::Nothing | Prologue::ShortAttention { .. } => {}
        Prologue::LayerNorm => macros.push("LAYER_NORM".into()),
        Prologue::RmsNorm => macros.push("RMS_NORM".into()),
        // Where a number of a row is infinite no code of it is a number, anyway.
        // From 0.3 it rises, by more than it is off from one number of 16 bits to the next, and below has no such magnitude.
        Prologue::Activation(Activation::Gelu) => {
            macros.extend(["PROLOGUE=finite_gelu", "RISES_FROM=0.3f"].map(String::from));
        }
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
    use crate::{Dtype, Float8Sums};

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
                let cut = RowCut::of_row(form.kind, columns);
                let size = (cut.rows * 3 + at % 2, columns);
                let mut macros = whole_macros("quantize", form, cut, columns.next_multiple_of(32), size);
                if form.shared == SharedScale::Tensor {
                    assert_compiles(Source::LargestInput, &macros);
                }
                macros.push(format!("LAST_FIRST={}", at % 2 == 0));
                assert_compiles(Source::QuantizeInput, &macros);
            }
        }
    }
}
