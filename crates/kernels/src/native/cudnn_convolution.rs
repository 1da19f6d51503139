//! A convolution with bias and ReLU as a graph of cuDNN's operations, and the plans that it has for it.

use std::{ffi::c_int, fmt, sync::Arc};

use super::{
    ConvolutionForm, Machine, NativeError,
    cudnn::{Address, ConvolutionMode, DataType, Descriptor, Handle, Kind, Mode, PointwiseMode},
    driver::Memory,
};
use crate::Dtype;

/// The plans for a convolution that may be chosen from.
pub(super) struct CudnnConvolution {
    bytes: [usize; 4],
    plans: Vec<Plan>,
    /// What plans refer to, directly or not.
    _graph: Vec<Descriptor>,
    /// Last: what was made with it goes before it.
    handle: Handle,
}

/// One way to compute it.
struct Plan {
    plan: Descriptor,
    _config: Descriptor,
    workspace_bytes: usize,
    engine: i64,
}

/// What the tensors are called in a pack.
const NAMES: [i64; 4] = [1, 2, 3, 4];
/// The sums, and these with the bias, which are never in memory.
const BETWEEN: [i64; 2] = [5, 6];
/// Plans that are tried: the library names the most promising first.
const MOST: usize = 8;

// Attributes, by the numbers of `cudnnBackendAttributeName_t`.
const FUNCTION_MODE: c_int = 0;
const FUNCTION_SUMS: c_int = 1;
const CONVOLUTION_SUMS: c_int = 100;
const CONVOLUTION_MODE: c_int = 101;
const CONVOLUTION_DILATIONS: c_int = 102;
const CONVOLUTION_STRIDES: c_int = 103;
const CONVOLUTION_BEHIND: c_int = 104;
const CONVOLUTION_BEFORE: c_int = 105;
const CONVOLUTION_DIMENSIONS: c_int = 106;
const HEURISTICS_MODE: c_int = 200;
const HEURISTICS_GRAPH: c_int = 201;
const HEURISTICS_RESULTS: c_int = 202;
const CONFIG_ENGINE: c_int = 300;
const PLAN_HANDLE: c_int = 400;
const PLAN_CONFIG: c_int = 401;
const PLAN_WORKSPACE: c_int = 402;
const MULTIPLY_ALPHA: c_int = 700;
const MULTIPLY_BETA: c_int = 701;
const MULTIPLY_HOW: c_int = 702;
const MULTIPLY_W: c_int = 703;
const MULTIPLY_X: c_int = 704;
const MULTIPLY_Y: c_int = 705;
const OPERATION_FUNCTION: c_int = 750;
const OPERATION_X: c_int = 751;
const OPERATION_B: c_int = 752;
const OPERATION_Y: c_int = 753;
const GRAPH_HANDLE: c_int = 800;
const GRAPH_OPERATIONS: c_int = 801;
const TENSOR_ALIGNMENT: c_int = 900;
const TENSOR_NUMBERS: c_int = 901;
const TENSOR_SIZES: c_int = 902;
const TENSOR_STEPS: c_int = 903;
const TENSOR_NAME: c_int = 906;
const TENSOR_BETWEEN: c_int = 907;
const PACK_NAMES: c_int = 1000;
const PACK_ADDRESSES: c_int = 1001;
const PACK_WORKSPACE: c_int = 1003;
const ENGINE_INDEX: c_int = 1301;

const FLOAT: DataType = DataType(0);
const CROSS_CORRELATION: ConvolutionMode = ConvolutionMode(1);
const BY_MODEL: Mode = Mode(3);
const FALLBACK: Mode = Mode(2);
const ADD: PointwiseMode = PointwiseMode(0);
const RELU: PointwiseMode = PointwiseMode(100);

impl CudnnConvolution {
    pub(super) fn new(machine: &Arc<Machine>, kind: Dtype, form: ConvolutionForm) -> Result<Self, NativeError> {
        let handle = Handle::create(machine.stream())?;
        let graph = graph(&handle, kind, form)?;
        let whole = graph.last().expect("a graph has operations");
        let limit = machine.workspace().len();
        let mut plans = Vec::new();
        // The library's model of its engines, and what it falls back to where that knows none.
        for mode in [BY_MODEL, FALLBACK] {
            if plans.is_empty() {
                let heuristics = Descriptor::new(Kind::Heuristics)?
                    .with(HEURISTICS_GRAPH, &[whole.reference()])?
                    .with(HEURISTICS_MODE, &[mode])?
                    .finished()?;
                let configs = heuristics.descriptors(HEURISTICS_RESULTS, Kind::EngineConfig, MOST)?;
                plans.extend(configs.into_iter().filter_map(|config| Plan::new(&handle, config, limit)));
            }
        }
        if plans.is_empty() {
            return Err(NativeError::NoPlan { convolution: format!("{kind} {form}"), workspace_bytes: limit });
        }
        let bytes = [form.x_bytes(kind), form.w_bytes(kind), form.bias_bytes(kind), form.y_bytes(kind)];
        Ok(Self { bytes, plans, _graph: graph, handle })
    }

    /// How many plans there are.
    pub(super) fn plans(&self) -> usize {
        self.plans.len()
    }

    /// Enqueues one run by one of the plans.
    pub(super) fn enqueue(
        &self,
        plan: usize,
        machine: &Machine,
        [x, w, bias]: [&Memory; 3],
        y: &mut Memory,
    ) -> Result<(), NativeError> {
        let stream = machine.stream();
        let Plan { plan, workspace_bytes, .. } = &self.plans[plan];
        let [x_bytes, w_bytes, bias_bytes, y_bytes] = self.bytes;
        let addresses = [
            x.address("x", stream, x_bytes)?,
            w.address("w", stream, w_bytes)?,
            bias.address("bias", stream, bias_bytes)?,
            y.address("y", stream, y_bytes)?,
        ];
        let workspace = machine.workspace().address("workspace", stream, *workspace_bytes)?;
        let pack = Descriptor::new(Kind::VariantPack)?
            .with(PACK_NAMES, &NAMES)?
            .with(PACK_ADDRESSES, &addresses.map(Address))?
            .with(PACK_WORKSPACE, &[Address(workspace)])?
            .finished()?;
        // SAFETY: every buffer was just checked to be as long as its tensor, and belongs to the stream of the handle.
        unsafe { self.handle.execute(plan, &pack) }
    }

    /// One of the plans, in words.
    pub(super) fn describe(&self, plan: usize) -> String {
        let Plan { engine, workspace_bytes, .. } = &self.plans[plan];
        format!("cuDNN {} engine {engine} workspace={workspace_bytes}", self.handle.version())
    }
}

impl fmt::Debug for CudnnConvolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudnnConvolution").field("plans", &self.plans.len()).finish_non_exhaustive()
    }
}

impl Plan {
    /// `None` if the library has none for this configuration after all, or one that needs more workspace.
    fn new(handle: &Handle, config: Descriptor, limit: usize) -> Option<Self> {
        let plan = Descriptor::new(Kind::Plan).and_then(|plan| {
            plan.with_handle(PLAN_HANDLE, handle)?.with(PLAN_CONFIG, &[config.reference()])?.finished()
        });
        let plan = plan.ok()?;
        let workspace_bytes = usize::try_from(plan.number(PLAN_WORKSPACE).ok()?).ok()?;
        let mut engines = config.descriptors(CONFIG_ENGINE, Kind::Engine, 1).ok()?;
        let engine = engines.pop().and_then(|engine| engine.number(ENGINE_INDEX).ok()).unwrap_or(-1);
        (workspace_bytes <= limit).then_some(Self { plan, _config: config, workspace_bytes, engine })
    }
}

/// All descriptors of the graph, which is the last.
fn graph(handle: &Handle, kind: Dtype, form: ConvolutionForm) -> Result<Vec<Descriptor>, NativeError> {
    let ConvolutionForm { images, height, width, side, stride, padding, relu, .. } = form;
    let (channels, filters) = (form.stored_channels(), form.stored_filters());
    let [out_height, out_width] = form.out_size();
    let numbers = match kind {
        Dtype::F32 => FLOAT,
        Dtype::F16 => DataType(2),
        Dtype::Bf16 => DataType(9),
    };
    let tensor = |name: i64, numbers: DataType, sizes: [usize; 4], between: bool| {
        let [_, channels, height, width] = sizes.map(|size| size as i64);
        // Sizes are named with the channels second, wherever these lie.
        let steps = [height * width * channels, 1, width * channels, channels];
        Descriptor::new(Kind::Tensor)?
            .with(TENSOR_NUMBERS, &[numbers])?
            .with(TENSOR_SIZES, &sizes.map(|size| size as i64))?
            .with(TENSOR_STEPS, &steps)?
            .with(TENSOR_NAME, &[name])?
            .with(TENSOR_ALIGNMENT, &[16_i64])?
            .with(TENSOR_BETWEEN, &[between])?
            .finished()
    };
    let of_y = [images, filters, out_height, out_width];
    let x = tensor(NAMES[0], numbers, [images, channels, height, width], false)?;
    let w = tensor(NAMES[1], numbers, [filters, channels, side, side], false)?;
    let bias = tensor(NAMES[2], numbers, [1, filters, 1, 1], false)?;
    let y = tensor(NAMES[3], numbers, of_y, false)?;
    let sums = tensor(BETWEEN[0], FLOAT, of_y, true)?;
    let both = |size: usize| [size as i64; 2];
    let convolution = Descriptor::new(Kind::Convolution)?
        .with(CONVOLUTION_DIMENSIONS, &[2_i64])?
        .with(CONVOLUTION_SUMS, &[FLOAT])?
        .with(CONVOLUTION_MODE, &[CROSS_CORRELATION])?
        .with(CONVOLUTION_BEFORE, &both(padding))?
        .with(CONVOLUTION_BEHIND, &both(padding))?
        .with(CONVOLUTION_DILATIONS, &both(1))?
        .with(CONVOLUTION_STRIDES, &both(stride))?
        .finished()?;
    let multiply = Descriptor::new(Kind::ConvolutionForward)?
        .with(MULTIPLY_X, &[x.reference()])?
        .with(MULTIPLY_W, &[w.reference()])?
        .with(MULTIPLY_Y, &[sums.reference()])?
        .with(MULTIPLY_HOW, &[convolution.reference()])?
        .with(MULTIPLY_ALPHA, &[1.0_f32])?
        .with(MULTIPLY_BETA, &[0.0_f32])?
        .finished()?;
    let function = |mode| {
        Descriptor::new(Kind::Pointwise)?.with(FUNCTION_MODE, &[mode])?.with(FUNCTION_SUMS, &[FLOAT])?.finished()
    };
    let operation = |function: &Descriptor, from: &Descriptor, with: Option<&Descriptor>, to: &Descriptor| {
        let operation = Descriptor::new(Kind::PointwiseOperation)?
            .with(OPERATION_FUNCTION, &[function.reference()])?
            .with(OPERATION_X, &[from.reference()])?
            .with(OPERATION_Y, &[to.reference()])?;
        match with {
            Some(with) => operation.with(OPERATION_B, &[with.reference()])?.finished(),
            None => operation.finished(),
        }
    };
    let adding = function(ADD)?;
    let mut descriptors = Vec::new();
    let operations = if relu {
        let with_bias = tensor(BETWEEN[1], FLOAT, of_y, true)?;
        let positive = function(RELU)?;
        let add = operation(&adding, &sums, Some(&bias), &with_bias)?;
        let cut = operation(&positive, &with_bias, None, &y)?;
        descriptors.extend([with_bias, positive]);
        vec![multiply, add, cut]
    } else {
        let add = operation(&adding, &sums, Some(&bias), &y)?;
        vec![multiply, add]
    };
    let references: Vec<_> = operations.iter().map(Descriptor::reference).collect();
    let graph = Descriptor::new(Kind::Graph)?
        .with_handle(GRAPH_HANDLE, handle)?
        .with(GRAPH_OPERATIONS, &references)?
        .finished()?;
    descriptors.extend([x, w, bias, y, sums, convolution, adding]);
    descriptors.extend(operations);
    descriptors.push(graph);
    Ok(descriptors)
}
