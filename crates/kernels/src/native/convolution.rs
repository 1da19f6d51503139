//! Convolutions with bias and optional ReLU.

use std::sync::Arc;

use super::{
    ConvolutionSpec, CudaDevice, CudaKernel, DeviceBuffer, NativeError,
    algorithm_trial::{AlgorithmTrial, MAX_RELATIVE_TIME, random_values},
    cudnn_convolution::CudnnConvolution,
    cudnn_functions,
    driver::DeviceMemory,
    gemm_spec::OperandTypes,
    implicit_gemm,
};
use crate::Dtype;

/// Plan of y = ReLU(x * w + bias), or without ReLU, in f16 or bf16 with f32 accumulators. Uses the faster of cuDNN and
/// the native implicit-GEMM kernel (Hopper only).
#[derive(Debug)]
pub struct ConvolutionPlan {
    device: Arc<CudaDevice>,
    kernel: ConvolutionKernel,
    algorithm: String,
}

#[derive(Debug)]
enum ConvolutionKernel {
    Native(CudaKernel),
    /// cuDNN with the index of the engine plan.
    Cudnn(CudnnConvolution, usize),
}

impl ConvolutionPlan {
    /// Compiles the native kernel and times it against the plans of cuDNN, if available.
    pub fn new(device: &Arc<CudaDevice>, kind: Dtype, spec: ConvolutionSpec) -> Result<Self, NativeError> {
        check(kind, spec)?;
        let native = implicit_gemm::kernel(device, kind, spec);
        if !cudnn_functions::is_present() {
            return native.map(|native| Self::from_native_kernel(device, native));
        }
        // Either implementation may support a convolution that the other does not.
        match (CudnnConvolution::new(device, kind, spec), native) {
            (Ok(cudnn), native) => Self::pick_fastest(device, kind, spec, cudnn, native.ok()),
            (Err(_), Ok(native)) => Ok(Self::from_native_kernel(device, native)),
            (Err(error), Err(_)) => Err(error),
        }
    }

    /// Plan with the native kernel, regardless of cuDNN.
    pub fn with_native_kernel(
        device: &Arc<CudaDevice>,
        kind: Dtype,
        spec: ConvolutionSpec,
    ) -> Result<Self, NativeError> {
        check(kind, spec)?;
        implicit_gemm::kernel(device, kind, spec).map(|native| Self::from_native_kernel(device, native))
    }

    /// Plan with the fastest engine of cuDNN.
    pub fn with_cudnn(device: &Arc<CudaDevice>, kind: Dtype, spec: ConvolutionSpec) -> Result<Self, NativeError> {
        check(kind, spec)?;
        Self::pick_fastest(device, kind, spec, CudnnConvolution::new(device, kind, spec)?, None)
    }

    fn from_native_kernel(device: &Arc<CudaDevice>, native: CudaKernel) -> Self {
        let algorithm = native.algorithm();
        Self { device: device.clone(), kernel: ConvolutionKernel::Native(native), algorithm }
    }

    /// Times the cuDNN plans and the native kernel on scratch buffers; without enough memory the first candidate is
    /// used.
    fn pick_fastest(
        device: &Arc<CudaDevice>,
        kind: Dtype,
        spec: ConvolutionSpec,
        cudnn: CudnnConvolution,
        native: Option<CudaKernel>,
    ) -> Result<Self, NativeError> {
        let plans = cudnn.plan_count();
        let count = plans + usize::from(native.is_some());
        let (chosen, choice) = match TrialBuffers::new(device, kind, spec) {
            Ok(mut operands) => {
                let nanos = AlgorithmTrial::time_candidates(device, count, |candidate| match &native {
                    Some(native) if candidate == plans => operands.enqueue_native(native),
                    _ => operands.enqueue_cudnn(&cudnn, candidate, device),
                });
                let fastest = (0..count).min_by(|a, b| nanos[*a].total_cmp(&nanos[*b])).unwrap_or(0);
                // Prefer the first candidate unless another is clearly faster, so that repeated runs choose alike.
                let chosen = if nanos[fastest] < MAX_RELATIVE_TIME * nanos[0] { fastest } else { 0 };
                (chosen, format!("number {} of {count}, all of them tried", chosen + 1))
            }
            Err(NativeError::OutOfMemory { .. }) => (0, format!("first of {count}")),
            Err(error) => return Err(error),
        };
        let device = device.clone();
        Ok(match native {
            Some(native) if chosen == plans => {
                let algorithm = format!("{} ({choice}, others by cuDNN)", native.algorithm());
                Self { device, kernel: ConvolutionKernel::Native(native), algorithm }
            }
            _ => {
                let algorithm = format!("{} ({choice})", cudnn.describe(chosen));
                Self { device, kernel: ConvolutionKernel::Cudnn(cudnn, chosen), algorithm }
            }
        })
    }

    /// Enqueues a launch on images, filters, bias and output in the layouts of the specification.
    pub fn enqueue(
        &mut self,
        x: &DeviceBuffer,
        w: &DeviceBuffer,
        bias: &DeviceBuffer,
        y: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        let operands = [&x.memory, &w.memory, &bias.memory];
        match &mut self.kernel {
            ConvolutionKernel::Native(native) => native.enqueue_all(operands, [&mut y.memory]),
            ConvolutionKernel::Cudnn(cudnn, plan) => cudnn.enqueue(*plan, &self.device, operands, &mut y.memory),
        }
    }

    /// Implementation and how it was chosen.
    pub fn algorithm(&self) -> String {
        self.algorithm.clone()
    }
}

fn check(kind: Dtype, spec: ConvolutionSpec) -> Result<(), NativeError> {
    if kind == Dtype::F32 {
        return Err(NativeError::UnsupportedDtype { what: "tensor-core convolution", kind });
    }
    spec.check()
}

/// Scratch buffers for timing candidates.
struct TrialBuffers {
    x: DeviceMemory,
    w: DeviceMemory,
    bias: DeviceMemory,
    y: DeviceMemory,
}

impl TrialBuffers {
    fn new(device: &CudaDevice, kind: Dtype, spec: ConvolutionSpec) -> Result<Self, NativeError> {
        // Constant data would draw less power than real data.
        let drawn = random_values(OperandTypes::Float(kind));
        let filled = |bytes: usize| -> Result<DeviceMemory, NativeError> {
            let mut memory = DeviceMemory::allocate(device.stream(), bytes)?;
            memory.fill_repeating(&drawn).map(|()| memory)
        };
        Ok(Self {
            x: filled(spec.x_bytes(kind))?,
            w: filled(spec.w_bytes(kind))?,
            bias: filled(spec.bias_bytes(kind))?,
            y: DeviceMemory::allocate(device.stream(), spec.y_bytes(kind))?,
        })
    }

    fn enqueue_native(&mut self, native: &CudaKernel) -> Result<(), NativeError> {
        native.enqueue_all([&self.x, &self.w, &self.bias], [&mut self.y])
    }

    fn enqueue_cudnn(&mut self, cudnn: &CudnnConvolution, plan: usize, device: &CudaDevice) -> Result<(), NativeError> {
        cudnn.enqueue(plan, device, [&self.x, &self.w, &self.bias], &mut self.y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_size_follows_stride_and_padding() {
        let spec = ConvolutionSpec {
            images: 2,
            height: 9,
            width: 8,
            channels: 3,
            filters: 17,
            filter_size: 3,
            stride: 2,
            padding: 1,
            relu: false,
        };
        assert_eq!((spec.out_size(), spec.output_pixels(), spec.stored_channels()), ([5, 4], 40, 8));
        assert_eq!((spec.y_bytes(Dtype::F16), spec.w_bytes(Dtype::F16)), (40 * 24 * 2, 24 * 9 * 8 * 2));
        assert!(spec.check().is_ok());
        let result = ConvolutionSpec { filter_size: 12, ..spec }.check();
        assert!(matches!(result, Err(NativeError::UnsupportedConvolution { .. })), "{result:?}");
    }
}
