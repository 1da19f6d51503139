//! Operators: handle and table entry.

use crate::{Operation, OutputSample, Preset, Spec, Suite, ZooError};
use calorimeter_shapes::Axes;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// Handle of a registered operator; dereferences to its [`Operation`].
#[derive(Clone, Copy)]
pub struct Operator {
    name: &'static str,
    operation: &'static dyn Operation,
}

/// Entry of `calorimeter list` for an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorInfo {
    /// Name.
    pub name: &'static str,
    /// Suite.
    pub suite: Suite,
    /// Axis names.
    pub axes: &'static [&'static str],
    /// Description in one line.
    pub description: &'static str,
}

/// Maximum product of the axes; with larger sizes FLOPs and bytes could overflow.
const MAX_AXIS_PRODUCT: u128 = 1 << 56;

/// Contribution of an axis to the product that bounds FLOPs and bytes.
fn axis_contribution(axis: &str, size: u64) -> u128 {
    let size = u128::from(size);
    match axis {
        "matrix_dim" | "sequence" | "size" | "kernel" | "devices" => size * size,
        "data_size_mib" => size << 20,
        _ => size,
    }
}

impl Operator {
    pub(crate) fn new(operation: &'static dyn Operation) -> Self {
        Self { name: operation.name(), operation }
    }

    /// Entry of `calorimeter list`.
    pub fn info(&self) -> OperatorInfo {
        OperatorInfo { name: self.name, suite: self.suite(), axes: self.axes(), description: self.description() }
    }

    /// Checks axes, size and element type.
    pub fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        self.check_axes(spec)?;
        let product =
            spec.axes.iter().fold(1u128, |product, (axis, size)| product.saturating_mul(axis_contribution(axis, size)));
        if product > MAX_AXIS_PRODUCT {
            return Err(ZooError::too_large(self.name, &spec.axes));
        }
        self.operation.check(spec)
    }

    /// Checks that the axes are exactly those of the operator and none is zero.
    pub fn check_axes(&self, spec: &Spec) -> Result<(), ZooError> {
        let (name, axes) = (self.name, self.axes());
        let given: Vec<&str> = spec.axes.iter().map(|(name, _)| name).collect();
        if given.len() != axes.len() || !axes.iter().all(|axis| given.contains(axis)) {
            let (needs, given) = (axes.join(", "), given.join(", "));
            return Err(ZooError::Shape(format!("{name}: invalid axes {given}: expected {needs}")));
        }
        if let Some((axis, _)) = spec.axes.iter().find(|(_, size)| *size == 0) {
            return Err(ZooError::Shape(format!("{name}: invalid {axis} 0: expected at least 1")));
        }
        Ok(())
    }

    /// Returns the part of an output that is compared with the reference.
    pub fn sample(&self, spec: &Spec, output: usize) -> OutputSample {
        self.operation.sample(spec, output, &self.outputs(spec)[output])
    }
}

impl Preset {
    /// Sizes of an operator, in order.
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

crate::name_identity::compared_by_name!(Operator);
