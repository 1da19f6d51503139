//! An operator by its name.

use crate::{Operation, Preset, Sample, Spec, Suite, ZooError};
use calorimeter_shapes::Axes;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// A registered operator: as cheap to copy and compare as its name, and everything that [`Operation`] declares.
#[derive(Clone, Copy)]
pub struct Operator {
    name: &'static str,
    operation: &'static dyn Operation,
}

/// What `list` shows of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorInfo {
    /// Its name.
    pub name: &'static str,
    /// Where it belongs.
    pub suite: Suite,
    /// Its axes.
    pub axes: &'static [&'static str],
    /// What it computes, in one line.
    pub about: &'static str,
}

/// More numbers than any machine holds or multiplies; of larger sizes the counts would overflow.
const MOST: u128 = 1 << 56;

/// A size as it comes into the counts of operators.
fn counted(axis: &str, size: u64) -> u128 {
    let size = u128::from(size);
    match axis {
        "matrix_dim" | "sequence" | "size" | "kernel" | "devices" => size * size,
        "data_size_mib" => size << 20,
        _ => size,
    }
}

impl Operator {
    pub(crate) fn of(operation: &'static dyn Operation) -> Self {
        Self { name: operation.name(), operation }
    }

    /// What `list` shows of it.
    pub fn info(&self) -> OperatorInfo {
        OperatorInfo { name: self.name, suite: self.suite(), axes: self.axes(), about: self.about() }
    }

    /// Whether it exists at this size, in these numbers.
    pub fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        self.check_axes(spec)?;
        let product = spec.axes.iter().fold(1u128, |product, (axis, size)| product.saturating_mul(counted(axis, size)));
        if product > MOST {
            return Err(ZooError::more_than_any_machine(self.name, &spec.axes));
        }
        self.operation.check(spec)
    }

    /// Whether these are its axes.
    pub fn check_axes(&self, spec: &Spec) -> Result<(), ZooError> {
        let (name, axes) = (self.name, self.axes());
        let given: Vec<&str> = spec.axes.iter().map(|(name, _)| name).collect();
        if given.len() != axes.len() || !axes.iter().all(|axis| given.contains(axis)) {
            let (needs, given) = (axes.join(", "), given.join(", "));
            return Err(ZooError::Shape(format!("{name} has the axes {needs}; given are {given}")));
        }
        if let Some((axis, _)) = spec.axes.iter().find(|(_, size)| *size == 0) {
            return Err(ZooError::Shape(format!("{name}: {axis} is 0; every axis is at least 1")));
        }
        Ok(())
    }

    /// Which part of an output is compared with the reference.
    pub fn sample(&self, spec: &Spec, output: usize) -> Sample {
        self.operation.sample(spec, output, &self.outputs(spec)[output])
    }
}

impl Preset {
    /// The sizes of an operator, in order.
    pub fn sizes(self, operator: Operator) -> Vec<Axes> {
        operator.sizes(self)
    }
}

impl Deref for Operator {
    type Target = dyn Operation;

    fn deref(&self) -> &Self::Target {
        self.operation
    }
}

crate::by_name::compared_by_name!(Operator);
