//! Linear layers with 2:4 sparse weights.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, DynamicLinearPlan, LinearPlan, LinearShape, NativeError,
    driver::DeviceMemory,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
    quantize_input::InputQuantizer,
    sizes::{check_shape, check_size},
    sparse_gemm::{SparseGemm, format_macros, format_name, stored_reads, weight_scale_bytes},
};
use crate::{DynamicFormat, SparseLinearSpec, SparseWeightFormat};

/// 2:4 sparse weight on the device. The nonzero values of a row are padded to a multiple of 32, or to whole groups.
#[derive(Debug)]
pub struct SparseWeight {
    /// Nonzero values.
    pub codes: DeviceBuffer,
    /// Scales, if the format has any.
    pub scales: Option<DeviceBuffer>,
    /// Metadata: the positions of the two nonzero values of every four, ascending, two bits each; eight quadruples per
    /// word.
    pub metadata: DeviceBuffer,
}

/// 2:4 sparse weight in the memory layout of a plan.
#[derive(Debug)]
pub struct PackedSparseWeight {
    codes: DeviceBuffer,
    scales: Option<DeviceBuffer>,
    /// Metadata, unless interleaved with the values.
    places: Option<DeviceBuffer>,
}

/// Plan of y[m, n] = f(p(x[m, k]) · w[n, k]ᵀ) + addend[m, n] for a 2:4 sparse weight; k is a multiple of 4.
/// Accumulators are f32, or exact integers.
///
/// Sparse tensor cores (`mma.sp`) are used where the format supports them and while they are the fastest. Otherwise the
/// weight is expanded to a dense buffer and multiplied by [`LinearPlan`] or [`DynamicLinearPlan`].
#[derive(Debug)]
pub struct SparseLinearPlan {
    device: Arc<CudaDevice>,
    gemm: SparseGemmKernel,
    shape: LinearShape,
    spec: SparseLinearSpec,
}

#[derive(Debug)]
enum SparseGemmKernel {
    Sparse(Option<Box<InputQuantizer>>, Box<SparseGemm>),
    Dense(Box<DensifiedGemm>),
}

/// Expansion to a dense weight, followed by a dense layer.
#[derive(Debug)]
struct DensifiedGemm {
    unpack: CudaKernel,
    weight: DeviceBuffer,
    product: DenseLinear,
    algorithm: String,
}

#[derive(Debug)]
enum DenseLinear {
    Float(Box<LinearPlan>),
    Quantized(Box<DynamicLinearPlan>),
}

/// Maximum rows of x for which the sparse kernel is the faster.
///
/// Times in µs on an H200 for k = n = 4096 in bf16, without the quantization of x:
///
/// | rows | 16-bit floats | int8 | e4m3 |
/// |---|---|---|---|
/// | 1 | 8.5 | 5.9 | |
/// | 16 | 9.8 | 8.1 | 12.7 |
/// | 32 | 12.6 | 10.6 | 26 |
/// | 64 | 15.5 | 12.6 | 39 |
/// | 128 | 25 | 18.6 | |
///
/// `mma.sp` is slow for e4m3 on Hopper.
fn max_sparse_rows(codes: SparseWeightFormat) -> usize {
    match codes {
        SparseWeightFormat::Dynamic(DynamicFormat::E4m3, _) => 16,
        _ => 64,
    }
}

const THREADS: usize = 256;

impl SparseLinearPlan {
    /// Selects the implementation and compiles.
    pub fn new(device: &Arc<CudaDevice>, spec: SparseLinearSpec, shape: LinearShape) -> Result<Self, NativeError> {
        let shape = check_shape(shape)?;
        if !shape.k.is_multiple_of(4) {
            return Err(NativeError::SparseRowLength { k: shape.k });
        }
        let known = SparseGemm::is_supported(spec, device.compute_capability());
        let dense = if known && shape.m <= max_sparse_rows(spec.weight) {
            None
        } else {
            DensifiedGemm::new(device, spec, shape, known)?
        };
        let gemm = match dense {
            Some(dense) => SparseGemmKernel::Dense(Box::new(dense)),
            None => {
                let (quantize, stride) = match spec.dynamic() {
                    Some(dynamic) => {
                        let stride = DynamicLinearPlan::padded_k(shape.k);
                        let filled = (shape.m, stride);
                        let quantize = InputQuantizer::new(device, dynamic, (shape.m, shape.k), filled)?;
                        (Some(Box::new(quantize)), stride)
                    }
                    None => (None, shape.k),
                };
                SparseGemmKernel::Sparse(quantize, Box::new(SparseGemm::new(device, spec, shape, stride)?))
            }
        };
        Ok(Self { device: device.clone(), gemm, shape, spec })
    }

    /// Specification of the plan.
    pub fn spec(&self) -> SparseLinearSpec {
        self.spec
    }

    /// Bytes of the input.
    pub fn x_bytes(&self) -> usize {
        self.shape.x_bytes(self.spec.kind)
    }

    /// Bytes of the output.
    pub fn y_bytes(&self) -> usize {
        self.shape.y_bytes(self.spec.kind)
    }

    /// True if zeros are skipped, i.e. sparse tensor cores are used.
    pub fn skips_zeros(&self) -> bool {
        matches!(self.gemm, SparseGemmKernel::Sparse(..))
    }

    /// Converts a weight to the layout of this plan. Done once per weight, not part of a launch.
    pub fn prepack(&self, weight: SparseWeight) -> Result<PackedSparseWeight, NativeError> {
        let SparseWeight { codes, scales, metadata: places } = weight;
        let codes_and_places = match &self.gemm {
            SparseGemmKernel::Sparse(_, product) => {
                (product.reorder(&self.device, [&codes.memory, &places.memory])?, None)
            }
            SparseGemmKernel::Dense(_) => (codes, Some(places)),
        };
        Ok(PackedSparseWeight { codes: codes_and_places.0, scales, places: codes_and_places.1 })
    }

    /// Enqueues a launch; `added` is required if and only if the specification has an addend.
    pub fn enqueue(
        &mut self,
        x: &DeviceBuffer,
        w: &PackedSparseWeight,
        added: Option<&DeviceBuffer>,
        y: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        NativeError::check_input_count(2 + usize::from(self.spec.has_addend), 2 + usize::from(added.is_some()))?;
        let scales = w.scales.as_ref().map(|scales| &scales.memory);
        match &mut self.gemm {
            SparseGemmKernel::Sparse(quantize, product) => {
                if w.places.is_some() {
                    return Err(NativeError::PlanMismatch);
                }
                let mut inputs: Vec<&DeviceMemory> = Vec::new();
                match quantize {
                    Some(quantize) => {
                        quantize.enqueue(&x.memory)?;
                        inputs.extend([&quantize.codes, &quantize.scales]);
                    }
                    None => inputs.push(&x.memory),
                }
                inputs.push(&w.codes.memory);
                inputs.extend(scales);
                inputs.extend(added.map(|added| &added.memory));
                product.enqueue(&inputs, &mut y.memory)
            }
            SparseGemmKernel::Dense(dense) => {
                let DensifiedGemm { unpack, weight, product, .. } = &mut **dense;
                let Some(places) = &w.places else { return Err(NativeError::PlanMismatch) };
                let group_scales = scales.filter(|_| self.spec.weight == SparseWeightFormat::Int4);
                let inputs: Vec<&DeviceMemory> =
                    [&w.codes.memory].into_iter().chain(group_scales).chain([&places.memory]).collect();
                unpack.enqueue_all(&inputs, &mut [&mut weight.memory])?;
                match (product, added, scales) {
                    (DenseLinear::Float(linear), Some(added), _) => linear.enqueue_with_addend(x, weight, added, y),
                    (DenseLinear::Float(linear), None, _) => linear.enqueue(x, weight, y),
                    (DenseLinear::Quantized(linear), added, Some(scales)) => {
                        linear.quantize(x)?;
                        linear.multiply_quantized([&weight.memory, scales], added, y)
                    }
                    (DenseLinear::Quantized(_), _, None) => Err(NativeError::PlanMismatch),
                }
            }
        }
    }

    /// Kernels, their configurations, and the algorithm of cuBLASLt.
    pub fn algorithm(&self) -> String {
        match &self.gemm {
            SparseGemmKernel::Sparse(None, product) => product.algorithm.clone(),
            SparseGemmKernel::Sparse(Some(quantize), product) => {
                format!("{}; then {}", quantize.algorithm, product.algorithm)
            }
            SparseGemmKernel::Dense(dense) => {
                let product = match &dense.product {
                    DenseLinear::Float(linear) => linear.algorithm(),
                    DenseLinear::Quantized(linear) => linear.algorithm(),
                };
                format!("{}; then {product}", dense.algorithm)
            }
        }
    }
}

impl DensifiedGemm {
    /// Selects and compiles; `None` if cuBLASLt has no algorithm and the plan is `optional`.
    fn new(
        device: &Arc<CudaDevice>,
        spec: SparseLinearSpec,
        shape: LinearShape,
        optional: bool,
    ) -> Result<Option<Self>, NativeError> {
        let LinearShape { k, n, .. } = shape;
        let product = match spec.dynamic() {
            Some(dynamic) => {
                DynamicLinearPlan::new(device, dynamic, shape).map(|it| DenseLinear::Quantized(Box::new(it)))
            }
            None => LinearPlan::new(device, spec.kind, shape).map(|it| DenseLinear::Float(Box::new(it))),
        };
        let product = match product {
            Err(NativeError::NoAlgorithm { .. }) if optional => return Ok(None),
            other => other?,
        };
        let (rows, stride, width) = match spec.dynamic() {
            Some(_) => (DynamicLinearPlan::padded_n(n), DynamicLinearPlan::padded_k(k), 1),
            None => (n, k, spec.kind.width()),
        };
        let name = format!("unpack_{}", format_name(spec));
        let blocks = check_size("the number of blocks", (rows * stride / 4).div_ceil(THREADS))?;
        let [numbers, places] = stored_reads(spec, shape);
        let group_scales = weight_scale_bytes(spec, shape).filter(|_| spec.weight == SparseWeightFormat::Int4);
        let mut reads = vec![numbers];
        reads.extend(group_scales.map(|bytes| ("group scales", bytes)));
        reads.push(places);
        let bytes = rows * stride * width;
        let extent = KernelArgs { reads, writes: vec![("w", bytes)], sizes: (n as u64, rows as u64) };
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let macros = macros(&name, spec, k, stride);
        Ok(Some(Self {
            unpack: CudaKernel::prepare(device, CudaSource::SparseToDense, &name, macros, extent, geometry)?,
            weight: device.allocate(bytes)?,
            product,
            algorithm: format!("{name}: {THREADS} threads per block, four values per thread"),
        }))
    }
}

fn macros(name: &str, spec: SparseLinearSpec, k: usize, stride: usize) -> Vec<String> {
    let mut macros = common_macros(name, spec.kind, 1);
    // f32 weights are copied unchanged; int4 weights are dequantized to any dtype.
    macros.extend(format_macros(spec, k));
    macros.extend([format!("STRIDE={stride}u"), format!("THREADS={THREADS}")]);
    macros
}

#[cfg(test)]
mod tests {
    use super::super::{nvrtc::tests::assert_compiles, sparse_gemm::tests::all_specs};
    use super::*;
    use crate::Dtype;

    #[test]
    #[ignore = "needs NVRTC"]
    fn unpack_source_compiles_for_every_spec() {
        for spec in all_specs() {
            assert_compiles(CudaSource::SparseToDense, &macros("unpack", spec, 132, 160));
        }
        assert!(all_specs().iter().any(|spec| spec.kind == Dtype::F32 && spec.bits() == 32));
    }
}
