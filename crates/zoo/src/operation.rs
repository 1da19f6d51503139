//! Traits of an operator: signature, cost, exact reference, and properties for planning.

use crate::gate::{Projection, Tolerance};
use crate::operators::presets::Preset;
use crate::{
    FusionModel, Implementation, Matrix, Operand, OutputSample, OutputSlot, SetRotation, Spec, Suite, ZooError,
};
use calorimeter_recipes::Element;
use calorimeter_shapes::Axes;
use std::fmt::Debug;

/// Name, inputs and outputs of an operator.
pub trait Signature {
    /// Returns the unique name.
    fn name(&self) -> &'static str;

    /// Description in one line.
    fn description(&self) -> &'static str;

    /// Axis names in display order.
    fn axes(&self) -> &'static [&'static str];

    /// Checks size and element type; the error names what is supported.
    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        require_floats(self.name(), spec)
    }

    /// Returns the inputs.
    fn inputs(&self, spec: &Spec) -> Vec<Operand>;

    /// Returns the outputs.
    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot>;
}

/// Cost of an operator.
pub trait Cost: Signature {
    /// Floating-point operations.
    fn flops(&self, spec: &Spec) -> u64;

    /// Minimum memory traffic: every input read once, every output written once.
    fn bytes(&self, spec: &Spec) -> u64 {
        let read: u64 = self.inputs(spec).iter().map(Operand::bytes).sum();
        read + self.outputs(spec).iter().map(OutputSlot::bytes).sum::<u64>()
    }

    /// Bytes of the tensors between inputs and outputs if each step is a separate kernel.
    fn intermediate(&self, _: &Spec) -> u64 {
        0
    }

    /// Expected savings of fusion, for patterns that are worth fusing.
    fn fusion(&self, _: &Spec) -> Option<FusionModel> {
        None
    }

    /// Consecutive matmuls whose f32 operands tensor cores may round to TF32.
    fn matmuls(&self) -> u32 {
        0
    }

    /// Element type of the matmul operands; selects the peak of the roofline.
    fn matmul_element(&self, spec: &Spec, _: Implementation) -> Element {
        spec.element
    }
}

/// Reference in double precision and tolerance of an operator.
pub trait ExactReference {
    /// Elements read per element of an output: the cost of a reference sample.
    fn depth(&self, spec: &Spec, output: usize) -> u64;

    /// Computes the sampled part of an output in double precision.
    fn reference(&self, spec: &Spec, inputs: &[Matrix], output: usize, sample: &OutputSample) -> Vec<f64>;

    /// Computes the sampled parts of several outputs, given as (output index, sample).
    ///
    /// Overridden by operators whose outputs share work.
    fn references(&self, spec: &Spec, inputs: &[Matrix], samples: &[(usize, OutputSample)]) -> Vec<Vec<f64>> {
        samples.iter().map(|(output, sample)| self.reference(spec, inputs, *output, sample)).collect()
    }

    /// Returns the part of an output that is compared with the reference.
    fn sample(&self, spec: &Spec, output: usize, slot: &OutputSlot) -> OutputSample {
        OutputSample::new(slot.rows, slot.cols, self.depth(spec, output))
    }

    /// Signed row and column sums of a whole output, if the inputs determine them without a full matmul.
    ///
    /// Called for outputs that are only sampled.
    fn projection(&self, _: &Spec, _: &[Matrix], _: usize) -> Option<Projection> {
        None
    }

    /// Tolerance of an output.
    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance;
}

/// An operator. Its implementations are added by one trait each: [`BurnPass`], [`CubePass`], [`NativeOpen`],
/// [`WorkloadFactory`].
///
/// [`BurnPass`]: crate::BurnPass
/// [`CubePass`]: crate::CubePass
/// [`NativeOpen`]: crate::NativeOpen
/// [`WorkloadFactory`]: crate::WorkloadFactory
pub trait Operation: Cost + ExactReference + Debug + Send + Sync + 'static {
    /// Suite that the operator belongs to.
    fn suite(&self) -> Suite {
        Suite::Custom
    }

    /// True if a suite includes the operator; an operator may be in several suites.
    fn is_listed_in(&self, suite: Suite) -> bool {
        suite == self.suite()
    }

    /// Sizes of a preset, in order.
    fn sizes(&self, preset: Preset) -> Vec<Axes> {
        preset.shapes_for_axes(self.axes())
    }

    /// Rotation of inputs and outputs between buffer sets, so that no two sets are identical.
    ///
    /// The default is right for elementwise and row-wise operators. The reference is checked against it before a case
    /// is opened.
    fn set_rotation(&self, spec: &Spec) -> SetRotation {
        SetRotation::from_sizes(&self.inputs(spec), &self.outputs(spec))
    }

    /// Rows (tokens) per training step.
    fn tokens(&self, _: &Spec) -> Option<u64> {
        None
    }

    /// Names of consecutive parts of a pass; each is marked by [`begin`](crate::parts::begin) when it is launched.
    fn parts(&self) -> &'static [&'static str] {
        &[]
    }

    /// True for transfers between memories or devices.
    ///
    /// Transfers have no roofline of one device and no graph of one stream, and their inputs may be on the host.
    fn is_transfer(&self) -> bool {
        false
    }
}

/// Rejects inputs that are not floats.
pub(crate) fn require_floats(name: &str, spec: &Spec) -> Result<(), ZooError> {
    match spec.element {
        Element::Float(_) => Ok(()),
        other => Err(ZooError::Unsupported(format!("{name} supports f32, f16 and bf16, not {other}"))),
    }
}
