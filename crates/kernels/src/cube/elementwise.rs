//! Functions of every element: activations, sums, gated activations.
//!
//! Data flow: a unit takes a few accesses, a cube's width apart, all of them loaded before any is used. Traffic: every operand
//! once. Roofline: the memory's, as long as the function keeps up (`activation.rs`).

use super::activation::{apply, silu};
use super::matrix::{Access, cubes};
use super::{CubeError, Matrix, SmoothActivation};
use cubecl::prelude::*;
use cubecl::server::Handle;

/// Units of a cube.
const UNITS: usize = 256;
/// Accesses of a unit, all loaded before the first is written.
const PIECES: usize = 2;

/// What becomes of an element, or of two at the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Function {
    Activate(SmoothActivation),
    Add,
    SwiGlu,
}

/// out = f(x).
pub fn activate<R: Runtime>(
    client: &ComputeClient<R>,
    size: Matrix,
    activation: SmoothActivation,
    x: &Handle,
    out: &Handle,
) -> Result<(), CubeError> {
    launch(client, size, Function::Activate(activation), x, None, out)
}

/// out = a + b.
pub fn add<R: Runtime>(
    client: &ComputeClient<R>,
    size: Matrix,
    a: &Handle,
    b: &Handle,
    out: &Handle,
) -> Result<(), CubeError> {
    launch(client, size, Function::Add, a, Some(b), out)
}

/// out = silu(a) * b.
pub fn swiglu<R: Runtime>(
    client: &ComputeClient<R>,
    size: Matrix,
    a: &Handle,
    b: &Handle,
    out: &Handle,
) -> Result<(), CubeError> {
    launch(client, size, Function::SwiGlu, a, Some(b), out)
}

fn launch<R: Runtime>(
    client: &ComputeClient<R>,
    size: Matrix,
    function: Function,
    a: &Handle,
    b: Option<&Handle>,
    out: &Handle,
) -> Result<(), CubeError> {
    if size.is_empty() {
        return Ok(());
    }
    let (a, b, out) = (size.whole("a", a), size.whole("b", b.unwrap_or(a)), size.whole("out", out));
    let access = Access::to(client, &size, size.rows.saturating_mul(size.cols), &[a, b, out])?;
    let pieces = size.len() / access.width;
    let b = (!matches!(function, Function::Activate(_))).then(|| access.arg(b));
    // SAFETY: the kernel looks at `pieces` before it reads or writes, and every operand holds so many.
    unsafe {
        for_each::launch_unchecked::<R>(
            client,
            cubes(client, pieces.div_ceil(UNITS * PIECES)),
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
    #[comptime] function: Function,
    #[define(F)] _kind: StorageType,
) {
    let first = CUBE_POS * comptime!(UNITS * PIECES) + UNIT_POS as usize;
    if first + comptime!(UNITS * (PIECES - 1)) < pieces {
        let mut results = Sequence::<Vector<F, N>>::new();
        #[unroll]
        for piece in 0..PIECES {
            results.push(value(a, b, first + piece * UNITS, function));
        }
        #[unroll]
        for piece in 0..PIECES {
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
    #[comptime] function: Function,
) -> Vector<F, N> {
    let own = Vector::<f32, N>::cast_from(a[at]);
    let other = #[comptime]
    match b {
        ComptimeOption::Some(b) => Vector::<f32, N>::cast_from(b[at]),
        ComptimeOption::None => own,
    };
    Vector::cast_from(match comptime!(function) {
        Function::Activate(activation) => apply(own, activation),
        Function::Add => own + other,
        Function::SwiGlu => silu(own) * other,
    })
}
