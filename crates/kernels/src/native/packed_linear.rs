//! Matrix products with packed weights.

use std::sync::Arc;

use super::{
    Buffer, Linear, LinearShape, Machine, NativeError, PackedWeight, driver::Memory, packed_product::PackedProduct,
    sizes::checked_shape, tiled_product::TiledProduct, unpack_weight::UnpackWeight,
};
use crate::{Dtype, PackedForm, WeightCodes};

/// A plan of y[m, n] = x[m, k] · w[n, k]ᵀ for a packed weight, with sums in f32.
///
/// For few rows the weight stays packed, and each of its numbers is made where it is used; for some, on Hopper, its codes are
/// put into another order first, once. For more it is unpacked into a buffer of the plan, rounded to the type of x, and
/// multiplied by [`Linear`]; a product that cuBLASLt has no algorithm for stays packed.
#[derive(Debug)]
pub struct PackedLinear {
    machine: Arc<Machine>,
    way: Way,
    shape: LinearShape,
    kind: Dtype,
    added: bool,
}

#[derive(Debug)]
enum Way {
    Packed(Box<PackedProduct>),
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
    weight: Buffer,
    linear: Linear,
}

/// Rows of x for which codes in tiles are the fastest, where there are such.
///
/// Measured as below: they take 10.1 for 16 rows, 11.5 for 32, 12.7 for 64, 17.5 for 128, 21.9 for 256, 29 for 512, 56 for 1024
/// and 111 for 2048, where unpacking and cuBLASLt take 61 for 1025 and 101 for 2048.
const TILED_ROWS: std::ops::RangeInclusive<usize> = 17..=1024;

/// The most rows of x for which a weight stays packed, where its codes are not in tiles.
///
/// Measured for k = n = 4096 in bf16 on an H200, in µs: packed bytes take 9.6 for 16 rows, 12.4 for 32 and 21.7 for 64, packed
/// halves of bytes 10.3, 16.2 and 29.6; unpacking and cuBLASLt 25 for 65 to 128 rows, whatever the codes.
fn most_packed_rows(codes: WeightCodes) -> usize {
    match codes {
        WeightCodes::Int4 { .. } => 48,
        WeightCodes::Int8 | WeightCodes::E4m3 => 64,
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
        let may_be_tiled = TiledProduct::is_for(form, shape, machine.compute_capability());
        let way = if may_be_tiled && TILED_ROWS.contains(&shape.m) {
            Way::Tiled(Box::new(TiledProduct::new(machine, form, shape, added)?))
        } else {
            let many = shape.m > most_packed_rows(form.codes);
            let unpacked = if many { Unpacked::new(machine, form, shape)? } else { None };
            match unpacked {
                Some(unpacked) => Way::Unpacked(Box::new(unpacked)),
                None => Way::Packed(Box::new(PackedProduct::new(machine, form, shape, added)?)),
            }
        };
        Ok(Self { machine: machine.clone(), way, shape, kind: form.kind, added })
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
            Way::Packed(_) | Way::Unpacked(_) => ReadyWeight { weight, tiled: false },
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
        let parts = w.weight.parts().map(|part| &part.memory);
        match &mut self.way {
            Way::Packed(product) => product.enqueue(&inputs(x, parts, added), &mut y.memory),
            Way::Tiled(product) => {
                // What is beside the codes is not passed again.
                let parts = parts.take(product.parts());
                product.enqueue(&inputs(x, parts, added), &mut y.memory)
            }
            Way::Unpacked(unpacked) => {
                let Unpacked { unpack, weight, linear } = &mut **unpacked;
                let parts: Vec<&Memory> = parts.collect();
                unpack.kernel.enqueue_all(&parts, &mut [&mut weight.memory])?;
                match added {
                    Some(added) => linear.enqueue_with_added(x, weight, added, y),
                    None => linear.enqueue(x, weight, y),
                }
            }
        }
    }

    /// Which kernels, how they were cut up, and what cuBLASLt chose.
    pub fn algorithm(&self) -> String {
        match &self.way {
            Way::Packed(product) => product.algorithm.clone(),
            Way::Tiled(product) => product.algorithm.clone(),
            Way::Unpacked(unpacked) => {
                format!("{}; then {}", unpacked.unpack.algorithm, unpacked.linear.algorithm())
            }
        }
    }
}

/// In the order of the kernels: x, the parts of the weight, what is added.
fn inputs<'a>(x: &'a Buffer, parts: impl Iterator<Item = &'a Memory>, added: Option<&'a Buffer>) -> Vec<&'a Memory> {
    [&x.memory].into_iter().chain(parts).chain(added.map(|added| &added.memory)).collect()
}

impl Unpacked {
    /// Chooses and compiles, unless cuBLASLt has no algorithm: rows may have to be multiples of 16 bytes.
    fn new(machine: &Arc<Machine>, form: PackedForm, shape: LinearShape) -> Result<Option<Self>, NativeError> {
        let linear = match Linear::new(machine, form.kind, shape) {
            Ok(linear) => linear,
            Err(NativeError::NoAlgorithm { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let unpack = UnpackWeight::new(machine, form, shape)?;
        Ok(Some(Self { unpack, weight: machine.allocate(linear.w_bytes())?, linear }))
    }
}
