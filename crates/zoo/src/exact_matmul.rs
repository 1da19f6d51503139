//! Matrix multiplication in double precision.

use std::mem::swap;

/// View of a matrix with row and column strides.
#[derive(Clone, Copy)]
pub(crate) struct StridedView<'a> {
    values: &'a [f64],
    row_stride: usize,
    col_stride: usize,
}

impl<'a> StridedView<'a> {
    /// Contiguous rows of `cols` elements.
    pub(crate) fn row_major(values: &'a [f64], cols: usize) -> Self {
        Self { values, row_stride: cols, col_stride: 1 }
    }

    /// Transposes the view by swapping its strides.
    pub(crate) fn transposed(mut self) -> Self {
        swap(&mut self.row_stride, &mut self.col_stride);
        self
    }

    /// Elements between the first and the last element of a `rows` x `cols` view, both included.
    fn extent(&self, rows: usize, cols: usize) -> usize {
        (rows - 1) * self.row_stride + (cols - 1) * self.col_stride + 1
    }
}

/// Multiplies an `m` x `k` by a `k` x `n` matrix; the result is row-major.
pub(crate) fn matmul([m, k, n]: [usize; 3], left: StridedView<'_>, right: StridedView<'_>) -> Vec<f64> {
    let mut made = vec![0.0; m * n];
    if made.is_empty() || k == 0 {
        return made;
    }
    assert!(left.extent(m, k) <= left.values.len() && right.extent(k, n) <= right.values.len(), "{m} {k} {n}");
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
            left.col_stride as isize,
            left.row_stride as isize,
            right.values.as_ptr(),
            right.col_stride as isize,
            right.row_stride as isize,
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
    fn matmul_is_exact_for_all_layouts() {
        for (m, k, n) in [(1, 1, 1), (3, 17, 5), (64, 129, 33), (7, 300, 1), (1, 40, 70), (2, 0, 3)] {
            let left: Vec<f64> = (0..m * k).map(|at| ((at * 31) % 97) as f64 - 48.0).collect();
            let right: Vec<f64> = (0..k * n).map(|at| ((at * 17) % 89) as f64 - 44.0).collect();
            let transposed = |values: &[f64], rows: usize, cols: usize| -> Vec<f64> {
                (0..cols).flat_map(|col| (0..rows).map(move |row| values[row * cols + col])).collect()
            };
            let sum = |row: usize, col: usize| (0..k).map(|at| left[row * k + at] * right[at * n + col]).sum::<f64>();
            let expected: Vec<f64> = (0..m).flat_map(|row| (0..n).map(move |col| sum(row, col))).collect();
            let (turned_left, turned_right) = (transposed(&left, m, k), transposed(&right, k, n));
            for left in [StridedView::row_major(&left, k), StridedView::row_major(&turned_left, m).transposed()] {
                for right in [StridedView::row_major(&right, n), StridedView::row_major(&turned_right, k).transposed()]
                {
                    // All sums are integers, hence exact in any order.
                    assert_eq!(matmul([m, k, n], left, right), expected, "{m} {k} {n}");
                }
            }
        }
    }
}
