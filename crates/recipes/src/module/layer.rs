//! The layer that can be exchanged where it is.

use crate::training::{Float8Backend, Float8Training};
use crate::{Linear, Name};
use burn::module::{
    AutodiffModule, Content, Devices, DisplaySettings, HasAutodiffModule, Module, ModuleDisplay, ModuleDisplayDefault,
    ModuleMapper, ModuleVisitor, Param,
};
use burn::nn;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Tensor, TensorPrimitive};
use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// A linear layer that [`quantize`](super::quantize) and
/// [`convert_to_float8_training`](super::convert_to_float8_training) can exchange in place, to be used instead of
/// [`nn::Linear`].
///
/// Until then it is an [`nn::Linear`]: records, paths of parameters and autodiff are the same, so that checkpoints of
/// either load into the other. Once quantized, its bias is still a parameter, and its weight is none any more: visitors
/// and mappers do not meet it. Clones share it.
///
/// Converted for training, it keeps its parameters and everything else; only its products change. `valid()` takes the
/// conversion off it, since its inner backend may have no float8: what is evaluated is the weight itself.
///
/// # Panics
/// burn's traits leave no room for errors: once quantized, it panics when it is saved, loaded into, moved to another
/// device or trained. All of that has to come first.
#[derive(Debug, Clone)]
#[doc(alias = "Float8Linear")]
pub struct QuantLinear<B: Backend>(State<B>);

#[derive(Debug, Clone)]
enum State<B: Backend> {
    Float(nn::Linear<B>, Option<Arc<Float8<B>>>),
    Quantized(QuantWeight<B>, Option<Param<Tensor<B, 1>>>),
}

/// What a layer can be exchanged for.
pub enum Change<B: Backend> {
    Quantized(QuantWeight<B>),
    Float8(Arc<Float8<B>>),
}

/// Products in float8.
pub struct Float8<B: Backend> {
    training: Float8Training,
    /// That of the backend, which the layer itself need not know.
    product: fn(Tensor<B, 2>, Tensor<B, 2>, Float8Training) -> Tensor<B, 2>,
}

impl<B: Float8Backend> Float8<B> {
    pub fn new(training: Float8Training) -> Self {
        let product = |input: Tensor<B, 2>, weight: Tensor<B, 2>, training| {
            let [input, weight] = [input, weight].map(|tensor| tensor.into_primitive().tensor());
            Tensor::from_primitive(TensorPrimitive::Float(B::float8_linear(input, weight, training)))
        };
        Self { training, product }
    }
}

impl<B: Backend> fmt::Debug for Float8<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Float8({})", self.training)
    }
}

#[derive(Clone)]
pub struct QuantWeight<B: Backend> {
    pub layer: Arc<dyn Linear<B>>,
    pub recipe: Name,
    pub n: usize,
    pub k: usize,
    pub device: B::Device,
}

impl<B: Backend> QuantWeight<B> {
    fn refuse(&self, what: &str) -> ! {
        panic!("a layer quantized with {} cannot be {what}; do that first and quantize afterwards", self.recipe)
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
        Self(State::Float(linear, None))
    }
}

impl<B: Backend> QuantLinear<B> {
    /// Applies the layer to the last dimension, `[..., k] -> [..., n]`. Recipes that look at the number of tokens are
    /// given the product of all other dimensions.
    pub fn forward<const D: usize>(&self, input: Tensor<B, D>) -> Tensor<B, D> {
        match &self.0 {
            State::Float(linear, None) => linear.forward(input),
            State::Float(nn::Linear { weight, bias }, Some(float8)) => {
                let product = |input| (float8.product)(input, weight.val(), float8.training);
                by_rows(input, bias.as_ref(), product)
            }
            State::Quantized(weight, bias) => by_rows(input, bias.as_ref(), |input| weight.layer.forward(input)),
        }
    }

    /// The layer before it is quantized.
    pub fn float(&self) -> Option<&nn::Linear<B>> {
        match &self.0 {
            State::Float(linear, _) => Some(linear),
            State::Quantized(..) => None,
        }
    }

    /// How it is trained, if it was converted.
    pub fn float8(&self) -> Option<Float8Training> {
        match &self.0 {
            State::Float(_, Some(float8)) => Some(float8.training),
            _ => None,
        }
    }

    /// The name of what it is quantized with, such as `int8wo`.
    pub fn recipe(&self) -> Option<Name> {
        match &self.0 {
            State::Float(..) => None,
            State::Quantized(weight, _) => Some(weight.recipe),
        }
    }
}

/// A layer of matrices applied to the last dimension, and its bias added.
fn by_rows<B: Backend, const D: usize>(
    input: Tensor<B, D>,
    bias: Option<&Param<Tensor<B, 1>>>,
    layer: impl FnOnce(Tensor<B, 2>) -> Tensor<B, 2>,
) -> Tensor<B, D> {
    let mut dims = input.dims();
    let rows: usize = dims[..D - 1].iter().product();
    let output = layer(input.reshape([rows, dims[D - 1]]));
    let output = match bias {
        Some(bias) => output + bias.val().unsqueeze(),
        None => output,
    };
    dims[D - 1] = output.dims()[1];
    output.reshape(dims)
}

/// What the derived implementation of [`nn::Linear`] calls itself and its weight. Readers of foreign checkpoints know
/// both, so a [`QuantLinear`] must not have names of its own.
pub const LINEAR: &str = "Struct:Linear";
pub const WEIGHT: &str = "weight";
const BIAS: &str = "bias";

pub type Slot<B> = OnceCell<Change<B>>;

thread_local! {
    /// The slot of the [`QuantLinear`] that is being mapped: burn gives a mapper a tensor and no way to say what else
    /// shall become of the module around it. Only a walk that exchanges layers looks here, and a slot that it does not fill
    /// changes nothing.
    pub static LENT: Cell<Option<Rc<dyn Any>>> = const { Cell::new(None) };
}

impl<B: Backend> Module<B> for QuantLinear<B> {
    type Record = nn::LinearRecord<B>;

    fn collect_devices(&self, mut devices: Devices<B>) -> Devices<B> {
        match &self.0 {
            State::Float(linear, _) => linear.collect_devices(devices),
            State::Quantized(weight, bias) => {
                if !devices.contains(&weight.device) {
                    devices.push(weight.device.clone());
                }
                bias.collect_devices(devices)
            }
        }
    }

    fn fork(self, device: &B::Device) -> Self {
        Self(match self.0 {
            State::Float(linear, float8) => State::Float(linear.fork(device), float8),
            State::Quantized(weight, bias) => {
                weight.stay_on(device);
                State::Quantized(weight, bias.fork(device))
            }
        })
    }

    fn to_device(self, device: &B::Device) -> Self {
        Self(match self.0 {
            State::Float(linear, float8) => State::Float(linear.to_device(device), float8),
            State::Quantized(weight, bias) => {
                weight.stay_on(device);
                State::Quantized(weight, bias.to_device(device))
            }
        })
    }

    fn num_params(&self) -> usize {
        match &self.0 {
            State::Float(linear, _) => Module::num_params(linear),
            State::Quantized(weight, bias) => weight.n * weight.k + Module::<B>::num_params(bias),
        }
    }

    fn visit<V: ModuleVisitor<B>>(&self, visitor: &mut V) {
        match &self.0 {
            State::Float(linear, _) => linear.visit(visitor),
            State::Quantized(_, bias) => {
                visitor.enter_module(BIAS, LINEAR);
                bias.visit(visitor);
                visitor.exit_module(BIAS, LINEAR);
            }
        }
    }

    fn map<M: ModuleMapper<B>>(self, mapper: &mut M) -> Self {
        Self(match self.0 {
            State::Float(linear, float8) => {
                let slot = Rc::new(Slot::<B>::new());
                LENT.set(Some(slot.clone()));
                let linear = linear.map(mapper);
                LENT.take();
                match slot.get() {
                    Some(Change::Quantized(weight)) => State::Quantized(weight.clone(), linear.bias),
                    Some(Change::Float8(float8)) => State::Float(linear, Some(float8.clone())),
                    None => State::Float(linear, float8),
                }
            }
            State::Quantized(weight, bias) => {
                LENT.set(Some(Rc::new(Slot::from(Change::Quantized(weight.clone())))));
                mapper.enter_module(WEIGHT, LINEAR);
                mapper.exit_module(WEIGHT, LINEAR);
                LENT.take();
                mapper.enter_module(BIAS, LINEAR);
                let bias = Module::map(bias, mapper);
                mapper.exit_module(BIAS, LINEAR);
                State::Quantized(weight, bias)
            }
        })
    }

    fn load_record(self, record: Self::Record) -> Self {
        match self.0 {
            State::Float(linear, float8) => Self(State::Float(linear.load_record(record), float8)),
            State::Quantized(weight, _) => weight.refuse("loaded into"),
        }
    }

    fn into_record(self) -> Self::Record {
        match self.0 {
            State::Float(linear, _) => linear.into_record(),
            // Here, before a recorder makes way for the new file.
            State::Quantized(weight, _) => weight.refuse("saved"),
        }
    }
}

impl<B: AutodiffBackend> AutodiffModule<B> for QuantLinear<B> {
    type InnerModule = QuantLinear<B::InnerBackend>;

    fn valid(&self) -> Self::InnerModule {
        match &self.0 {
            State::Float(linear, _) => linear.valid().into(),
            State::Quantized(weight, _) => weight.refuse("moved to the inner backend"),
        }
    }

    fn from_inner(module: Self::InnerModule) -> Self {
        match module.0 {
            State::Float(linear, _) => nn::Linear::from_inner(linear).into(),
            State::Quantized(weight, _) => weight.refuse("trained"),
        }
    }
}

impl<B: AutodiffBackend> HasAutodiffModule<B> for QuantLinear<B::InnerBackend> {
    type TrainModule = QuantLinear<B>;
}

impl<B: Backend> ModuleDisplayDefault for QuantLinear<B> {
    fn content(&self, content: Content) -> Option<Content> {
        let ([k, n], bias) = match &self.0 {
            State::Float(linear, _) => (linear.weight.lazy_shape().dims(), linear.bias.is_some()),
            State::Quantized(weight, bias) => ([weight.k, weight.n], bias.is_some()),
        };
        let content = content.add("d_input", &k).add("d_output", &n).add("bias", &bias);
        match (self.recipe(), self.float8()) {
            (Some(recipe), _) => content.add("recipe", &recipe.to_string()),
            (None, Some(training)) => content.add("float8", &training.to_string()),
            (None, None) => content,
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
