//! Matrix products with packed weights.

use std::sync::Arc;

use super::{
    Buffer, ComputeCapability, LinearShape, Machine, NativeError, PackedWeight,
    cublaslt::{Operands, Product},
    driver::Memory,
    finish_product::FinishProduct,
    form::{Factors, Form},
    packed_product::PackedProduct,
    round_input::RoundInput,
    sizes::checked_shape,
    streamed_product::{Cut, StreamedProduct},
    tiled_product::TiledProduct,
    unpack_weight::UnpackWeight,
};
use crate::{Dtype, DynamicCodes, DynamicForm, Float8Sums, PackedForm, Prologue, SharedScale, WeightCodes};

/// A plan of y[m, n] = x[m, k] · w[n, k]ᵀ for a packed weight, with sums in f32.
///
/// Where x is to be rounded to a microscaling format, a kernel of its own does that first, and what is multiplied are numbers of
/// bf16, which holds them exactly: no product of such codes is used.
///
/// For few rows the weight stays packed, and each of its numbers is made where it is used; those of 4 bits
/// come through the memory of blocks in long pieces where that is faster. For some, on Hopper, its codes are
/// put into another order first, once. For more it is unpacked into a buffer of the plan, rounded to the type of x, and
/// multiplied by cuBLASLt; a product that it has no algorithm for stays packed.
#[derive(Debug)]
pub struct PackedLinear {
    machine: Arc<Machine>,
    round: Option<RoundInput>,
    way: Way,
    shape: LinearShape,
    kind: Dtype,
    added: bool,
}

#[derive(Debug)]
enum Way {
    Packed(Box<PackedProduct>),
    Streamed(Box<StreamedProduct>),
    Tiled(Box<TiledProduct>),
    Unpacked(Box<Unpacked>),
}

/// A weight in the order in which a plan takes it.
#[derive(Debug)]
pub struct ReadyWeight {
    weight: PackedWeight,
    tiled: bool,
}

impl ReadyWeight {
    /// Bytes of all its parts.
    pub fn bytes(&self) -> usize {
        self.weight.bytes()
    }
}

/// The weight is written out and then multiplied.
#[derive(Debug)]
struct Unpacked {
    unpack: UnpackWeight,
    weight: Memory,
    product: Product,
    /// What is left to do with its sums, where cuBLASLt does not write y itself.
    finish: Option<Finish>,
}

/// Sums in f32 are scaled as a whole and rounded.
#[derive(Debug)]
struct Finish {
    kernel: FinishProduct,
    /// The scale of a weight that has none.
    one: Memory,
}

/// Rows of x for which codes in tiles are the fastest, where there are such.
///
/// Measured as below: they take 10.3 for 12 rows, where packed bytes take 10.8 and packed halves of bytes 12.1, and for 8, where
/// those take 8.3 and 7.6; 11.5 for 32, 12.7 for 64, 17.5 for 128, 21.9 for 256, 29 for 512, 56 for 1024 and 111 for 2048, where
/// unpacking and cuBLASLt take 61 for 1025 and 101 for 2048.
const TILED_ROWS: std::ops::RangeInclusive<usize> = 9..=1024;

/// The most rows of x for which a weight stays packed, where its codes are not in tiles.
///
/// Measured for k = n = 4096 in bf16 on an H200, in µs: packed bytes take 9.6 for 16 rows, 12.4 for 32 and 21.7 for 64, packed
/// halves of bytes 10.3, 16.2 and 29.6; unpacking and cuBLASLt 25 for 65 to 128 rows, whatever the codes.
fn most_packed_rows(codes: WeightCodes) -> usize {
    match codes.number.bits() {
        8 => 64,
        _ => 48,
    }
}

impl PackedLinear {
    /// Chooses and compiles.
    pub fn new(machine: &Arc<Machine>, form: PackedForm, shape: LinearShape) -> Result<Self, NativeError> {
        Self::plan(machine, form, shape, false)
    }

    /// The same, and a matrix like y is added before anything is rounded.
    pub fn with_added(machine: &Arc<Machine>, form: PackedForm, shape: LinearShape) -> Result<Self, NativeError> {
        Self::plan(machine, form, shape, true)
    }

    fn plan(machine: &Arc<Machine>, form: PackedForm, shape: LinearShape, added: bool) -> Result<Self, NativeError> {
        let (form, shape) = (form.checked()?, checked_shape(shape)?);
        let capability = machine.compute_capability();
        let may_be_tiled = TiledProduct::is_for(form, shape, capability);
        let way = if let Some(cut) = Cut::new(form, shape, capability) {
            Way::Streamed(Box::new(StreamedProduct::new(machine, form, shape, cut, added)?))
        } else if may_be_tiled && TILED_ROWS.contains(&shape.m) {
            Way::Tiled(Box::new(TiledProduct::new(machine, form, shape, added)?))
        } else {
            let many = shape.m > most_packed_rows(form.codes);
            let unpacked = if many { Unpacked::new(machine, form, shape, added)? } else { None };
            match unpacked {
                Some(unpacked) => Way::Unpacked(Box::new(unpacked)),
                None => Way::Packed(Box::new(PackedProduct::new(machine, form, shape, added)?)),
            }
        };
        let round = RoundInput::new(machine, form.kind, form.input, (shape.m, shape.k))?;
        Ok(Self { machine: machine.clone(), round, way, shape, kind: form.kind, added })
    }

    /// Bytes of the input.
    pub fn x_bytes(&self) -> usize {
        self.shape.x_bytes(self.kind)
    }

    /// Bytes of the output.
    pub fn y_bytes(&self) -> usize {
        self.shape.y_bytes(self.kind)
    }

    /// Puts a weight into the order in which this plan takes it. Not part of a run: it is done once.
    pub fn ready(&self, weight: PackedWeight) -> Result<ReadyWeight, NativeError> {
        Ok(match &self.way {
            Way::Tiled(product) => ReadyWeight { weight: product.ordered(&self.machine, weight)?, tiled: true },
            Way::Packed(_) | Way::Streamed(_) | Way::Unpacked(_) => ReadyWeight { weight, tiled: false },
        })
    }

    /// Enqueues one run; `added` is there if the plan was made for it.
    pub fn enqueue(
        &mut self,
        x: &Buffer,
        w: &ReadyWeight,
        added: Option<&Buffer>,
        y: &mut Buffer,
    ) -> Result<(), NativeError> {
        NativeError::unless_inputs(2 + usize::from(self.added), 2 + usize::from(added.is_some()))?;
        if w.tiled != matches!(self.way, Way::Tiled(_)) {
            return Err(NativeError::OtherPlan);
        }
        let added = added.map(|added| &added.memory);
        let (x, of_input) = match &mut self.round {
            Some(round) => {
                round.enqueue(&x.memory)?;
                (&round.numbers, Some(&round.outer))
            }
            None => (&x.memory, None),
        };
        let PackedWeight { outer, .. } = &w.weight;
        let outer = outer.as_ref().map(|outer| &outer.memory);
        let parts = w.weight.parts();
        match &mut self.way {
            Way::Packed(product) => product.enqueue(&inputs(x, parts, [outer, of_input], added), &mut y.memory),
            Way::Streamed(product) => product.enqueue(&inputs(x, parts, [outer, of_input], added), &mut y.memory),
            Way::Tiled(product) => {
                // What is beside the codes is not passed again.
                let parts = parts.take(product.parts());
                product.enqueue(&inputs(x, parts, [outer, of_input], added), &mut y.memory)
            }
            Way::Unpacked(unpacked) => unpacked.enqueue(&self.machine, x, &w.weight, [outer, of_input], added, y),
        }
    }

    /// Which kernels, how they were cut up, and what cuBLASLt chose.
    pub fn algorithm(&self) -> String {
        let product = match &self.way {
            Way::Packed(product) => product.algorithm.clone(),
            Way::Streamed(product) => product.algorithm.clone(),
            Way::Tiled(product) => product.algorithm.clone(),
            Way::Unpacked(unpacked) => unpacked.algorithm(),
        };
        match &self.round {
            None => product,
            Some(round) => {
                let why = if self.machine.compute_capability() < ComputeCapability::MICROSCALING {
                    "this GPU has no product of such codes"
                } else {
                    "no product of such codes is used"
                };
                format!("as weight-only, since {why}: {}; then {product}", round.algorithm)
            }
        }
    }
}

/// In the order of the kernels: x, the parts of the weight, the scales of weight and input as a whole, what is added.
fn inputs<'a>(
    x: &'a Memory,
    parts: impl Iterator<Item = &'a Memory>,
    outer: [Option<&'a Memory>; 2],
    added: Option<&'a Memory>,
) -> Vec<&'a Memory> {
    // The input's alone multiplies nothing.
    let outer = outer.into_iter().flatten().filter(|_| outer[0].is_some());
    [x].into_iter().chain(parts).chain(outer).chain(added).collect()
}

impl Unpacked {
    /// Chooses and compiles, unless cuBLASLt has no algorithm: rows may have to be multiples of 16 bytes.
    fn new(
        machine: &Arc<Machine>,
        form: PackedForm,
        shape: LinearShape,
        added: bool,
    ) -> Result<Option<Self>, NativeError> {
        let factors = form.factors();
        // What cuBLASLt writes itself: its factors' type.
        let whole = form.kind == factors && !form.has_outer();
        let output = if whole { form.kind } else { Dtype::F32 };
        let product = match Product::plan(machine, Form::plain(Factors::Whole(factors), output), shape) {
            Ok(product) => product,
            Err(NativeError::NoAlgorithm { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let finish = (!whole).then(|| Finish::new(machine, form.kind, shape, added)).transpose()?;
        let unpack = UnpackWeight::new(machine, form, shape)?;
        let weight = Memory::allocate(machine.stream(), shape.w_bytes(factors))?;
        Ok(Some(Self { unpack, weight, product, finish }))
    }

    fn enqueue(
        &mut self,
        machine: &Machine,
        x: &Memory,
        w: &PackedWeight,
        outer: [Option<&Memory>; 2],
        added: Option<&Memory>,
        y: &mut Buffer,
    ) -> Result<(), NativeError> {
        let parts: Vec<&Memory> = w.parts().collect();
        self.unpack.kernel.enqueue_all(&parts, &mut [&mut self.weight])?;
        let operands = Operands { x, w: &self.weight, y: &y.memory, scales: None, added, bias: None };
        let Some(Finish { kernel, one }) = &self.finish else { return self.product.enqueue(machine, operands) };
        self.product.enqueue(machine, Operands { y: &kernel.sums, added: None, ..operands })?;
        let [of_weight, of_input] = outer.map(|scale| scale.unwrap_or(one));
        kernel.enqueue([of_input, of_weight], added, &mut y.memory)
    }

    fn algorithm(&self) -> String {
        let finish = self.finish.as_ref().map(|finish| format!("; then {}", finish.kernel.algorithm));
        format!("{}; then {}{}", self.unpack.algorithm, self.product.describe(), finish.unwrap_or_default())
    }
}

impl Finish {
    fn new(machine: &Arc<Machine>, kind: Dtype, shape: LinearShape, added: bool) -> Result<Self, NativeError> {
        let form = DynamicForm {
            kind,
            codes: DynamicCodes::E4m3,
            shared: SharedScale::Tensor,
            sums: Float8Sums::Promoted,
            prologue: Prologue::Nothing,
            activation: None,
            added,
        };
        let mut one = Memory::allocate(machine.stream(), 4)?;
        one.upload(&1.0f32.to_le_bytes())?;
        Ok(Self { kernel: FinishProduct::new(machine, form, shape, (shape.m, shape.n))?, one })
    }
}
