//! Row-wise and elementwise operators with CPU kernels.

use super::operator::{self, HostKernel};
use crate::{OpenRequest, OperatorProblem, Task, Workload, WorkloadFactory, ZooError};
use calorimeter_kernels::host::RowwiseOperator;
use calorimeter_recipes::{Dtype, Element, QuantConfig};

/// Operator with a row-wise CPU kernel, in f32 and bf16.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostRowwise(pub RowwiseOperator);

impl WorkloadFactory for HostRowwise {
    fn accepts(&self, task: &Task, _: &QuantConfig) -> Result<(), String> {
        let Task::Operator(OperatorProblem { operator, spec, .. }) = task else { return Ok(()) };
        match spec.element {
            Element::Float(Dtype::F32 | Dtype::Bf16) => Ok(()),
            _ => Err(format!("{} has a `native` CPU kernel in f32 and bf16 only", operator.info().name)),
        }
    }

    fn open(&self, opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let (problem, inputs) = opening.operator()?;
        let (kernel, columns) = (self.0, inputs[0].cols);
        let run = Box::new(move |inputs: &[_], outputs: &mut [_]| kernel.run(inputs, columns, outputs));
        Ok(operator::open(problem, inputs, opening.setup.sets, HostKernel { name: kernel.kernel(), run }))
    }
}
