//! Factory of an implementation that a program offers.

use crate::process::Process;
use crate::protocol::{Offer, OpenCase};
use crate::shared_buffers::{Memory, POISON, SharedBuffers, Slot, place};
use crate::shared_file::SharedFile;
use crate::workload::{ExternalWorkload, SetInputs};
use crate::{ExternalError, ExternalProgram};
use calorimeter_recipes::QuantConfig;
use calorimeter_zoo::element_bytes::encode;
use calorimeter_zoo::{
    Device, Element, ImageLayout, Matrix, NativeDevices, OpenRequest, OperatorProblem, Task, Tensors, Workload,
    WorkloadFactory, ZooError,
};
use std::io;

/// Creates workloads of one implementation of one model or operator.
pub(crate) struct ExternalFactory {
    pub program: ExternalProgram,
    pub offer: Offer,
}

/// Function that computes the matrices of a buffer set.
type MatricesOfSet = Box<dyn Fn(u32) -> Vec<Matrix> + Send>;

/// Input or output as Calorimeter defines it.
struct Tensor {
    slot: Slot,
    /// Image layout of a tensor that the program stores in channels-last layout; `None` for every other tensor.
    images: Option<ImageLayout>,
}

impl Tensor {
    /// Size and element type for the program.
    fn program_slot(&self) -> Slot {
        let ([rows, cols], element) = self.slot;
        (self.images.map_or([rows, cols], |images| images.channels_last_shape(rows * cols)), element)
    }
}

/// Inputs and outputs of a task.
fn tensors(task: &Task, channels_last: bool) -> (Vec<Tensor>, Vec<Tensor>) {
    let tensor = |rows, cols, element, images: Option<ImageLayout>| Tensor {
        slot: ([rows, cols], element),
        images: images.filter(|_| channels_last),
    };
    match task {
        Task::Operator(OperatorProblem { operator, spec, .. }) => (
            operator.inputs(spec).iter().map(|one| tensor(one.rows, one.cols, one.element, one.images)).collect(),
            operator.outputs(spec).iter().map(|one| tensor(one.rows, one.cols, one.element, one.images)).collect(),
        ),
        Task::Model(problem) => {
            let (layout, element) = (problem.layout(), Element::Float(problem.dtype));
            let tensor = |(rows, cols): (u64, u64)| tensor(rows, cols, element, None);
            let inputs = [layout.input].into_iter().chain(layout.linears).map(tensor).collect();
            (inputs, vec![tensor(layout.output)])
        }
        // The registry contains no foreign tasks.
        Task::Foreign(_) => (Vec::new(), Vec::new()),
    }
}

/// Returns a function that computes the inputs of a buffer set, and the weights of a model. The weights are equal in
/// all sets and follow the other inputs.
fn inputs(request: &OpenRequest<'_>) -> Result<(MatricesOfSet, Vec<Matrix>), ZooError> {
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
        if !treatment.is_unmodified() && !self.offer.quantizes {
            return Err(format!("`{name}` does not quantize; it supports the recipe baseline"));
        }
        let element = task.element();
        if let Some(dtypes) = &self.offer.dtypes
            && !dtypes.contains(&element)
        {
            let supported: Vec<String> = dtypes.iter().map(ToString::to_string).collect();
            return Err(format!("`{name}` supports {}, not {element}", supported.join(", ")));
        }
        let (inputs, outputs) = tensors(task, self.offer.channels_last);
        let mut slots = inputs.iter().chain(&outputs).map(Tensor::program_slot);
        match slots.find(|(_, element)| element.bits() % 8 != 0) {
            Some((_, element)) => Err(format!("`{name}` shares whole bytes with Calorimeter, not {element}")),
            None => Ok(()),
        }
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn open(&self, request: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let program = self.program.to_string();
        let sharing = |error| ExternalError::Sharing { program: program.clone(), error };
        let (inputs, outputs) = tensors(request.task, self.offer.channels_last);
        let slots = |tensors: &[Tensor]| tensors.iter().map(Tensor::program_slot).collect::<Vec<_>>();
        let (sets, bytes) = place(&slots(&inputs), &slots(&outputs), request.setup.sets.max(1));
        let (matrices_of_set, fixed) = self::inputs(&request)?;
        let memory = allocate(bytes, request.setup.device, request.machines).map_err(sharing)?;
        let case = OpenCase {
            id: 0,
            subject: self.offer.subject.clone(),
            implementation: self.offer.name.clone(),
            device: request.setup.device.to_string(),
            axes: request.task.axes(),
            dtype: request.task.element(),
            recipe: recipe_name(&request),
            scalars: Vec::new(),
            memory: memory.shared().map_err(sharing)?,
            bytes,
            sets: sets.clone(),
        };
        let mut buffers = SharedBuffers::new(memory, sets);
        let varying = inputs.len() - fixed.len();
        buffers.write_fixed(varying, &fixed).map_err(sharing)?;
        let of_set = move |set| {
            let encoded = |(matrix, Tensor { slot: (_, element), images }): (Matrix, &Tensor)| match images {
                Some(images) => encode(&images.to_channels_last(&matrix.values), *element),
                None => encode(&matrix.values, *element),
            };
            matrices_of_set(set).into_iter().zip(&inputs).map(encoded).collect()
        };
        let inputs = SetInputs { of_set: Box::new(of_set), count: varying, vary: true };
        fill(&mut buffers, &inputs).map_err(sharing)?;
        let process = Process::shared(&self.program, &self.offer.name)?;
        let mut workload = ExternalWorkload::open(process, buffers, inputs, case)?;
        workload.image_outputs =
            outputs.iter().map(|output| output.images.map(|layout| (layout, output.slot.0))).collect();
        if request.treatment.training.is_some() {
            // Training passes quantize in each launch.
            workload.quantization_time = None;
        }
        Ok(Box::new(workload))
    }
}

/// Name of the recipe for another process. Training recipes have the names of `torchao`.
fn recipe_name(request: &OpenRequest<'_>) -> String {
    match (request.treatment.training, request.recipe) {
        (Some(training), _) => training.to_string(),
        (None, Some(recipe)) => recipe.to_string(),
        (None, None) => "baseline".to_owned(),
    }
}

/// Writes the inputs of all sets, and poisons the outputs.
pub(crate) fn fill(buffers: &mut SharedBuffers, inputs: &SetInputs) -> io::Result<()> {
    for set in 0..buffers.sets() {
        buffers.write_inputs(set, &(inputs.of_set)(set))?;
        buffers.fill_outputs(set, POISON)?;
    }
    Ok(())
}

/// Allocates memory that another process can open.
pub(crate) fn allocate(bytes: u64, device: Device, machines: &mut NativeDevices) -> io::Result<Memory> {
    match device {
        #[cfg(feature = "native")]
        Device::Cuda(index) => {
            let machine = machines.native(index).map_err(io::Error::other)?;
            Ok(Memory::Cuda(machine.allocate(bytes as usize).map_err(io::Error::other)?))
        }
        _ => {
            let _ = machines;
            Ok(Memory::File(SharedFile::new(bytes)?))
        }
    }
}
