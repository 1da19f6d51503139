//! Weight of a linear layer on the device, and the GEMM that uses it.

use super::layer_form::LayerForm;
use crate::ZooError;
use crate::element_bytes::{encode, words_to_bytes};
use crate::native_form::{NativeForm, native_form};
use calorimeter_kernels::native::{
    BlockLinearPlan, BlockLinearSpec, BlockSparseWeight, CudaDevice, DeviceBuffer, DynamicLinearPlan, LineRotation,
    LinearPlan, LinearShape, NativeError, PackedLinearPlan, PackedSparseWeight, PackedWeight, PrepackedWeight,
    SparseLinearPlan, SparseWeight,
};
use calorimeter_kernels::{DynamicLinearSpec, SparseLinearSpec};
use calorimeter_recipes::PackedTensor;
use calorimeter_recipes::format::QuantMethod;
use calorimeter_recipes::{Element, PreparedWeight, QuantConfig, Sparsity};
use std::sync::Arc;

/// Weight in host memory, in the format of its recipe.
pub enum HostWeight {
    Plain(Vec<u8>),
    Packed(PackedTensor<Vec<u8>>),
    /// Nonzero blocks and their column indices.
    BlockSparse {
        values: Vec<u8>,
        places: Vec<u8>,
    },
}

/// Weight in device memory.
pub enum DeviceWeight {
    Plain(DeviceBuffer),
    Packed(PackedWeight),
    /// Repacked for its GEMM.
    Repacked(PrepackedWeight),
    /// 2:4 sparse.
    Sparse2to4(SparseWeight),
    /// 2:4 sparse, repacked for its GEMM.
    RepackedSparse2to4(PackedSparseWeight),
    /// Block-sparse.
    BlockSparse(BlockSparseWeight),
}

/// Planned GEMM with a weight in a certain format.
pub enum LinearKernel {
    Plain(Box<LinearPlan>),
    Packed(Box<PackedLinearPlan>),
    /// Quantizes its input; fuses prologue and epilogue.
    Dynamic(Box<DynamicLinearPlan>),
    /// 2:4 sparse weight.
    Sparse2to4(Box<SparseLinearPlan>),
    /// Block-sparse weight.
    BlockSparse(Box<BlockLinearPlan>),
}

impl HostWeight {
    /// Encodes a weight that [`QuantConfig::prepare`] has quantized or pruned.
    pub fn new(weight: PreparedWeight) -> Result<Self, ZooError> {
        match weight {
            PreparedWeight::Dense(weight) => Ok(Self::Plain(encode(weight.values(), Element::Float(weight.dtype())))),
            PreparedWeight::Packed(stored) => Ok(Self::Packed(stored.map(|words: Vec<u32>| words_to_bytes(&words)))),
            PreparedWeight::BlockSparse(blocks) => Ok(Self::BlockSparse {
                values: encode(blocks.values(), Element::Float(blocks.dtype())),
                places: words_to_bytes(blocks.block_columns()),
            }),
            _ => Err(ZooError::Unsupported("`native` has no kernel for this weight format".into())),
        }
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Packed(stored) => stored.as_refs().into_parts().into_iter().map(Vec::len).sum(),
            Self::BlockSparse { values, places } => values.len() + places.len(),
        };
        bytes as u64
    }

    /// Pads the weight with zero rows to the number that its GEMM reads.
    pub fn padded_for(self, product: &LinearKernel) -> Self {
        match (self, product) {
            (Self::Packed(mut stored), LinearKernel::Dynamic(_)) => {
                let row = stored.codes.len() / stored.rows.max(1);
                stored.codes.resize(row * DynamicLinearPlan::padded_n(stored.rows), 0);
                Self::Packed(stored)
            }
            (weight, _) => weight,
        }
    }

    /// Copies the weight to the device.
    pub fn upload(&self, machine: &Arc<CudaDevice>) -> Result<DeviceWeight, NativeError> {
        Ok(match self {
            Self::Plain(bytes) => DeviceWeight::Plain(machine.upload(bytes)?),
            Self::BlockSparse { values, places } => DeviceWeight::BlockSparse(BlockSparseWeight {
                values: machine.upload(values)?,
                column_indices: machine.upload(places)?,
            }),
            Self::Packed(PackedTensor { codes, scales, positions: Some(kept), .. }) => {
                let scales = scales.as_ref().map(|scales| machine.upload(scales)).transpose()?;
                DeviceWeight::Sparse2to4(SparseWeight {
                    codes: machine.upload(codes)?,
                    scales,
                    metadata: machine.upload(kept)?,
                })
            }
            Self::Packed(PackedTensor { codes, scales: Some(scales), zeros, outer_scales: outer, .. }) => {
                DeviceWeight::Packed(PackedWeight {
                    codes: machine.upload(codes)?,
                    scales: machine.upload(scales)?,
                    zeros: zeros.as_ref().map(|zeros| machine.upload(zeros)).transpose()?,
                    tensor_scale: outer.as_ref().map(|outer| machine.upload(outer)).transpose()?,
                })
            }
            Self::Packed(PackedTensor { scales: None, .. }) => return Err(NativeError::PlanMismatch),
        })
    }
}

impl DeviceWeight {
    /// Copies the weight on the device; must precede [`Product::repack`].
    pub fn duplicate(&self, machine: &CudaDevice) -> Result<Self, NativeError> {
        let copied = |buffer: &DeviceBuffer| machine.rotate_lines(buffer, LineRotation::identity(buffer.len()));
        Ok(match self {
            Self::Plain(weight) => Self::Plain(copied(weight)?),
            Self::Packed(PackedWeight { codes, scales, zeros, tensor_scale: outer }) => Self::Packed(PackedWeight {
                codes: copied(codes)?,
                scales: copied(scales)?,
                zeros: zeros.as_ref().map(copied).transpose()?,
                tensor_scale: outer.as_ref().map(copied).transpose()?,
            }),
            Self::Sparse2to4(SparseWeight { codes, scales, metadata: places }) => Self::Sparse2to4(SparseWeight {
                codes: copied(codes)?,
                scales: scales.as_ref().map(copied).transpose()?,
                metadata: copied(places)?,
            }),
            Self::BlockSparse(BlockSparseWeight { values, column_indices: places }) => {
                Self::BlockSparse(BlockSparseWeight { values: copied(values)?, column_indices: copied(places)? })
            }
            Self::Repacked(_) | Self::RepackedSparse2to4(_) => {
                unreachable!("weights are copied before they are repacked")
            }
        })
    }
}

impl LinearKernel {
    /// Plans the GEMM for weights in the format of a treatment. Kernels with quantized inputs fuse prologue and
    /// epilogue.
    pub fn new(
        machine: &Arc<CudaDevice>,
        treatment: &QuantConfig,
        form: LayerForm,
        shape: LinearShape,
    ) -> Result<Self, ZooError> {
        let LayerForm { prologue, activation, added } = form;
        Ok(match native_form(treatment, shape.m) {
            Some(NativeForm::Plain) => Self::Plain(Box::new(LinearPlan::new(machine, treatment.dtype, shape)?)),
            Some(NativeForm::Tf32) => Self::Plain(Box::new(LinearPlan::with_tf32(machine, shape)?)),
            Some(NativeForm::Packed(form)) if added => {
                Self::Packed(Box::new(PackedLinearPlan::with_addend(machine, form, shape)?))
            }
            Some(NativeForm::Packed(form)) => Self::Packed(Box::new(PackedLinearPlan::new(machine, form, shape)?)),
            Some(NativeForm::Dynamic(form)) => {
                let form = DynamicLinearSpec { prologue, activation, has_addend: added, ..form };
                Self::Dynamic(Box::new(DynamicLinearPlan::new(machine, form, shape)?))
            }
            Some(NativeForm::Sparse2to4(form)) => {
                let whole = form.dynamic().is_some();
                let form = if whole { SparseLinearSpec { prologue, activation, ..form } } else { form };
                Self::Sparse2to4(Box::new(SparseLinearPlan::new(
                    machine,
                    SparseLinearSpec { has_addend: added, ..form },
                    shape,
                )?))
            }
            Some(NativeForm::BlockSparse(blocks)) => {
                let Sparsity::Block { block_size: side, .. } = blocks else { return Err(no_kernel()) };
                let kept = blocks.retained_blocks_per_row(shape.k).ok_or_else(no_kernel)?;
                let form = BlockLinearSpec {
                    kind: treatment.dtype,
                    side: side.into(),
                    blocks_per_row: kept,
                    has_addend: added,
                };
                Self::BlockSparse(Box::new(BlockLinearPlan::new(machine, form, shape)?))
            }
            None => return Err(no_kernel()),
        })
    }

    /// True if the kernel fuses prologue and epilogue.
    pub fn fuses_layer(&self) -> bool {
        match self {
            Self::Plain(_) | Self::Packed(_) | Self::BlockSparse(_) => false,
            Self::Dynamic(_) => true,
            Self::Sparse2to4(linear) => linear.spec().dynamic().is_some(),
        }
    }

    /// True if the kernel skips the zeros of a pruned weight.
    pub fn skips_zeros(&self) -> bool {
        match self {
            Self::Plain(_) | Self::Packed(_) | Self::Dynamic(_) => false,
            Self::Sparse2to4(linear) => linear.skips_zeros(),
            Self::BlockSparse(_) => true,
        }
    }

    /// Repacks a weight for this kernel.
    pub fn repack(&self, weight: DeviceWeight) -> Result<DeviceWeight, NativeError> {
        Ok(match (self, weight) {
            (Self::Packed(linear), DeviceWeight::Packed(weight)) => DeviceWeight::Repacked(linear.prepack(weight)?),
            (Self::Sparse2to4(linear), DeviceWeight::Sparse2to4(weight)) => {
                DeviceWeight::RepackedSparse2to4(linear.prepack(weight)?)
            }
            (_, weight) => weight,
        })
    }

    /// Enqueues one run; `added` is a residual for the epilogue.
    pub fn enqueue(
        &mut self,
        x: &DeviceBuffer,
        w: &DeviceWeight,
        added: Option<&DeviceBuffer>,
        y: &mut DeviceBuffer,
    ) -> Result<(), ZooError> {
        match (self, w) {
            (Self::Plain(linear), DeviceWeight::Plain(w)) => match added {
                Some(added) => linear.enqueue_with_addend(x, w, added, y)?,
                None => linear.enqueue(x, w, y)?,
            },
            (Self::Packed(linear), DeviceWeight::Repacked(w)) => linear.enqueue(x, w, added, y)?,
            (Self::Dynamic(linear), DeviceWeight::Packed(w)) => linear.enqueue(x, w, added, y)?,
            (Self::Sparse2to4(linear), DeviceWeight::RepackedSparse2to4(w)) => linear.enqueue(x, w, added, y)?,
            (Self::BlockSparse(linear), DeviceWeight::BlockSparse(w)) => linear.enqueue(x, w, added, y)?,
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
            Self::Sparse2to4(linear) => linear.algorithm(),
            Self::BlockSparse(linear) => linear.algorithm(),
        }
    }
}

fn no_kernel() -> ZooError {
    ZooError::Unsupported("`native` has no kernel for this treatment".into())
}
