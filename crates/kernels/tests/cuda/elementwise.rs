//! Element-wise functions and transposition against the host.

use calorimeter_kernels::{
    Dtype,
    native::{CudaKernel, ElementwiseFunction, NativeError},
};

use super::{assert_close, decode, encode, epsilon, extremes, gpu, micros, normal_cdf, poisoned, round, values};

#[test]
#[ignore = "needs CUDA"]
fn stream_operations_match_at_every_length() {
    let (device, _guard) = gpu();
    let factor = 1.7f32;
    for kind in Dtype::ALL {
        // A few elements, one block plus one element, and many blocks with a tail.
        for length in [1, 7, 9, 2 * 256 * 2 * 8, 256 * 4 * 8 + 1, 1_000_003] {
            let (a, b) = (values(length, 1, kind), values(length, 2, kind));
            let uploaded = [&a, &b].map(|x| device.upload(&encode(x, kind)).unwrap());
            use ElementwiseFunction::{Add, Copy, Scale, Triad};
            for function in [Copy, Scale(factor), Add, Triad(factor)] {
                let plan = CudaKernel::elementwise(&device, kind, function, length).unwrap();
                let mut y = device.upload(&vec![0xff; plan.output_bytes(0) + 16]).unwrap();
                let inputs: Vec<_> = uploaded[..function.inputs()].iter().collect();
                plan.enqueue(inputs.iter().copied(), [&mut y]).unwrap();
                let bytes = y.download().unwrap();
                assert!(
                    bytes[plan.output_bytes(0)..].iter().all(|&byte| byte == 0xff),
                    "{function} {kind}: wrote past {length}"
                );
                for (at, found) in decode(&bytes[..plan.output_bytes(0)], kind).into_iter().enumerate() {
                    let factor = f64::from(factor);
                    let exact = match function {
                        Copy => a[at],
                        Scale(_) => factor * a[at],
                        Add => a[at] + b[at],
                        Triad(_) => a[at] + factor * b[at],
                        other => unreachable!("{other} is not tested here"),
                    };
                    // Rounding to f32 before the dtype can move a tie.
                    let tolerance = (0.5 * epsilon(kind) + f64::from(f32::EPSILON)) * exact.abs();
                    let tolerance = if function == Copy { 0.0 } else { tolerance + (round(exact, kind) - exact).abs() };
                    assert_close(found, exact, tolerance, || format!("{function} {kind} {length} at {at}"));
                }
            }
        }
        // Copies preserve NaN bit patterns.
        let bits: Vec<u8> = (0..=255).cycle().take(16 * 1024).collect();
        let copy =
            CudaKernel::elementwise(&device, kind, ElementwiseFunction::Copy, bits.len() / kind.width()).unwrap();
        let mut y = poisoned(&device, bits.len());
        let x = device.upload(&bits).unwrap();
        copy.enqueue([&x], [&mut y]).unwrap();
        assert_eq!(y.download().unwrap(), bits);
        y.fill(0).unwrap();
        y.copy_from(&x).unwrap();
        assert_eq!(y.download().unwrap(), bits);
    }
    let add = CudaKernel::elementwise(&device, Dtype::F32, ElementwiseFunction::Add, 4).unwrap();
    let (a, mut y) = (poisoned(&device, 16), poisoned(&device, 16));
    assert_eq!(add.enqueue([&a], [&mut y]).unwrap_err(), NativeError::InputCount { needed: 2, found: 1 });
}

#[test]
#[ignore = "needs CUDA"]
fn functions_match_and_propagate_nan() {
    use ElementwiseFunction::{Gelu, GeluTanh, Sigmoid, Silu, SiluMul};
    let (device, _guard) = gpu();
    let exact = |function, a: f64, b: f64| match function {
        Sigmoid => sigmoid(a),
        Silu => a * sigmoid(a),
        Gelu => a * normal_cdf(a),
        GeluTanh => a * sigmoid(2.0 * (2.0 / std::f64::consts::PI).sqrt() * (a + 0.044715 * a * a * a)),
        SiluMul => a * sigmoid(a) * b,
        other => unreachable!("{other} is not tested here"),
    };
    for kind in Dtype::ALL {
        let (smallest, largest) = extremes(kind);
        let mut a = vec![0.0, -0.0, smallest, -smallest, largest, -largest, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        a.extend((-2000..=2000).map(|i| round(f64::from(i) / 100.0, kind)));
        let b: Vec<f64> = values(a.len(), 7, kind);
        let uploaded = [&a, &b].map(|x| device.upload(&encode(x, kind)).unwrap());
        for function in [Sigmoid, Silu, Gelu, GeluTanh, SiluMul] {
            let plan = CudaKernel::elementwise(&device, kind, function, a.len()).unwrap();
            let mut y = poisoned(&device, plan.output_bytes(0));
            let inputs: Vec<_> = uploaded[..function.inputs()].iter().collect();
            plan.enqueue(inputs.iter().copied(), [&mut y]).unwrap();
            let found = decode(&y.download().unwrap(), kind);
            for ((&a, &b), found) in a.iter().zip(&b).zip(found) {
                let exact = match a {
                    // Intermediate squares of large values overflow; the result is still correct.
                    _ if a.abs() > 1e4 && a.is_finite() && function != SiluMul && function != Sigmoid => a.max(0.0),
                    _ => exact(function, a, b),
                };
                let at = || format!("{function} {kind} of {a:e} and {b:e}");
                if exact.is_nan() {
                    assert!(found.is_nan(), "{}: {found:e} is a number", at());
                    continue;
                }
                // Half an ULP, the error of hardware approximations and of the polynomial, and flushed subnormals.
                let relative = 0.51 * epsilon(kind) + 8.0 * f64::from(f32::EPSILON);
                let tolerance = relative * exact.abs() + 5e-7 * a.abs().min(10.0) + smallest + 1e-36;
                assert_close(found, round(exact, kind), tolerance + (round(exact, kind) - exact).abs(), at);
            }
        }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[test]
#[ignore = "needs CUDA"]
fn byte_transpose_matches_at_every_size() {
    let (device, _guard) = gpu();
    let sizes = [(1, 1), (1, 300), (31, 33), (257, 130), (16, 16), (48, 4096), (1040, 80), (4096, 1024), (1008, 1001)];
    for (rows, columns) in sizes {
        // Neither rows nor columns are multiples of 251.
        let x: Vec<u8> = (0..rows * columns).map(|at| (at % 251) as u8).collect();
        let plan = CudaKernel::transpose_bytes(&device, rows, columns).unwrap();
        println!("{rows}x{columns}: {}", plan.algorithm());
        let mut y = device.upload(&vec![0xff; plan.output_bytes(0) + 16]).unwrap();
        plan.enqueue([&device.upload(&x).unwrap()], [&mut y]).unwrap();
        let y = y.download().unwrap();
        for (at, &found) in y[..plan.output_bytes(0)].iter().enumerate() {
            let (column, row) = (at / rows, at % rows);
            assert_eq!(found, x[row * columns + column], "{rows}x{columns} at [{row}, {column}]");
        }
        assert!(y[plan.output_bytes(0)..].iter().all(|&byte| byte == 0xff), "{rows}x{columns}: wrote past the end");
    }
}

/// Prints the times of element-wise functions and of a copy, for manual inspection.
#[test]
#[ignore = "needs CUDA"]
fn times_of_functions() {
    use ElementwiseFunction::{Copy, Gelu, GeluTanh, Silu};
    let (device, _guard) = gpu();
    let (kind, length) = (Dtype::Bf16, 16384 * 4096);
    let few = encode(&values(1 << 16, 1, kind), kind);
    let x = device.upload(&few.into_iter().cycle().take(length * kind.width()).collect::<Vec<_>>()).unwrap();
    let mut y = poisoned(&device, length * kind.width());
    for function in [Copy, Gelu, GeluTanh, Silu] {
        let plan = CudaKernel::elementwise(&device, kind, function, length).unwrap();
        let micros = micros(&device, 1, |_| plan.enqueue([&x], [&mut y]).unwrap());
        println!("{length}: {micros:.1} us: {}", plan.algorithm());
    }
}
