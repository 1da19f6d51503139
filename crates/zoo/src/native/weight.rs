//! Weights of linear layers on the device.

use crate::ZooError;
use crate::element_bytes::{encode, words_to_bytes};
use calorimeter_kernels::native::{CudaDevice, DeviceBuffer, LayerPlan, LineRotation, NativeError};
use calorimeter_recipes::{Element, Format, PackedTensor, PreparedWeight};

/// Returns the bytes of a weight that [`QuantConfig::prepare`](calorimeter_recipes::QuantConfig::prepare) has quantized
/// or pruned.
pub(crate) fn encode_weight(weight: PreparedWeight) -> Result<PackedTensor<Vec<u8>>, ZooError> {
    let unquantized = |dtype, [rows, cols]: [usize; 2], codes, positions| {
        let format = Format::unquantized(dtype);
        PackedTensor { format, rows, cols, codes, scales: None, zeros: None, outer_scales: None, positions }
    };
    match weight {
        PreparedWeight::Dense(weight) => {
            let codes = encode(weight.values(), Element::Float(weight.dtype()));
            Ok(unquantized(weight.dtype(), [weight.n(), weight.k()], codes, None))
        }
        PreparedWeight::Packed(packed) => Ok(packed.map(|words| words_to_bytes(&words))),
        PreparedWeight::BlockSparse(blocks) => {
            let values = encode(blocks.values(), Element::Float(blocks.dtype()));
            let columns = words_to_bytes(blocks.block_columns());
            Ok(unquantized(blocks.dtype(), [blocks.rows(), blocks.cols()], values, Some(columns)))
        }
        _ => Err(ZooError::Unsupported("`native` has no kernel for this weight format".into())),
    }
}

/// Copies a weight to the device, padded with zero rows to the number that its kernel reads.
pub(crate) fn upload_weight(
    device: &CudaDevice,
    mut weight: PackedTensor<Vec<u8>>,
    layer: &LayerPlan,
) -> Result<PackedTensor<DeviceBuffer>, NativeError> {
    let row_bytes = weight.codes.len() / weight.rows.max(1);
    weight.codes.resize(weight.codes.len() + row_bytes * (layer.padded_n(weight.rows) - weight.rows), 0);
    weight.try_map(|bytes| device.upload(&bytes))
}

/// Copies a weight on the device.
pub(crate) fn duplicate_weight(
    device: &CudaDevice,
    weight: &PackedTensor<DeviceBuffer>,
) -> Result<PackedTensor<DeviceBuffer>, NativeError> {
    weight.as_refs().try_map(|part| device.rotate_lines(part, LineRotation::identity(part.len())))
}
