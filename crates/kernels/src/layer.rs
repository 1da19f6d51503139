//! Kernels of linear layers: the interface that every backend implements, and the selection of the fastest kernel.
//!
//! A kernel is one file with an implementation of [`LayerKernel`] and one line in the table of its backend:
//! `native::LAYER_KERNELS` (CUDA C++ and cuBLASLt), `cube::layer_kernels` (CubeCL) or `host::LAYER_KERNELS` (CPU).

use crate::{Dtype, LayerSpec};
use std::fmt;

/// Sizes of y[m, n] = x[m, k] · w[n, k]ᵀ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinearShape {
    /// Rows of the input and of the output.
    pub m: usize,
    /// Row length of the input and of the weight; the reduction dimension.
    pub k: usize,
    /// Rows of the weight; row length of the output.
    pub n: usize,
}

impl LinearShape {
    /// Bytes of the input.
    pub fn x_bytes(self, dtype: Dtype) -> usize {
        self.m * self.k * dtype.width()
    }

    /// Bytes of an unquantized weight.
    pub fn w_bytes(self, dtype: Dtype) -> usize {
        self.n * self.k * dtype.width()
    }

    /// Bytes of the output.
    pub fn y_bytes(self, dtype: Dtype) -> usize {
        self.m * self.n * dtype.width()
    }
}

impl fmt::Display for LinearShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m={} k={} n={}", self.m, self.k, self.n)
    }
}

/// Expected time of a kernel, relative to the other kernels of its backend that accept the layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cost {
    /// The kernel was the fastest in measurements of layers like this one.
    Fastest,
    /// The kernel is the fastest unless a kernel for special layers accepts the layer.
    General,
    /// The kernel runs only if no other kernel can be prepared.
    LastResort,
}

/// Reason for which a kernel does not compute a layer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The backend has no kernel.
    #[error("no kernel")]
    NoKernel,
    /// Another operation, format, sparsity or dtype is expected.
    #[error("expected {0}")]
    Spec(&'static str),
    /// The result would not be accurate.
    #[error("{0}")]
    Accuracy(&'static str),
    /// The device lacks an instruction.
    #[error("the device lacks {0}")]
    Device(&'static str),
    /// The number of rows or another size is out of range.
    #[error("{what} is {value}; expected at most {max}")]
    Size {
        /// Name of the size.
        what: &'static str,
        /// Largest supported value.
        max: usize,
        /// Value of the layer.
        value: usize,
    },
    /// A size is not a multiple of a number.
    #[error("{what} is {value}; expected a multiple of {factor}")]
    Multiple {
        /// Name of the size.
        what: &'static str,
        /// Number that must divide the size.
        factor: usize,
        /// Value of the layer.
        value: usize,
    },
}

impl Rejection {
    /// Rank of the reason: the higher, the closer the kernel is to computing the layer.
    fn specificity(&self) -> (u8, usize) {
        match self {
            Self::NoKernel => (0, 0),
            Self::Spec(_) => (1, 0),
            Self::Device(_) => (2, 0),
            Self::Multiple { .. } => (3, 0),
            Self::Size { max, .. } => (4, *max),
            Self::Accuracy(_) => (5, 0),
        }
    }
}

/// Backend of kernels.
pub trait LayerBackend: 'static {
    /// Properties of a device that decide whether a kernel runs on it.
    type Capability;
    /// Device and other state that a kernel is prepared with, apart from the specification and the shape of the layer.
    type Context;
    /// Prepared kernel.
    type Plan;
    /// Error of the preparation.
    type Error: From<Rejection>;

    /// True if an error means that a library has no algorithm for the layer, so that the next kernel is tried.
    fn is_missing_algorithm(_error: &Self::Error) -> bool {
        false
    }
}

/// Kernel of a linear layer.
pub trait LayerKernel<B: LayerBackend>: Sync {
    /// Name in tables.
    fn name(&self) -> &'static str;

    /// Returns the cost of a layer, or the reason for which the kernel does not compute it.
    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, capability: &B::Capability) -> Result<Cost, Rejection>;

    /// Compiles and configures the kernel for a layer that [`LayerKernel::accepts`].
    fn prepare(&self, context: &B::Context, spec: &LayerSpec, shape: LinearShape) -> Result<B::Plan, B::Error>;
}

/// Kernels of a backend in order of preference: of two with the same cost the first is selected.
pub type KernelTable<B> = [&'static dyn LayerKernel<B>];

/// Returns the kernels that accept a layer, cheapest first, or the most specific reason for which none does.
pub fn candidates<'a, B: LayerBackend>(
    table: &'a KernelTable<B>,
    spec: &LayerSpec,
    shape: LinearShape,
    capability: &B::Capability,
) -> Result<Vec<&'a dyn LayerKernel<B>>, Rejection> {
    let (mut accepted, mut reason) = (Vec::new(), Rejection::NoKernel);
    for &kernel in table {
        match kernel.accepts(spec, shape, capability) {
            Ok(cost) => accepted.push((cost, kernel)),
            Err(other) if other.specificity() > reason.specificity() => reason = other,
            Err(_) => {}
        }
    }
    accepted.sort_by_key(|(cost, _)| *cost);
    if accepted.is_empty() { Err(reason) } else { Ok(accepted.into_iter().map(|(_, kernel)| kernel).collect()) }
}

/// Prepares the cheapest kernel that accepts a layer. A kernel whose library has no algorithm is passed over.
pub fn prepare<B: LayerBackend>(
    table: &KernelTable<B>,
    context: &B::Context,
    capability: &B::Capability,
    spec: &LayerSpec,
    shape: LinearShape,
) -> Result<B::Plan, B::Error> {
    let mut error = None;
    for kernel in candidates(table, spec, shape, capability)? {
        match kernel.prepare(context, spec, shape) {
            Err(missing) if B::is_missing_algorithm(&missing) => error = error.or(Some(missing)),
            done => return done,
        }
    }
    Err(error.unwrap_or_else(|| Rejection::NoKernel.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fake;

    impl LayerBackend for Fake {
        type Capability = ();
        type Context = ();
        type Plan = &'static str;
        type Error = FakeError;

        fn is_missing_algorithm(error: &FakeError) -> bool {
            *error == FakeError::Missing
        }
    }

    #[derive(Debug, PartialEq)]
    enum FakeError {
        Missing,
        Broken,
        Rejected(Rejection),
    }

    impl From<Rejection> for FakeError {
        fn from(reason: Rejection) -> Self {
            Self::Rejected(reason)
        }
    }

    struct Row(&'static str, Result<Cost, Rejection>, fn() -> Result<&'static str, FakeError>);

    impl LayerKernel<Fake> for Row {
        fn name(&self) -> &'static str {
            self.0
        }

        fn accepts(&self, _: &LayerSpec, _: LinearShape, _: &()) -> Result<Cost, Rejection> {
            self.1.clone()
        }

        fn prepare(&self, _: &(), _: &LayerSpec, _: LinearShape) -> Result<&'static str, FakeError> {
            self.2()
        }
    }

    fn run(table: &KernelTable<Fake>) -> Result<&'static str, FakeError> {
        prepare(table, &(), &(), &LayerSpec::unquantized(Dtype::F32), LinearShape { m: 1, k: 1, n: 1 })
    }

    const GENERAL: Row = Row("general", Ok(Cost::General), || Ok("general"));
    const FASTEST: Row = Row("fastest", Ok(Cost::Fastest), || Ok("fastest"));
    const MISSING: Row = Row("missing", Ok(Cost::Fastest), || Err(FakeError::Missing));
    const BROKEN: Row = Row("broken", Ok(Cost::Fastest), || Err(FakeError::Broken));
    const REJECTS: Row = Row("rejects", Err(Rejection::Spec("int8")), || Ok("rejects"));
    const UP_TO_8: Row = Row("8", Err(Rejection::Size { what: "m", max: 8, value: 65 }), || Ok("8"));
    const UP_TO_64: Row = Row("64", Err(Rejection::Size { what: "m", max: 64, value: 65 }), || Ok("64"));
    const NEEDS: Row = Row("needs", Err(Rejection::Device("wgmma")), || Ok("needs"));

    #[test]
    fn the_cheapest_kernel_that_can_be_prepared_is_selected() {
        assert_eq!(run(&[&REJECTS, &GENERAL, &FASTEST]), Ok("fastest"));
        assert_eq!(run(&[&MISSING, &GENERAL]), Ok("general"));
        assert_eq!(run(&[&MISSING]), Err(FakeError::Missing));
        assert_eq!(run(&[&BROKEN, &GENERAL]), Err(FakeError::Broken));
    }

    #[test]
    fn the_most_specific_reason_is_reported() {
        assert_eq!(run(&[&NEEDS, &REJECTS]), Err(FakeError::Rejected(Rejection::Device("wgmma"))));
        let size = Rejection::Size { what: "m", max: 64, value: 65 };
        assert_eq!(run(&[&UP_TO_8, &NEEDS, &UP_TO_64]), Err(FakeError::Rejected(size)));
        assert_eq!(run(&[]), Err(FakeError::Rejected(Rejection::NoKernel)));
    }
}
