//! The linear layer that every recipe makes.

use crate::device::{DeviceTensor, QuantBackend};
use crate::stored::Reading;
use crate::treatment::{Prepared, Products, Treatment};
use crate::{Dtype, FloatType, Linear, RecipeError, Weight};
use burn::tensor::{Tensor, TensorData, backend::Backend};
use std::ops::Range;

impl Treatment {
    /// The layer with its weight on a device, by kernels of ours where [`Treatment::has_product`] knows one and the
    /// backend has it.
    pub fn linear<B: QuantBackend>(
        &self,
        weight: &Weight,
        device: &B::Device,
    ) -> Result<Box<dyn Linear<B>>, RecipeError> {
        Ok(self.upload_for_product(self.prepare(weight)?, device))
    }

    /// The layer with a weight that [`Treatment::prepare`] has made ready, by burn's operations: each pass reads the weight
    /// back.
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
    /// The same by a kernel of ours for inputs that have one.
    pub fn upload_for_product<B: QuantBackend>(&self, weight: Prepared, device: &B::Device) -> Box<dyn Linear<B>> {
        match weight {
            Prepared::Stored(stored) => {
                Box::new(Multiplied(StoredLinear::new(*self, DeviceTensor::<B>::upload(stored, device))))
            }
            other => self.upload(other, device),
        }
    }
}

/// A weight in codes, which become numbers where they are multiplied.
struct Multiplied<B: QuantBackend>(StoredLinear<B>);

impl<B: QuantBackend> Linear<B> for Multiplied<B> {
    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2> {
        let Self(stored) = self;
        let rows = input.dims()[0];
        if stored.treatment.has_product(rows).is_err() {
            return stored.forward(input);
        }
        match (stored.treatment.input(rows), stored.treatment.products) {
            (Some(format), Products::Codes(steps)) => {
                let input = DeviceTensor::quantize(input, format);
                let product = stored.weight.product_of_codes(&input, steps, stored.treatment.dtype);
                product.unwrap_or_else(|| stored.forward_quantized(input))
            }
            _ => stored.weight.product(input.clone()).unwrap_or_else(|| stored.forward(input)),
        }
    }

    fn weight_bytes(&self) -> u64 {
        self.0.weight_bytes()
    }
}

/// A plain linear layer; the weight is kept as `[n, k]`, like everybody's checkpoints.
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

/// A weight in codes, which are read back part by part in each pass.
struct StoredLinear<B: QuantBackend> {
    treatment: Treatment,
    weight: DeviceTensor<B>,
    /// Rows of the weight that are read back together.
    part: usize,
    /// The scales that the product is multiplied with at the end, one for each output.
    scales: Option<Tensor<B, 2>>,
}

impl<B: QuantBackend> StoredLinear<B> {
    fn new(treatment: Treatment, weight: DeviceTensor<B>) -> Self {
        let (rows, cols) = weight.size();
        let part = treatment.rows_at_once(rows, cols);
        let scales = match treatment.products {
            _ if !weight.has_scales() => None,
            _ if weight.has_outer_scales() => Some(Reading::Outer),
            Products::Codes(_) => Some(Reading::Scales),
            Products::Numbers => None,
        };
        let scales = scales.map(|reading| weight.read(0..rows, reading, Dtype::F32).transpose());
        Self { treatment, weight, part, scales }
    }

    /// The product of an operand with the weight, read in the operand's type.
    fn product(&self, operand: Tensor<B, 2>, reading: Reading, dtype: Dtype) -> Tensor<B, 2> {
        let (rows, _) = self.weight.size();
        // Codes of the second level are integers only after their first scale.
        let reading = if self.weight.rounds_to_integers() { Reading::Numbers } else { reading };
        let times = |rows: Range<usize>| operand.clone().matmul(self.weight.read(rows, reading, dtype).transpose());
        if self.part == rows {
            return times(0..rows);
        }
        let parts = (0..rows).step_by(self.part).map(|start| times(start..(start + self.part).min(rows)));
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
    /// The layer of an input that is quantized already.
    fn forward_quantized(&self, input: DeviceTensor<B>) -> Tensor<B, 2> {
        let Treatment { dtype, products, .. } = self.treatment;
        let (rows, _) = input.size();
        // Codes, and the numbers of formats whose scales are powers of two, are exact in f32, also on tensor cores.
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
                    // Before its scale a product may exceed the range of f16.
                    let steps = if dtype == Dtype::F16 { Dtype::F32 } else { dtype };
                    scaled(product.cast(steps.burn()), Some(a * b), steps).cast(dtype.burn())
                }
                _ => product.cast(dtype.burn()),
            },
        }
    }
}

/// A product times scales in a type.
fn scaled<B: Backend>(product: Tensor<B, 2>, scales: Option<Tensor<B, 2>>, dtype: Dtype) -> Tensor<B, 2> {
    match scales {
        Some(scales) => product * scales.cast(dtype.burn()),
        None => product,
    }
}
