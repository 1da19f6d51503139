//! Rows of floats times a stored weight.

use super::cut::Cut;
use super::float_set::FloatSet;
use super::weights::{Bf16Rows, F32Rows, Int4View, Int8View, Rows, Weights};
use super::{dots, numbers::Numbers, tiles};

/// Up to so many rows each output is a dot product; more are worth a panel of unpacked weights.
const FEW: usize = 16;

/// Rows of a part in which unpacking a panel is next to nothing.
const LEAST_ROWS: usize = 192;

/// The product of rows of floats with a weight of `n` rows of `k` numbers, in the widest vectors of this processor.
///
/// ```
/// use calorimeter_kernels::host::{FloatProduct, Int8Rows, Numbers, Weights};
///
/// // Rows of codes 1, 2, 3, 4 and 0, 0, 0, -1, the second with a scale of one half.
/// let rows = Int8Rows { codes: vec![0x04030201, 0xff000000], scales: Numbers::F32(vec![1.0, 0.5]) };
/// let product = FloatProduct::new(Weights::Int8(rows), 2, 4);
/// let mut y = [0.0; 2];
/// product.run(&[1.0, 1.0, 1.0, 10.0], &mut y);
/// assert_eq!(y, [46.0, -5.0]);
/// ```
#[derive(Debug, Clone)]
pub struct FloatProduct {
    weights: Weights,
    n: usize,
    k: usize,
    set: FloatSet,
}

impl FloatProduct {
    /// # Panics
    /// If the weight has not the numbers, codes and scales of `n` rows of `k` numbers, or if groups are of another size
    /// than 32, 64, or a multiple of 128.
    pub fn new(weights: Weights, n: usize, k: usize) -> Self {
        Self::by(weights, n, k, FloatSet::widest())
    }

    fn by(weights: Weights, n: usize, k: usize, set: FloatSet) -> Self {
        assert!(n > 0 && k > 0, "a weight of {n} x {k}");
        match &weights {
            Weights::Floats(numbers) => assert_eq!(numbers.len(), n * k, "numbers of {n} x {k}"),
            Weights::Int8(rows) => {
                assert!(rows.codes.len().is_multiple_of(n) && rows.codes.len() / n * 4 >= k, "codes of {n} x {k}");
                assert_eq!(rows.scales.len(), n, "scales of {n} rows");
            }
            Weights::Int4(rows) => {
                assert!(
                    [32, 64].contains(&rows.group) || rows.group > 0 && rows.group.is_multiple_of(128),
                    "{}",
                    rows.group
                );
                assert!(rows.codes.len().is_multiple_of(n) && rows.codes.len() / n * 8 >= k, "codes of {n} x {k}");
                let groups = n * k.div_ceil(rows.group);
                assert_eq!((rows.scales.len(), rows.zeros.len()), (groups, groups), "scales and zeros of {n} x {k}");
            }
        }
        Self { weights, n, k, set }
    }

    /// Computes `y[m, n] = x[m, k] * weightᵀ`, all of it before it returns.
    ///
    /// # Panics
    /// If `x` has no whole rows, or `y` not as many.
    pub fn run(&self, x: &[f32], y: &mut [f32]) {
        let Self { n, k, .. } = *self;
        assert!(
            x.len().is_multiple_of(k) && x.len() / k * n == y.len(),
            "{} and {} numbers for {n} x {k}",
            x.len(),
            y.len()
        );
        match &self.weights {
            Weights::Floats(Numbers::F32(numbers)) => self.with(&F32Rows(numbers, k), x, y),
            Weights::Floats(Numbers::Bf16(numbers)) => self.with(&Bf16Rows(numbers, k), x, y),
            Weights::Int8(rows) => self.with(&Int8View(rows, rows.codes.len() / n), x, y),
            Weights::Int4(rows) => self.with(&Int4View(rows, rows.codes.len() / n, k.div_ceil(rows.group)), x, y),
        }
    }

    fn with(&self, rows: &impl Rows, x: &[f32], y: &mut [f32]) {
        let m = x.len() / self.k;
        if m <= FEW {
            dots::run(self.set, self.cut(m), rows, x, self.k, y, self.n);
        } else {
            tiles::run(self.set, self.cut(m), rows, x, self.k, y, self.n);
        }
    }

    fn cut(&self, m: usize) -> Cut {
        Cut::new(m, self.n, if m <= FEW { m } else { LEAST_ROWS })
    }

    /// Bytes of the weight as it is stored.
    pub fn weight_bytes(&self) -> usize {
        self.weights.bytes()
    }

    /// The kernel for so many rows, and how it is cut.
    pub fn kernel(&self, m: usize) -> String {
        let weights = match &self.weights {
            Weights::Floats(Numbers::F32(_)) => "f32".to_owned(),
            Weights::Floats(Numbers::Bf16(_)) => "bf16".to_owned(),
            Weights::Int8(_) => "int8".to_owned(),
            Weights::Int4(rows) => format!("int4 in groups of {}", rows.group),
        };
        let (rows, columns) = self.set.tile();
        let how = if m <= FEW { "dot products".to_owned() } else { format!("tiles of {rows}x{columns}") };
        let Cut { rows, columns } = self.cut(m);
        let (set, threads) = (self.set.name(), rayon::current_num_threads());
        format!("{how} with {weights} by {set}, parts of {rows}x{columns} on {threads} threads")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Int4Rows, Int8Rows};

    /// Numbers between -1 and 1 that look like chance.
    fn uniform(i: usize) -> f32 {
        ((i as u32).wrapping_mul(0x9E37_79B9).rotate_left(13).wrapping_mul(0x85EB_CA6B) >> 8) as f32 / (1 << 23) as f32
            - 1.0
    }

    fn floats(count: usize) -> Vec<f32> {
        (0..count).map(uniform).collect()
    }

    /// Codes of so many bits in whole blocks of 32 for each row, what fills rows up among them.
    fn codes(n: usize, k: usize, bits: usize) -> Vec<u32> {
        let words = k.div_ceil(32) * bits;
        (0..n * words).map(|i| (i as u32).wrapping_mul(0x9E37_79B9).rotate_left(7).wrapping_mul(0xC2B2_AE35)).collect()
    }

    fn code(codes: &[u32], n: usize, row: usize, at: usize, bits: usize) -> u32 {
        let word = codes[row * (codes.len() / n) + at * bits / 32];
        word >> (at * bits % 32) & ((1 << bits) - 1)
    }

    /// A weight of each kind, and its numbers.
    fn weights(n: usize, k: usize) -> Vec<(Weights, Vec<f64>)> {
        let places = || (0..n).flat_map(|row| (0..k).map(move |at| (row, at)));
        let plain = floats(n * k);
        let as_bf16 = Numbers::bf16(&plain);
        let mut all = vec![
            (Weights::Floats(as_bf16.clone()), (0..n * k).map(|i| f64::from(as_bf16.at(i))).collect()),
            (Weights::Floats(Numbers::F32(plain.clone())), plain.iter().map(|&x| f64::from(x)).collect()),
        ];
        for scales in [Numbers::F32(floats(n)), Numbers::bf16(&floats(n))] {
            let rows = Int8Rows { codes: codes(n, k, 8), scales };
            let number =
                |(row, at)| f64::from(code(&rows.codes, n, row, at, 8) as u8 as i8) * f64::from(rows.scales.at(row));
            let numbers = places().map(number).collect();
            all.push((Weights::Int8(rows), numbers));
        }
        for group in [32, 64, 128, 256] {
            let groups = k.div_ceil(group);
            let (scales, zeros) = (floats(n * groups), floats(2 * n * groups)[n * groups..].to_vec());
            for (scales, zeros) in
                [(Numbers::bf16(&scales), Numbers::bf16(&zeros)), (Numbers::F32(scales), Numbers::F32(zeros))]
            {
                let rows = Int4Rows { codes: codes(n, k, 4), scales, zeros, group };
                let number = |(row, at)| {
                    let (code, of) = (f64::from(code(&rows.codes, n, row, at, 4)), row * groups + at / group);
                    (code - 8.0) * f64::from(rows.scales.at(of)) + f64::from(rows.zeros.at(of))
                };
                let numbers = places().map(number).collect();
                all.push((Weights::Int4(rows), numbers));
            }
        }
        all
    }

    #[test]
    fn every_set_multiplies_every_kind_of_weight_on_ragged_sizes() {
        let odd = [1, 3, 17, 127, 129];
        let mut sizes: Vec<[usize; 3]> =
            odd.iter().flat_map(|&m| odd.iter().flat_map(move |&k| odd.map(|n| [m, k, n]))).collect();
        sizes.extend([[1, 1000, 1000], [5, 1000, 129], [129, 1000, 17], [17, 33, 1000], [18, 4225, 33]]);
        for [m, k, n] in sizes {
            let x = floats(m * k + 7)[7..].to_vec();
            for (weights, numbers) in weights(n, k) {
                for set in FloatSet::here() {
                    let product = FloatProduct::by(weights.clone(), n, k, set);
                    let mut y = vec![f32::NAN; m * n];
                    product.run(&x, &mut y);
                    for (i, &y) in y.iter().enumerate() {
                        let (x, w) = (&x[i / n * k..][..k], &numbers[i % n * k..][..k]);
                        let terms = x.iter().zip(w).map(|(&x, w)| f64::from(x) * w);
                        let (exact, size) = terms.fold((0.0, 0.0), |(sum, size), t| (sum + t, size + t.abs()));
                        let off = (f64::from(y) - exact).abs();
                        assert!(off <= size * 2e-6, "{m} {k} {n} {}: {y} for {exact}", product.kernel(m));
                    }
                }
            }
        }
    }

    #[test]
    fn threads_have_no_part_in_a_sum() {
        let (m, k, n) = (20, 300, 70);
        let x = floats(m * k);
        for (weights, _) in weights(n, k) {
            let product = FloatProduct::new(weights, n, k);
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
