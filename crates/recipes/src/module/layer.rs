//! Linear layer that can be quantized in place.

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

/// Linear layer that [`quantize`](super::quantize) and
/// [`convert_to_float8_training`](super::convert_to_float8_training) can convert in place; a drop-in replacement for
/// [`nn::Linear`].
///
/// Before conversion it behaves like [`nn::Linear`]: records, parameter paths and autodiff are identical, so that
/// checkpoints of either type load into the other. After quantization the bias is still a parameter, but the weight is
/// not: visitors and mappers skip it, and clones share it.
///
/// Conversion for training changes only the matmuls; the parameters stay. `valid()` removes the conversion, because the
/// inner backend may not support float8: evaluation uses the unquantized weight.
///
/// # Panics
/// burn's traits cannot return errors: a quantized layer panics when it is saved, loaded into, moved to another device
/// or trained. All of these must precede quantization.
#[derive(Debug, Clone)]
#[doc(alias = "Float8Linear")]
pub struct QuantLinear<B: Backend>(State<B>);

#[derive(Debug, Clone)]
enum State<B: Backend> {
    Float(nn::Linear<B>, Option<Arc<Float8<B>>>),
    Quantized(QuantWeight<B>, Option<Param<Tensor<B, 1>>>),
}

/// Replacement of an unquantized layer.
pub enum Change<B: Backend> {
    Quantized(QuantWeight<B>),
    Float8(Arc<Float8<B>>),
}

/// Matmuls in float8.
pub struct Float8<B: Backend> {
    training: Float8Training,
    /// Backend-specific function, so that the layer itself needs no bound on the backend.
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
    /// Applies the layer to the last dimension, `[..., k] -> [..., n]`. The number of tokens is the product of all
    /// other dimensions.
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

    /// Returns the layer if it is not quantized.
    pub fn float(&self) -> Option<&nn::Linear<B>> {
        match &self.0 {
            State::Float(linear, _) => Some(linear),
            State::Quantized(..) => None,
        }
    }

    /// Returns the float8 training configuration of a converted layer.
    pub fn float8(&self) -> Option<Float8Training> {
        match &self.0 {
            State::Float(_, Some(float8)) => Some(float8.training),
            _ => None,
        }
    }

    /// Name of the recipe that quantized the layer, such as `int8wo`.
    pub fn recipe(&self) -> Option<Name> {
        match &self.0 {
            State::Float(..) => None,
            State::Quantized(weight, _) => Some(weight.recipe),
        }
    }
}

/// Applies a layer of two-dimensional tensors to the last dimension and adds the bias.
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

/// Names that the derived implementation of [`nn::Linear`] reports for itself and its weight. Importers of foreign
/// checkpoints match on them, so [`QuantLinear`] must report identical names.
pub const LINEAR: &str = "Struct:Linear";
pub const WEIGHT: &str = "weight";
const BIAS: &str = "bias";

pub type Slot<B> = OnceCell<Change<B>>;

thread_local! {
    /// Slot of the [`QuantLinear`] that is being mapped. burn passes a mapper only a tensor, so a mapper that replaces
    /// the enclosing layer fills this slot. A slot that stays empty changes nothing.
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
            // Panics here, before a recorder overwrites the previous file.
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
