//! cuDNN operation graph for a convolution with bias and ReLU, and its execution plans.

use std::{ffi::c_int, fmt, sync::Arc};

use super::{
    ConvolutionSpec, CudaDevice, NativeError,
    cudnn::{
        ConvolutionMode, CudnnDataType, CudnnDescriptor, CudnnHandle, DescriptorKind, DeviceAddress, HeuristicMode,
        PointwiseMode,
    },
    driver::DeviceMemory,
};
use crate::Dtype;

/// Candidate execution plans for a convolution.
pub(super) struct CudnnConvolution {
    bytes: [usize; 4],
    plans: Vec<EnginePlan>,
    /// Descriptors that the plans refer to, directly or indirectly.
    _graph: Vec<CudnnDescriptor>,
    /// Declared last: must be dropped after everything created with it.
    handle: CudnnHandle,
}

/// Execution plan of one engine configuration.
struct EnginePlan {
    plan: CudnnDescriptor,
    _config: CudnnDescriptor,
    workspace_bytes: usize,
    engine: i64,
}

/// Unique ids of the tensors x, w, bias and y in a variant pack.
const TENSOR_IDS: [i64; 4] = [1, 2, 3, 4];
/// Unique ids of the virtual tensors: convolution output without and with bias. They are never stored in memory.
const VIRTUAL_TENSOR_IDS: [i64; 2] = [5, 6];
/// Maximum number of plans to time; the library lists the most promising first.
const MAX_PLANS: usize = 8;

// Attribute names, as in `cudnnBackendAttributeName_t`.
const POINTWISE_MODE: c_int = 0;
const POINTWISE_COMPUTE_TYPE: c_int = 1;
const CONVOLUTION_COMPUTE_TYPE: c_int = 100;
const CONVOLUTION_MODE: c_int = 101;
const CONVOLUTION_DILATIONS: c_int = 102;
const CONVOLUTION_STRIDES: c_int = 103;
const CONVOLUTION_POST_PADDING: c_int = 104;
const CONVOLUTION_PRE_PADDING: c_int = 105;
const CONVOLUTION_SPATIAL_DIMS: c_int = 106;
const HEURISTICS_MODE: c_int = 200;
const HEURISTICS_GRAPH: c_int = 201;
const HEURISTICS_RESULTS: c_int = 202;
const CONFIG_ENGINE: c_int = 300;
const PLAN_HANDLE: c_int = 400;
const PLAN_CONFIG: c_int = 401;
const PLAN_WORKSPACE: c_int = 402;
const FORWARD_ALPHA: c_int = 700;
const FORWARD_BETA: c_int = 701;
const FORWARD_CONVOLUTION: c_int = 702;
const FORWARD_W: c_int = 703;
const FORWARD_X: c_int = 704;
const FORWARD_Y: c_int = 705;
const OPERATION_POINTWISE: c_int = 750;
const OPERATION_X: c_int = 751;
const OPERATION_B: c_int = 752;
const OPERATION_Y: c_int = 753;
const GRAPH_HANDLE: c_int = 800;
const GRAPH_OPERATIONS: c_int = 801;
const TENSOR_ALIGNMENT: c_int = 900;
const TENSOR_DATA_TYPE: c_int = 901;
const TENSOR_SIZES: c_int = 902;
const TENSOR_STRIDES: c_int = 903;
const TENSOR_UNIQUE_ID: c_int = 906;
const TENSOR_IS_VIRTUAL: c_int = 907;
const PACK_UNIQUE_IDS: c_int = 1000;
const PACK_DATA_POINTERS: c_int = 1001;
const PACK_WORKSPACE: c_int = 1003;
const ENGINE_INDEX: c_int = 1301;

const FLOAT: CudnnDataType = CudnnDataType(0);
const CROSS_CORRELATION: ConvolutionMode = ConvolutionMode(1);
const HEURISTIC_MODE_A: HeuristicMode = HeuristicMode(3);
const HEURISTIC_FALLBACK: HeuristicMode = HeuristicMode(2);
const ADD: PointwiseMode = PointwiseMode(0);
const RELU: PointwiseMode = PointwiseMode(100);

impl CudnnConvolution {
    pub(super) fn new(device: &Arc<CudaDevice>, kind: Dtype, spec: ConvolutionSpec) -> Result<Self, NativeError> {
        let handle = CudnnHandle::create(device.stream())?;
        let graph = graph(&handle, kind, spec)?;
        let whole = graph.last().expect("a graph has operations");
        let limit = device.workspace().len();
        let mut plans = Vec::new();
        // Heuristic of the library; its fallback mode if the heuristic has no result.
        for mode in [HEURISTIC_MODE_A, HEURISTIC_FALLBACK] {
            if plans.is_empty() {
                let heuristics = CudnnDescriptor::new(DescriptorKind::Heuristics)?
                    .with_attribute(HEURISTICS_GRAPH, &[whole.reference()])?
                    .with_attribute(HEURISTICS_MODE, &[mode])?
                    .finalize()?;
                let configs =
                    heuristics.descriptor_array(HEURISTICS_RESULTS, DescriptorKind::EngineConfig, MAX_PLANS)?;
                plans.extend(configs.into_iter().filter_map(|config| EnginePlan::new(&handle, config, limit)));
            }
        }
        if plans.is_empty() {
            return Err(NativeError::NoPlan { convolution: format!("{kind} {spec}"), workspace_bytes: limit });
        }
        let bytes = [spec.x_bytes(kind), spec.w_bytes(kind), spec.bias_bytes(kind), spec.y_bytes(kind)];
        Ok(Self { bytes, plans, _graph: graph, handle })
    }

    /// Number of plans.
    pub(super) fn plan_count(&self) -> usize {
        self.plans.len()
    }

    /// Enqueues a launch of one plan.
    pub(super) fn enqueue(
        &self,
        plan: usize,
        device: &CudaDevice,
        [x, w, bias]: [&DeviceMemory; 3],
        y: &mut DeviceMemory,
    ) -> Result<(), NativeError> {
        let stream = device.stream();
        let EnginePlan { plan, workspace_bytes, .. } = &self.plans[plan];
        let [x_bytes, w_bytes, bias_bytes, y_bytes] = self.bytes;
        let addresses = [
            x.address("x", stream, x_bytes)?,
            w.address("w", stream, w_bytes)?,
            bias.address("bias", stream, bias_bytes)?,
            y.address("y", stream, y_bytes)?,
        ];
        let workspace = device.workspace().address("workspace", stream, *workspace_bytes)?;
        let pack = CudnnDescriptor::new(DescriptorKind::VariantPack)?
            .with_attribute(PACK_UNIQUE_IDS, &TENSOR_IDS)?
            .with_attribute(PACK_DATA_POINTERS, &addresses.map(DeviceAddress))?
            .with_attribute(PACK_WORKSPACE, &[DeviceAddress(workspace)])?
            .finalize()?;
        // SAFETY: every buffer was just checked to be as long as its tensor, and belongs to the stream of the handle.
        unsafe { self.handle.execute(plan, &pack) }
    }

    /// Library version, engine and workspace of a plan.
    pub(super) fn describe(&self, plan: usize) -> String {
        let EnginePlan { engine, workspace_bytes, .. } = &self.plans[plan];
        format!("cuDNN {} engine {engine} workspace={workspace_bytes}", self.handle.version())
    }
}

impl fmt::Debug for CudnnConvolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudnnConvolution").field("plans", &self.plans.len()).finish_non_exhaustive()
    }
}

impl EnginePlan {
    /// Finalizes a plan; `None` if the library does not support the configuration or needs more workspace than `limit`.
    fn new(handle: &CudnnHandle, config: CudnnDescriptor, limit: usize) -> Option<Self> {
        let plan = CudnnDescriptor::new(DescriptorKind::Plan).and_then(|plan| {
            plan.with_handle(PLAN_HANDLE, handle)?.with_attribute(PLAN_CONFIG, &[config.reference()])?.finalize()
        });
        let plan = plan.ok()?;
        let workspace_bytes = usize::try_from(plan.integer_attribute(PLAN_WORKSPACE).ok()?).ok()?;
        let mut engines = config.descriptor_array(CONFIG_ENGINE, DescriptorKind::Engine, 1).ok()?;
        let engine = engines.pop().and_then(|engine| engine.integer_attribute(ENGINE_INDEX).ok()).unwrap_or(-1);
        (workspace_bytes <= limit).then_some(Self { plan, _config: config, workspace_bytes, engine })
    }
}

/// Creates the descriptors of the graph; the graph itself is the last.
fn graph(handle: &CudnnHandle, kind: Dtype, spec: ConvolutionSpec) -> Result<Vec<CudnnDescriptor>, NativeError> {
    let ConvolutionSpec { images, height, width, filter_size: side, stride, padding, relu, .. } = spec;
    let (channels, filters) = (spec.stored_channels(), spec.stored_filters());
    let [out_height, out_width] = spec.out_size();
    let numbers = match kind {
        Dtype::F32 => FLOAT,
        Dtype::F16 => CudnnDataType(2),
        Dtype::Bf16 => CudnnDataType(9),
    };
    let tensor = |name: i64, numbers: CudnnDataType, sizes: [usize; 4], between: bool| {
        let [_, channels, height, width] = sizes.map(|size| size as i64);
        // Sizes are in NCHW order regardless of the memory layout.
        let steps = [height * width * channels, 1, width * channels, channels];
        CudnnDescriptor::new(DescriptorKind::Tensor)?
            .with_attribute(TENSOR_DATA_TYPE, &[numbers])?
            .with_attribute(TENSOR_SIZES, &sizes.map(|size| size as i64))?
            .with_attribute(TENSOR_STRIDES, &steps)?
            .with_attribute(TENSOR_UNIQUE_ID, &[name])?
            .with_attribute(TENSOR_ALIGNMENT, &[16_i64])?
            .with_attribute(TENSOR_IS_VIRTUAL, &[between])?
            .finalize()
    };
    let of_y = [images, filters, out_height, out_width];
    let x = tensor(TENSOR_IDS[0], numbers, [images, channels, height, width], false)?;
    let w = tensor(TENSOR_IDS[1], numbers, [filters, channels, side, side], false)?;
    let bias = tensor(TENSOR_IDS[2], numbers, [1, filters, 1, 1], false)?;
    let y = tensor(TENSOR_IDS[3], numbers, of_y, false)?;
    let sums = tensor(VIRTUAL_TENSOR_IDS[0], FLOAT, of_y, true)?;
    let both = |size: usize| [size as i64; 2];
    let convolution = CudnnDescriptor::new(DescriptorKind::Convolution)?
        .with_attribute(CONVOLUTION_SPATIAL_DIMS, &[2_i64])?
        .with_attribute(CONVOLUTION_COMPUTE_TYPE, &[FLOAT])?
        .with_attribute(CONVOLUTION_MODE, &[CROSS_CORRELATION])?
        .with_attribute(CONVOLUTION_PRE_PADDING, &both(padding))?
        .with_attribute(CONVOLUTION_POST_PADDING, &both(padding))?
        .with_attribute(CONVOLUTION_DILATIONS, &both(1))?
        .with_attribute(CONVOLUTION_STRIDES, &both(stride))?
        .finalize()?;
    let multiply = CudnnDescriptor::new(DescriptorKind::ConvolutionForward)?
        .with_attribute(FORWARD_X, &[x.reference()])?
        .with_attribute(FORWARD_W, &[w.reference()])?
        .with_attribute(FORWARD_Y, &[sums.reference()])?
        .with_attribute(FORWARD_CONVOLUTION, &[convolution.reference()])?
        .with_attribute(FORWARD_ALPHA, &[1.0_f32])?
        .with_attribute(FORWARD_BETA, &[0.0_f32])?
        .finalize()?;
    let function = |mode| {
        CudnnDescriptor::new(DescriptorKind::Pointwise)?
            .with_attribute(POINTWISE_MODE, &[mode])?
            .with_attribute(POINTWISE_COMPUTE_TYPE, &[FLOAT])?
            .finalize()
    };
    let operation =
        |function: &CudnnDescriptor, from: &CudnnDescriptor, with: Option<&CudnnDescriptor>, to: &CudnnDescriptor| {
            let operation = CudnnDescriptor::new(DescriptorKind::PointwiseOperation)?
                .with_attribute(OPERATION_POINTWISE, &[function.reference()])?
                .with_attribute(OPERATION_X, &[from.reference()])?
                .with_attribute(OPERATION_Y, &[to.reference()])?;
            match with {
                Some(with) => operation.with_attribute(OPERATION_B, &[with.reference()])?.finalize(),
                None => operation.finalize(),
            }
        };
    let adding = function(ADD)?;
    let mut descriptors = Vec::new();
    let operations = if relu {
        let with_bias = tensor(VIRTUAL_TENSOR_IDS[1], FLOAT, of_y, true)?;
        let positive = function(RELU)?;
        let add = operation(&adding, &sums, Some(&bias), &with_bias)?;
        let relu_operation = operation(&positive, &with_bias, None, &y)?;
        descriptors.extend([with_bias, positive]);
        vec![multiply, add, relu_operation]
    } else {
        let add = operation(&adding, &sums, Some(&bias), &y)?;
        vec![multiply, add]
    };
    let references: Vec<_> = operations.iter().map(CudnnDescriptor::reference).collect();
    let graph = CudnnDescriptor::new(DescriptorKind::Graph)?
        .with_handle(GRAPH_HANDLE, handle)?
        .with_attribute(GRAPH_OPERATIONS, &references)?
        .finalize()?;
    descriptors.extend([x, w, bias, y, sums, convolution, adding]);
    descriptors.extend(operations);
    descriptors.push(graph);
    Ok(descriptors)
}
