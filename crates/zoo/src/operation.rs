//! The table of operators and what each must declare.

use crate::gate::Tolerance;
use crate::ops::{
    add_ln::AddLn, attention_4d::Attention4d, blas::Blas, collective::Collective, conv2d::Conv2d,
    cross_entropy::CrossEntropy, elementwise::Elementwise, elsewhere::Elsewhere, flat_attention::FlatAttention,
    gemm::Gemm, gemm_quantised::GemmQuantised, hbm_copy::HbmCopy, head_attention::HeadAttention, inference::Inference,
    layer_norm::LayerNorm, linear_bias::LinearBias, ln_gelu::LnGelu, ln_linear::LnLinear, mse_loss::MseLoss,
    quantization::Quantization, rms_norm::RmsNorm, rms_norm_pass::RmsNormPass, softmax::Softmax, stream::Stream,
    swiglu::Swiglu, swiglu_mlp::SwigluMlp, swiglu_pass::SwigluPass, transfer::Transfer,
};
use crate::{Counts, Device, FusionModel, Implementation, Matrix, Operand, Pass, Sample, Slot, Value, ZooError};
use burn::tensor::backend::Backend;
use calorimeter_case::UnknownName;
use calorimeter_recipes::{Dtype, Element};
use calorimeter_shapes::Axes;
use std::fmt::{self, Debug, Display};
use std::hash::Hash;
use std::str::FromStr;

/// At what size an operator is run, and in which types of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spec {
    /// Its axes, by the names that the operator declares.
    pub axes: Axes,
    /// What its inputs are stored as.
    pub element: Element,
    /// What its outputs are stored as, where that is a choice and not the operator's own.
    pub output: Option<Element>,
}

impl Spec {
    /// The size of an axis; a problem is checked to have every one before anything else is asked of it.
    pub fn axis(&self, name: &str) -> u64 {
        self.axes.get(name).unwrap_or(1)
    }

    /// The float type of its inputs; operators that take floats alone check that.
    pub fn dtype(&self) -> Dtype {
        match self.element {
            Element::Float(dtype) => dtype,
            _ => Dtype::F32,
        }
    }
}

/// Groups of operators, each a command of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suite {
    /// Matrix products, quantisation, and what runs beside them in large models.
    Gemm,
    /// Normalisations, activations, losses.
    Ops,
    /// Patterns that are worth fusing.
    Fusion,
    /// Memory, linear algebra and launches, by which a machine is calibrated.
    Calibration,
    /// Copies between host and device, and exchange between devices.
    Links,
    /// What other programs measure on other machines.
    Elsewhere,
}

impl Suite {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::Ops => "ops",
            Self::Fusion => "fusion",
            Self::Calibration => "calibration",
            Self::Links => "links",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// What an operator declares. Adding one is a file with an implementation of this trait and one line in [`Operator`]'s
/// table.
pub trait Operation: Copy + Eq + Ord + Hash + Debug + Send + Sync + Sized + 'static {
    /// What it computes, in one line.
    const ABOUT: &'static str;
    /// Where it belongs.
    const SUITE: Suite;

    /// Every operator of the family.
    fn all() -> Vec<Self>;

    /// Its name.
    fn name(&self) -> &'static str;

    /// The names of its axes, in the order in which they are written.
    fn axes(&self) -> &'static [&'static str];

    /// Whether it exists at this size, in these numbers; the error says what would do.
    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        floats(self.name(), spec)
    }

    /// Its inputs.
    fn inputs(&self, spec: &Spec) -> Vec<Operand>;

    /// Its outputs.
    fn outputs(&self, spec: &Spec) -> Vec<Slot>;

    /// Floating-point operations, all of them.
    fn flops(&self, spec: &Spec) -> u64;

    /// The least traffic: every input read once, every output written once.
    fn bytes(&self, spec: &Spec) -> u64 {
        let read: u64 = self.inputs(spec).iter().map(Operand::bytes).sum();
        read + self.outputs(spec).iter().map(Slot::bytes).sum::<u64>()
    }

    /// Bytes of the tensors that live between inputs and outputs when every step is a kernel of its own.
    fn intermediate(&self, _: &Spec) -> u64 {
        0
    }

    /// The counts that another program publishes for it, where they differ from ours in meaning or number.
    fn published(&self, _: &Spec) -> Option<Counts> {
        None
    }

    /// What fusing it should save, for patterns that are worth fusing.
    fn fusion(&self, _: &Spec) -> Option<FusionModel> {
        None
    }

    /// Numbers read for one number of this output: what a sample of the reference costs.
    fn depth(&self, spec: &Spec, output: usize) -> u64;

    /// The sampled part of an output in double precision.
    fn reference(&self, spec: &Spec, inputs: &[Matrix], output: usize, sample: &Sample) -> Vec<f64>;

    /// How far a correct output may be from the reference.
    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance;

    /// Matrix products in a row, whose f32 operands tensor cores may round to TF32; the op suite has none.
    fn products(&self) -> u32 {
        u32::from(Self::SUITE != Suite::Ops)
    }

    /// What its matrix products multiply: the peak that it is held against is that of this type.
    fn factors(&self, spec: &Spec, _: Implementation) -> Element {
        spec.element
    }

    /// Which implementations it has besides burn's.
    fn supported(&self, _: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        burn_alone(self.name(), implementation, device)
    }

    /// The operator by burn's operations, each a kernel of its own unless the backend fuses them.
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B>;

    /// The same where it is to be fused: what algebra can fold is folded, and the backend fuses what it can.
    fn fused_pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        self.pass(spec, inputs)
    }

    /// The operator by a kernel of ours on burn's tensors.
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn cube<R: burn_cubecl::CubeRuntime>(
        &self,
        _: &Spec,
        _: Vec<Value<crate::CubeOf<R>>>,
    ) -> Result<Pass<crate::CubeOf<R>>, ZooError> {
        Err(no_cube(self.name()))
    }

    /// The operator by plain Rust on the processor, in memory that is kept from launch to launch.
    fn host(&self, _: &Spec, _: &[Matrix], _sets: u32) -> Result<Box<dyn crate::Workload>, ZooError> {
        Err(ZooError::Unsupported(format!("{} has no native kernel", self.name())))
    }

    /// The operator by CUDA's libraries and kernels of ours, without burn.
    #[cfg(feature = "cuda")]
    fn native(
        &self,
        _: &Spec,
        _: &[Matrix],
        _: std::sync::Arc<calorimeter_kernels::native::Machine>,
        _sets: u32,
    ) -> Result<Box<dyn crate::Workload>, ZooError> {
        Err(ZooError::Unsupported(format!("{} has no native kernel", self.name())))
    }
}

/// Refuses inputs that are no floats.
pub fn floats(name: &str, spec: &Spec) -> Result<(), ZooError> {
    match spec.element {
        Element::Float(_) => Ok(()),
        other => Err(ZooError::Unsupported(format!("{name} takes f32, f16 and bf16, not {other}"))),
    }
}

/// What an operator without kernels of ours answers.
pub fn burn_alone(name: &str, implementation: Implementation, device: Device) -> Result<(), String> {
    match (implementation, device) {
        (_, Device::Mock) | (Implementation::Eager, _) => Ok(()),
        (Implementation::Fused, Device::Cpu) => {
            Err("the CPU backend fuses nothing; `eager` runs on it, `fused` needs cuda, vulkan or metal".into())
        }
        (Implementation::Fused, _) => Ok(()),
        (other, _) => Err(format!("{name} has no `{other}` kernel in this version; `eager` and `fused` run it")),
    }
}

/// What an operator with a CubeCL kernel of ours answers.
pub fn burn_or_cube(name: &str, implementation: Implementation, device: Device) -> Result<(), String> {
    match (implementation, device) {
        (Implementation::Cube, Device::Cuda(_) | Device::Vulkan(_) | Device::Metal(_)) => Ok(()),
        (Implementation::Cube, Device::Cpu) => {
            Err("CubeCL kernels run on cuda, vulkan and metal; on the CPU there is `eager`".into())
        }
        _ => burn_alone(name, implementation, device),
    }
}

/// Why [`Operation::cube`] makes no pass.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub fn no_cube(name: &str) -> ZooError {
    ZooError::Unsupported(format!("{name} has no CubeCL kernel of ours"))
}

/// What `list` shows of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorInfo {
    /// Its name.
    pub name: &'static str,
    /// Where it belongs.
    pub suite: Suite,
    /// Its axes.
    pub axes: &'static [&'static str],
    /// What it computes, in one line.
    pub about: &'static str,
}

macro_rules! operators {
    ($($family:ident),+ $(,)?) => {
        /// An operator of the zoo.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Operator {
            $(#[doc = concat!("[`", stringify!($family), "`]")] $family($family),)+
        }

        macro_rules! each {
            ($self:expr, $operation:ident => $body:expr) => {
                match $self { $(Self::$family($operation) => $body,)+ }
            };
        }

        impl Operator {
            /// Every operator.
            pub fn all() -> Vec<Self> {
                let mut all = Vec::new();
                $(all.extend($family::all().into_iter().map(Self::$family));)+
                all
            }

            /// What `list` shows of it.
            pub fn info(&self) -> OperatorInfo {
                match self {
                    $(Self::$family(one) => OperatorInfo {
                        name: one.name(),
                        suite: $family::SUITE,
                        axes: one.axes(),
                        about: $family::ABOUT,
                    },)+
                }
            }
        }
    };
}

// One line for each family.
operators! {
    LayerNorm,
    RmsNorm,
    Elementwise,
    Softmax,
    MseLoss,
    CrossEntropy,
    LnGelu,
    AddLn,
    Swiglu,
    Stream,
    LinearBias,
    Conv2d,
    FlatAttention,
    Attention4d,
    Gemm,
    GemmQuantised,
    Quantization,
    Inference,
    SwigluPass,
    RmsNormPass,
    HeadAttention,
    HbmCopy,
    Transfer,
    Collective,
    LnLinear,
    SwigluMlp,
    Blas,
    Elsewhere,
}

impl FromStr for Operator {
    type Err = ZooError;

    fn from_str(name: &str) -> Result<Self, ZooError> {
        let all = Self::all();
        let known = || all.iter().map(ToString::to_string).collect::<Vec<_>>();
        all.iter()
            .copied()
            .find(|one| one.info().name == name)
            .ok_or_else(|| UnknownName::new("operator", name, known()).into())
    }
}

impl Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.info().name)
    }
}

impl Operator {
    /// Whether it exists at this size, in these numbers.
    pub fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        self.check_axes(spec)?;
        each!(self, one => one.check(spec))
    }

    /// Whether these are its axes.
    pub fn check_axes(&self, spec: &Spec) -> Result<(), ZooError> {
        let info = self.info();
        let given: Vec<&str> = spec.axes.iter().map(|(name, _)| name).collect();
        if given.len() != info.axes.len() || !info.axes.iter().all(|axis| given.contains(axis)) {
            let (needs, given) = (info.axes.join(", "), given.join(", "));
            return Err(ZooError::Shape(format!("{} has the axes {needs}; given are {given}", info.name)));
        }
        if let Some((axis, _)) = spec.axes.iter().find(|(_, size)| *size == 0) {
            return Err(ZooError::Shape(format!("{}: {axis} is 0; every axis is at least 1", info.name)));
        }
        Ok(())
    }

    /// See [`Operation::inputs`].
    pub fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        each!(self, one => one.inputs(spec))
    }

    /// See [`Operation::outputs`].
    pub fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        each!(self, one => one.outputs(spec))
    }

    /// See [`Operation::flops`].
    pub fn flops(&self, spec: &Spec) -> u64 {
        each!(self, one => one.flops(spec))
    }

    /// See [`Operation::bytes`].
    pub fn bytes(&self, spec: &Spec) -> u64 {
        each!(self, one => one.bytes(spec))
    }

    /// See [`Operation::intermediate`].
    pub fn intermediate(&self, spec: &Spec) -> u64 {
        each!(self, one => one.intermediate(spec))
    }

    /// See [`Operation::published`].
    pub fn published(&self, spec: &Spec) -> Option<Counts> {
        each!(self, one => one.published(spec))
    }

    /// See [`Operation::fusion`].
    pub fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        each!(self, one => one.fusion(spec))
    }

    /// Which part of an output is compared with the reference.
    pub fn sample(&self, spec: &Spec, output: usize) -> Sample {
        let Slot { rows, cols, .. } = self.outputs(spec)[output];
        Sample::of(rows, cols, each!(self, one => one.depth(spec, output)))
    }

    /// See [`Operation::reference`].
    pub fn reference(&self, spec: &Spec, inputs: &[Matrix], output: usize, sample: &Sample) -> Vec<f64> {
        each!(self, one => one.reference(spec, inputs, output, sample))
    }

    /// See [`Operation::factors`].
    pub fn factors(&self, spec: &Spec, implementation: Implementation) -> Element {
        each!(self, one => one.factors(spec, implementation))
    }

    /// See [`Operation::tolerance`].
    pub fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance {
        each!(self, one => one.tolerance(spec, output))
    }

    /// See [`Operation::products`].
    pub fn products(&self) -> u32 {
        each!(self, one => one.products())
    }

    /// See [`Operation::supported`].
    pub fn supported(&self, spec: &Spec, implementation: Implementation, device: Device) -> Result<(), ZooError> {
        each!(self, one => one.supported(spec, implementation, device)).map_err(ZooError::Unsupported)
    }

    /// See [`Operation::pass`].
    pub fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        each!(self, one => one.pass(spec, inputs))
    }

    /// See [`Operation::fused_pass`].
    pub fn fused_pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        each!(self, one => one.fused_pass(spec, inputs))
    }

    /// See [`Operation::cube`].
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    pub fn cube<R: burn_cubecl::CubeRuntime>(
        &self,
        spec: &Spec,
        inputs: Vec<Value<crate::CubeOf<R>>>,
    ) -> Result<Pass<crate::CubeOf<R>>, ZooError> {
        each!(self, one => one.cube::<R>(spec, inputs))
    }

    /// See [`Operation::host`].
    pub fn host(&self, spec: &Spec, inputs: &[Matrix], sets: u32) -> Result<Box<dyn crate::Workload>, ZooError> {
        each!(self, one => one.host(spec, inputs, sets))
    }

    /// See [`Operation::native`].
    #[cfg(feature = "cuda")]
    pub fn native(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: std::sync::Arc<calorimeter_kernels::native::Machine>,
        sets: u32,
    ) -> Result<Box<dyn crate::Workload>, ZooError> {
        each!(self, one => one.native(spec, inputs, machine, sets))
    }
}
