//! Inputs of layers as codes, in the rows that a product reads.

use std::sync::Arc;

use super::{
    LayerNorm, LinearShape, Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    row_cut::RowCut,
    sizes::{MULTIPROCESSORS, checked_size},
};
use crate::{DynamicCodes, DynamicForm, Prologue, SharedScale};

/// The kernels that turn x into codes and scales, and those codes and scales.
#[derive(Debug)]
pub(super) struct QuantiseInput {
    quantise: Kernel,
    whole: Option<Whole>,
    /// Rows of `stride` codes; what fills them up is 0.
    pub(super) codes: Memory,
    /// One for each row, or one for all.
    pub(super) scales: Memory,
    pub(super) algorithm: String,
}

/// What finds the scale of a whole tensor.
#[derive(Debug)]
struct Whole {
    kernel: Kernel,
    state: Memory,
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
        let threads = (cut.threads as u32, cut.rows as u32);
        let codes_bytes = filled.0 * filled.1;
        let x = ("x", rows * columns * form.kind.width());
        let sizes = (rows as u64, columns as u64);
        let name = name(form);
        // At most `rows`, which was checked.
        let geometry = Geometry { blocks: rows.div_ceil(cut.rows) as u32, threads };
        let again = |looks: usize| format!("row read {looks} times");
        let looks = match form.prologue {
            Prologue::Nothing | Prologue::Activation(_) => 0,
            Prologue::RmsNorm => 1,
            Prologue::LayerNorm => 2,
        };
        let (whole, extent, algorithm) = match form.shared {
            SharedScale::Row => {
                let writes = vec![("codes", codes_bytes), ("scales", 4 * rows)];
                (None, Extent { reads: vec![x], writes, sizes }, cut.describe(&name, &again(looks + 2)))
            }
            SharedScale::Tensor => {
                let largest = format!("largest_{name}");
                let blocks = geometry.blocks.min(resident_blocks(cut));
                let writes = vec![("scale", 4), ("state", 8)];
                let extent = Extent { reads: vec![x], writes, sizes };
                let geometry = Geometry { blocks, ..geometry };
                let macros = macros(&largest, form, cut, filled.1);
                let kernel = Kernel::prepare(machine, Source::LargestInput, &largest, macros, extent, geometry)?;
                let mut state = Memory::allocate(machine.stream(), 8)?;
                state.fill(0)?;
                let found = cut.describe(&format!("{largest} in {blocks} blocks"), &again(looks + 1));
                let algorithm = format!("{found}; then {}", cut.describe(&name, &again(looks + 1)));
                let reads = vec![x, ("scale", 4)];
                (
                    Some(Whole { kernel, state }),
                    Extent { reads, writes: vec![("codes", codes_bytes)], sizes },
                    algorithm,
                )
            }
        };
        let macros = macros(&name, form, cut, filled.1);
        let quantise = Kernel::prepare(machine, Source::QuantiseInput, &name, macros, extent, geometry)?;
        let scales = match form.shared {
            SharedScale::Row => 4 * rows,
            SharedScale::Tensor => 4,
        };
        // What fills rows up is written once.
        let mut codes = Memory::allocate(machine.stream(), codes_bytes)?;
        codes.fill(0)?;
        Ok(Self { quantise, whole, codes, scales: Memory::allocate(machine.stream(), scales)?, algorithm })
    }

    /// Enqueues one run.
    pub(super) fn enqueue(&mut self, x: &Memory) -> Result<(), NativeError> {
        let Self { quantise, whole, codes, scales, .. } = self;
        match whole {
            None => quantise.enqueue_all(&[x], &mut [codes, scales]),
            Some(Whole { kernel, state }) => {
                kernel.enqueue_all(&[x], &mut [scales, state])?;
                quantise.enqueue_all(&[x, scales], &mut [codes])
            }
        }
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
                }
            }
        }
    }
}
