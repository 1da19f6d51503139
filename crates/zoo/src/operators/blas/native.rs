//! BLAS routines on CUDA: kernels for `dot`, `axpy` and `gemv`, cuBLASLt for `matmul`.

use super::{ALPHA, Blas};
use crate::native::{NativePass, Set};
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{
    Elementwise, ElementwiseFunction, LinearForm, Machine, PairFunction, RowsByVector, WeightLayout,
};
use std::sync::Arc;

impl NativeOpen for Blas {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let pass = match self {
            Self::Dot => native_plans::pair_sum(&machine, spec, PairFunction::Dot, spec.axis("n"))?,
            Self::Axpy => {
                let function = ElementwiseFunction::Triad(ALPHA);
                let plan = Elementwise::new(&machine, spec.dtype(), function, spec.axis("n") as usize)?;
                NativePass::single(plan.algorithm().to_owned(), move |Set { inputs, outputs, .. }| {
                    plan.enqueue(&[&inputs[1], &inputs[0]], &mut outputs[0])
                })
            }
            Self::Gemv => {
                let (m, k) = (spec.axis("m") as usize, spec.axis("k") as usize);
                let plan = RowsByVector::new(&machine, spec.dtype(), m, k)?;
                NativePass::single(plan.algorithm().to_owned(), move |Set { inputs, outputs, .. }| {
                    plan.enqueue(&inputs[0], &inputs[1], &mut outputs[0])
                })
            }
            Self::Matmul => {
                let form = LinearForm { weight: WeightLayout::AlongN, ..LinearForm::plain(spec.dtype()) };
                native_plans::product(&machine, spec, form)?
            }
        };
        pass.open(self, spec, inputs, machine, sets)
    }
}
