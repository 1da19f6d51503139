//! Convolutions against 64-bit arithmetic, by our kernel and by cuDNN where it is there.

use calorimeter_kernels::{
    Dtype,
    native::{Convolution, ConvolutionForm, Machine, MatricesForm, NativeError, TransposeMatrices},
};
use std::sync::Arc;

use super::{assert_close, decode, encode, epsilon, gpu, micros, poisoned, values};

fn form(
    [images, height, width, channels, filters]: [usize; 5],
    [side, stride, padding]: [usize; 3],
) -> ConvolutionForm {
    ConvolutionForm { images, height, width, channels, filters, side, stride, padding, relu: false }
}

/// Numbers whose last of `row` places are zero beyond so many.
fn stored(count: usize, row: usize, filled: usize, seed: u64, kind: Dtype) -> Vec<f64> {
    let drawn = values(count, seed, kind);
    drawn.into_iter().enumerate().map(|(at, value)| if at % row < filled { value } else { 0.0 }).collect()
}

/// A way to make a plan.
type Way = fn(&Arc<Machine>, Dtype, ConvolutionForm) -> Result<Convolution, NativeError>;

/// The plans that there are by some ways.
fn plans(machine: &Arc<Machine>, kind: Dtype, form: ConvolutionForm, ways: &[Way]) -> Vec<Convolution> {
    use NativeError::{LibraryMissing, NoPlan, OtherGpu};
    let made = ways.iter().filter_map(|way| match way(machine, kind, form) {
        Ok(plan) => Some(plan),
        Err(error @ (LibraryMissing { .. } | OtherGpu { .. } | NoPlan { .. })) => {
            println!("{kind} {form}: {error}");
            None
        }
        Err(error) => panic!("{kind} {form}: {error}"),
    });
    made.collect()
}

#[test]
fn convolutions_are_right_at_every_edge() {
    let Some((machine, _turn)) = gpu() else { return };
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
        // More tiles than can run at once.
        form([12, 56, 56, 8, 8], [3, 1, 1]),
        form([5, 60, 60, 9, 64], [1, 1, 0]),
    ];
    for kind in [Dtype::F16, Dtype::Bf16] {
        for plain in forms {
            let (channels, filters) = (plain.stored_channels(), plain.stored_filters());
            let ConvolutionForm { images, height, width, side, stride, padding, .. } = plain;
            let x = stored(images * height * width * channels, channels, plain.channels, 1, kind);
            let mut w = stored(filters * side * side * channels, channels, plain.channels, 2, kind);
            w[plain.filters * side * side * channels..].fill(0.0);
            let bias = stored(filters, filters, plain.filters, 3, kind);
            let [of_x, of_w, of_bias] = [&x, &w, &bias].map(|some| machine.upload(&encode(some, kind)).unwrap());
            let [out_height, out_width] = plain.out_size();
            // Of each number the sum, and of its terms the sum of the squares.
            let mut exact = Vec::with_capacity(plain.pixels() * filters);
            for at in 0..plain.pixels() {
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
                let form = ConvolutionForm { relu, ..plain };
                // cuDNN takes a second to make its plans: it is asked for every other.
                let ours: &[Way] = &[Convolution::by_ours];
                let both: &[Way] = &[Convolution::by_ours, Convolution::by_cudnn];
                for mut way in plans(&machine, kind, form, if relu == (kind == Dtype::Bf16) { both } else { ours }) {
                    println!("{kind} {form}: {}", way.algorithm());
                    let mut y = poisoned(&machine, form.y_bytes(kind));
                    way.enqueue(&of_x, &of_w, &of_bias, &mut y).unwrap();
                    for (at, (found, (sum, squares))) in
                        decode(&y.download().unwrap(), kind).into_iter().zip(&exact).enumerate()
                    {
                        let exact = if relu { sum.max(0.0) } else { *sum };
                        let depth = (side * side * channels) as f64;
                        let sums = 16.0 * f64::from(f32::EPSILON) * depth.sqrt() * squares.sqrt();
                        let smallest = if kind == Dtype::F16 { 2f64.powi(-24) } else { 0.0 };
                        assert_close(found, exact, 0.51 * epsilon(kind) * exact.abs() + sums + smallest, || {
                            format!("{kind} {form} [{}, {}] by {}", at / filters, at % filters, way.algorithm())
                        });
                    }
                }
            }
        }
    }
    let error = Convolution::new(&machine, Dtype::F32, forms[0]).unwrap_err();
    assert!(matches!(error, NativeError::NumberType { .. }), "{error}");
}

#[test]
fn matrices_are_transposed_into_wider_rows_and_back() {
    let Some((machine, _turn)) = gpu() else { return };
    for kind in Dtype::ALL {
        for (matrices, rows, columns, to) in [(1, 1, 1, 8), (3, 17, 100, 24), (2, 64, 33, 64), (4, 130, 9, 136)] {
            let x = values(matrices * rows * columns, 1, kind);
            let there = MatricesForm { matrices, rows, columns, from: columns, to };
            let back = MatricesForm { matrices, rows: columns, columns: rows, from: to, to: columns };
            let mut turned = poisoned(&machine, there.written() * kind.width());
            let of_x = machine.upload(&encode(&x, kind)).unwrap();
            TransposeMatrices::new(&machine, kind, there).unwrap().enqueue(&of_x, &mut turned).unwrap();
            for (at, found) in decode(&turned.download().unwrap(), kind).into_iter().enumerate() {
                let (matrix, column, row) = (at / (columns * to), at / to % columns, at % to);
                let exact = if row < rows { x[(matrix * rows + row) * columns + column] } else { 0.0 };
                assert_eq!(found, exact, "{kind} {there:?} at {at}");
            }
            let mut again = poisoned(&machine, of_x.len());
            TransposeMatrices::new(&machine, kind, back).unwrap().enqueue(&turned, &mut again).unwrap();
            assert_eq!(again.download().unwrap(), of_x.download().unwrap(), "{kind} {back:?}");
        }
    }
}

/// Prints what convolutions reach, for a person to judge.
#[test]
fn times_of_convolutions() {
    let Some((machine, _turn)) = gpu() else { return };
    let kind = Dtype::Bf16;
    for plain in [
        form([32, 56, 56, 256, 256], [3, 1, 1]),
        form([32, 56, 56, 64, 64], [3, 1, 1]),
        form([32, 28, 28, 512, 128], [1, 1, 0]),
        form([32, 28, 28, 256, 512], [3, 2, 1]),
        form([32, 224, 224, 3, 64], [7, 2, 3]),
    ] {
        let form = ConvolutionForm { relu: true, ..plain };
        let some = |bytes: usize, seed| {
            let few = encode(&values(1 << 16, seed, kind), kind);
            machine.upload(&few.into_iter().cycle().take(bytes).collect::<Vec<_>>()).unwrap()
        };
        let x = some(form.x_bytes(kind), 1);
        let (w, bias) = (some(form.w_bytes(kind), 2), some(form.bias_bytes(kind), 3));
        let mut y = poisoned(&machine, form.y_bytes(kind));
        for mut way in plans(&machine, kind, form, &[Convolution::by_ours, Convolution::by_cudnn, Convolution::new]) {
            let micros = micros(&machine, 1, |_| way.enqueue(&x, &w, &bias, &mut y).unwrap());
            let rate = (2 * form.pixels() * form.filters * form.side.pow(2) * form.channels) as f64 / micros / 1e6;
            println!("{form}: {micros:.1} us, {rate:.0} TFLOP/s: {}", way.algorithm());
        }
    }
}
