//! Element-wise functions: activations, additions, gated activations.
//!
//! Data flow: each unit processes a few vectors, a cube width apart, and loads all of them before using any. Traffic:
//! every operand once. Roofline: memory bandwidth, if the function is cheap enough (see the activations).

use super::activation::{apply, silu};
use super::matrix::{VectorAccess, cubes};
use super::{CubeError, MatrixLayout, SmoothActivation};
use cubecl::prelude::*;
use cubecl::server::Handle;

/// Units per cube.
const UNITS: usize = 256;
/// Vectors per unit, all loaded before the first is written.
const VECTORS_PER_UNIT: usize = 2;

/// Element-wise function of one or two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ElementFunction {
    Activate(SmoothActivation),
    Add,
    SwiGlu,
}

/// out = f(x).
pub fn activate<R: Runtime>(
    client: &ComputeClient<R>,
    size: MatrixLayout,
    activation: SmoothActivation,
    x: &Handle,
    out: &Handle,
) -> Result<(), CubeError> {
    launch(client, size, ElementFunction::Activate(activation), x, None, out)
}

/// out = a + b.
pub fn add<R: Runtime>(
    client: &ComputeClient<R>,
    size: MatrixLayout,
    a: &Handle,
    b: &Handle,
    out: &Handle,
) -> Result<(), CubeError> {
    launch(client, size, ElementFunction::Add, a, Some(b), out)
}

/// out = silu(a) * b.
pub fn swiglu<R: Runtime>(
    client: &ComputeClient<R>,
    size: MatrixLayout,
    a: &Handle,
    b: &Handle,
    out: &Handle,
) -> Result<(), CubeError> {
    launch(client, size, ElementFunction::SwiGlu, a, Some(b), out)
}

fn launch<R: Runtime>(
    client: &ComputeClient<R>,
    size: MatrixLayout,
    function: ElementFunction,
    a: &Handle,
    b: Option<&Handle>,
    out: &Handle,
) -> Result<(), CubeError> {
    if size.is_empty() {
        return Ok(());
    }
    let (a, b, out) = (size.operand("a", a), size.operand("b", b.unwrap_or(a)), size.operand("out", out));
    let access = VectorAccess::for_operands(client, &size, size.rows.saturating_mul(size.cols), &[a, b, out])?;
    let pieces = size.len() / access.width;
    let b = (!matches!(function, ElementFunction::Activate(_))).then(|| access.arg(b));
    // SAFETY: the kernel checks `pieces` before it reads or writes, and every operand holds `pieces` vectors.
    unsafe {
        for_each::launch_unchecked::<R>(
            client,
            cubes(client, pieces.div_ceil(UNITS * VECTORS_PER_UNIT)),
            CubeDim::new_1d(UNITS as u32),
            access.address,
            access.width,
            access.arg(a),
            b.into(),
            access.arg(out),
            pieces,
            function,
            size.storage(),
        );
    }
    Ok(())
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn for_each<F: Float, N: Size>(
    a: &Array<Vector<F, N>>,
    b: &ComptimeOption<Array<Vector<F, N>>>,
    out: &mut Array<Vector<F, N>>,
    pieces: usize,
    #[comptime] function: ElementFunction,
    #[define(F)] _kind: StorageType,
) {
    let first = CUBE_POS * comptime!(UNITS * VECTORS_PER_UNIT) + UNIT_POS as usize;
    if first + comptime!(UNITS * (VECTORS_PER_UNIT - 1)) < pieces {
        let mut results = Sequence::<Vector<F, N>>::new();
        #[unroll]
        for piece in 0..VECTORS_PER_UNIT {
            results.push(value(a, b, first + piece * UNITS, function));
        }
        #[unroll]
        for piece in 0..VECTORS_PER_UNIT {
            out[first + piece * UNITS] = *results.index(piece);
        }
    } else if first < pieces {
        let mut at = first;
        while at < pieces {
            out[at] = value(a, b, at, function);
            at += UNITS;
        }
    }
}

#[cube]
fn value<F: Float, N: Size>(
    a: &Array<Vector<F, N>>,
    b: &ComptimeOption<Array<Vector<F, N>>>,
    at: usize,
    #[comptime] function: ElementFunction,
) -> Vector<F, N> {
    let own = Vector::<f32, N>::cast_from(a[at]);
    let other = #[comptime]
    match b {
        ComptimeOption::Some(b) => Vector::<f32, N>::cast_from(b[at]),
        ComptimeOption::None => own,
    };
    Vector::cast_from(match comptime!(function) {
        ElementFunction::Activate(activation) => apply(own, activation),
        ElementFunction::Add => own + other,
        ElementFunction::SwiGlu => silu(own) * other,
    })
}
