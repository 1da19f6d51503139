//! Traversal of a module that converts its linear layers.

use super::layer::{
    CURRENT_SLOT, Float8Matmul, LINEAR_MODULE, QuantWeight, Replacement, ReplacementSlot, WEIGHT_FIELD,
};
use super::report::{LayerOutcome, LayerReport, ModuleReport};
use crate::device::QuantBackend;
use crate::training::{Float8Backend, Float8Training};
use crate::{Dtype, FloatType, Name, Quantizer, RecipeError, Weight};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor};
use std::mem;
use std::rc::Rc;
use std::sync::Arc;

/// Quantizes the [`QuantLinear`](super::QuantLinear) layers that the filter accepts, and reports on all linear layers
/// of the module.
///
/// The filter receives the path of a layer, such as `blocks.0.up`, and its size `[n, k]`. Weights are quantized one by
/// one on the host in their own dtype, and the parameter is dropped. Call `valid()` first for a module on an autodiff
/// backend. Other parameters, including embeddings and convolutions, are neither changed nor reported.
///
/// Returns an error if no layer is quantized, if an accepted layer is already quantized, or if the recipe does not
/// support an accepted layer; the filter can exclude it. An error drops the module; a clone made before costs no
/// memory.
pub fn quantize<B: QuantBackend, M: Module<B>>(
    module: M,
    by: &dyn Quantizer,
    filter: impl FnMut(&str, [usize; 2]) -> bool,
) -> Result<(M, ModuleReport), RecipeError> {
    replace_weights(module, by.name(), QuantizeReplacer(by), filter)
}

/// Converts the [`QuantLinear`](super::QuantLinear) layers that the filter accepts to float8 training, and reports on
/// all linear layers of the module. Their matmuls run in float8 as `training` specifies, which may be a
/// [`TrainingRecipe`](crate::TrainingRecipe); on an autodiff backend this includes the gradients. Weights stay
/// parameters in their own dtype. A layer that was converted before is converted again.
///
/// Returns an error if no layer is converted, or if an accepted layer is quantized.
pub fn convert_to_float8_training<B: Float8Backend, M: Module<B>>(
    module: M,
    training: impl Into<Float8Training>,
    filter: impl FnMut(&str, [usize; 2]) -> bool,
) -> Result<(M, ModuleReport), RecipeError> {
    let training = training.into();
    replace_weights(module, training.to_string().into(), Float8Replacer(Float8Matmul::new(training).into()), filter)
}

/// Creates the replacement of a layer.
trait WeightReplacer<B: Backend> {
    /// Returns the replacement for a weight, which burn stores as `[k, n]`; `None` leaves the layer unchanged.
    fn replacement<const D: usize>(&self, weight: Tensor<B, D>) -> Result<Option<Replacement<B>>, RecipeError>;
}

fn replace_weights<B: Backend, M: Module<B>>(
    module: M,
    name: Name,
    by: impl WeightReplacer<B>,
    filter: impl FnMut(&str, [usize; 2]) -> bool,
) -> Result<(M, ModuleReport), RecipeError> {
    // A mapper that panicked may have left a slot behind.
    CURRENT_SLOT.take();
    let report = ModuleReport { recipe: name, layers: Vec::new() };
    let mut walk = ModuleWalk {
        filter,
        replacer: by,
        module_path: Vec::new(),
        slot: None::<Rc<ReplacementSlot<B>>>,
        report,
        result: Ok(()),
    };
    let module = module.map(&mut walk);
    walk.result?;
    let is_converted = |layer: &LayerReport| {
        matches!(
            layer.outcome,
            LayerOutcome::Quantized | LayerOutcome::UnquantizedByRecipe | LayerOutcome::ConvertedToFloat8
        )
    };
    if walk.report.layers.iter().any(is_converted) {
        Ok((module, walk.report))
    } else {
        Err(RecipeError::NothingConverted { layers: walk.report.layers })
    }
}

/// Replaces weights by quantized ones.
struct QuantizeReplacer<'a>(&'a dyn Quantizer);

impl<B: QuantBackend> WeightReplacer<B> for QuantizeReplacer<'_> {
    fn replacement<const D: usize>(&self, weight: Tensor<B, D>) -> Result<Option<Replacement<B>>, RecipeError> {
        let config = self.0.quant_config(float_dtype(weight.dtype())?)?;
        if config.is_unmodified() {
            return Ok(None);
        }
        let (device, weight) = (weight.device(), weight.transpose());
        let [n, k] = weight.shape().dims();
        let values = weight.into_data().convert::<f32>().into_vec().expect("the values were just converted to f32");
        let layer = config.linear::<B>(&Weight::new(n, k, values, config.dtype), &device)?;
        let recipe = self.0.name();
        Ok(Some(Replacement::Quantized(QuantWeight { layer: layer.into(), recipe, n, k, device })))
    }
}

/// Replaces matmuls by float8 ones.
struct Float8Replacer<B: Backend>(Arc<Float8Matmul<B>>);

impl<B: Backend> WeightReplacer<B> for Float8Replacer<B> {
    fn replacement<const D: usize>(&self, _: Tensor<B, D>) -> Result<Option<Replacement<B>>, RecipeError> {
        Ok(Some(Replacement::Float8(self.0.clone())))
    }
}

/// State of the traversal.
struct ModuleWalk<B: Backend, F, E> {
    filter: F,
    replacer: E,
    /// Names and kinds of the enclosing modules, outermost first.
    module_path: Vec<(String, String)>,
    /// Slot for the replacement of the current layer.
    slot: Option<Rc<ReplacementSlot<B>>>,
    report: ModuleReport,
    result: Result<(), RecipeError>,
}

impl<B: Backend, F: FnMut(&str, [usize; 2]) -> bool, E> ModuleWalk<B, F, E> {
    /// True at the weight of a linear layer.
    fn is_linear_weight(&self) -> bool {
        self.module_path.last().is_some_and(|(name, kind)| name == WEIGHT_FIELD && kind == LINEAR_MODULE)
    }

    /// Path of the layer that owns the current weight.
    fn path(&self) -> String {
        let names: Vec<_> =
            self.module_path[..self.module_path.len() - 1].iter().map(|(name, _)| name.as_str()).collect();
        names.join(".")
    }

    fn accepts(&mut self, size: [usize; 2]) -> bool {
        let path = self.path();
        (self.filter)(&path, size)
    }

    fn record(&mut self, [n, k]: [usize; 2], bytes_before: u64, bytes_after: u64, outcome: LayerOutcome) {
        let path = self.path();
        self.report.layers.push(LayerReport { path, n, k, bytes_before, bytes_after, outcome });
    }

    fn fail(&mut self, error: RecipeError) {
        self.result = Err(RecipeError::Layer { path: self.path(), cause: Box::new(error) });
    }

    fn visit_quantized(&mut self, weight: &QuantWeight<B>) {
        let size = [weight.n, weight.k];
        if self.accepts(size) {
            self.fail(RecipeError::AlreadyQuantized { recipe: weight.recipe });
        } else {
            let bytes = weight.layer.weight_bytes();
            self.record(size, bytes, bytes, LayerOutcome::AlreadyQuantized(weight.recipe));
        }
    }
}

fn float_dtype(dtype: DType) -> Result<Dtype, RecipeError> {
    let supported = || Dtype::ALL.map(Dtype::burn).to_vec();
    Dtype::from_burn(dtype).ok_or_else(|| RecipeError::WeightDtype { found: dtype, supported: supported() })
}

impl<B: Backend, F: FnMut(&str, [usize; 2]) -> bool, E: WeightReplacer<B>> ModuleMapper<B> for ModuleWalk<B, F, E> {
    fn enter_module(&mut self, name: &str, kind: &str) {
        self.module_path.push((name.to_owned(), kind.to_owned()));
        if self.result.is_err() || !self.is_linear_weight() {
            return;
        }
        self.slot = CURRENT_SLOT.take().and_then(|slot| slot.downcast::<ReplacementSlot<B>>().ok());
        let quantized = self.slot.take_if(|slot| slot.get().is_some());
        if let Some(Replacement::Quantized(weight)) = quantized.as_ref().and_then(|slot| slot.get()) {
            self.visit_quantized(weight);
        }
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.module_path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        if self.result.is_err() || !self.is_linear_weight() || D != 2 {
            return param;
        }
        let [k, n] = param.lazy_shape().dims();
        let bytes = (n * k * param.dtype().size()) as u64;
        let Some(slot) = mem::take(&mut self.slot) else {
            self.record([n, k], bytes, bytes, LayerOutcome::NotReplaceable);
            return param;
        };
        if !self.accepts([n, k]) {
            self.record([n, k], bytes, bytes, LayerOutcome::Excluded);
            return param;
        }
        match self.replacer.replacement(param.val()) {
            Ok(Some(change)) => {
                match &change {
                    Replacement::Quantized(weight) => {
                        self.record([n, k], bytes, weight.layer.weight_bytes(), LayerOutcome::Quantized);
                    }
                    Replacement::Float8(_) => self.record([n, k], bytes, bytes, LayerOutcome::ConvertedToFloat8),
                }
                // The parameter is returned; a layer that becomes quantized drops it. The slot belongs to this layer
                // and was empty.
                let _ = slot.set(change);
            }
            Ok(None) => self.record([n, k], bytes, bytes, LayerOutcome::UnquantizedByRecipe),
            Err(error) => self.fail(error),
        }
        param
    }
}
