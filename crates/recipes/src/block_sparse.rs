//! A linear layer whose weight keeps some of its blocks: only they are stored and multiplied.

use crate::prune::kept_of;
use crate::{Dtype, FloatType, Linear, Sparsity, Weight};
use burn::tensor::{DType, Int, Tensor, TensorData, backend::Backend};

/// The blocks of a weight that are kept, as many in each row of blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockSparse {
    /// Rows and columns of a block.
    side: usize,
    /// Rows of blocks.
    rows: usize,
    /// Columns of blocks that are kept, for each row of blocks.
    kept: Vec<u32>,
    /// For each row of blocks its rows, made of the kept blocks alone.
    values: Vec<f32>,
    dtype: Dtype,
}

impl BlockSparse {
    /// Takes the kept blocks out of a weight whose size [`Sparsity::check`] has allowed.
    pub fn new(weight: &Weight, sparsity: Sparsity, side: usize) -> Self {
        let (mut kept, mut values) = (Vec::new(), Vec::new());
        for rows in weight.values().chunks(side * weight.k()) {
            let columns = sparsity.kept_blocks(rows, weight.k());
            for row in rows.chunks(weight.k()) {
                columns.iter().for_each(|column| values.extend_from_slice(&row[column * side..][..side]));
            }
            kept.extend(columns.into_iter().map(|column| column as u32));
        }
        Self { side, rows: weight.n() / side, kept, values, dtype: weight.dtype() }
    }

    /// Bytes of the kept blocks of a weight of this size, and of their places.
    pub fn bytes(n: usize, k: usize, percent: u8, side: u16, dtype: Dtype) -> u64 {
        let side = usize::from(side);
        let kept = (n / side) * kept_of(k / side, percent);
        kept as u64 * ((side * side) as u64 * dtype.bytes() + 4)
    }

    /// Rows and columns of a block.
    pub fn side(&self) -> usize {
        self.side
    }

    /// The type of its numbers.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The columns of blocks that are kept, ascending, for each row of blocks.
    pub fn kept(&self) -> &[u32] {
        &self.kept
    }

    /// For each row of blocks its rows, made of the kept blocks alone.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The layer on a device.
    pub fn upload<B: Backend>(&self, device: &B::Device) -> Box<dyn Linear<B>> {
        let places: Vec<i32> = self.kept.iter().map(|&column| column as i32).collect();
        let shape = [self.rows, self.side, self.values.len() / (self.rows * self.side)];
        Box::new(BlockSparseLinear {
            side: self.side,
            places: Tensor::from_data(TensorData::new(places, [self.kept.len()]), (device, DType::I32)),
            values: Tensor::from_data(TensorData::new(self.values.clone(), shape), (device, self.dtype.burn())),
            bytes: self.values.len() as u64 * self.dtype.bytes() + 4 * self.kept.len() as u64,
        })
    }
}

/// The kept blocks on a device.
struct BlockSparseLinear<B: Backend> {
    side: usize,
    places: Tensor<B, 1, Int>,
    values: Tensor<B, 3>,
    bytes: u64,
}

impl<B: Backend> Linear<B> for BlockSparseLinear<B> {
    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2> {
        let ([m, k], [rows, side, width]) = (input.dims(), self.values.dims());
        // For each row of blocks the columns of the input that meet its kept blocks: one batch of products.
        let columns = input.reshape([m, k / side, side]).select(1, self.places.clone());
        let columns = columns.reshape([m, rows, width]).swap_dims(0, 1);
        let product = columns.matmul(self.values.clone().swap_dims(1, 2));
        product.swap_dims(0, 1).reshape([m, rows * self.side])
    }

    fn weight_bytes(&self) -> u64 {
        self.bytes
    }
}
