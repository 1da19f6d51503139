//! A linear layer, alone or between a layer normalisation and an activation, through cuBLASLt and CUDA C++, on a stream and
//! in buffers of its own. Its weight is as it is, or packed by a recipe; its input may be quantised too.

use super::numbers::{bytes, numbers};
use super::weight::{DeviceWeight, HostWeight, Product};
use crate::{Activation, Layout, Output, Problem, Tensors, Workload, ZooError};
use calorimeter_kernels::native::{self, Buffer, LayerNorm, LinearShape, Machine, NativeError};
use calorimeter_recipes::{Dtype, Element, Treatment};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The steps of a pass and the buffers between them; passes go through the sets in turn.
struct NativeWorkload {
    machine: Arc<Machine>,
    dtype: Dtype,
    norm: Option<(LayerNorm, Buffer)>,
    product: Product,
    activation: Option<native::Activation>,
    sets: Vec<Set>,
    next: usize,
    size: (u64, u64),
    weight_bytes: u64,
    quantising: Option<Duration>,
}

/// What one pass reads and writes.
struct Set {
    input: Buffer,
    weight: DeviceWeight,
    output: Buffer,
    /// Whether a pass has run on it.
    ran: bool,
}

/// Opens the layer; with an activation, a layer normalisation comes first.
pub fn open(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &Treatment,
    activation: Option<Activation>,
    machine: Arc<Machine>,
    sets: u32,
) -> Result<Box<dyn Workload>, ZooError> {
    let kind = problem.dtype;
    let Layout { input: (m, k), output: size, .. } = problem.layout();
    let (m, k, n) = (m as usize, k as usize, size.1 as usize);
    let product = Product::new(&machine, treatment, activation, LinearShape { m, k, n })?;
    let start = Instant::now();
    let prepared = treatment.prepare(&tensors.weights[0])?;
    let quantising = (*treatment != Treatment::none(problem.dtype)).then(|| start.elapsed());
    let weight = HostWeight::new(prepared)?;
    let weight_bytes = weight.bytes();
    let weight = weight.filled_up(&product);
    let set = |set: u32| -> Result<Set, NativeError> {
        let input = bytes(&problem.input_of_set(tensors, set).values, Element::Float(problem.dtype));
        let (input, weight) = (machine.upload(&input)?, weight.upload(&machine)?);
        let mut output = machine.allocate(product.y_bytes())?;
        output.fill(POISON)?;
        Ok(Set { input, weight, output, ran: false })
    };
    let sets: Vec<Set> = (0..sets.max(1)).map(set).collect::<Result<_, _>>()?;
    let activation = activation.filter(|_| !product.takes_in_the_rest());
    let norm = match activation {
        Some(_) => Some((LayerNorm::new(&machine, kind, m, k)?, machine.allocate(product.x_bytes())?)),
        None => None,
    };
    let activation =
        activation.map(|activation| native::Activation::new(&machine, kind, activation, m * n)).transpose()?;
    let (dtype, next) = (problem.dtype, 0);
    let workload =
        NativeWorkload { machine, dtype, norm, product, activation, sets, next, size, weight_bytes, quantising };
    Ok(Box::new(workload))
}

/// All ones is a NaN in every float type.
const POISON: u8 = 0xFF;

impl NativeWorkload {
    fn read(&self, set: usize) -> Result<Vec<Output>, ZooError> {
        let values = numbers(&self.sets[set].output.download()?, Element::Float(self.dtype));
        Ok(vec![Output { rows: self.size.0 as usize, cols: self.size.1 as usize, values }])
    }
}

impl Workload for NativeWorkload {
    fn launch(&mut self) -> Result<(), ZooError> {
        let sets = self.sets.len();
        let Set { input, weight, output, ran } = &mut self.sets[self.next];
        *ran = true;
        self.next = (self.next + 1) % sets;
        let x = match &mut self.norm {
            Some((norm, normalised)) => {
                norm.enqueue(input, normalised)?;
                &*normalised
            }
            None => &*input,
        };
        self.product.enqueue(x, weight, output)?;
        if let Some(activation) = &self.activation {
            activation.enqueue_in_place(output)?;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(self.machine.synchronize()?)
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.next;
        self.sets[set].output.fill(POISON)?;
        self.launch()?;
        self.read(set)
    }

    fn kept(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        let ran = self.sets.get(set as usize).is_some_and(|set| set.ran);
        ran.then(|| self.read(set as usize)).transpose()
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    fn quantising(&self) -> Option<Duration> {
        self.quantising
    }

    fn kernel(&self) -> Option<String> {
        Some(self.product.algorithm())
    }
}
