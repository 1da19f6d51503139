//! What an operator declares, each thing by a trait: what it is, what it costs, how right a kernel of it must be, and how it
//! stands among others.

use crate::gate::{Projection, Tolerance};
use crate::operators::presets::Preset;
use crate::{FusionModel, Implementation, Matrix, Moves, Operand, Sample, Slot, Spec, Suite, ZooError};
use calorimeter_recipes::Element;
use calorimeter_shapes::Axes;
use std::fmt::Debug;

/// What an operator is: its name and what goes in and comes out.
pub trait Signature {
    /// Its name, which no other operator has.
    fn name(&self) -> &'static str;

    /// What it computes, in one line.
    fn about(&self) -> &'static str;

    /// The names of its axes, in the order in which they are written.
    fn axes(&self) -> &'static [&'static str];

    /// Whether it exists at this size, in these numbers; the error says what would do.
    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        floats_alone(self.name(), spec)
    }

    /// Its inputs.
    fn inputs(&self, spec: &Spec) -> Vec<Operand>;

    /// Its outputs.
    fn outputs(&self, spec: &Spec) -> Vec<Slot>;
}

/// What an operator costs.
pub trait Cost: Signature {
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

    /// What fusing it should save, for patterns that are worth fusing.
    fn fusion(&self, _: &Spec) -> Option<FusionModel> {
        None
    }

    /// Matrix products in a row, whose f32 operands tensor cores may round to TF32.
    fn products(&self) -> u32 {
        0
    }

    /// What its matrix products multiply: the peak that it is held against is that of this type.
    fn factors(&self, spec: &Spec, _: Implementation) -> Element {
        spec.element
    }
}

/// What an operator computes, in double precision, and how near a kernel must come to that.
pub trait Exact {
    /// Numbers read for one number of this output: what a sample of the reference costs.
    fn depth(&self, spec: &Spec, output: usize) -> u64;

    /// The sampled part of an output in double precision.
    fn reference(&self, spec: &Spec, inputs: &[Matrix], output: usize, sample: &Sample) -> Vec<f64>;

    /// The sampled parts of some outputs, each with its number: for operators whose outputs have much in common.
    fn references(&self, spec: &Spec, inputs: &[Matrix], samples: &[(usize, Sample)]) -> Vec<Vec<f64>> {
        samples.iter().map(|(output, sample)| self.reference(spec, inputs, *output, sample)).collect()
    }

    /// Which part of an output is compared with the reference.
    fn sample(&self, spec: &Spec, output: usize, slot: &Slot) -> Sample {
        Sample::of(slot.rows, slot.cols, self.depth(spec, output))
    }

    /// What the whole of an output adds up to, where that follows from the inputs without computing it, as it does for
    /// products. It is asked for where an output is only sampled.
    fn projection(&self, _: &Spec, _: &[Matrix], _: usize) -> Option<Projection> {
        None
    }

    /// How far a correct output may be from the reference.
    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance;
}

/// An operator: what it is, costs and computes, and how it stands among others. How it runs is said by the other traits that
/// it has, one for each way: [`BurnPass`], [`CubePass`], [`NativeOpen`], [`Opener`].
///
/// [`BurnPass`]: crate::BurnPass
/// [`CubePass`]: crate::CubePass
/// [`NativeOpen`]: crate::NativeOpen
/// [`Opener`]: crate::Opener
pub trait Operation: Cost + Exact + Debug + Send + Sync + 'static {
    /// Where it belongs.
    fn suite(&self) -> Suite {
        Suite::Custom
    }

    /// Whether a suite lists it: its own, or one that has it beside its own.
    fn is_listed_in(&self, suite: Suite) -> bool {
        suite == self.suite()
    }

    /// The sizes that a preset has for it, in order.
    fn sizes(&self, preset: Preset) -> Vec<Axes> {
        preset.of_axes(self.axes())
    }

    /// How its inputs, and with them its outputs, move from one buffer set to the next, so that no two sets are alike. What
    /// is computed element by element or row by row needs no line; that the reference moves so is checked before a case is
    /// opened.
    fn moves(&self, spec: &Spec) -> Moves {
        Moves::by_size(&self.inputs(spec), &self.outputs(spec))
    }

    /// Rows that a pass of training is given, each a token of a text, say.
    fn tokens(&self, _: &Spec) -> Option<u64> {
        None
    }

    /// What comes one after another in a pass, each of which [`begin`](crate::parts::begin)s when it is launched.
    fn parts(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether it moves data between memories or devices: then it has no roof on one device, no graph of one stream, and
    /// its inputs need not lie on the device.
    fn is_link(&self) -> bool {
        false
    }
}

/// Refuses inputs that are no floats.
pub fn floats_alone(name: &str, spec: &Spec) -> Result<(), ZooError> {
    match spec.element {
        Element::Float(_) => Ok(()),
        other => Err(ZooError::Unsupported(format!("{name} takes f32, f16 and bf16, not {other}"))),
    }
}
