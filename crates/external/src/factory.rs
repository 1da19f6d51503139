//! Factory of an implementation that a program offers.

use crate::process::Process;
use crate::protocol::{Offer, OpenCase};
use crate::shared_buffers::SharedBuffers;
use crate::workload::{ExternalWorkload, InputsOfSet};
use crate::{ExternalError, ExternalProgram};
use calorimeter_recipes::QuantConfig;
use calorimeter_zoo::{
    Element, Matrix, OpenRequest, OperatorProblem, Task, Tensors, Workload, WorkloadFactory, ZooError,
};

/// Creates workloads of one implementation of one model or operator.
pub(crate) struct ExternalFactory {
    pub program: ExternalProgram,
    pub offer: Offer,
}

/// Size and element type of an input or output.
type Slot = ([u64; 2], Element);

/// Inputs and outputs of a task.
fn slots(task: &Task) -> (Vec<Slot>, Vec<Slot>) {
    match task {
        Task::Operator(OperatorProblem { operator, spec, .. }) => (
            operator.inputs(spec).iter().map(|input| ([input.rows, input.cols], input.element)).collect(),
            operator.outputs(spec).iter().map(|output| ([output.rows, output.cols], output.element)).collect(),
        ),
        Task::Model(problem) => {
            let (layout, element) = (problem.layout(), Element::Float(problem.dtype));
            let slot = |(rows, cols): (u64, u64)| ([rows, cols], element);
            let inputs = [layout.input].into_iter().chain(layout.linears).map(slot).collect();
            (inputs, vec![slot(layout.output)])
        }
        // The registry contains no foreign tasks.
        Task::Foreign(_) => (Vec::new(), Vec::new()),
    }
}

/// Function that computes the inputs of a buffer set, and inputs that follow them and are the same in all sets: the
/// weights of a model.
fn inputs(request: &OpenRequest<'_>) -> Result<(InputsOfSet, Vec<Matrix>), ZooError> {
    if let Task::Model(_) = request.task {
        let (problem, Tensors { input, weights }) = request.model()?;
        let (problem, moving) = (*problem, Tensors { input: input.clone(), weights: Vec::new() });
        let weights = weights.iter().map(|weight| Matrix {
            rows: weight.n(),
            cols: weight.k(),
            values: weight.values().to_vec().into(),
        });
        return Ok((Box::new(move |set| vec![problem.input_of_set(&moving, set)]), weights.collect()));
    }
    let (OperatorProblem { operator, spec, .. }, inputs) = request.operator()?;
    let (rotation, inputs) = (operator.set_rotation(spec), inputs.to_vec());
    Ok((Box::new(move |set| rotation.inputs_of_set(&inputs, set)), Vec::new()))
}

impl WorkloadFactory for ExternalFactory {
    fn accepts(&self, task: &Task, treatment: &QuantConfig) -> Result<(), String> {
        let name = &self.offer.name;
        if !treatment.is_unmodified() {
            return Err(format!("`{name}` runs in another process, which supports only the baseline in this version"));
        }
        let element = task.element();
        if let Some(dtypes) = &self.offer.dtypes
            && !dtypes.contains(&element)
        {
            let supported: Vec<String> = dtypes.iter().map(ToString::to_string).collect();
            return Err(format!("`{name}` supports {}, not {element}", supported.join(", ")));
        }
        let (inputs, outputs) = slots(task);
        match inputs.iter().chain(&outputs).find(|(_, element)| element.bits() % 8 != 0) {
            Some((_, element)) => Err(format!("`{name}` shares whole bytes with Calorimeter, not {element}")),
            None => Ok(()),
        }
    }

    fn open(&self, request: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let program = self.program.to_string();
        let sharing = |error| ExternalError::Sharing { program: program.clone(), error };
        let (inputs, outputs) = slots(request.task);
        let mut buffers = SharedBuffers::new(&inputs, &outputs, request.setup.sets.max(1)).map_err(sharing)?;
        let (inputs_of_set, fixed) = self::inputs(&request)?;
        for set in 0..buffers.sets.len() as u32 {
            let all: Vec<Matrix> = inputs_of_set(set).into_iter().chain(fixed.iter().cloned()).collect();
            buffers.fill(set, &all).map_err(sharing)?;
        }
        let case = OpenCase {
            id: 0,
            subject: self.offer.subject.clone(),
            implementation: self.offer.name.clone(),
            device: request.setup.device.to_string(),
            axes: request.task.axes(),
            dtype: request.task.element(),
            file: buffers.path.clone(),
            bytes: buffers.bytes,
            sets: buffers.sets.clone(),
        };
        let weight_bytes = request.task.weight_bytes(request.treatment).unwrap_or(0);
        let process = Process::shared(&self.program, &self.offer.name)?;
        Ok(Box::new(ExternalWorkload::open(process, buffers, inputs_of_set, weight_bytes, case)?))
    }
}
