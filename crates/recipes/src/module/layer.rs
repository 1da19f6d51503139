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
pub struct QuantLinear<B: Backend>(QuantLinearState<B>);

#[derive(Debug, Clone)]
enum QuantLinearState<B: Backend> {
    Float(nn::Linear<B>, Option<Arc<Float8Matmul<B>>>),
    Quantized(QuantWeight<B>, Option<Param<Tensor<B, 1>>>),
}

/// Replacement of an unquantized layer.
pub(super) enum Replacement<B: Backend> {
    Quantized(QuantWeight<B>),
    Float8(Arc<Float8Matmul<B>>),
}

/// Matmuls in float8.
pub(super) struct Float8Matmul<B: Backend> {
    training: Float8Training,
    /// Backend-specific function, so that the layer itself needs no bound on the backend.
    matmul: fn(Tensor<B, 2>, Tensor<B, 2>, Float8Training) -> Tensor<B, 2>,
}

impl<B: Float8Backend> Float8Matmul<B> {
    pub(super) fn new(training: Float8Training) -> Self {
        let matmul = |input: Tensor<B, 2>, weight: Tensor<B, 2>, training| {
            let [input, weight] = [input, weight].map(|tensor| tensor.into_primitive().tensor());
            Tensor::from_primitive(TensorPrimitive::Float(B::float8_linear(input, weight, training)))
        };
        Self { training, matmul }
    }
}

impl<B: Backend> fmt::Debug for Float8Matmul<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Float8({})", self.training)
    }
}

#[derive(Clone)]
pub(super) struct QuantWeight<B: Backend> {
    pub layer: Arc<dyn Linear<B>>,
    pub recipe: Name,
    pub n: usize,
    pub k: usize,
    pub device: B::Device,
}

impl<B: Backend> QuantWeight<B> {
    fn panic_unsupported(&self, what: &str) -> ! {
        panic!("a layer quantized with {} cannot be {what}; do that first and quantize afterwards", self.recipe)
    }

    fn assert_device(&self, device: &B::Device) {
        if *device != self.device {
            self.panic_unsupported("moved to another device");
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
        Self(QuantLinearState::Float(linear, None))
    }
}

impl<B: Backend> QuantLinear<B> {
    /// Applies the layer to the last dimension, `[..., k] -> [..., n]`. The number of tokens is the product of all
    /// other dimensions.
    pub fn forward<const D: usize>(&self, input: Tensor<B, D>) -> Tensor<B, D> {
        match &self.0 {
            QuantLinearState::Float(linear, None) => linear.forward(input),
            QuantLinearState::Float(nn::Linear { weight, bias }, Some(float8)) => {
                let product = |input| (float8.matmul)(input, weight.val(), float8.training);
                apply_to_rows(input, bias.as_ref(), product)
            }
            QuantLinearState::Quantized(weight, bias) => {
                apply_to_rows(input, bias.as_ref(), |input| weight.layer.forward(input))
            }
        }
    }

    /// Returns the layer if it is not quantized.
    pub fn float(&self) -> Option<&nn::Linear<B>> {
        match &self.0 {
            QuantLinearState::Float(linear, _) => Some(linear),
            QuantLinearState::Quantized(..) => None,
        }
    }

    /// Returns the float8 training configuration of a converted layer.
    pub fn float8(&self) -> Option<Float8Training> {
        match &self.0 {
            QuantLinearState::Float(_, Some(float8)) => Some(float8.training),
            _ => None,
        }
    }

    /// Name of the recipe that quantized the layer, such as `int8wo`.
    pub fn recipe(&self) -> Option<Name> {
        match &self.0 {
            QuantLinearState::Float(..) => None,
            QuantLinearState::Quantized(weight, _) => Some(weight.recipe),
        }
    }
}

/// Applies a layer of two-dimensional tensors to the last dimension and adds the bias.
fn apply_to_rows<B: Backend, const D: usize>(
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
pub(super) const LINEAR_MODULE: &str = "Struct:Linear";
pub(super) const WEIGHT_FIELD: &str = "weight";
const BIAS_FIELD: &str = "bias";

pub(super) type ReplacementSlot<B> = OnceCell<Replacement<B>>;

thread_local! {
    /// Slot of the [`QuantLinear`] that is being mapped. burn passes a mapper only a tensor, so a mapper that replaces
    /// the enclosing layer fills this slot. A slot that stays empty changes nothing.
    pub static CURRENT_SLOT: Cell<Option<Rc<dyn Any>>> = const { Cell::new(None) };
}

impl<B: Backend> Module<B> for QuantLinear<B> {
    type Record = nn::LinearRecord<B>;

    fn collect_devices(&self, mut devices: Devices<B>) -> Devices<B> {
        match &self.0 {
            QuantLinearState::Float(linear, _) => linear.collect_devices(devices),
            QuantLinearState::Quantized(weight, bias) => {
                if !devices.contains(&weight.device) {
                    devices.push(weight.device.clone());
                }
                bias.collect_devices(devices)
            }
        }
    }

    fn fork(self, device: &B::Device) -> Self {
        Self(match self.0 {
            QuantLinearState::Float(linear, float8) => QuantLinearState::Float(linear.fork(device), float8),
            QuantLinearState::Quantized(weight, bias) => {
                weight.assert_device(device);
                QuantLinearState::Quantized(weight, bias.fork(device))
            }
        })
    }

    fn to_device(self, device: &B::Device) -> Self {
        Self(match self.0 {
            QuantLinearState::Float(linear, float8) => QuantLinearState::Float(linear.to_device(device), float8),
            QuantLinearState::Quantized(weight, bias) => {
                weight.assert_device(device);
                QuantLinearState::Quantized(weight, bias.to_device(device))
            }
        })
    }

    fn num_params(&self) -> usize {
        match &self.0 {
            QuantLinearState::Float(linear, _) => Module::num_params(linear),
            QuantLinearState::Quantized(weight, bias) => weight.n * weight.k + Module::<B>::num_params(bias),
        }
    }

    fn visit<V: ModuleVisitor<B>>(&self, visitor: &mut V) {
        match &self.0 {
            QuantLinearState::Float(linear, _) => linear.visit(visitor),
            QuantLinearState::Quantized(_, bias) => {
                visitor.enter_module(BIAS_FIELD, LINEAR_MODULE);
                bias.visit(visitor);
                visitor.exit_module(BIAS_FIELD, LINEAR_MODULE);
            }
        }
    }

    fn map<M: ModuleMapper<B>>(self, mapper: &mut M) -> Self {
        Self(match self.0 {
            QuantLinearState::Float(linear, float8) => {
                let slot = Rc::new(ReplacementSlot::<B>::new());
                CURRENT_SLOT.set(Some(slot.clone()));
                let linear = linear.map(mapper);
                CURRENT_SLOT.take();
                match slot.get() {
                    Some(Replacement::Quantized(weight)) => QuantLinearState::Quantized(weight.clone(), linear.bias),
                    Some(Replacement::Float8(float8)) => QuantLinearState::Float(linear, Some(float8.clone())),
                    None => QuantLinearState::Float(linear, float8),
                }
            }
            QuantLinearState::Quantized(weight, bias) => {
                CURRENT_SLOT.set(Some(Rc::new(ReplacementSlot::from(Replacement::Quantized(weight.clone())))));
                mapper.enter_module(WEIGHT_FIELD, LINEAR_MODULE);
                mapper.exit_module(WEIGHT_FIELD, LINEAR_MODULE);
                CURRENT_SLOT.take();
                mapper.enter_module(BIAS_FIELD, LINEAR_MODULE);
                let bias = Module::map(bias, mapper);
                mapper.exit_module(BIAS_FIELD, LINEAR_MODULE);
                QuantLinearState::Quantized(weight, bias)
            }
        })
    }

    fn load_record(self, record: Self::Record) -> Self {
        match self.0 {
            QuantLinearState::Float(linear, float8) => {
                Self(QuantLinearState::Float(linear.load_record(record), float8))
            }
            QuantLinearState::Quantized(weight, _) => weight.panic_unsupported("loaded into"),
        }
    }

    fn into_record(self) -> Self::Record {
        match self.0 {
            QuantLinearState::Float(linear, _) => linear.into_record(),
            // Panics here, before a recorder overwrites the previous file.
            QuantLinearState::Quantized(weight, _) => weight.panic_unsupported("saved"),
        }
    }
}

impl<B: AutodiffBackend> AutodiffModule<B> for QuantLinear<B> {
    type InnerModule = QuantLinear<B::InnerBackend>;

    fn valid(&self) -> Self::InnerModule {
        match &self.0 {
            QuantLinearState::Float(linear, _) => linear.valid().into(),
            QuantLinearState::Quantized(weight, _) => weight.panic_unsupported("moved to the inner backend"),
        }
    }

    fn from_inner(module: Self::InnerModule) -> Self {
        match module.0 {
            QuantLinearState::Float(linear, _) => nn::Linear::from_inner(linear).into(),
            QuantLinearState::Quantized(weight, _) => weight.panic_unsupported("trained"),
        }
    }
}

impl<B: AutodiffBackend> HasAutodiffModule<B> for QuantLinear<B::InnerBackend> {
    type TrainModule = QuantLinear<B>;
}

impl<B: Backend> ModuleDisplayDefault for QuantLinear<B> {
    fn content(&self, content: Content) -> Option<Content> {
        let ([k, n], bias) = match &self.0 {
            QuantLinearState::Float(linear, _) => (linear.weight.lazy_shape().dims(), linear.bias.is_some()),
            QuantLinearState::Quantized(weight, bias) => ([weight.k, weight.n], bias.is_some()),
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
