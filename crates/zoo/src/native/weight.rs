//! Weight of a linear layer on the device, and the GEMM that uses it.

use super::layer_form::LayerForm;
use crate::ZooError;
use crate::native_form::{NativeForm, native_form};
use crate::numbers::{bytes, of_words};
use calorimeter_kernels::native::{
    BlockForm, BlockLinear, BlockWeight, Buffer, Circle, DynamicLinear, Linear, LinearShape, Machine, NativeError,
    PackedLinear, PackedWeight, ReadySparse, ReadyWeight, SparseLinear, SparseWeight,
};
use calorimeter_kernels::{DynamicForm, SparseForm};
use calorimeter_recipes::format::Method;
use calorimeter_recipes::stored::Stored;
use calorimeter_recipes::{Element, Prepared, Sparsity, Treatment};
use std::sync::Arc;

/// Weight in host memory, in the format of its recipe.
pub enum HostWeight {
    Plain(Vec<u8>),
    Packed(Stored<Vec<u8>>),
    /// Nonzero blocks and their column indices.
    Blocks {
        values: Vec<u8>,
        places: Vec<u8>,
    },
}

/// Weight in device memory.
pub enum DeviceWeight {
    Plain(Buffer),
    Packed(PackedWeight),
    /// Repacked for its GEMM.
    Ready(ReadyWeight),
    /// 2:4 sparse.
    TwoOfFour(SparseWeight),
    /// 2:4 sparse, repacked for its GEMM.
    ReadyTwoOfFour(ReadySparse),
    /// Block-sparse.
    Blocks(BlockWeight),
}

/// Planned GEMM with a weight in a certain format.
pub enum Product {
    Plain(Box<Linear>),
    Packed(Box<PackedLinear>),
    /// Quantizes its input; fuses prologue and epilogue.
    Dynamic(Box<DynamicLinear>),
    /// 2:4 sparse weight.
    TwoOfFour(Box<SparseLinear>),
    /// Block-sparse weight.
    Blocks(Box<BlockLinear>),
}

impl HostWeight {
    /// Encodes a weight that [`Treatment::prepare`] has quantized or pruned.
    pub fn new(weight: Prepared) -> Result<Self, ZooError> {
        match weight {
            Prepared::Dense(weight) => Ok(Self::Plain(bytes(weight.values(), Element::Float(weight.dtype())))),
            Prepared::Stored(stored) => Ok(Self::Packed(stored.map(|words: Vec<u32>| of_words(&words)))),
            Prepared::Blocks(blocks) => Ok(Self::Blocks {
                values: bytes(blocks.values(), Element::Float(blocks.dtype())),
                places: of_words(blocks.kept()),
            }),
            _ => Err(ZooError::Unsupported("`native` has no kernel for this weight format".into())),
        }
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Plain(bytes) => bytes.len(),
            // Unquantized sparse weights have unused scales, which are not uploaded.
            Self::Packed(stored) => {
                let all: usize = stored.as_parts().into_parts().into_iter().map(Vec::len).sum();
                all - if stored.format.method == Method::Plain { stored.scales.len() } else { 0 }
            }
            Self::Blocks { values, places } => values.len() + places.len(),
        };
        bytes as u64
    }

    /// Pads the weight with zero rows to the number that its GEMM reads.
    pub fn filled_up(self, product: &Product) -> Self {
        match (self, product) {
            (Self::Packed(mut stored), Product::Dynamic(_)) => {
                let row = stored.codes.len() / stored.rows.max(1);
                stored.codes.resize(row * DynamicLinear::filled_n(stored.rows), 0);
                Self::Packed(stored)
            }
            (weight, _) => weight,
        }
    }

    /// Copies the weight to the device.
    pub fn upload(&self, machine: &Arc<Machine>) -> Result<DeviceWeight, NativeError> {
        Ok(match self {
            Self::Plain(bytes) => DeviceWeight::Plain(machine.upload(bytes)?),
            Self::Blocks { values, places } => {
                DeviceWeight::Blocks(BlockWeight { values: machine.upload(values)?, places: machine.upload(places)? })
            }
            Self::Packed(Stored { format, codes, scales, kept: Some(kept), .. }) => {
                let scales = (format.method != Method::Plain).then(|| machine.upload(scales)).transpose()?;
                DeviceWeight::TwoOfFour(SparseWeight {
                    codes: machine.upload(codes)?,
                    scales,
                    places: machine.upload(kept)?,
                })
            }
            Self::Packed(Stored { codes, scales, zeros, outer, .. }) => DeviceWeight::Packed(PackedWeight {
                codes: machine.upload(codes)?,
                scales: machine.upload(scales)?,
                zeros: zeros.as_ref().map(|zeros| machine.upload(zeros)).transpose()?,
                outer: outer.as_ref().map(|outer| machine.upload(outer)).transpose()?,
            }),
        })
    }
}

impl DeviceWeight {
    /// Copies the weight on the device; must precede [`Product::ready`].
    pub fn copied(&self, machine: &Machine) -> Result<Self, NativeError> {
        let copied = |buffer: &Buffer| machine.moved_on(buffer, Circle::still(buffer.len()));
        Ok(match self {
            Self::Plain(weight) => Self::Plain(copied(weight)?),
            Self::Packed(PackedWeight { codes, scales, zeros, outer }) => Self::Packed(PackedWeight {
                codes: copied(codes)?,
                scales: copied(scales)?,
                zeros: zeros.as_ref().map(copied).transpose()?,
                outer: outer.as_ref().map(copied).transpose()?,
            }),
            Self::TwoOfFour(SparseWeight { codes, scales, places }) => Self::TwoOfFour(SparseWeight {
                codes: copied(codes)?,
                scales: scales.as_ref().map(copied).transpose()?,
                places: copied(places)?,
            }),
            Self::Blocks(BlockWeight { values, places }) => {
                Self::Blocks(BlockWeight { values: copied(values)?, places: copied(places)? })
            }
            Self::Ready(_) | Self::ReadyTwoOfFour(_) => unreachable!("weights are copied before they are repacked"),
        })
    }
}

impl Product {
    /// Plans the GEMM for weights in the format of a treatment. Kernels with quantized inputs fuse prologue and
    /// epilogue.
    pub fn new(
        machine: &Arc<Machine>,
        treatment: &Treatment,
        form: LayerForm,
        shape: LinearShape,
    ) -> Result<Self, ZooError> {
        let LayerForm { prologue, activation, added } = form;
        Ok(match native_form(treatment, shape.m) {
            Some(NativeForm::Plain) => Self::Plain(Box::new(Linear::new(machine, treatment.dtype, shape)?)),
            Some(NativeForm::Tf32) => Self::Plain(Box::new(Linear::with_tf32(machine, shape)?)),
            Some(NativeForm::Packed(form)) if added => {
                Self::Packed(Box::new(PackedLinear::with_added(machine, form, shape)?))
            }
            Some(NativeForm::Packed(form)) => Self::Packed(Box::new(PackedLinear::new(machine, form, shape)?)),
            Some(NativeForm::Dynamic(form)) => {
                let form = DynamicForm { prologue, activation, added, ..form };
                Self::Dynamic(Box::new(DynamicLinear::new(machine, form, shape)?))
            }
            Some(NativeForm::TwoOfFour(form)) => {
                let whole = form.dynamic().is_some();
                let form = if whole { SparseForm { prologue, activation, ..form } } else { form };
                Self::TwoOfFour(Box::new(SparseLinear::new(machine, SparseForm { added, ..form }, shape)?))
            }
            Some(NativeForm::Blocks(blocks)) => {
                let Sparsity::Block { side, .. } = blocks else { return Err(no_kernel()) };
                let kept = blocks.kept_in_row(shape.k).ok_or_else(no_kernel)?;
                let form = BlockForm { kind: treatment.dtype, side: side.into(), kept, added };
                Self::Blocks(Box::new(BlockLinear::new(machine, form, shape)?))
            }
            None => return Err(no_kernel()),
        })
    }

    /// True if the kernel fuses prologue and epilogue.
    pub fn takes_in_the_rest(&self) -> bool {
        match self {
            Self::Plain(_) | Self::Packed(_) | Self::Blocks(_) => false,
            Self::Dynamic(_) => true,
            Self::TwoOfFour(linear) => linear.form().dynamic().is_some(),
        }
    }

    /// True if the kernel skips the zeros of a pruned weight.
    pub fn skips_zeros(&self) -> bool {
        match self {
            Self::Plain(_) | Self::Packed(_) | Self::Dynamic(_) => false,
            Self::TwoOfFour(linear) => linear.skips_zeros(),
            Self::Blocks(_) => true,
        }
    }

    /// Repacks a weight for this kernel.
    pub fn ready(&self, weight: DeviceWeight) -> Result<DeviceWeight, NativeError> {
        Ok(match (self, weight) {
            (Self::Packed(linear), DeviceWeight::Packed(weight)) => DeviceWeight::Ready(linear.ready(weight)?),
            (Self::TwoOfFour(linear), DeviceWeight::TwoOfFour(weight)) => {
                DeviceWeight::ReadyTwoOfFour(linear.ready(weight)?)
            }
            (_, weight) => weight,
        })
    }

    /// Enqueues one run; `added` is a residual for the epilogue.
    pub fn enqueue(
        &mut self,
        x: &Buffer,
        w: &DeviceWeight,
        added: Option<&Buffer>,
        y: &mut Buffer,
    ) -> Result<(), ZooError> {
        match (self, w) {
            (Self::Plain(linear), DeviceWeight::Plain(w)) => match added {
                Some(added) => linear.enqueue_with_added(x, w, added, y)?,
                None => linear.enqueue(x, w, y)?,
            },
            (Self::Packed(linear), DeviceWeight::Ready(w)) => linear.enqueue(x, w, added, y)?,
            (Self::Dynamic(linear), DeviceWeight::Packed(w)) => linear.enqueue(x, w, added, y)?,
            (Self::TwoOfFour(linear), DeviceWeight::ReadyTwoOfFour(w)) => linear.enqueue(x, w, added, y)?,
            (Self::Blocks(linear), DeviceWeight::Blocks(w)) => linear.enqueue(x, w, added, y)?,
            _ => return Err(ZooError::Device("the weight format does not match its kernel".into())),
        }
        Ok(())
    }

    /// Kernels, and how they were chosen and configured.
    pub fn algorithm(&self) -> String {
        match self {
            Self::Plain(linear) => linear.algorithm(),
            Self::Packed(linear) => linear.algorithm(),
            Self::Dynamic(linear) => linear.algorithm(),
            Self::TwoOfFour(linear) => linear.algorithm(),
            Self::Blocks(linear) => linear.algorithm(),
        }
    }
}

fn no_kernel() -> ZooError {
    ZooError::Unsupported("`native` has no kernel for this treatment".into())
}
