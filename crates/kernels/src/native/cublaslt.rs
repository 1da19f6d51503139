//! cuBLASLt matmul.

use std::{
    ffi::c_void,
    ptr,
    sync::{Mutex, PoisonError},
};

use cudarc::cublaslt::{
    result::{self, CublasError},
    sys::{
        self, cublasComputeType_t as Compute, cublasLtEpilogue_t as LtEpilogue,
        cublasLtMatmulAlgoConfigAttributes_t as Config, cublasLtMatmulDescAttributes_t as DescAttribute,
        cublasLtMatmulHeuristicResult_t as Candidate, cublasLtMatmulMatrixScale_t as ScaleMode,
        cudaDataType_t as DataType,
    },
};

use super::{
    CudaDevice, Epilogue, Float8Accumulation, InputLayout, LinearShape, NativeError, WeightLayout,
    algorithm_trial::{AlgorithmTrial, MAX_RELATIVE_TIME},
    cublaslt_descriptor::{OwnedDescriptor, own_descriptor},
    cublaslt_handle::cublaslt_error,
    cublaslt_heuristic::HeuristicQuery,
    driver::{DeviceMemory, driver_error},
    gemm_spec::{GemmOutput, GemmScales, GemmSpec, OperandTypes},
};
use crate::Dtype;

const NOT_SUPPORTED: CublasError = CublasError(sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED);

/// `CUBLAS_OP_T`, which the bindings define in cuBLAS only.
const TRANSPOSE: i32 = 1;

/// Device memory of one launch.
#[derive(Debug, Clone, Copy)]
pub(super) struct MatmulOperands<'a> {
    pub(super) x: &'a DeviceMemory,
    pub(super) w: &'a DeviceMemory,
    pub(super) y: &'a DeviceMemory,
    /// f32 scales of x and of w, for a scaled matmul.
    pub(super) scales: Option<[&'a DeviceMemory; 2]>,
    /// Addend with the layout of `y`.
    pub(super) addend: Option<&'a DeviceMemory>,
    /// n elements of the output dtype, for an epilogue with bias.
    pub(super) bias: Option<&'a DeviceMemory>,
}

/// Matmul y = x wᵀ of row-major matrices, with the selected algorithm.
///
/// cuBLASLt is column-major: the row-major y[m, n] is its n × m matrix, the transpose of w[n, k] (its k × n) times x[m,
/// k] (its k × m). A w[k, n] is its n × k and is not transposed; an x[k, m] is its m × k.
#[derive(Debug)]
pub(super) struct CublasLtMatmul {
    shape: LinearShape,
    spec: GemmSpec,
    /// Locked while it contains the addresses of one launch.
    operation: Mutex<OwnedDescriptor<sys::cublasLtMatmulDesc_t>>,
    w: OwnedDescriptor<sys::cublasLtMatrixLayout_t>,
    x: OwnedDescriptor<sys::cublasLtMatrixLayout_t>,
    y: OwnedDescriptor<sys::cublasLtMatrixLayout_t>,
    chosen: Candidate,
    choice: String,
}

// SAFETY: the descriptors are plain host memory; only the locked one changes after construction.
unsafe impl Send for CublasLtMatmul {}
// SAFETY: the descriptors are plain host memory; only the locked one changes after construction.
unsafe impl Sync for CublasLtMatmul {}

impl CublasLtMatmul {
    pub(super) fn plan(device: &CudaDevice, spec: GemmSpec, shape: LinearShape) -> Result<Self, NativeError> {
        let handle = device.cublaslt();
        let refused = cublaslt_error(format!("planning a {spec} matmul of {shape}"));
        handle.context.bind_to_thread().map_err(driver_error("selecting the device"))?;

        let (compute, factor_of_sums) = match spec.operands {
            OperandTypes::Float(_) | OperandTypes::E4m3(_) | OperandTypes::E5m2ByE4m3(_) => {
                (Compute::CUBLAS_COMPUTE_32F, DataType::CUDA_R_32F)
            }
            OperandTypes::Tf32 => (Compute::CUBLAS_COMPUTE_32F_FAST_TF32, DataType::CUDA_R_32F),
            OperandTypes::Int8 => (Compute::CUBLAS_COMPUTE_32I, DataType::CUDA_R_32I),
        };
        let operation =
            own_descriptor(result::create_matmul_desc(compute, factor_of_sums), result::destroy_matmul_desc)
                .map_err(&refused)?;
        if spec.weight == WeightLayout::AlongK {
            operation.set_attribute(DescAttribute::CUBLASLT_MATMUL_DESC_TRANSA, TRANSPOSE).map_err(&refused)?;
        }
        if spec.input == InputLayout::AlongM {
            operation.set_attribute(DescAttribute::CUBLASLT_MATMUL_DESC_TRANSB, TRANSPOSE).map_err(&refused)?;
        }
        if let OperandTypes::E4m3(sums) | OperandTypes::E5m2ByE4m3(sums) = spec.operands {
            let fast = i8::from(sums == Float8Accumulation::Fast);
            operation.set_attribute(DescAttribute::CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast).map_err(&refused)?;
        }
        // A placeholder address until the first launch: the heuristic only checks that it is set.
        let placeholder = device.workspace().address("workspace", device.stream(), 0)?;
        if let Some(epilogue) = lt_epilogue(spec.epilogue) {
            operation.set_attribute(DescAttribute::CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue as u32).map_err(&refused)?;
        }
        if spec.epilogue.has_bias() {
            operation.set_attribute(DescAttribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, placeholder).map_err(&refused)?;
        }
        if let Some([w_mode, x_mode]) = scale_modes(spec.scales) {
            operation
                .set_attribute(DescAttribute::CUBLASLT_MATMUL_DESC_A_SCALE_MODE, w_mode as u32)
                .map_err(&refused)?;
            operation
                .set_attribute(DescAttribute::CUBLASLT_MATMUL_DESC_B_SCALE_MODE, x_mode as u32)
                .map_err(&refused)?;
        }
        if spec.scales != GemmScales::None {
            operation.set_scales([placeholder, placeholder]).map_err(&refused)?;
        }

        let layout = |data_type: DataType, rows: usize, columns: usize| {
            let layout = result::create_matrix_layout(data_type, rows as u64, columns as u64, rows as i64);
            own_descriptor(layout, result::destroy_matrix_layout).map_err(&refused)
        };
        let LinearShape { m, k, n } = shape;
        let factors = operand_data_type(spec.operands);
        let w = match spec.weight {
            WeightLayout::AlongK => layout(factors, k, n)?,
            WeightLayout::AlongN => layout(factors, n, k)?,
        };
        let x_type = match spec.operands {
            OperandTypes::E5m2ByE4m3(_) => DataType::CUDA_R_8F_E5M2,
            _ => factors,
        };
        let x = match spec.input {
            InputLayout::AlongK => layout(x_type, k, m)?,
            InputLayout::AlongM => layout(x_type, m, k)?,
        };
        let y = layout(output_data_type(spec.output), n, m)?;

        let workspace_bytes = device.workspace().len();
        let question = HeuristicQuery {
            handle: handle.raw,
            operation: operation.raw,
            w: w.raw,
            x: x.raw,
            y: y.raw,
            workspace_bytes,
        };
        let no_algorithm = |status: &str| NativeError::NoAlgorithm {
            product: spec.to_string(),
            shape,
            workspace_bytes,
            status: status.to_string(),
        };
        let mut usable = match question.candidates() {
            Err(NOT_SUPPORTED) => return Err(no_algorithm("CUBLAS_STATUS_NOT_SUPPORTED")),
            proposals => proposals.map_err(&refused)?,
        };
        let proposed = usable.len();
        if spec.scales == GemmScales::RowsCols {
            // With per-row scales the heuristic proposes a single algorithm. Most algorithms that it proposes for
            // per-tensor scales support them too.
            let set_mode = |mode: ScaleMode| {
                operation.set_attribute(DescAttribute::CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode as u32)?;
                operation.set_attribute(DescAttribute::CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode as u32)
            };
            set_mode(ScaleMode::CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F).map_err(&refused)?;
            let others = match question.candidates() {
                Err(NOT_SUPPORTED) => Vec::new(),
                proposals => proposals.map_err(&refused)?,
            };
            set_mode(ScaleMode::CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F).map_err(&refused)?;
            let others = others.iter().filter_map(|other| question.check_candidate(other));
            let new = others.filter(|other| usable.iter().all(|known| known.algo.data != other.algo.data));
            let new: Vec<Candidate> = new.collect();
            usable.extend(new);
        }
        let chosen = *usable.first().ok_or_else(|| no_algorithm("no candidates"))?;
        let product = Self { shape, spec, operation: Mutex::new(operation), w, x, y, chosen, choice: String::new() };
        product.pick_fastest(device, &usable, proposed)
    }

    /// Selects the fastest candidate: the cached one, else by timing on scratch buffers; the first one without enough
    /// memory. Candidates after the first `proposed` must reproduce the results of the first.
    fn pick_fastest(
        mut self,
        device: &CudaDevice,
        candidates: &[Candidate],
        proposed: usize,
    ) -> Result<Self, NativeError> {
        let product = self.cache_key(device);
        // A cached algorithm is used only if it is proposed again.
        let known = device.algorithm_cache().get(&product).and_then(|known| {
            let at = candidates.iter().position(|candidate| candidate.algo.data == known.algorithm)?;
            Some((at, known.from_file))
        });
        if let Some((at, earlier)) = known {
            let when = if earlier { "kept from an earlier trial" } else { "all of them tried" };
            self.chosen = candidates[at];
            self.choice = format!("number {} of {}, {when}", at + 1, candidates.len());
            return Ok(self);
        }
        let count = candidates.len();
        let trial = if count == 1 { None } else { AlgorithmTrial::new(device, self.spec, self.shape)? };
        let Some(trial) = trial else {
            self.chosen = candidates[0];
            self.choice = format!("first of {count}");
            return Ok(self);
        };
        let AlgorithmTrial { x, w, y, scales, bias, .. } = &trial;
        let scales = scales.as_ref().map(|[rows, columns]| [rows, columns]);
        let operands = MatmulOperands { x, w, y: &y.memory, scales, addend: None, bias: bias.as_ref() };
        let mut launch = |algorithm: usize| {
            self.chosen = candidates[algorithm];
            self.enqueue(device, operands)
        };
        let mut tried = AlgorithmTrial::time_candidates(device, count, &mut launch);
        let mut rejected = 0;
        let winner = loop {
            let fastest = (0..count).min_by(|a, b| tried[*a].total_cmp(&tried[*b])).unwrap_or(0);
            // Prefer the first candidate unless another is clearly faster, so that repeated runs choose alike.
            if tried[fastest] >= MAX_RELATIVE_TIME * tried[0] {
                break 0;
            }
            if fastest < proposed || trial.outputs_agree(device, [0, fastest], &mut launch)? {
                break fastest;
            }
            rejected += 1;
            tried[fastest] = f64::INFINITY;
        };
        self.chosen = candidates[winner];
        device.algorithm_cache().insert(&product, self.chosen.algo.data);
        self.choice = format!("number {} of {count}, all of them tried", winner + 1);
        if rejected > 0 {
            self.choice += &format!(", {rejected} faster ones with different results");
        }
        Ok(self)
    }

    /// Cache key: library and driver version, GPU, workspace, matmul and sizes.
    fn cache_key(&self, device: &CudaDevice) -> String {
        let (version, workspace) = (library_version(), device.workspace().len());
        let (gpu, driver) = (device.name(), device.driver_version());
        format!("cuBLASLt {version}, driver {driver}, {gpu}, {workspace} B: {:?} {}", self.spec, self.shape)
    }

    pub(super) fn enqueue(&self, device: &CudaDevice, operands: MatmulOperands<'_>) -> Result<(), NativeError> {
        let (handle, stream) = (device.cublaslt(), device.stream());
        let LinearShape { m, k, n } = self.shape;
        let (factor_bytes, output_bytes) = (self.spec.operands.bytes(), self.spec.output.bytes());
        let workspace_bytes = self.chosen.workspaceSize;
        let workspace = device.workspace().address("workspace", stream, workspace_bytes)?;
        let x = operands.x.address("x", stream, m * k * factor_bytes)?;
        let w = operands.w.address("w", stream, n * k * factor_bytes)?;
        let y = operands.y.address("y", stream, m * n * output_bytes)?;
        let (added, adds) = match operands.addend {
            Some(added) => (added.address("addend", stream, m * n * output_bytes)?, true),
            None => (y, false),
        };
        let scales = match operands.scales {
            Some([rows, columns]) => {
                let [row_bytes, column_bytes] = self.spec.scales.counts(self.shape).map(|count| 4 * count);
                let columns = columns.address("column scales", stream, column_bytes)?;
                Some([columns, rows.address("row scales", stream, row_bytes)?])
            }
            None => None,
        };
        assert_eq!(scales.is_some(), self.spec.scales != GemmScales::None, "a scaled matmul takes scales");
        let bias = operands.bias.map(|bias| bias.address("bias", stream, n * output_bytes)).transpose()?;
        assert_eq!(bias.is_some(), self.spec.epilogue.has_bias(), "a matmul with bias takes a bias");
        stream.context().bind_to_thread().map_err(driver_error("selecting the device"))?;
        // Defers formatting to the error path.
        let refused = |error| cublaslt_error(format!("the {} matmul of {}", self.spec, self.shape))(error);
        // A panic in another thread leaves stale addresses, which this launch replaces.
        let operation = self.operation.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(addresses) = scales {
            operation.set_scales(addresses).map_err(refused)?;
        }
        if let Some(address) = bias {
            operation.set_attribute(DescAttribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, address).map_err(refused)?;
        }
        // alpha and beta in the dtype of the accumulators.
        let [alpha, beta] = match self.spec.operands {
            OperandTypes::Int8 => [1, u32::from(adds)],
            _ => [1.0, if adds { 1.0 } else { 0.0 }].map(f32::to_bits),
        };
        // SAFETY: the descriptors are live and describe memory of exactly the sizes just checked. alpha, beta and the
        // addresses of scales and bias are read before the call returns. The stream orders this work with every other
        // access to the memory.
        unsafe {
            result::matmul(
                handle.raw,
                operation.raw,
                ptr::from_ref(&alpha).cast(),
                ptr::from_ref(&beta).cast(),
                w as *const c_void,
                self.w.raw,
                x as *const c_void,
                self.x.raw,
                added as *const c_void,
                self.y.raw,
                y as *mut c_void,
                self.y.raw,
                &self.chosen.algo,
                workspace as *mut c_void,
                workspace_bytes,
                stream.cu_stream().cast(),
            )
        }
        .map_err(refused)
    }

    /// Describes the algorithm by the numeric settings that the library reports; values are those of the enumerations
    /// in its header.
    pub(super) fn describe(&self) -> String {
        let version = library_version();
        let settings = [
            ("algo", Config::CUBLASLT_ALGO_CONFIG_ID, 4),
            ("tile", Config::CUBLASLT_ALGO_CONFIG_TILE_ID, 4),
            ("stages", Config::CUBLASLT_ALGO_CONFIG_STAGES_ID, 4),
            ("split_k", Config::CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4),
            ("reduction", Config::CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4),
            ("swizzle", Config::CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4),
            ("custom", Config::CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4),
            ("inner", Config::CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2),
            ("cluster", Config::CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2),
        ];
        let settings: String = settings
            .into_iter()
            .filter_map(|(name, attribute, bytes)| {
                Some(format!(" {name}={}", self.algorithm_setting(attribute, bytes)?))
            })
            .collect();
        let Candidate { workspaceSize: workspace, wavesCount: waves, .. } = self.chosen;
        format!("cuBLASLt {version}{settings} workspace={workspace} waves={waves:.2} ({})", self.choice)
    }

    /// Returns a setting of the algorithm, of 2 or 4 bytes; `None` if this version does not report it.
    fn algorithm_setting(&self, attribute: Config, bytes: usize) -> Option<u32> {
        // Reads little-endian into a zeroed word: correct for both sizes on every platform of CUDA.
        let mut value = 0u32;
        let mut written = 0;
        // SAFETY: `value` has at least the `bytes` bytes that may be written.
        unsafe {
            sys::cublasLtMatmulAlgoConfigGetAttribute(
                &self.chosen.algo,
                attribute,
                ptr::from_mut(&mut value).cast(),
                bytes,
                &mut written,
            )
        }
        .result()
        .ok()?;
        (written == bytes).then_some(value)
    }
}

/// Scale modes of the library's A (w) and B (x); `None` for the default of one scale per tensor.
fn scale_modes(scales: GemmScales) -> Option<[ScaleMode; 2]> {
    match scales {
        GemmScales::None | GemmScales::Tensors => None,
        GemmScales::RowsCols => Some([ScaleMode::CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F; 2]),
        GemmScales::Blocks => Some([
            ScaleMode::CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
            ScaleMode::CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
        ]),
    }
}

/// Library version.
fn library_version() -> usize {
    // SAFETY: takes no arguments and returns an integer.
    unsafe { sys::cublasLtGetVersion() }
}

fn lt_epilogue(epilogue: Epilogue) -> Option<LtEpilogue> {
    match epilogue {
        Epilogue::None => None,
        Epilogue::Bias => Some(LtEpilogue::CUBLASLT_EPILOGUE_BIAS),
        Epilogue::Relu => Some(LtEpilogue::CUBLASLT_EPILOGUE_RELU),
        Epilogue::BiasRelu => Some(LtEpilogue::CUBLASLT_EPILOGUE_RELU_BIAS),
    }
}

fn operand_data_type(factors: OperandTypes) -> DataType {
    match factors {
        OperandTypes::Float(kind) => data_type(kind),
        OperandTypes::Tf32 => DataType::CUDA_R_32F,
        OperandTypes::E4m3(_) | OperandTypes::E5m2ByE4m3(_) => DataType::CUDA_R_8F_E4M3,
        OperandTypes::Int8 => DataType::CUDA_R_8I,
    }
}

fn output_data_type(output: GemmOutput) -> DataType {
    match output {
        GemmOutput::Float(kind) => data_type(kind),
        GemmOutput::Int32 => DataType::CUDA_R_32I,
    }
}

fn data_type(kind: Dtype) -> DataType {
    match kind {
        Dtype::F32 => DataType::CUDA_R_32F,
        Dtype::F16 => DataType::CUDA_R_16F,
        Dtype::Bf16 => DataType::CUDA_R_16BF,
    }
}
