//! The whole program with an operator, a recipe, a shape generator and a sink that it does not have by itself: they have
//! names in YAML files, stand in `list`, and run with gate, workers and tables like ours.
//!
//! `cargo run -p calorimeter-runner --example own_program -- list operators`

use calorimeter_recipes::format::{EPSILON, Format, Grouping, Method};
use calorimeter_recipes::{Dtype, Family, Products, RecipeError, Scheme, Sparsity, Treatment};
use calorimeter_runner::Calorimeter;
use calorimeter_shapes::{Generator, Kind, NamedShape, Parameter};
use calorimeter_sinks::{Run, Sink, SinkError, atomic};
use calorimeter_zoo::burn::tensor::backend::Backend;
use calorimeter_zoo::gate::Tolerance;
use calorimeter_zoo::{BurnPass, Exact, Matrix, Operand, Operation, Pass, Sample, Slot, Spec, Value};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    Calorimeter::new().operator(Negation, |ways| ways.burn()).recipe(&INT8_TENSOR).shapes(&TALL).sink(&Slowest).main()
}

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
        &["numbers"]
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![Operand::normal(1, spec.axis("numbers"), spec.element)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![Slot::new(1, spec.axis("numbers"), spec.element)]
    }

    fn flops(&self, spec: &Spec) -> u64 {
        spec.axis("numbers")
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

/// `int8wo-tensor`: 8-bit weights, one scale for the whole weight.
static INT8_TENSOR: Family = Family {
    spellings: &["int8wo-tensor"],
    about: "8-bit weights, one scale for the whole weight",
    typical: &["int8wo-tensor"],
    parse: |name| (name == "int8wo-tensor").then_some(Box::new(Int8Tensor) as Box<dyn Scheme>),
};

#[derive(Debug)]
struct Int8Tensor;

impl std::fmt::Display for Int8Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad("int8wo-tensor")
    }
}

impl Scheme for Int8Tensor {
    fn treatment(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<Treatment, RecipeError> {
        let method = Method::Symmetric { least: -127, most: 127, epsilon: EPSILON };
        let weight = Format::symmetric(8, Grouping::Tensor, dtype, dtype).with_method(method);
        Ok(Treatment { products: Products::Codes(dtype), ..Treatment::weight_only(dtype, weight) })
    }
}

/// `tall`: many rows against a small weight.
static TALL: Generator = Generator {
    name: "tall",
    about: "many rows against a weight of 64 x 64",
    parameters: &[ROWS],
    count: |settings| Ok(Some(settings.sizes(&ROWS).len() as u64)),
    shapes: |settings, _| {
        settings.sizes(&ROWS).iter().map(|&m| NamedShape::new(format!("tall_m{m}"), [m, 64, 64])).collect()
    },
};

const ROWS: Parameter = Parameter { name: "m", about: "rows of the input", kind: Kind::Sizes { default: &[1024] } };

/// `slowest.txt`: the id of the case that took longest.
struct Slowest;

impl Sink for Slowest {
    fn name(&self) -> &'static str {
        "slowest"
    }

    fn write(&self, run: &Run) -> Result<Vec<PathBuf>, SinkError> {
        let timed = run.records.iter().filter_map(|record| Some((record, record.time.time_ns?.median)));
        let Some((slowest, _)) = timed.max_by(|a, b| a.1.total_cmp(&b.1)) else { return Ok(Vec::new()) };
        let path = run.dir.join("slowest.txt");
        atomic::write(&path, slowest.case.id.as_bytes())?;
        Ok(vec![path])
    }
}
