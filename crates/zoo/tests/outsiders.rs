//! Another crate adds an operator, a model, and an implementation of an operator of ours, with nothing but what is public.
#![cfg(feature = "cpu")]

use calorimeter_recipes::{Dtype, Element, Linear, Recipe, Variant};
use calorimeter_shapes::{Axes, Shape};
use calorimeter_zoo::burn::tensor::{Tensor, activation::relu, backend::Backend};
use calorimeter_zoo::gate::{Judged, Tolerance};
use calorimeter_zoo::{
    BurnModel, BurnPass, Definition, Device, DeviceKind, Exact, ExactLinear, Forward, Implementation, Layout, Machines,
    Matrix, Model, Opening, Operand, Operation, Operator, Output, Pass, Sample, Setup, Slot, Spec, Subject, Suite,
    Task, Value, Workload, ZooError, register_implementation, register_model, register_operator,
};

/// Numbers with their sign turned.
#[derive(Debug)]
struct Negation;

impl Operation for Negation {
    fn name(&self) -> &'static str {
        "negation"
    }

    fn about(&self) -> &'static str {
        "numbers with their sign turned"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["n"]
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![Operand::normal(1, spec.axis("n"), spec.element)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![Slot::new(1, spec.axis("n"), spec.element)]
    }

    fn flops(&self, spec: &Spec) -> u64 {
        spec.axis("n")
    }
}

impl Exact for Negation {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        1
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        sample.by_elements(|row, col| -f64::from(inputs[0].row(row)[col]))
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, 1)
    }
}

impl BurnPass for Negation {
    fn pass<B: Backend>(&self, _: &Spec, mut inputs: Vec<Value<B>>) -> Pass<B> {
        let x = inputs.pop().expect("one input").float();
        Box::new(move || vec![Value::Float(x.clone().neg())])
    }
}

/// A linear layer, a ReLU, and a linear layer back to the width of the input.
#[derive(Debug)]
struct Perceptron;

impl Definition for Perceptron {
    fn name(&self) -> &'static str {
        "perceptron"
    }

    fn about(&self) -> &'static str {
        "two linear layers with a ReLU between them"
    }

    fn layout(&self, shape: Shape) -> Layout {
        let (m, k, n) = (shape.m(), shape.k(), shape.n());
        Layout { input: (m, k), output: (m, k), linears: vec![(n, k), (k, n)], intermediate: 2 * m * n }
    }

    fn flops(&self, shape: Shape) -> u64 {
        4 * shape.m() * shape.k() * shape.n()
    }

    fn roundings(&self) -> u32 {
        2
    }

    fn sample(&self, shape: Shape) -> Sample {
        Sample { rows: (0..shape.m() as usize).collect(), cols: (0..shape.k() as usize).collect() }
    }

    fn reference(&self, shape: Shape, input: &Matrix, linears: &[ExactLinear], _: &Sample) -> Vec<f64> {
        let rows: Vec<f64> = (0..shape.m() as usize).flat_map(|row| input.exact_row(row)).collect();
        let hidden: Vec<f64> = linears[0].dense(&rows).into_iter().map(|x| x.max(0.0)).collect();
        linears[1].dense(&hidden)
    }
}

impl BurnModel for Perceptron {
    fn forward<B: Backend>(&self, _: Shape, linears: Vec<Box<dyn Linear<B>>>, input: Tensor<B, 2>) -> Forward<B> {
        Box::new(move || linears[1].forward(relu(linears[0].forward(input.clone()))))
    }
}

/// A softmax that is written out.
struct ByHand {
    logits: Matrix,
    shares: Vec<f32>,
}

impl Workload for ByHand {
    fn launch(&mut self) -> Result<(), ZooError> {
        self.shares.clear();
        for row in 0..self.logits.rows {
            let logits = self.logits.row(row);
            let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = logits.iter().map(|x| (x - top).exp()).sum();
            self.shares.extend(logits.iter().map(|x| (x - top).exp() / sum));
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        self.launch()?;
        Ok(vec![Output { rows: self.logits.rows, cols: self.logits.cols, values: self.shares.clone() }])
    }

    fn weight_bytes(&self) -> u64 {
        0
    }
}

fn by_hand(opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
    let (_, inputs) = opening.operator()?;
    Ok(Box::new(ByHand { logits: inputs[0].clone(), shares: Vec::new() }))
}

/// Opens a task on the processor and holds it against its reference.
fn judged(task: &Task, variant: Variant, implementation: Implementation) -> Judged {
    let treatment = task.support(variant, implementation, Device::Cpu).unwrap();
    let inputs = task.inputs();
    let references = task.references(&inputs, &treatment).unwrap();
    let setup = Setup { implementation, device: Device::Cpu, sets: 2 };
    let mut workload = task.open(&inputs, &treatment, setup, &mut Machines::default()).unwrap();
    task.judge(&treatment, &workload.outputs().unwrap(), &references, workload.may_use_tf32()).unwrap()
}

const F32: Element = Element::Float(Dtype::F32);

#[test]
fn an_operator_is_named_listed_and_run() {
    register_operator(Negation).unwrap().burn();
    let operator: Operator = "negation".parse().unwrap();
    assert_eq!(Operator::all().last(), Some(&operator));
    assert_eq!((operator.suite(), operator.to_string()), (Suite::Custom, "negation".into()));
    let task = Task::new(Subject::Operator(operator), &Axes::from([("n", 1000)]), F32, None, 1).unwrap();
    assert_eq!(judged(&task, Variant::BASELINE, Implementation::Eager).rel_l2, 0.0);
    let refused =
        |implementation, device| task.support(Variant::BASELINE, implementation, device).unwrap_err().to_string();
    assert_eq!(
        refused(Implementation::Cube, Device::Cuda(0)),
        "negation has no `cube` kernel in this version; `eager` and `fused` run it"
    );
    assert_eq!(
        refused(Implementation::Fused, Device::Cpu),
        "the CPU backend fuses nothing; `eager` runs on it, `fused` needs cuda, vulkan or metal"
    );
    let again = register_operator(Negation).err().unwrap().to_string();
    assert_eq!(again, "the operator \"negation\" is registered already; choose another name");
    assert!("negatio".parse::<Operator>().unwrap_err().to_string().contains("did you mean \"negation\"?"));
}

#[test]
fn recipes_apply_to_a_model() {
    register_model(Perceptron).unwrap().burn();
    let model: Model = "perceptron".parse().unwrap();
    let task = Task::new(Subject::Model(model), &Axes::from([("m", 8), ("k", 64), ("n", 32)]), F32, None, 1).unwrap();
    for recipe in ["baseline", "int8wo", "int8dq"] {
        let recipe: Recipe = recipe.parse().unwrap();
        judged(&task, recipe.into(), Implementation::Eager);
    }
}

#[test]
fn an_implementation_stands_beside_ours() {
    let hand = Implementation::register("by_hand", "a softmax that is written out").unwrap();
    let softmax: Subject = "softmax".parse().unwrap();
    register_implementation(softmax, hand, DeviceKind::Cpu, by_hand).unwrap();
    assert_eq!("by_hand".parse(), Ok(hand));
    let task =
        Task::new(softmax, &Axes::from([("batch", 2), ("sequence", 3), ("dimension", 40)]), F32, None, 1).unwrap();
    judged(&task, Variant::BASELINE, hand);
    let elsewhere = task.support(Variant::BASELINE, hand, Device::Vulkan(0)).unwrap_err().to_string();
    assert_eq!(
        elsewhere,
        "`by_hand` of softmax is written for cpu and not for vulkan:0 in this version; `eager`, `fused` and `cube` run it \
         there"
    );
    let again = register_implementation(softmax, hand, DeviceKind::Cpu, by_hand).unwrap_err().to_string();
    assert_eq!(again, "the implementation \"by_hand of softmax on cpu\" is registered already; choose another name");
}
