//! Linear layers: unquantized, dequantized with burn's operations, or computed by fused kernels.

use crate::device::{DeviceTensor, QuantBackend};
use crate::packed_tensor::TensorPart;
use crate::quant_config::{PreparedWeight, QuantConfig};
use crate::{Dtype, FloatType, Linear, MatmulMode, RecipeError, Weight};
use burn::tensor::{Tensor, TensorData, backend::Backend};
use std::ops::Range;

impl QuantConfig {
    /// Uploads the layer; a fused kernel computes it if the backend has one.
    pub fn linear<B: QuantBackend>(
        &self,
        weight: &Weight,
        device: &B::Device,
    ) -> Result<Box<dyn Linear<B>>, RecipeError> {
        Ok(self.upload_with_kernels(self.prepare(weight)?, device))
    }

    /// Uploads a layer that uses only burn's operations: each forward pass dequantizes the weight.
    pub fn upload<B: QuantBackend>(&self, weight: PreparedWeight, device: &B::Device) -> Box<dyn Linear<B>> {
        match weight {
            PreparedWeight::Dense(weight) => {
                let data = TensorData::new(weight.values().to_vec(), [weight.n(), weight.k()]);
                let bytes = self.weight_bytes(weight.n(), weight.k());
                Box::new(UnquantizedLinear { weight: Tensor::from_data(data, (device, self.dtype.burn())), bytes })
            }
            PreparedWeight::Packed(stored) => {
                Box::new(DequantLinear::new(*self, DeviceTensor::<B>::upload(stored, device)))
            }
            PreparedWeight::BlockSparse(blocks) => blocks.upload(device),
        }
    }
}

impl QuantConfig {
    /// Uploads a layer that uses fused kernels where they exist, and burn's operations otherwise.
    pub fn upload_with_kernels<B: QuantBackend>(
        &self,
        weight: PreparedWeight,
        device: &B::Device,
    ) -> Box<dyn Linear<B>> {
        match weight {
            PreparedWeight::Packed(stored) if self.sparsity.is_none() => {
                Box::new(FusedDequantLinear(DequantLinear::new(*self, DeviceTensor::<B>::upload(stored, device))))
            }
            other => self.upload(other, device),
        }
    }
}

/// Packed weight that kernels dequantize in registers; falls back to [`DequantLinear`].
struct FusedDequantLinear<B: QuantBackend>(DequantLinear<B>);

impl<B: QuantBackend> Linear<B> for FusedDequantLinear<B> {
    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2> {
        let Self(layer) = self;
        let rows = input.dims()[0];
        match (layer.config.input_format(rows), layer.config.matmul) {
            (Some(format), MatmulMode::QuantizedValues(steps)) => {
                let input = DeviceTensor::quantize(input, format);
                let output = layer.weight.int8_gemm(&input, steps, layer.config.dtype);
                output.unwrap_or_else(|| layer.forward_quantized(input))
            }
            (Some(_), MatmulMode::Values) => layer.forward(input),
            (None, _) => layer.weight.dequant_gemm(input.clone()).unwrap_or_else(|| layer.forward(input)),
        }
    }

    fn weight_bytes(&self) -> u64 {
        self.0.weight_bytes()
    }
}

/// Unquantized linear layer; the weight is stored as `[n, k]`, as in checkpoints.
struct UnquantizedLinear<B: Backend> {
    weight: Tensor<B, 2>,
    bytes: u64,
}

impl<B: Backend> Linear<B> for UnquantizedLinear<B> {
    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2> {
        input.matmul(self.weight.clone().transpose())
    }

    fn weight_bytes(&self) -> u64 {
        self.bytes
    }
}

/// Packed weight that each forward pass dequantizes part by part.
struct DequantLinear<B: QuantBackend> {
    config: QuantConfig,
    weight: DeviceTensor<B>,
    /// Rows of the weight that are dequantized at once.
    rows_per_part: usize,
    /// Scales applied to the output, one per output channel.
    scales: Option<Tensor<B, 2>>,
}

impl<B: QuantBackend> DequantLinear<B> {
    fn new(config: QuantConfig, weight: DeviceTensor<B>) -> Self {
        let (rows, cols) = weight.size();
        let rows_per_part = config.dequant_rows(rows, cols);
        let scales = match config.matmul {
            _ if !weight.has_scales() => None,
            _ if weight.has_outer_scales() => Some(TensorPart::OuterScales),
            MatmulMode::QuantizedValues(_) => Some(TensorPart::Scales),
            MatmulMode::Values => None,
        };
        let scales = scales.map(|reading| weight.read_rows(0..rows, reading, Dtype::F32).transpose());
        Self { config, weight, rows_per_part, scales }
    }

    /// Multiplies an operand with the weight, read in `dtype`.
    fn matmul_weight(&self, operand: Tensor<B, 2>, reading: TensorPart, dtype: Dtype) -> Tensor<B, 2> {
        let (rows, _) = self.weight.size();
        // QQQ weights become int8 values only after their group scale.
        let reading = if self.weight.rounds_to_integers() { TensorPart::Values } else { reading };
        let multiply_rows =
            |rows: Range<usize>| operand.clone().matmul(self.weight.read_rows(rows, reading, dtype).transpose());
        if self.rows_per_part == rows {
            return multiply_rows(0..rows);
        }
        let parts = (0..rows)
            .step_by(self.rows_per_part)
            .map(|start| multiply_rows(start..(start + self.rows_per_part).min(rows)));
        Tensor::cat(parts.collect(), 1)
    }
}

impl<B: QuantBackend> Linear<B> for DequantLinear<B> {
    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2> {
        let QuantConfig { dtype, matmul: products, .. } = self.config;
        let rows = input.dims()[0];
        let Some(format) = self.config.input_format(rows) else {
            return match products {
                MatmulMode::QuantizedValues(_) if self.config.input.is_none() => {
                    let product = self.matmul_weight(input, TensorPart::QuantizedValues, dtype);
                    apply_scales(product, self.scales.clone(), dtype)
                }
                _ => apply_scales(self.matmul_weight(input, TensorPart::Values, dtype), None, dtype),
            };
        };
        self.forward_quantized(DeviceTensor::quantize(input, format))
    }

    fn weight_bytes(&self) -> u64 {
        self.weight.bytes()
    }
}

impl<B: QuantBackend> DequantLinear<B> {
    /// Applies the layer to a quantized input.
    fn forward_quantized(&self, input: DeviceTensor<B>) -> Tensor<B, 2> {
        let QuantConfig { dtype, matmul: products, .. } = self.config;
        let (rows, _) = input.size();
        // Quantized values, and values with power-of-two scales, are exact in f32 and on tensor cores.
        let (reading, steps, scales) = match products {
            MatmulMode::QuantizedValues(steps) => (TensorPart::QuantizedValues, steps, Some(TensorPart::Scales)),
            MatmulMode::Values => {
                (TensorPart::Values, dtype, input.has_outer_scales().then_some(TensorPart::OuterScales))
            }
        };
        let product = self.matmul_weight(input.read_rows(0..rows, reading, Dtype::F32), reading, Dtype::F32);
        let scales = scales.map(|reading| input.read_rows(0..rows, reading, Dtype::F32));
        match products {
            MatmulMode::QuantizedValues(_) => {
                apply_scales(apply_scales(product.cast(steps.burn()), scales, steps), self.scales.clone(), steps)
                    .cast(dtype.burn())
            }
            MatmulMode::Values => match (scales, self.scales.clone()) {
                (Some(a), Some(b)) => {
                    // Before scaling, the result may exceed the range of f16.
                    let steps = if dtype == Dtype::F16 { Dtype::F32 } else { dtype };
                    apply_scales(product.cast(steps.burn()), Some(a * b), steps).cast(dtype.burn())
                }
                _ => product.cast(dtype.burn()),
            },
        }
    }
}

/// Multiplies a matmul result by scales in a dtype.
fn apply_scales<B: Backend>(product: Tensor<B, 2>, scales: Option<Tensor<B, 2>>, dtype: Dtype) -> Tensor<B, 2> {
    match scales {
        Some(scales) => product * scales.cast(dtype.burn()),
        None => product,
    }
}
