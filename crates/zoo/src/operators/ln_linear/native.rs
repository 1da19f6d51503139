//! `ln_linear` on CUDA: layer normalization kernel, then cuBLASLt.

use super::LnLinear;
use crate::native::{NativePass, Set};
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError, normalize};
use calorimeter_kernels::native::{AffineLayerNorm, Linear, LinearShape, Machine, NormForm};
use std::slice;
use std::sync::Arc;

impl NativeOpen for LnLinear {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (kind, shape) = (spec.dtype(), native_plans::shape(spec));
        let LinearShape { m, k, .. } = shape;
        let norm = AffineLayerNorm::new(&machine, kind, NormForm::Alone, normalize::EPSILON as f32, (m, k))?;
        let linear = Linear::new(&machine, kind, shape)?;
        let pass = NativePass::steps(
            vec![norm.algorithm().to_owned(), linear.algorithm()],
            vec![m * k * kind.width()],
            move |Set { inputs, between, outputs }| {
                let [.., weight] = &inputs[..] else { unreachable!("four inputs are declared") };
                norm.enqueue(&inputs[..3], slice::from_mut(&mut between[0]))?;
                linear.enqueue(&between[0], weight, &mut outputs[0])
            },
        );
        pass.open(self, spec, inputs, machine, sets)
    }
}
