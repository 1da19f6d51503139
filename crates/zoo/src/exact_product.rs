//! Matrix multiplication in double precision.

use std::mem::swap;

/// View of a matrix with row and column strides.
#[derive(Clone, Copy)]
pub struct Lying<'a> {
    values: &'a [f64],
    rows: usize,
    cols: usize,
}

impl<'a> Lying<'a> {
    /// Contiguous rows of `cols` elements.
    pub fn by_rows(values: &'a [f64], cols: usize) -> Self {
        Self { values, rows: cols, cols: 1 }
    }

    /// Transposes the view by swapping its strides.
    pub fn turned(mut self) -> Self {
        swap(&mut self.rows, &mut self.cols);
        self
    }

    /// Elements between the first and the last element of a `rows` x `cols` view, both included.
    fn spans(&self, rows: usize, cols: usize) -> usize {
        (rows - 1) * self.rows + (cols - 1) * self.cols + 1
    }
}

/// Multiplies an `m` x `k` by a `k` x `n` matrix; the result is row-major.
pub fn product([m, k, n]: [usize; 3], left: Lying<'_>, right: Lying<'_>) -> Vec<f64> {
    let mut made = vec![0.0; m * n];
    if made.is_empty() || k == 0 {
        return made;
    }
    assert!(left.spans(m, k) <= left.values.len() && right.spans(k, n) <= right.values.len(), "{m} {k} {n}");
    let threads = gemm::Parallelism::Rayon(0);
    // SAFETY: the assertion above checks that the strides of both operands stay within their slices; the result has m *
    // n elements.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            made.as_mut_ptr(),
            1,
            n as isize,
            false,
            left.values.as_ptr(),
            left.cols as isize,
            left.rows as isize,
            right.values.as_ptr(),
            right.cols as isize,
            right.rows as isize,
            0.0,
            1.0,
            false,
            false,
            false,
            threads,
        );
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_sums_of_products_however_their_operands_lie() {
        for (m, k, n) in [(1, 1, 1), (3, 17, 5), (64, 129, 33), (7, 300, 1), (1, 40, 70), (2, 0, 3)] {
            let left: Vec<f64> = (0..m * k).map(|at| ((at * 31) % 97) as f64 - 48.0).collect();
            let right: Vec<f64> = (0..k * n).map(|at| ((at * 17) % 89) as f64 - 44.0).collect();
            let transposed = |values: &[f64], rows: usize, cols: usize| -> Vec<f64> {
                (0..cols).flat_map(|col| (0..rows).map(move |row| values[row * cols + col])).collect()
            };
            let sum = |row: usize, col: usize| (0..k).map(|at| left[row * k + at] * right[at * n + col]).sum::<f64>();
            let expected: Vec<f64> = (0..m).flat_map(|row| (0..n).map(move |col| sum(row, col))).collect();
            let (turned_left, turned_right) = (transposed(&left, m, k), transposed(&right, k, n));
            for left in [Lying::by_rows(&left, k), Lying::by_rows(&turned_left, m).turned()] {
                for right in [Lying::by_rows(&right, n), Lying::by_rows(&turned_right, k).turned()] {
                    // All sums are integers, hence exact in any order.
                    assert_eq!(product([m, k, n], left, right), expected, "{m} {k} {n}");
                }
            }
        }
    }
}
