//! Linear layers: unquantized, dequantized with burn's operations, or computed by fused kernels.

use crate::device::{DeviceTensor, QuantBackend};
use crate::stored::Reading;
use crate::treatment::{Prepared, Products, Treatment};
use crate::{Dtype, FloatType, Linear, RecipeError, Weight};
use burn::tensor::{Tensor, TensorData, backend::Backend};
use std::ops::Range;

impl Treatment {
    /// Uploads the layer; a fused kernel computes it if [`Treatment::has_product`] accepts the input and the backend
    /// has a kernel.
    pub fn linear<B: QuantBackend>(
        &self,
        weight: &Weight,
        device: &B::Device,
    ) -> Result<Box<dyn Linear<B>>, RecipeError> {
        Ok(self.upload_for_product(self.prepare(weight)?, device))
    }

    /// Uploads a layer that uses only burn's operations: each forward pass dequantizes the weight.
    pub fn upload<B: QuantBackend>(&self, weight: Prepared, device: &B::Device) -> Box<dyn Linear<B>> {
        match weight {
            Prepared::Dense(weight) => {
                let data = TensorData::new(weight.values().to_vec(), [weight.n(), weight.k()]);
                let bytes = self.weight_bytes(weight.n(), weight.k());
                Box::new(Dense { weight: Tensor::from_data(data, (device, self.dtype.burn())), bytes })
            }
            Prepared::Stored(stored) => Box::new(StoredLinear::new(*self, DeviceTensor::<B>::upload(stored, device))),
            Prepared::Blocks(blocks) => blocks.upload(device),
        }
    }
}

impl Treatment {
    /// Uploads a layer that uses fused kernels where they exist, and burn's operations otherwise.
    pub fn upload_for_product<B: QuantBackend>(&self, weight: Prepared, device: &B::Device) -> Box<dyn Linear<B>> {
        match weight {
            Prepared::Stored(stored) => {
                Box::new(Multiplied(StoredLinear::new(*self, DeviceTensor::<B>::upload(stored, device))))
            }
            other => self.upload(other, device),
        }
    }
}

/// Packed weight that kernels dequantize in registers; falls back to [`StoredLinear`].
struct Multiplied<B: QuantBackend>(StoredLinear<B>);

impl<B: QuantBackend> Linear<B> for Multiplied<B> {
    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2> {
        let Self(layer) = self;
        let rows = input.dims()[0];
        if layer.treatment.has_product(rows).is_err() {
            return layer.forward(input);
        }
        match (layer.treatment.input(rows), layer.treatment.products) {
            (Some(format), Products::Codes(steps)) => {
                let input = DeviceTensor::quantize(input, format);
                let output = layer.weight.product_of_codes(&input, steps, layer.treatment.dtype);
                output.unwrap_or_else(|| layer.forward_quantized(input))
            }
            _ => layer.weight.product(input.clone()).unwrap_or_else(|| layer.forward(input)),
        }
    }

    fn weight_bytes(&self) -> u64 {
        self.0.weight_bytes()
    }
}

/// Unquantized linear layer; the weight is stored as `[n, k]`, as in checkpoints.
struct Dense<B: Backend> {
    weight: Tensor<B, 2>,
    bytes: u64,
}

impl<B: Backend> Linear<B> for Dense<B> {
    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2> {
        input.matmul(self.weight.clone().transpose())
    }

    fn weight_bytes(&self) -> u64 {
        self.bytes
    }
}

/// Packed weight that each forward pass dequantizes part by part.
struct StoredLinear<B: QuantBackend> {
    treatment: Treatment,
    weight: DeviceTensor<B>,
    /// Rows of the weight that are dequantized at once.
    part: usize,
    /// Scales applied to the output, one per output channel.
    scales: Option<Tensor<B, 2>>,
}

impl<B: QuantBackend> StoredLinear<B> {
    fn new(config: Treatment, weight: DeviceTensor<B>) -> Self {
        let (rows, cols) = weight.size();
        let rows_per_part = config.rows_at_once(rows, cols);
        let scales = match config.products {
            _ if !weight.has_scales() => None,
            _ if weight.has_outer_scales() => Some(Reading::Outer),
            Products::Codes(_) => Some(Reading::Scales),
            Products::Numbers => None,
        };
        let scales = scales.map(|reading| weight.read(0..rows, reading, Dtype::F32).transpose());
        Self { treatment: config, weight, part: rows_per_part, scales }
    }

    /// Multiplies an operand with the weight, read in `dtype`.
    fn product(&self, operand: Tensor<B, 2>, reading: Reading, dtype: Dtype) -> Tensor<B, 2> {
        let (rows, _) = self.weight.size();
        // QQQ weights become int8 values only after their group scale.
        let reading = if self.weight.rounds_to_integers() { Reading::Numbers } else { reading };
        let multiply_rows =
            |rows: Range<usize>| operand.clone().matmul(self.weight.read(rows, reading, dtype).transpose());
        if self.part == rows {
            return multiply_rows(0..rows);
        }
        let parts = (0..rows).step_by(self.part).map(|start| multiply_rows(start..(start + self.part).min(rows)));
        Tensor::cat(parts.collect(), 1)
    }
}

impl<B: QuantBackend> Linear<B> for StoredLinear<B> {
    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2> {
        let Treatment { dtype, products, .. } = self.treatment;
        let rows = input.dims()[0];
        let Some(format) = self.treatment.input(rows) else {
            return match products {
                Products::Codes(_) if self.treatment.input.is_none() => {
                    let product = self.product(input, Reading::Codes, dtype);
                    scaled(product, self.scales.clone(), dtype)
                }
                _ => scaled(self.product(input, Reading::Numbers, dtype), None, dtype),
            };
        };
        self.forward_quantized(DeviceTensor::quantize(input, format))
    }

    fn weight_bytes(&self) -> u64 {
        self.weight.bytes()
    }
}

impl<B: QuantBackend> StoredLinear<B> {
    /// Applies the layer to a quantized input.
    fn forward_quantized(&self, input: DeviceTensor<B>) -> Tensor<B, 2> {
        let Treatment { dtype, products, .. } = self.treatment;
        let (rows, _) = input.size();
        // Quantized values, and values with power-of-two scales, are exact in f32 and on tensor cores.
        let (reading, steps, scales) = match products {
            Products::Codes(steps) => (Reading::Codes, steps, Some(Reading::Scales)),
            Products::Numbers => (Reading::Numbers, dtype, input.has_outer_scales().then_some(Reading::Outer)),
        };
        let product = self.product(input.read(0..rows, reading, Dtype::F32), reading, Dtype::F32);
        let scales = scales.map(|reading| input.read(0..rows, reading, Dtype::F32));
        match products {
            Products::Codes(_) => {
                scaled(scaled(product.cast(steps.burn()), scales, steps), self.scales.clone(), steps).cast(dtype.burn())
            }
            Products::Numbers => match (scales, self.scales.clone()) {
                (Some(a), Some(b)) => {
                    // Before scaling, the result may exceed the range of f16.
                    let steps = if dtype == Dtype::F16 { Dtype::F32 } else { dtype };
                    scaled(product.cast(steps.burn()), Some(a * b), steps).cast(dtype.burn())
                }
                _ => product.cast(dtype.burn()),
            },
        }
    }
}

/// Multiplies a matmul result by scales in a dtype.
fn scaled<B: Backend>(product: Tensor<B, 2>, scales: Option<Tensor<B, 2>>, dtype: Dtype) -> Tensor<B, 2> {
    match scales {
        Some(scales) => product * scales.cast(dtype.burn()),
        None => product,
    }
}
