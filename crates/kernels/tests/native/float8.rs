//! Products of e4m3 codes against 64-bit arithmetic, and the times of all that goes with them.

use std::sync::Arc;

use calorimeter_kernels::{
    Dtype,
    native::{
        Buffer, Elementwise, ElementwiseFunction, Float8Linear, Float8Output, Float8Product, Float8Sums, LinearShape,
        Machine, NativeError, Quantize, ScaleSource, TransposeBytes,
    },
    rowwise,
};
use cudarc::driver::sys::CUevent_flags;

use super::{assert_close, decode, encode, epsilon, gpu, poisoned, values};

const OUTPUTS: [Float8Output; 5] = [
    Float8Output::Plain(Dtype::Bf16),
    Float8Output::Plain(Dtype::F32),
    Float8Output::Scaled(Dtype::Bf16),
    Float8Output::Scaled(Dtype::F32),
    Float8Output::Added,
];

/// Codes of numbers between -1 and 1.
fn codes(count: usize, seed: u64) -> Vec<u8> {
    values(count, seed, Dtype::F32).into_iter().map(|x| rowwise::e4m3(x as f32)).collect()
}

/// Scales between 0.5 and 1.5, which differ from their neighbors.
fn scales(count: usize, seed: u64) -> Vec<f64> {
    values(count, seed, Dtype::F32).into_iter().map(|x| f64::from((1.0 + 0.5 * x) as f32)).collect()
}

/// Elements of a product of so many rows and columns: all of a small one, some of a large one, in all rows and columns.
fn sample(m: usize, n: usize) -> Vec<(usize, usize)> {
    let step = (m * n / 20_000).max(1) | 1;
    (0..m * n).step_by(step).map(|at| (at / n, at % n)).collect()
}

#[test]
fn products_of_codes_are_right_with_scales_and_additions() {
    let Some((machine, _turn)) = gpu() else { return };
    // The third from the end has tiles for several waves of blocks.
    let sizes = [
        (16, 32, 48),
        (128, 256, 64),
        (33, 512, 144),
        (130, 1104, 176),
        (300, 288, 16400),
        (1024, 4096, 512),
        (2048, 1024, 2048),
    ];
    for (m, k, n) in sizes {
        check(&machine, LinearShape { m, k, n });
    }
    let shape = LinearShape { m: 16, k: 32, n: 16 };
    let linear = Float8Linear::new(&machine, shape, Float8Output::Added, Float8Sums::Fast).unwrap();
    let x = poisoned(&machine, 1024);
    let mut y = poisoned(&machine, 1024);
    let error = linear.enqueue(&[&x, &x, &x, &x], &mut y).unwrap_err();
    assert_eq!(error, NativeError::InputCount { needed: 5, found: 4 });
    let short = poisoned(&machine, 63);
    let error = linear.enqueue(&[&x, &x, &short, &x, &x], &mut y).unwrap_err();
    assert_eq!(error, NativeError::BufferSize { what: "row scales", needed: 64, found: 63 });
}

/// Few enough for tools that follow every access: more steps than stages, and parts of tiles.
#[test]
fn a_few_products_of_codes_are_right() {
    let Some((machine, _turn)) = gpu() else { return };
    for (m, k, n) in [(16, 32, 48), (130, 1104, 176)] {
        check(&machine, LinearShape { m, k, n });
    }
}

/// Every way to multiply such codes, with and without scales and what is added.
fn check(machine: &Arc<Machine>, shape: LinearShape) {
    let LinearShape { m, k, n } = shape;
    let (x, w) = (codes(m * k, 1), codes(n * k, 2));
    let (rows, columns, added) = (scales(m, 3), scales(n, 4), values(m * n, 5, Dtype::F32));
    let upload = |x: &[f64]| machine.upload(&encode(x, Dtype::F32)).unwrap();
    let inputs =
        [machine.upload(&x).unwrap(), machine.upload(&w).unwrap(), upload(&rows), upload(&columns), upload(&added)];
    let turned: Vec<u8> = (0..k * n).map(|at| w[at % n * k + at / n]).collect();
    let turned = machine.upload(&turned).unwrap();
    let numbers = |codes: &[u8]| codes.iter().map(|&code| f64::from(rowwise::value(code))).collect::<Vec<_>>();
    let (x, w) = (numbers(&x), numbers(&w));
    // Sums, and the lengths of the vectors of their terms.
    let exact: Vec<(usize, usize, f64, f64)> = sample(m, n)
        .into_iter()
        .map(|(i, j)| {
            let terms = x[i * k..][..k].iter().zip(&w[j * k..][..k]).map(|(a, b)| a * b);
            let (sum, squares) = terms.fold((0.0, 0.0), |(sum, squares), term| (sum + term, squares + term * term));
            (i, j, sum, squares.sqrt())
        })
        .collect();
    let sums_of = [Float8Sums::Fast, Float8Sums::Promoted];
    let made = [Float8Linear::new, Float8Linear::scaled_after];
    let mut found: Vec<(Float8Output, Float8Sums, String, Buffer)> = Vec::new();
    for output in OUTPUTS {
        let mut inputs: Vec<&Buffer> = inputs[..output.inputs()].iter().collect();
        for (sums, make) in sums_of.into_iter().flat_map(|sums| made.map(|make| (sums, make))) {
            let linear = make(machine, shape, output, sums).unwrap();
            let mut y = poisoned(machine, linear.y_bytes());
            linear.enqueue(&inputs, &mut y).unwrap();
            found.push((output, sums, linear.algorithm(), y));
        }
        let mut product = Float8Product::new(machine, shape, output).unwrap();
        let mut y = poisoned(machine, m * n * output.kind().width());
        inputs[1] = &turned;
        product.enqueue(&inputs, &mut y).unwrap();
        found.push((output, Float8Sums::Promoted, product.algorithm(), y));
    }
    for (output, sums, algorithm, y) in found {
        let place = format!("{shape} {output:?} {sums:?}: {algorithm}");
        let y = decode(&y.download().unwrap(), output.kind());
        // Each step of 32 along k cuts off what lies below 13 bits; promoted sums begin anew every four steps.
        let cuts = match sums {
            Float8Sums::Fast => (k as f64 / 32.0).max(1.0),
            Float8Sums::Promoted => 4.0 * (k as f64 / 128.0).max(1.0).sqrt(),
        };
        let mut worst = 0f64;
        for &(i, j, sum, length) in &exact {
            let scale = if output.inputs() > 2 { rows[i] * columns[j] } else { 1.0 };
            let of_added = if output == Float8Output::Added { added[i * n + j] } else { 0.0 };
            let exact = sum * scale + of_added;
            let found = y[i * n + j];
            worst = worst.max((found - exact).abs() / (length * scale));
            let tolerance = epsilon(output.kind()) * exact.abs() + cuts * 2f64.powi(-12) * length * scale;
            assert_close(found, exact, tolerance, || format!("{place} at [{i}, {j}]"));
        }
        println!("{place}: off by {worst:.1e} of the length of the terms");
    }
}

#[test]
fn quantized_matrices_multiply_to_nearly_their_product() {
    let Some((machine, _turn)) = gpu() else { return };
    let (m, k, n) = (256, 2048, 512);
    let (a, b) = (values(m * k, 1, Dtype::Bf16), values(k * n, 2, Dtype::Bf16));
    let mut chain = Rowwise::new(&machine, LinearShape { m, k, n }, true);
    chain.a.upload(&encode(&a, Dtype::Bf16)).unwrap();
    chain.b.upload(&encode(&b, Dtype::Bf16)).unwrap();
    chain.enqueue();
    let y = decode(&chain.y.download().unwrap(), Dtype::Bf16);
    for (i, j) in sample(m, n) {
        let terms = (0..k).map(|l| a[i * k + l] * b[l * n + j]);
        let squares: f64 = terms.clone().map(|term| term * term).sum();
        // A code is off by a sixteenth of its number at most. All terms together come to 0.04 of their length, as a root
        // of the mean square.
        let tolerance = 0.3 * squares.sqrt();
        assert_close(y[i * n + j], terms.sum(), tolerance, || format!("at [{i}, {j}]"));
    }
}

/// Quantizes rows of a[m, k] and columns of b[k, n], and multiplies them to bf16.
struct Rowwise {
    quantize_a: Quantize,
    quantize_b: Quantize,
    linear: Float8Linear,
    inputs: usize,
    a: Buffer,
    b: Buffer,
    /// The codes of a and b, and their scales: what the product takes.
    quantized: [Buffer; 4],
    y: Buffer,
}

impl Rowwise {
    fn new(machine: &Arc<Machine>, shape: LinearShape, scaled: bool) -> Self {
        let LinearShape { m, k, n } = shape;
        let quantize_a = Quantize::rows(machine, ScaleSource::Largest, m, k).unwrap();
        let quantize_b = Quantize::columns(machine, ScaleSource::Largest, k, n).unwrap();
        let bf16 = Dtype::Bf16;
        let output = if scaled { Float8Output::Scaled(bf16) } else { Float8Output::Plain(bf16) };
        let linear = Float8Linear::new(machine, shape, output, Float8Sums::Fast).unwrap();
        let quantized =
            [quantize_a.codes_bytes(), quantize_b.codes_bytes(), quantize_a.scales_bytes(), quantize_b.scales_bytes()];
        Self {
            a: machine.allocate(quantize_a.x_bytes()).unwrap(),
            b: machine.allocate(quantize_b.x_bytes()).unwrap(),
            quantized: quantized.map(|bytes| machine.allocate(bytes).unwrap()),
            y: machine.allocate(linear.y_bytes()).unwrap(),
            quantize_a,
            quantize_b,
            linear,
            inputs: output.inputs(),
        }
    }

    fn enqueue(&mut self) {
        let [a_codes, b_codes, a_scales, b_scales] = &mut self.quantized;
        self.quantize_a.enqueue(&self.a, a_codes, a_scales).unwrap();
        self.quantize_b.enqueue(&self.b, b_codes, b_scales).unwrap();
        let inputs = [&*a_codes, b_codes, a_scales, b_scales];
        self.linear.enqueue(&inputs[..self.inputs], &mut self.y).unwrap();
    }
}

/// Prints the median time of each operation at the sizes that other tools measure, for a person to judge.
#[test]
fn times_of_quantizing_and_multiplying() {
    let Some((machine, _turn)) = gpu() else { return };
    // Repeated, because drawing gigabytes takes longer than everything else here.
    let repeat = |some: &[u8], bytes: usize| {
        let bytes: Vec<u8> = some.iter().copied().cycle().take(bytes).collect();
        machine.upload(&bytes).unwrap()
    };
    let some_bf16 = encode(&values(1 << 20, 7, Dtype::Bf16), Dtype::Bf16);
    let some_f32 = encode(&scales(1 << 20, 8), Dtype::F32);
    let some_codes = codes(1 << 20, 9);
    let random = |count: usize| repeat(&some_bf16, 2 * count);
    let show = |what: &str, bytes: usize, operations: f64, enqueue: &mut dyn FnMut()| {
        let millis = median(&machine, enqueue);
        let (bandwidth, rate) = (bytes as f64 / millis / 1e6, operations / millis / 1e9);
        println!("{what}: {millis:.4} ms, {bandwidth:.0} GB/s, {rate:.0} TFLOP/s");
    };

    for scales in [ScaleSource::Largest, ScaleSource::Static] {
        let (rows, columns) = (16384, 16384);
        let plan = Quantize::rows(&machine, scales, rows, columns).unwrap();
        let x = random(rows * columns);
        let mut codes = machine.allocate(plan.codes_bytes()).unwrap();
        let mut found = machine.allocate(plan.scales_bytes()).unwrap();
        show(&format!("rows of {rows}x{columns} {scales:?}"), 3 * rows * columns, 0.0, &mut || {
            plan.enqueue(&x, &mut codes, &mut found).unwrap();
        });
        for (rows, columns) in [(16384, 4096), (4096, 16384), (16384, 16384), (8192, 8192)] {
            let plan = Quantize::columns(&machine, scales, rows, columns).unwrap();
            let mut found = machine.allocate(4 * columns).unwrap();
            show(&format!("columns of {rows}x{columns} {scales:?}"), 3 * rows * columns, 0.0, &mut || {
                plan.enqueue(&x, &mut codes, &mut found).unwrap();
            });
        }
    }

    let length = 4096 * 16384;
    let (a, b, mut y) = (random(length), random(length), machine.allocate(2 * length).unwrap());
    use ElementwiseFunction::{Add, Copy, Scale, Triad};
    for function in [Copy, Scale(3.0), Add, Triad(3.0)] {
        let plan = Elementwise::new(&machine, Dtype::Bf16, function, length).unwrap();
        let inputs = &[&a, &b][..function.inputs()];
        let bytes = (function.inputs() + 1) * plan.bytes();
        show(&format!("{function} of 4096x16384 bf16"), bytes, 0.0, &mut || plan.enqueue(inputs, &mut y).unwrap());
    }

    let flops = |m: usize, k: usize, n: usize| 2.0 * m as f64 * k as f64 * n as f64;
    for (m, k, n) in [(128, 32768, 8192), (512, 32768, 8192), (512, 4096, 4096)] {
        let (x, w) = (repeat(&some_codes, m * k), repeat(&some_codes, k * n));
        let scales = repeat(&some_f32, 4 * n.max(m));
        let added = repeat(&some_f32, 4 * m * n);
        let mut y = machine.allocate(4 * m * n).unwrap();
        let shape = LinearShape { m, k, n };
        let mut product = Float8Product::new(&machine, shape, Float8Output::Added).unwrap();
        show(&format!("{shape}: {}", product.algorithm()), 0, flops(m, k, n), &mut || {
            product.enqueue(&[&x, &w, &scales, &scales, &added], &mut y).unwrap();
        });
        let turn = TransposeBytes::new(&machine, k, n).unwrap();
        let mut turned = machine.allocate(k * n).unwrap();
        let linear = Float8Linear::new(&machine, shape, Float8Output::Added, Float8Sums::Promoted).unwrap();
        show(&format!("{shape}, turned first: {}", linear.algorithm()), 0, flops(m, k, n), &mut || {
            turn.enqueue(&w, &mut turned).unwrap();
            linear.enqueue(&[&x, &turned, &scales, &scales, &added], &mut y).unwrap();
        });
    }

    let (m, k, n) = (8192, 8192, 8192);
    let turn = TransposeBytes::new(&machine, k, n).unwrap();
    let (x, w) = (repeat(&some_codes, m * k), repeat(&some_codes, k * n));
    let mut turned = machine.allocate(k * n).unwrap();
    show("transpose of 8192x8192 bytes", 2 * k * n, 0.0, &mut || turn.enqueue(&w, &mut turned).unwrap());
    let [rows, columns, added] = [m, n, m * n].map(|count| repeat(&some_f32, 4 * count));
    let mut y = machine.allocate(4 * m * n).unwrap();
    for sums in [Float8Sums::Fast, Float8Sums::Promoted] {
        for output in OUTPUTS {
            for make in [Float8Linear::new, Float8Linear::scaled_after] {
                let linear = make(&machine, LinearShape { m, k, n }, output, sums).unwrap();
                let what = format!("transpose and product of 8192³ {output:?} {sums:?} by {}", linear.algorithm());
                show(&what, 0, flops(m, k, n), &mut || {
                    turn.enqueue(&w, &mut turned).unwrap();
                    let inputs = [&x, &turned, &rows, &columns, &added];
                    linear.enqueue(&inputs[..output.inputs()], &mut y).unwrap();
                });
            }
        }
    }

    for (m, k, n) in [(16384, 16384, 4096), (16384, 4096, 16384)] {
        for scaled in [false, true] {
            let mut chain = Rowwise::new(&machine, LinearShape { m, k, n }, scaled);
            chain.a = random(m * k);
            chain.b = random(k * n);
            let what = format!("quantize both and multiply, m={m} k={k} n={n}, scaled: {scaled}");
            show(&what, 0, flops(m, k, n), &mut || chain.enqueue());
        }
    }
}

/// Milliseconds of one run between events, the median of some.
fn median(machine: &Machine, enqueue: &mut dyn FnMut()) -> f64 {
    let event = || machine.stream().record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
    for _ in 0..3 {
        enqueue();
    }
    let mut times: Vec<f64> = (0..15)
        .map(|_| {
            let start = event();
            enqueue();
            let end = event();
            end.synchronize().unwrap();
            f64::from(start.elapsed_ms(&end).unwrap())
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}
