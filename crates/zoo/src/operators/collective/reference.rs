//! Double-precision reference and tolerance of the collectives.

use super::Collective;
use crate::gate::Tolerance;
use crate::{ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for Collective {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        Self::devices(spec)
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        let (elements, devices) = (self.input_elements(spec) as usize, Self::devices(spec) as usize);
        let part = elements / devices;
        let at = |device: usize, element: usize| f64::from(inputs[0].element(device, element));
        let sum = |element: usize| (0..devices).map(|device| at(device, element)).sum();
        sample.map_elements(|device, element| match self {
            Self::AllReduce | Self::Psum => sum(element),
            Self::AllGather => at(element / elements, element % elements),
            Self::ReduceScatter | Self::PsumScatter => sum(device * part + element),
            Self::AllToAll => at(element / part, device * part + element % part),
            Self::SendRecv => at((device + devices - 1) % devices, element),
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        // NCCL rounds each partial sum to the dtype that is transferred.
        let roundings = if self.is_reduction() { (Self::devices(spec) - 1).min(u64::from(u32::MAX)) as u32 } else { 1 };
        Tolerance::new(spec.dtype(), roundings, Self::devices(spec))
    }
}
