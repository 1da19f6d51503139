//! GEMM of f32 rows with a stored weight.

use super::float_isa::FloatIsa;
use super::float_vec::{FloatVec, StoredFloat};
use super::partition::OutputPartition;
use super::weights::{
    BLOCK, BlockWeight, FloatRows, HostGemmWeight, Int4BlockRows, Int4Weight, Int4WeightRows, Int8BlockRows,
    Int8WeightRows, WeightRows,
};
use super::{dot_products, tiles};
use std::mem::discriminant;

/// Maximum rows for dot products; for more rows, unpacking the weight into panels pays off.
const MAX_DOT_ROWS: usize = 16;

/// Minimum rows of a part with which the cost of unpacking a panel is negligible.
const MIN_PART_ROWS: usize = 192;

/// GEMM of f32 rows with a weight of `n` rows of `k` elements, with the widest vectors of this processor.
///
/// ```
/// use calorimeter_kernels::host::{FloatGemm, FloatVec, HostGemmWeight, Int8Weight};
///
/// // Rows of values 1, 2, 3, 4 and 0, 0, 0, -1, the second with a scale of one half.
/// let weight = Int8Weight { codes: vec![0x04030201, 0xff000000], scales: FloatVec::F32(vec![1.0, 0.5]) };
/// let gemm = FloatGemm::new(HostGemmWeight::Int8(weight), 2, 4);
/// let mut y = [0.0; 2];
/// gemm.run(&[1.0, 1.0, 1.0, 10.0], &mut y);
/// assert_eq!(y, [46.0, -5.0]);
/// ```
#[derive(Debug, Clone)]
pub struct FloatGemm {
    weights: HostGemmWeight,
    n: usize,
    k: usize,
    set: FloatIsa,
}

impl FloatGemm {
    /// Creates the GEMM.
    ///
    /// # Panics
    /// If the weight does not have the values, scales and zero points of `n` rows of `k` elements, if the group size is
    /// not a power of two from 32 on, or if scales and zero points have different dtypes.
    pub fn new(weights: HostGemmWeight, n: usize, k: usize) -> Self {
        Self::with_isa(weights, n, k, FloatIsa::widest())
    }

    fn with_isa(weights: HostGemmWeight, n: usize, k: usize, set: FloatIsa) -> Self {
        assert!(n > 0 && k > 0, "a weight of {n} x {k}");
        match &weights {
            HostGemmWeight::Floats(numbers) => assert_eq!(numbers.len(), n * k, "elements of {n} x {k}"),
            HostGemmWeight::Int8(rows) => {
                assert!(rows.codes.len().is_multiple_of(n) && rows.codes.len() / n * 4 >= k, "values of {n} x {k}");
                assert_eq!(rows.scales.len(), n, "scales of {n} rows");
            }
            HostGemmWeight::Int4(rows) => {
                assert!(rows.group >= 32 && rows.group.is_power_of_two(), "{}", rows.group);
                assert_eq!(discriminant(&rows.scales), discriminant(&rows.zeros), "dtypes of scales and zero points");
                assert!(rows.codes.len().is_multiple_of(n) && rows.codes.len() / n * 8 >= k, "values of {n} x {k}");
                let groups = n * k.div_ceil(rows.group);
                assert_eq!(
                    (rows.scales.len(), rows.zeros.len()),
                    (groups, groups),
                    "scales and zero points of {n} x {k}"
                );
            }
            HostGemmWeight::Int8Blocks(rows) | HostGemmWeight::Int4Blocks(rows) => {
                let per_word = if matches!(weights, HostGemmWeight::Int8Blocks(_)) { 4 } else { 8 };
                let blocks = n * k.div_ceil(BlockWeight::SIZE);
                assert_eq!(rows.codes.len() * per_word, blocks * BlockWeight::SIZE, "values of {n} x {k}");
                assert_eq!(rows.scales.len(), blocks, "scales of {n} x {k}");
            }
        }
        Self { weights, n, k, set }
    }

    /// Computes `y[m, n] = x[m, k] * weightᵀ` synchronously.
    ///
    /// # Panics
    /// If `x` does not consist of whole rows, or `y` has another number of rows.
    pub fn run(&self, x: &[f32], y: &mut [f32]) {
        let Self { n, k, .. } = *self;
        assert!(
            x.len().is_multiple_of(k) && x.len() / k * n == y.len(),
            "{} and {} elements for {n} x {k}",
            x.len(),
            y.len()
        );
        match &self.weights {
            HostGemmWeight::Floats(FloatVec::F32(numbers)) => self.run_with_rows(&FloatRows(numbers, k), x, y),
            HostGemmWeight::Floats(FloatVec::Bf16(numbers)) => self.run_with_rows(&FloatRows(numbers, k), x, y),
            HostGemmWeight::Int8(rows) => self.run_with_rows(&Int8WeightRows(rows, rows.codes.len() / n), x, y),
            HostGemmWeight::Int8Blocks(rows) => self.run_with_rows(&Int8BlockRows::new(rows, n), x, y),
            HostGemmWeight::Int4Blocks(rows) => self.run_with_rows(&Int4BlockRows::new(rows, n), x, y),
            HostGemmWeight::Int4(rows) => match (&rows.scales, &rows.zeros) {
                (FloatVec::F32(scales), FloatVec::F32(zeros)) => self.run_with_int4(rows, scales, zeros, x, y),
                (FloatVec::Bf16(scales), FloatVec::Bf16(zeros)) => self.run_with_int4(rows, scales, zeros, x, y),
                _ => unreachable!("the constructor checks that scales and zero points have one dtype"),
            },
        }
    }

    fn run_with_int4<S: StoredFloat>(&self, weight: &Int4Weight, scales: &[S], zeros: &[S], x: &[f32], y: &mut [f32]) {
        if weight.group >= BLOCK {
            self.run_with_rows(&Int4WeightRows::<_, true>::new(weight, scales, zeros, self.n), x, y);
        } else {
            self.run_with_rows(&Int4WeightRows::<_, false>::new(weight, scales, zeros, self.n), x, y);
        }
    }

    fn run_with_rows(&self, rows: &impl WeightRows, x: &[f32], y: &mut [f32]) {
        let m = x.len() / self.k;
        if m <= MAX_DOT_ROWS {
            dot_products::run(self.set, self.partition(m), rows, x, self.k, y, self.n);
        } else {
            tiles::run(self.set, self.partition(m), rows, x, self.k, y, self.n);
        }
    }

    fn partition(&self, m: usize) -> OutputPartition {
        OutputPartition::new(m, self.n, if m <= MAX_DOT_ROWS { m } else { MIN_PART_ROWS })
    }

    /// Bytes of the stored weight.
    pub fn weight_bytes(&self) -> usize {
        self.weights.bytes()
    }

    /// Description of the kernel for `m` rows.
    pub fn kernel(&self, m: usize) -> String {
        let weights = match &self.weights {
            HostGemmWeight::Floats(FloatVec::F32(_)) => "f32".to_owned(),
            HostGemmWeight::Floats(FloatVec::Bf16(_)) => "bf16".to_owned(),
            HostGemmWeight::Int8(_) => "int8".to_owned(),
            HostGemmWeight::Int4(rows) => format!("int4, group size {}", rows.group),
            HostGemmWeight::Int8Blocks(_) => format!("int8, group size {}", BlockWeight::SIZE),
            HostGemmWeight::Int4Blocks(_) => format!("int4, group size {}", BlockWeight::SIZE),
        };
        let (rows, columns) = self.set.tile();
        let how = if m <= MAX_DOT_ROWS { "dot products".to_owned() } else { format!("tiles of {rows}x{columns}") };
        let OutputPartition { rows, columns } = self.partition(m);
        let (set, threads) = (self.set.name(), rayon::current_num_threads());
        format!("{how} with {weights} by {set}, parts of {rows}x{columns} on {threads} threads")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Int4Weight, Int8Weight};
    use half::f16;

    /// Pseudo-random value between -1 and 1.
    fn uniform(i: usize) -> f32 {
        ((i as u32).wrapping_mul(0x9E37_79B9).rotate_left(13).wrapping_mul(0x85EB_CA6B) >> 8) as f32 / (1 << 23) as f32
            - 1.0
    }

    fn floats(count: usize) -> Vec<f32> {
        (0..count).map(uniform).collect()
    }

    /// Pseudo-random packed values, including the padding of each row to blocks of 32.
    fn codes(n: usize, k: usize, bits: usize) -> Vec<u32> {
        let words = k.div_ceil(32) * bits;
        (0..n * words).map(|i| (i as u32).wrapping_mul(0x9E37_79B9).rotate_left(7).wrapping_mul(0xC2B2_AE35)).collect()
    }

    fn code(codes: &[u32], n: usize, row: usize, at: usize, bits: usize) -> u32 {
        let word = codes[row * (codes.len() / n) + at * bits / 32];
        word >> (at * bits % 32) & ((1 << bits) - 1)
    }

    /// A weight of each format, and its dequantized values.
    fn weights(n: usize, k: usize) -> Vec<(HostGemmWeight, Vec<f64>)> {
        let places = || (0..n).flat_map(|row| (0..k).map(move |at| (row, at)));
        let plain = floats(n * k);
        let as_bf16 = FloatVec::bf16(&plain);
        let mut all = vec![
            (HostGemmWeight::Floats(as_bf16.clone()), (0..n * k).map(|i| f64::from(as_bf16.get(i))).collect()),
            (HostGemmWeight::Floats(FloatVec::F32(plain.clone())), plain.iter().map(|&x| f64::from(x)).collect()),
        ];
        for scales in [FloatVec::F32(floats(n)), FloatVec::bf16(&floats(n))] {
            let rows = Int8Weight { codes: codes(n, k, 8), scales };
            let number =
                |(row, at)| f64::from(code(&rows.codes, n, row, at, 8) as u8 as i8) * f64::from(rows.scales.get(row));
            let numbers = places().map(number).collect();
            all.push((HostGemmWeight::Int8(rows), numbers));
        }
        for group in [32, 64, 128, 256] {
            let groups = k.div_ceil(group);
            let (scales, zeros) = (floats(n * groups), floats(2 * n * groups)[n * groups..].to_vec());
            for (scales, zeros) in
                [(FloatVec::bf16(&scales), FloatVec::bf16(&zeros)), (FloatVec::F32(scales), FloatVec::F32(zeros))]
            {
                let rows = Int4Weight { codes: codes(n, k, 4), scales, zeros, group };
                let number = |(row, at)| {
                    let (code, of) = (f64::from(code(&rows.codes, n, row, at, 4)), row * groups + at / group);
                    (code - 8.0) * f64::from(rows.scales.get(of)) + f64::from(rows.zeros.get(of))
                };
                let numbers = places().map(number).collect();
                all.push((HostGemmWeight::Int4(rows), numbers));
            }
        }
        for bits in [8, 4] {
            let blocks = k.div_ceil(BlockWeight::SIZE);
            let scales: Vec<f16> = floats(n * blocks).into_iter().map(f16::from_f32).collect();
            let rows = BlockWeight { codes: codes(n, k, bits), scales };
            let number = |(row, at)| {
                let code = code(&rows.codes, n, row, at, bits);
                let value = if bits == 8 { f64::from(code as u8 as i8) } else { f64::from(code) - 8.0 };
                value * rows.scales[row * blocks + at / BlockWeight::SIZE].to_f64()
            };
            let numbers = places().map(number).collect();
            let weight = if bits == 8 { HostGemmWeight::Int8Blocks(rows) } else { HostGemmWeight::Int4Blocks(rows) };
            all.push((weight, numbers));
        }
        all
    }

    #[test]
    fn every_isa_multiplies_every_weight_format() {
        let odd = [1, 3, 17, 127, 129];
        let mut sizes: Vec<[usize; 3]> =
            odd.iter().flat_map(|&m| odd.iter().flat_map(move |&k| odd.map(|n| [m, k, n]))).collect();
        sizes.extend([[1, 1000, 1000], [5, 1000, 129], [129, 1000, 17], [17, 33, 1000], [18, 4225, 33]]);
        for [m, k, n] in sizes {
            let x = floats(m * k + 7)[7..].to_vec();
            for (weights, numbers) in weights(n, k) {
                for set in FloatIsa::available() {
                    let product = FloatGemm::with_isa(weights.clone(), n, k, set);
                    let mut y = vec![f32::NAN; m * n];
                    product.run(&x, &mut y);
                    for (i, &y) in y.iter().enumerate() {
                        let (x, w) = (&x[i / n * k..][..k], &numbers[i % n * k..][..k]);
                        let terms = x.iter().zip(w).map(|(&x, w)| f64::from(x) * w);
                        let (exact, size) = terms.fold((0.0, 0.0), |(sum, size), t| (sum + t, size + t.abs()));
                        let off = (f64::from(y) - exact).abs();
                        assert!(off <= size * 2e-6, "{m} {k} {n} {}: {y} instead of {exact}", product.kernel(m));
                    }
                }
            }
        }
    }

    #[test]
    fn results_do_not_depend_on_thread_count() {
        let (m, k, n) = (20, 300, 70);
        let x = floats(m * k);
        for (weights, _) in weights(n, k) {
            let product = FloatGemm::new(weights, n, k);
            let on = |threads: usize, rows: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut y = vec![0.0; rows * n];
                pool.install(|| product.run(&x[..rows * k], &mut y));
                y
            };
            for rows in [3, m] {
                assert_eq!(on(1, rows), on(3, rows), "{}", product.kernel(rows));
            }
        }
    }
}
