//! cuBLASLt: the handle and one matrix product.

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
    Epilogue, Float8Sums, InputLayout, LinearShape, Machine, NativeError, WeightLayout,
    cublaslt_descriptor::{Owned, owned},
    cublaslt_handle::refused,
    cublaslt_proposals::Question,
    cublaslt_trial::{Trial, WORTH},
    driver::{Memory, failed},
    form::{Factors, Form, Scales, Written},
};
use crate::Dtype;

const NOT_SUPPORTED: CublasError = CublasError(sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED);

/// `CUBLAS_OP_T`, which the bindings keep with cuBLAS.
const TRANSPOSE: i32 = 1;

/// The memory of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operands<'a> {
    pub(super) x: &'a Memory,
    pub(super) w: &'a Memory,
    pub(super) y: &'a Memory,
    /// f32 scales of x and of w, if the product is scaled.
    pub(super) scales: Option<[&'a Memory; 2]>,
    /// What is added to the product, laid out like `y`.
    pub(super) added: Option<&'a Memory>,
    /// n numbers of the output's type, if the form has a bias.
    pub(super) bias: Option<&'a Memory>,
}

/// The product y = x wᵀ of row-major matrices, with the algorithm that will compute it.
///
/// cuBLASLt counts in columns: our row-major y[m, n] is its column-major n × m, which is the transpose of w[n, k] (its
/// k × n) times x[m, k] (its k × m). A w[k, n] is its n × k, and is multiplied as it is; an x[k, m] is its m × k.
#[derive(Debug)]
pub(super) struct Product {
    shape: LinearShape,
    form: Form,
    /// Locked while the addresses in it belong to one run.
    operation: Mutex<Owned<sys::cublasLtMatmulDesc_t>>,
    w: Owned<sys::cublasLtMatrixLayout_t>,
    x: Owned<sys::cublasLtMatrixLayout_t>,
    y: Owned<sys::cublasLtMatrixLayout_t>,
    chosen: Candidate,
    choice: String,
}

// SAFETY: the descriptors are plain host memory; only the locked one changes once the product is made.
unsafe impl Send for Product {}
// SAFETY: as above.
unsafe impl Sync for Product {}

impl Product {
    pub(super) fn plan(machine: &Machine, form: Form, shape: LinearShape) -> Result<Self, NativeError> {
        let handle = machine.cublaslt();
        let refused = refused(format!("planning a {form} product of {shape}"));
        handle.context.bind_to_thread().map_err(failed("selecting the device"))?;

        let (compute, factor_of_sums) = match form.factors {
            Factors::Whole(_) | Factors::E4m3(_) | Factors::E5m2ByE4m3(_) => {
                (Compute::CUBLAS_COMPUTE_32F, DataType::CUDA_R_32F)
            }
            Factors::Tf32 => (Compute::CUBLAS_COMPUTE_32F_FAST_TF32, DataType::CUDA_R_32F),
            Factors::Int8 => (Compute::CUBLAS_COMPUTE_32I, DataType::CUDA_R_32I),
        };
        let operation = owned(result::create_matmul_desc(compute, factor_of_sums), result::destroy_matmul_desc)
            .map_err(&refused)?;
        if form.weight == WeightLayout::AlongK {
            operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_TRANSA, TRANSPOSE).map_err(&refused)?;
        }
        if form.input == InputLayout::AlongM {
            operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_TRANSB, TRANSPOSE).map_err(&refused)?;
        }
        if let Factors::E4m3(sums) | Factors::E5m2ByE4m3(sums) = form.factors {
            let fast = i8::from(sums == Float8Sums::Fast);
            operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast).map_err(&refused)?;
        }
        // Any address will do until the first run: the heuristic only looks whether there is one.
        let some = machine.workspace().address("workspace", machine.stream(), 0)?;
        if let Some(epilogue) = lt_epilogue(form.epilogue) {
            operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue as u32).map_err(&refused)?;
        }
        if form.epilogue.has_bias() {
            operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, some).map_err(&refused)?;
        }
        if let Some([of_w, of_x]) = scale_modes(form.scales) {
            operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_A_SCALE_MODE, of_w as u32).map_err(&refused)?;
            operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_B_SCALE_MODE, of_x as u32).map_err(&refused)?;
        }
        if form.scales != Scales::Nothing {
            operation.set_scales([some, some]).map_err(&refused)?;
        }

        let layout = |data_type: DataType, rows: usize, columns: usize| {
            let layout = result::create_matrix_layout(data_type, rows as u64, columns as u64, rows as i64);
            owned(layout, result::destroy_matrix_layout).map_err(&refused)
        };
        let LinearShape { m, k, n } = shape;
        let factors = factor_type(form.factors);
        let w = match form.weight {
            WeightLayout::AlongK => layout(factors, k, n)?,
            WeightLayout::AlongN => layout(factors, n, k)?,
        };
        let of_input = match form.factors {
            Factors::E5m2ByE4m3(_) => DataType::CUDA_R_8F_E5M2,
            _ => factors,
        };
        let x = match form.input {
            InputLayout::AlongK => layout(of_input, k, m)?,
            InputLayout::AlongM => layout(of_input, m, k)?,
        };
        let y = layout(output_type(form.output), n, m)?;

        let workspace_bytes = machine.workspace().len();
        let question =
            Question { handle: handle.raw, operation: operation.raw, w: w.raw, x: x.raw, y: y.raw, workspace_bytes };
        let no_algorithm = |status: &str| NativeError::NoAlgorithm {
            product: form.to_string(),
            shape,
            workspace_bytes,
            status: status.to_string(),
        };
        let mut usable = match question.proposals() {
            Err(NOT_SUPPORTED) => return Err(no_algorithm("CUBLAS_STATUS_NOT_SUPPORTED")),
            proposals => proposals.map_err(&refused)?,
        };
        let proposed = usable.len();
        if form.scales == Scales::Lines {
            // For these it proposes one, and has most of those that it proposes where a matrix has one scale.
            let set_mode = |mode: ScaleMode| {
                operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode as u32)?;
                operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode as u32)
            };
            set_mode(ScaleMode::CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F).map_err(&refused)?;
            let others = match question.proposals() {
                Err(NOT_SUPPORTED) => Vec::new(),
                proposals => proposals.map_err(&refused)?,
            };
            set_mode(ScaleMode::CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F).map_err(&refused)?;
            let others = others.iter().filter_map(|other| question.has(other));
            let new = others.filter(|other| usable.iter().all(|known| known.algo.data != other.algo.data));
            let new: Vec<Candidate> = new.collect();
            usable.extend(new);
        }
        let chosen = *usable.first().ok_or_else(|| no_algorithm("none was offered"))?;
        let product = Self { shape, form, operation: Mutex::new(operation), w, x, y, chosen, choice: String::new() };
        product.fastest(machine, &usable, proposed)
    }

    /// The same by the fastest of some algorithms: the one that was before, else by a trial on memory of its own, where there
    /// is enough of that. Those after the first `proposed` have to come to the same as the first.
    fn fastest(mut self, machine: &Machine, candidates: &[Candidate], proposed: usize) -> Result<Self, NativeError> {
        let product = self.name(machine);
        // What is not proposed again is not taken from a file.
        let known = machine.choices().of(&product).and_then(|known| {
            let at = candidates.iter().position(|candidate| candidate.algo.data == known.algorithm)?;
            Some((at, known.earlier))
        });
        if let Some((at, earlier)) = known {
            let when = if earlier { "kept from an earlier trial" } else { "all of them tried" };
            self.chosen = candidates[at];
            self.choice = format!("number {} of {}, {when}", at + 1, candidates.len());
            return Ok(self);
        }
        let count = candidates.len();
        let trial = if count == 1 { None } else { Trial::new(machine, self.form, self.shape)? };
        let Some(trial) = trial else {
            self.chosen = candidates[0];
            self.choice = format!("first of {count}");
            return Ok(self);
        };
        let Trial { x, w, y, scales, bias, .. } = &trial;
        let scales = scales.as_ref().map(|[rows, columns]| [rows, columns]);
        let operands = Operands { x, w, y: &y.memory, scales, added: None, bias: bias.as_ref() };
        let mut launch = |algorithm: usize| {
            self.chosen = candidates[algorithm];
            self.enqueue(machine, operands)
        };
        let mut tried = Trial::nanos(machine, count, &mut launch);
        let mut unlike = 0;
        let taken = loop {
            let fastest = (0..count).min_by(|a, b| tried[*a].total_cmp(&tried[*b])).unwrap_or(0);
            // Another run should choose alike: what is hardly faster is left.
            if tried[fastest] >= WORTH * tried[0] {
                break 0;
            }
            if fastest < proposed || trial.agree(machine, [0, fastest], &mut launch)? {
                break fastest;
            }
            unlike += 1;
            tried[fastest] = f64::INFINITY;
        };
        self.chosen = candidates[taken];
        machine.choices().keep(&product, self.chosen.algo.data);
        self.choice = format!("number {} of {count}, all of them tried", taken + 1);
        if unlike > 0 {
            self.choice += &format!(", {unlike} faster of which came to something else");
        }
        Ok(self)
    }

    /// What tells this product from others that the same file may know of.
    fn name(&self, machine: &Machine) -> String {
        let (version, workspace) = (version(), machine.workspace().len());
        let (gpu, driver) = (machine.name(), machine.driver_version());
        format!("cuBLASLt {version}, driver {driver}, {gpu}, {workspace} B: {:?} {}", self.form, self.shape)
    }

    pub(super) fn enqueue(&self, machine: &Machine, operands: Operands<'_>) -> Result<(), NativeError> {
        let (handle, stream) = (machine.cublaslt(), machine.stream());
        let LinearShape { m, k, n } = self.shape;
        let (factor_bytes, output_bytes) = (self.form.factors.bytes(), self.form.output.bytes());
        let workspace_bytes = self.chosen.workspaceSize;
        let workspace = machine.workspace().address("workspace", stream, workspace_bytes)?;
        let x = operands.x.address("x", stream, m * k * factor_bytes)?;
        let w = operands.w.address("w", stream, n * k * factor_bytes)?;
        let y = operands.y.address("y", stream, m * n * output_bytes)?;
        let (added, adds) = match operands.added {
            Some(added) => (added.address("added", stream, m * n * output_bytes)?, true),
            None => (y, false),
        };
        let scales = match operands.scales {
            Some([rows, columns]) => {
                let [of_rows, of_columns] = self.form.scales.counts(self.shape).map(|count| 4 * count);
                let columns = columns.address("column scales", stream, of_columns)?;
                Some([columns, rows.address("row scales", stream, of_rows)?])
            }
            None => None,
        };
        assert_eq!(scales.is_some(), self.form.scales != Scales::Nothing, "a scaled product takes scales");
        let bias = operands.bias.map(|bias| bias.address("bias", stream, n * output_bytes)).transpose()?;
        assert_eq!(bias.is_some(), self.form.epilogue.has_bias(), "a product with bias takes one");
        stream.context().bind_to_thread().map_err(failed("selecting the device"))?;
        // Nothing is written out unless it is needed.
        let refused = |error| refused(format!("the {} product of {}", self.form, self.shape))(error);
        // A panic elsewhere leaves addresses behind, which the next run replaces.
        let operation = self.operation.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(addresses) = scales {
            operation.set_scales(addresses).map_err(refused)?;
        }
        if let Some(address) = bias {
            operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, address).map_err(refused)?;
        }
        // What the product and what is added are multiplied by, of the type of the sums.
        let [alpha, beta] = match self.form.factors {
            Factors::Int8 => [1, u32::from(adds)],
            _ => [1.0, if adds { 1.0 } else { 0.0 }].map(f32::to_bits),
        };
        // SAFETY: the descriptors are live and describe memory of exactly the sizes just checked; the factors and the
        // addresses of scales and bias are read before the call returns; the stream orders this work with every other use of the
        // memory.
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

    /// The choice in the library's own numbers, as far as it tells them. The numbers are those of the enumerations in
    /// its header.
    pub(super) fn describe(&self) -> String {
        let version = version();
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
            .filter_map(|(name, attribute, bytes)| Some(format!(" {name}={}", self.setting(attribute, bytes)?)))
            .collect();
        let Candidate { workspaceSize: workspace, wavesCount: waves, .. } = self.chosen;
        format!("cuBLASLt {version}{settings} workspace={workspace} waves={waves:.2} ({})", self.choice)
    }

    /// One setting of the algorithm, of 2 or 4 bytes; `None` if this version does not tell it.
    fn setting(&self, attribute: Config, bytes: usize) -> Option<u32> {
        // Read little-endian into a zeroed word, which is right for both sizes on every machine that CUDA runs on.
        let mut value = 0u32;
        let mut written = 0;
        // SAFETY: `value` has room for the `bytes` that are allowed to be written.
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

/// How the scales of the library's A and B lie, which are our w and x, where there is more than one of each.
fn scale_modes(scales: Scales) -> Option<[ScaleMode; 2]> {
    match scales {
        Scales::Nothing | Scales::Tensors => None,
        Scales::Lines => Some([ScaleMode::CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F; 2]),
        Scales::Blocks => Some([
            ScaleMode::CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
            ScaleMode::CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
        ]),
    }
}

/// The library's version.
fn version() -> usize {
    // SAFETY: takes nothing and returns a number.
    unsafe { sys::cublasLtGetVersion() }
}

fn lt_epilogue(epilogue: Epilogue) -> Option<LtEpilogue> {
    match epilogue {
        Epilogue::Nothing => None,
        Epilogue::Bias => Some(LtEpilogue::CUBLASLT_EPILOGUE_BIAS),
        Epilogue::Relu => Some(LtEpilogue::CUBLASLT_EPILOGUE_RELU),
        Epilogue::BiasRelu => Some(LtEpilogue::CUBLASLT_EPILOGUE_RELU_BIAS),
    }
}

fn factor_type(factors: Factors) -> DataType {
    match factors {
        Factors::Whole(kind) => data_type(kind),
        Factors::Tf32 => DataType::CUDA_R_32F,
        Factors::E4m3(_) | Factors::E5m2ByE4m3(_) => DataType::CUDA_R_8F_E4M3,
        Factors::Int8 => DataType::CUDA_R_8I,
    }
}

fn output_type(output: Written) -> DataType {
    match output {
        Written::Float(kind) => data_type(kind),
        Written::Int32 => DataType::CUDA_R_32I,
    }
}

fn data_type(kind: Dtype) -> DataType {
    match kind {
        Dtype::F32 => DataType::CUDA_R_32F,
        Dtype::F16 => DataType::CUDA_R_16F,
        Dtype::Bf16 => DataType::CUDA_R_16BF,
    }
}
