//! Convolutions against 64-bit arithmetic, by the native kernel and by cuDNN if available.

use calorimeter_kernels::{
    Dtype,
    native::{BatchedTransposeSpec, ConvolutionPlan, ConvolutionSpec, CudaDevice, CudaKernel, NativeError},
};
use std::sync::Arc;

use super::{assert_close, decode, encode, epsilon, gpu, micros, poisoned, values};

fn form(
    [images, height, width, channels, filters]: [usize; 5],
    [side, stride, padding]: [usize; 3],
) -> ConvolutionSpec {
    ConvolutionSpec { images, height, width, channels, filters, filter_size: side, stride, padding, relu: false }
}

/// Random values in rows of length `row`, zero from index `filled` on.
fn padded_values(count: usize, row: usize, filled: usize, seed: u64, kind: Dtype) -> Vec<f64> {
    let drawn = values(count, seed, kind);
    drawn.into_iter().enumerate().map(|(at, value)| if at % row < filled { value } else { 0.0 }).collect()
}

/// Constructor of a plan.
type PlanConstructor = fn(&Arc<CudaDevice>, Dtype, ConvolutionSpec) -> Result<ConvolutionPlan, NativeError>;

/// Plans of all constructors that are available on this machine.
fn available_plans(
    device: &Arc<CudaDevice>,
    kind: Dtype,
    spec: ConvolutionSpec,
    constructors: &[PlanConstructor],
) -> Vec<ConvolutionPlan> {
    use NativeError::{LibraryMissing, NoPlan, WrongGpuGeneration};
    let made = constructors.iter().filter_map(|candidate| match candidate(device, kind, spec) {
        Ok(plan) => Some(plan),
        Err(error @ (LibraryMissing { .. } | WrongGpuGeneration { .. } | NoPlan { .. })) => {
            println!("{kind} {spec}: {error}");
            None
        }
        Err(error) => panic!("{kind} {spec}: {error}"),
    });
    made.collect()
}

#[test]
#[ignore = "needs CUDA"]
fn convolutions_match_at_every_edge() {
    let (device, _guard) = gpu();
    let forms = [
        form([1, 1, 1, 1, 1], [1, 1, 0]),
        form([2, 5, 7, 3, 17], [3, 1, 1]),
        form([3, 9, 8, 17, 130], [3, 2, 1]),
        form([2, 14, 14, 130, 3], [1, 1, 0]),
        form([1, 7, 7, 64, 64], [1, 2, 0]),
        form([1, 2, 2, 1000, 1], [1, 1, 0]),
        form([2, 9, 9, 256, 256], [3, 1, 1]),
        form([2, 13, 11, 72, 300], [3, 1, 0]),
        form([1, 16, 16, 8, 128], [5, 1, 2]),
        form([2, 16, 15, 3, 40], [7, 2, 3]),
        // More tiles than resident blocks.
        form([12, 56, 56, 8, 8], [3, 1, 1]),
        form([5, 60, 60, 9, 64], [1, 1, 0]),
    ];
    for kind in [Dtype::F16, Dtype::Bf16] {
        for plain in forms {
            let (channels, filters) = (plain.stored_channels(), plain.stored_filters());
            let ConvolutionSpec { images, height, width, filter_size: side, stride, padding, .. } = plain;
            let x = padded_values(images * height * width * channels, channels, plain.channels, 1, kind);
            let mut w = padded_values(filters * side * side * channels, channels, plain.channels, 2, kind);
            w[plain.filters * side * side * channels..].fill(0.0);
            let bias = padded_values(filters, filters, plain.filters, 3, kind);
            let [of_x, of_w, of_bias] = [&x, &w, &bias].map(|some| device.upload(&encode(some, kind)).unwrap());
            let [out_height, out_width] = plain.out_size();
            // For each output its value, and the sum of squares of its terms.
            let mut exact = Vec::with_capacity(plain.output_pixels() * filters);
            for at in 0..plain.output_pixels() {
                let (image, y, left) = (at / (out_height * out_width), at / out_width % out_height, at % out_width);
                for filter in 0..filters {
                    let (mut sum, mut squares) = (bias[filter], bias[filter] * bias[filter]);
                    for tap in 0..side * side {
                        let row = (y * stride + tap / side).checked_sub(padding).filter(|row| *row < height);
                        let column = (left * stride + tap % side).checked_sub(padding).filter(|column| *column < width);
                        let (Some(row), Some(column)) = (row, column) else { continue };
                        let pixel = &x[((image * height + row) * width + column) * channels..][..channels];
                        for (x, w) in pixel.iter().zip(&w[(filter * side * side + tap) * channels..]) {
                            sum += x * w;
                            squares += x * w * x * w;
                        }
                    }
                    exact.push((sum, squares));
                }
            }
            for relu in [false, true] {
                let spec = ConvolutionSpec { relu, ..plain };
                // cuDNN takes a second to create plans, so it is tested in every other case only.
                let native_only: &[PlanConstructor] = &[ConvolutionPlan::with_native_kernel];
                let both: &[PlanConstructor] = &[ConvolutionPlan::with_native_kernel, ConvolutionPlan::with_cudnn];
                for mut candidate in
                    available_plans(&device, kind, spec, if relu == (kind == Dtype::Bf16) { both } else { native_only })
                {
                    println!("{kind} {spec}: {}", candidate.algorithm());
                    let mut y = poisoned(&device, spec.y_bytes(kind));
                    candidate.enqueue(&of_x, &of_w, &of_bias, &mut y).unwrap();
                    for (at, (found, (sum, squares))) in
                        decode(&y.download().unwrap(), kind).into_iter().zip(&exact).enumerate()
                    {
                        let exact = if relu { sum.max(0.0) } else { *sum };
                        let depth = (side * side * channels) as f64;
                        let sums = 16.0 * f64::from(f32::EPSILON) * depth.sqrt() * squares.sqrt();
                        let smallest = if kind == Dtype::F16 { 2f64.powi(-24) } else { 0.0 };
                        assert_close(found, exact, 0.51 * epsilon(kind) * exact.abs() + sums + smallest, || {
                            format!("{kind} {spec} [{}, {}] by {}", at / filters, at % filters, candidate.algorithm())
                        });
                    }
                }
            }
        }
    }
    let error = ConvolutionPlan::new(&device, Dtype::F32, forms[0]).unwrap_err();
    assert!(matches!(error, NativeError::UnsupportedDtype { .. }), "{error}");
}

#[test]
#[ignore = "needs CUDA"]
fn matrices_transpose_with_row_padding_and_back() {
    let (device, _guard) = gpu();
    for kind in Dtype::ALL {
        for (matrices, rows, columns, to) in [(1, 1, 1, 8), (3, 17, 100, 24), (2, 64, 33, 64), (4, 130, 9, 136)] {
            let x = values(matrices * rows * columns, 1, kind);
            let there = BatchedTransposeSpec { matrices, rows, columns, input_stride: columns, output_stride: to };
            let back = BatchedTransposeSpec {
                matrices,
                rows: columns,
                columns: rows,
                input_stride: to,
                output_stride: columns,
            };
            let mut turned = poisoned(&device, there.output_len() * kind.width());
            let of_x = device.upload(&encode(&x, kind)).unwrap();
            CudaKernel::transpose_matrices(&device, kind, there).unwrap().enqueue([&of_x], [&mut turned]).unwrap();
            for (at, found) in decode(&turned.download().unwrap(), kind).into_iter().enumerate() {
                let (matrix, column, row) = (at / (columns * to), at / to % columns, at % to);
                let exact = if row < rows { x[(matrix * rows + row) * columns + column] } else { 0.0 };
                assert_eq!(found, exact, "{kind} {there:?} at {at}");
            }
            let mut again = poisoned(&device, of_x.len());
            CudaKernel::transpose_matrices(&device, kind, back).unwrap().enqueue([&turned], [&mut again]).unwrap();
            assert_eq!(again.download().unwrap(), of_x.download().unwrap(), "{kind} {back:?}");
        }
    }
}

/// Prints convolution times, for manual inspection.
#[test]
#[ignore = "needs CUDA"]
fn times_of_convolutions() {
    let (device, _guard) = gpu();
    let kind = Dtype::Bf16;
    for plain in [
        form([32, 56, 56, 256, 256], [3, 1, 1]),
        form([32, 56, 56, 64, 64], [3, 1, 1]),
        form([32, 28, 28, 512, 128], [1, 1, 0]),
        form([32, 28, 28, 256, 512], [3, 2, 1]),
        form([32, 224, 224, 3, 64], [7, 2, 3]),
    ] {
        let spec = ConvolutionSpec { relu: true, ..plain };
        let some = |bytes: usize, seed| {
            let few = encode(&values(1 << 16, seed, kind), kind);
            device.upload(&few.into_iter().cycle().take(bytes).collect::<Vec<_>>()).unwrap()
        };
        let x = some(spec.x_bytes(kind), 1);
        let (w, bias) = (some(spec.w_bytes(kind), 2), some(spec.bias_bytes(kind), 3));
        let mut y = poisoned(&device, spec.y_bytes(kind));
        for mut candidate in available_plans(
            &device,
            kind,
            spec,
            &[ConvolutionPlan::with_native_kernel, ConvolutionPlan::with_cudnn, ConvolutionPlan::new],
        ) {
            let micros = micros(&device, 1, |_| candidate.enqueue(&x, &w, &bias, &mut y).unwrap());
            let rate = (2 * spec.output_pixels() * spec.filters * spec.filter_size.pow(2) * spec.channels) as f64
                / micros
                / 1e6;
            println!("{spec}: {micros:.1} us, {rate:.0} TFLOP/s: {}", candidate.algorithm());
        }
    }
}
