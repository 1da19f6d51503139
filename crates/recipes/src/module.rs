//! Quantising the linear layers of a burn module of one's own.
//!
//! The type of a field cannot change, so a layer that is to be quantised is declared as a [`QuantLinear`]. It is made of
//! a [`burn::nn::Linear`], behaves and is saved like one, and [`quantise`] exchanges its weight where it is.
//!
//! ```
//! use burn::module::Module;
//! use burn::nn::{Gelu, LinearConfig};
//! use burn::tensor::{Tensor, backend::Backend};
//! use calorimeter_recipes::{QuantLinear, Recipe, RecipeError, device::QuantBackend, quantise};
//!
//! #[derive(Module, Debug)]
//! struct Mlp<B: Backend> {
//!     up: QuantLinear<B>,
//!     down: QuantLinear<B>,
//! }
//!
//! impl<B: Backend> Mlp<B> {
//!     fn new(device: &B::Device) -> Self {
//!         let linear = |k, n| LinearConfig::new(k, n).init(device).into();
//!         Self { up: linear(64, 256), down: linear(256, 64) }
//!     }
//!
//!     fn forward(&self, input: Tensor<B, 3>) -> Tensor<B, 3> {
//!         self.down.forward(Gelu::new().forward(self.up.forward(input)))
//!     }
//! }
//!
//! fn small<B: QuantBackend>(device: &B::Device) -> Result<Mlp<B>, RecipeError> {
//!     let recipe: Recipe = "int8wo".parse()?;
//!     let (mlp, report) = quantise(Mlp::<B>::new(device), &recipe, |path, [n, k]| path != "head" && n * k > 1024)?;
//!     eprintln!("{report}"); // what was quantised, what was left and why, bytes before and after
//!     Ok(mlp)
//! }
//! ```

use crate::device::QuantBackend;
use crate::{Dtype, FloatType, Linear, Name, Quantiser, RecipeError, Treatment, Weight};
use burn::module::{
    AutodiffModule, Content, Devices, DisplaySettings, HasAutodiffModule, Module, ModuleDisplay, ModuleDisplayDefault,
    ModuleMapper, ModuleVisitor, Param,
};
use burn::nn;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Tensor};
use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;
use std::{fmt, mem};

/// A linear layer that [`quantise`] can exchange in place, to be used instead of [`nn::Linear`].
///
/// Until then it is an [`nn::Linear`]: records, paths of parameters and autodiff are the same, so that checkpoints of
/// either load into the other. Once quantised, its bias is still a parameter, and its weight is none any more: visitors
/// and mappers do not meet it. Clones share it.
///
/// # Panics
/// burn's traits leave no room for errors: once quantised, it panics when it is saved, loaded into, moved to another
/// device or trained. All of that has to come first.
#[derive(Debug, Clone)]
pub struct QuantLinear<B: Backend>(State<B>);

#[derive(Debug, Clone)]
enum State<B: Backend> {
    Float(nn::Linear<B>),
    Quantised(QuantWeight<B>, Option<Param<Tensor<B, 1>>>),
}

#[derive(Clone)]
struct QuantWeight<B: Backend> {
    layer: Arc<dyn Linear<B>>,
    recipe: Name,
    n: usize,
    k: usize,
    device: B::Device,
}

impl<B: Backend> QuantWeight<B> {
    fn refuse(&self, what: &str) -> ! {
        panic!("a layer quantised with {} cannot be {what}; do that first and quantise afterwards", self.recipe)
    }

    fn stay_on(&self, device: &B::Device) {
        if *device != self.device {
            self.refuse("moved to another device");
        }
    }
}

impl<B: Backend> fmt::Debug for QuantWeight<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QuantWeight([{}, {}], {})", self.n, self.k, self.recipe)
    }
}

impl<B: Backend> From<nn::Linear<B>> for QuantLinear<B> {
    fn from(linear: nn::Linear<B>) -> Self {
        Self(State::Float(linear))
    }
}

impl<B: Backend> QuantLinear<B> {
    /// Applies the layer to the last dimension, `[..., k] -> [..., n]`. Recipes that look at the number of tokens are
    /// given the product of all other dimensions.
    pub fn forward<const D: usize>(&self, input: Tensor<B, D>) -> Tensor<B, D> {
        match &self.0 {
            State::Float(linear) => linear.forward(input),
            State::Quantised(weight, bias) => {
                let mut dims = input.dims();
                let rows: usize = dims[..D - 1].iter().product();
                let output = weight.layer.forward(input.reshape([rows, dims[D - 1]]));
                let output = match bias {
                    Some(bias) => output + bias.val().unsqueeze(),
                    None => output,
                };
                dims[D - 1] = weight.n;
                output.reshape(dims)
            }
        }
    }

    /// The layer before it is quantised.
    pub fn float(&self) -> Option<&nn::Linear<B>> {
        match &self.0 {
            State::Float(linear) => Some(linear),
            State::Quantised(..) => None,
        }
    }

    /// The name of what it is quantised with, such as `int8wo`.
    pub fn recipe(&self) -> Option<Name> {
        match &self.0 {
            State::Float(_) => None,
            State::Quantised(weight, _) => Some(weight.recipe),
        }
    }
}

/// What the derived implementation of [`nn::Linear`] calls itself and its weight. Readers of foreign checkpoints know
/// both, so a [`QuantLinear`] must not have names of its own.
const LINEAR: &str = "Struct:Linear";
const WEIGHT: &str = "weight";
const BIAS: &str = "bias";

type Slot<B> = OnceCell<QuantWeight<B>>;

thread_local! {
    /// The slot of the [`QuantLinear`] that is being mapped: burn gives a mapper a tensor and no way to say what else
    /// shall become of the module around it. Only a walk of [`quantise`] looks here, and a slot that it does not fill
    /// changes nothing.
    static LENT: Cell<Option<Rc<dyn Any>>> = const { Cell::new(None) };
}

impl<B: Backend> Module<B> for QuantLinear<B> {
    type Record = nn::LinearRecord<B>;

    fn collect_devices(&self, mut devices: Devices<B>) -> Devices<B> {
        match &self.0 {
            State::Float(linear) => linear.collect_devices(devices),
            State::Quantised(weight, bias) => {
                if !devices.contains(&weight.device) {
                    devices.push(weight.device.clone());
                }
                bias.collect_devices(devices)
            }
        }
    }

    fn fork(self, device: &B::Device) -> Self {
        Self(match self.0 {
            State::Float(linear) => State::Float(linear.fork(device)),
            State::Quantised(weight, bias) => {
                weight.stay_on(device);
                State::Quantised(weight, bias.fork(device))
            }
        })
    }

    fn to_device(self, device: &B::Device) -> Self {
        Self(match self.0 {
            State::Float(linear) => State::Float(linear.to_device(device)),
            State::Quantised(weight, bias) => {
                weight.stay_on(device);
                State::Quantised(weight, bias.to_device(device))
            }
        })
    }

    fn num_params(&self) -> usize {
        match &self.0 {
            State::Float(linear) => Module::num_params(linear),
            State::Quantised(weight, bias) => weight.n * weight.k + Module::<B>::num_params(bias),
        }
    }

    fn visit<V: ModuleVisitor<B>>(&self, visitor: &mut V) {
        match &self.0 {
            State::Float(linear) => linear.visit(visitor),
            State::Quantised(_, bias) => {
                visitor.enter_module(BIAS, LINEAR);
                bias.visit(visitor);
                visitor.exit_module(BIAS, LINEAR);
            }
        }
    }

    fn map<M: ModuleMapper<B>>(self, mapper: &mut M) -> Self {
        Self(match self.0 {
            State::Float(linear) => {
                let slot = Rc::new(Slot::<B>::new());
                LENT.set(Some(slot.clone()));
                let linear = linear.map(mapper);
                LENT.take();
                match slot.get() {
                    Some(weight) => State::Quantised(weight.clone(), linear.bias),
                    None => State::Float(linear),
                }
            }
            State::Quantised(weight, bias) => {
                LENT.set(Some(Rc::new(Slot::from(weight.clone()))));
                mapper.enter_module(WEIGHT, LINEAR);
                mapper.exit_module(WEIGHT, LINEAR);
                LENT.take();
                mapper.enter_module(BIAS, LINEAR);
                let bias = Module::map(bias, mapper);
                mapper.exit_module(BIAS, LINEAR);
                State::Quantised(weight, bias)
            }
        })
    }

    fn load_record(self, record: Self::Record) -> Self {
        match self.0 {
            State::Float(linear) => linear.load_record(record).into(),
            State::Quantised(weight, _) => weight.refuse("loaded into"),
        }
    }

    fn into_record(self) -> Self::Record {
        match self.0 {
            State::Float(linear) => linear.into_record(),
            // Here, before a recorder makes way for the new file.
            State::Quantised(weight, _) => weight.refuse("saved"),
        }
    }
}

impl<B: AutodiffBackend> AutodiffModule<B> for QuantLinear<B> {
    type InnerModule = QuantLinear<B::InnerBackend>;

    fn valid(&self) -> Self::InnerModule {
        match &self.0 {
            State::Float(linear) => linear.valid().into(),
            State::Quantised(weight, _) => weight.refuse("moved to the inner backend"),
        }
    }

    fn from_inner(module: Self::InnerModule) -> Self {
        match module.0 {
            State::Float(linear) => nn::Linear::from_inner(linear).into(),
            State::Quantised(weight, _) => weight.refuse("trained"),
        }
    }
}

impl<B: AutodiffBackend> HasAutodiffModule<B> for QuantLinear<B::InnerBackend> {
    type TrainModule = QuantLinear<B>;
}

impl<B: Backend> ModuleDisplayDefault for QuantLinear<B> {
    fn content(&self, content: Content) -> Option<Content> {
        let ([k, n], bias) = match &self.0 {
            State::Float(linear) => (linear.weight.lazy_shape().dims(), linear.bias.is_some()),
            State::Quantised(weight, bias) => ([weight.k, weight.n], bias.is_some()),
        };
        let content = content.add("d_input", &k).add("d_output", &n).add("bias", &bias);
        match self.recipe() {
            Some(recipe) => content.add("recipe", &recipe.to_string()),
            None => content,
        }
        .optional()
    }

    fn num_params(&self) -> usize {
        Module::num_params(self)
    }
}

impl<B: Backend> ModuleDisplay for QuantLinear<B> {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }
}

impl<B: Backend> fmt::Display for QuantLinear<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format(DisplaySettings::default()))
    }
}

/// Quantises the [`QuantLinear`] layers of a module that the filter accepts by a recipe, or by any treatment, and reports
/// on all linear layers.
///
/// The filter is given a layer's path, such as `blocks.0.up`, and its size `[n, k]`. Weights are quantised one by one on
/// the host, in their own type, and the parameter is dropped. A module on an autodiff backend is taken off it first, with
/// `valid()`. Other parameters, those of embeddings and convolutions too, are neither touched nor reported.
///
/// It is an error if nothing is quantised, if a layer is quantised already, or if the recipe cannot treat one of the
/// layers; the filter can exclude it. The module is gone then; a clone made before costs no memory.
pub fn quantise<B: QuantBackend, M: Module<B>>(
    module: M,
    by: &dyn Quantiser,
    filter: impl FnMut(&str, [usize; 2]) -> bool,
) -> Result<(M, Report), RecipeError> {
    // What a mapper that panicked may have left.
    LENT.take();
    let mut walk = Walk::<'_, B, _> {
        filter,
        place: Vec::new(),
        slot: None,
        by,
        report: Report { recipe: by.name(), layers: Vec::new() },
        result: Ok(()),
    };
    let module = module.map(&mut walk);
    walk.result?;
    let done = |layer: &Layer| matches!(layer.outcome, Outcome::Quantised | Outcome::LeftByRecipe);
    if walk.report.layers.iter().any(done) {
        Ok((module, walk.report))
    } else if walk.report.layers.is_empty() {
        Err(RecipeError::Unsupported("the module has no linear layer; declare those to quantise as QuantLinear".into()))
    } else {
        let why = |layer: &Layer| format!("{} {}", layer.path, layer.outcome);
        let layers: Vec<_> = walk.report.layers.iter().map(why).collect();
        Err(RecipeError::Unsupported(format!("no layer would be quantised: {}", layers.join(", "))))
    }
}

/// What [`quantise`] did.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The recipe's name.
    pub recipe: Name,
    /// All linear layers in the order of the module's fields.
    pub layers: Vec<Layer>,
}

/// What became of a linear layer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Layer {
    /// Where it is, such as `blocks.0.up`.
    pub path: String,
    /// Its outputs.
    pub n: usize,
    /// Its inputs.
    pub k: usize,
    /// Bytes of its weight before.
    pub bytes_before: u64,
    /// Bytes of its weight now, scales and zeros included.
    pub bytes_after: u64,
    /// What was done.
    pub outcome: Outcome,
}

/// What was done with a linear layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Its weight was quantised.
    Quantised,
    /// The filter left it as it is.
    Excluded,
    /// The filter left it as it is: quantised before, with the recipe of this name.
    QuantisedBefore(Name),
    /// The recipe does not quantise weights.
    LeftByRecipe,
    /// It is an [`nn::Linear`] and no [`QuantLinear`].
    NotExchangeable,
}

impl Report {
    /// The layers that were not quantised.
    pub fn left(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| layer.outcome != Outcome::Quantised)
    }

    /// Bytes of all weights of linear layers before.
    pub fn bytes_before(&self) -> u64 {
        self.layers.iter().map(|layer| layer.bytes_before).sum()
    }

    /// Bytes of all weights of linear layers now.
    pub fn bytes_after(&self) -> u64 {
        self.layers.iter().map(|layer| layer.bytes_after).sum()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantised => f.write_str("was quantised"),
            Self::Excluded => f.write_str("is excluded by the filter"),
            Self::QuantisedBefore(recipe) => write!(f, "was quantised with {recipe} before"),
            Self::LeftByRecipe => f.write_str("is left as it is by the recipe"),
            Self::NotExchangeable => f.write_str("is a burn::nn::Linear and no QuantLinear"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.layers.iter().map(|layer| layer.path.len()).max().unwrap_or(0);
        for Layer { path, n, k, bytes_before, bytes_after, outcome } in &self.layers {
            writeln!(f, "{path:width$} {outcome}: [{n}, {k}], {bytes_before} -> {bytes_after} bytes")?;
        }
        write!(f, "{}: {} -> {} bytes", self.recipe, self.bytes_before(), self.bytes_after())
    }
}

/// The way through a module.
struct Walk<'a, B: Backend, F> {
    filter: F,
    by: &'a dyn Quantiser,
    /// Names and kinds of the modules on the way to the current one.
    place: Vec<(String, String)>,
    /// Where the current weight's quantised form goes.
    slot: Option<Rc<Slot<B>>>,
    report: Report,
    result: Result<(), RecipeError>,
}

impl<B: QuantBackend, F: FnMut(&str, [usize; 2]) -> bool> Walk<'_, B, F> {
    /// Whether this is the weight of a linear layer.
    fn at_weight(&self) -> bool {
        self.place.last().is_some_and(|(name, kind)| name == WEIGHT && kind == LINEAR)
    }

    /// The path of the layer whose weight this is.
    fn path(&self) -> String {
        let names: Vec<_> = self.place[..self.place.len() - 1].iter().map(|(name, _)| name.as_str()).collect();
        names.join(".")
    }

    fn accepts(&mut self, size: [usize; 2]) -> bool {
        let path = self.path();
        (self.filter)(&path, size)
    }

    fn note(&mut self, [n, k]: [usize; 2], bytes_before: u64, bytes_after: u64, outcome: Outcome) {
        let path = self.path();
        self.report.layers.push(Layer { path, n, k, bytes_before, bytes_after, outcome });
    }

    fn fail(&mut self, error: RecipeError) {
        self.result = Err(RecipeError::Layer { path: self.path(), cause: Box::new(error) });
    }

    fn find_quantised(&mut self, weight: &QuantWeight<B>) {
        let size = [weight.n, weight.k];
        if self.accepts(size) {
            let already = format!("the layer is quantised with {} already; exclude it by the filter", weight.recipe);
            self.fail(RecipeError::Unsupported(already));
        } else {
            let bytes = weight.layer.weight_bytes();
            self.note(size, bytes, bytes, Outcome::QuantisedBefore(weight.recipe));
        }
    }

    /// The quantised form of a weight that burn keeps as `[k, n]`; none if the recipe leaves it as it is.
    fn quantised<const D: usize>(&self, tensor: Tensor<B, D>) -> Result<Option<QuantWeight<B>>, RecipeError> {
        let treatment = self.by.treatment(dtype(tensor.dtype())?)?;
        if treatment == Treatment::none(treatment.dtype) {
            return Ok(None);
        }
        let (device, tensor) = (tensor.device(), tensor.transpose());
        let [n, k] = tensor.shape().dims();
        let values = tensor.into_data().convert::<f32>().into_vec().expect("the values were just converted to f32");
        let layer = treatment.linear::<B>(&Weight::new(n, k, values, treatment.dtype), &device)?;
        Ok(Some(QuantWeight { layer: layer.into(), recipe: self.report.recipe, n, k, device }))
    }
}

fn dtype(dtype: DType) -> Result<Dtype, RecipeError> {
    Dtype::ALL.into_iter().find(|known| known.burn() == dtype).ok_or_else(|| {
        RecipeError::Unsupported(format!(
            "the weight is in {dtype:?}; cast it to one of {:?}",
            Dtype::ALL.map(Dtype::burn)
        ))
    })
}

impl<B: QuantBackend, F: FnMut(&str, [usize; 2]) -> bool> ModuleMapper<B> for Walk<'_, B, F> {
    fn enter_module(&mut self, name: &str, kind: &str) {
        self.place.push((name.to_owned(), kind.to_owned()));
        if self.result.is_err() || !self.at_weight() {
            return;
        }
        self.slot = LENT.take().and_then(|slot| slot.downcast::<Slot<B>>().ok());
        if let Some(slot) = self.slot.take_if(|slot| slot.get().is_some()) {
            slot.get().into_iter().for_each(|weight| self.find_quantised(weight));
        }
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.place.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        if self.result.is_err() || !self.at_weight() || D != 2 {
            return param;
        }
        let [k, n] = param.lazy_shape().dims();
        let bytes = (n * k * param.dtype().size()) as u64;
        let Some(slot) = mem::take(&mut self.slot) else {
            self.note([n, k], bytes, bytes, Outcome::NotExchangeable);
            return param;
        };
        if !self.accepts([n, k]) {
            self.note([n, k], bytes, bytes, Outcome::Excluded);
            return param;
        }
        match self.quantised(param.val()) {
            Ok(Some(weight)) => {
                self.note([n, k], bytes, weight.layer.weight_bytes(), Outcome::Quantised);
                // The parameter goes back and is dropped there; the slot is this layer's own and was empty.
                let _ = slot.set(weight);
            }
            Ok(None) => self.note([n, k], bytes, bytes, Outcome::LeftByRecipe),
            Err(error) => self.fail(error),
        }
        param
    }
}
