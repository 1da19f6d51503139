//! Linear layer with a block-sparse weight: only the nonzero blocks are stored and multiplied.

use crate::prune::retained_blocks;
use crate::{Dtype, FloatType, Linear, Sparsity, Weight};
use burn::tensor::{DType, Int, Tensor, TensorData, backend::Backend};

/// Nonzero blocks of a weight; every row of blocks holds an equal number of them.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockSparse {
    /// Rows and columns of a block.
    block_size: usize,
    /// Rows of blocks.
    rows: usize,
    /// Columns of the weight.
    cols: usize,
    /// Column indices of the nonzero blocks, for each row of blocks.
    block_columns: Vec<u32>,
    /// Rows of the weight with the zero blocks removed.
    values: Vec<f32>,
    dtype: Dtype,
}

impl BlockSparse {
    /// Extracts the nonzero blocks of a weight whose size [`QuantConfig::check`](crate::QuantConfig::check) accepts.
    pub fn new(weight: &Weight, sparsity: Sparsity, block_size: usize) -> Self {
        let (mut block_columns, mut values) = (Vec::new(), Vec::new());
        for rows in weight.values().chunks(block_size * weight.k()) {
            let columns = retained_blocks(sparsity, rows, weight.k());
            for row in rows.chunks(weight.k()) {
                columns.iter().for_each(|column| values.extend_from_slice(&row[column * block_size..][..block_size]));
            }
            block_columns.extend(columns.into_iter().map(|column| column as u32));
        }
        Self {
            block_size,
            rows: weight.n() / block_size,
            cols: weight.k(),
            block_columns,
            values,
            dtype: weight.dtype(),
        }
    }

    /// Bytes of the nonzero blocks and their column indices.
    pub fn bytes(n: usize, block_size: usize, blocks_per_row: usize, dtype: Dtype) -> u64 {
        let blocks = (n / block_size * blocks_per_row) as u64;
        blocks * ((block_size * block_size) as u64 * dtype.bytes() + 4)
    }

    /// Rows of the weight.
    pub fn rows(&self) -> usize {
        self.rows * self.block_size
    }

    /// Columns of the weight.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Dtype of the values.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Column indices of the nonzero blocks in ascending order, for each row of blocks.
    pub fn block_columns(&self) -> &[u32] {
        &self.block_columns
    }

    /// Rows of the weight with the zero blocks removed.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Uploads the layer to a device.
    pub fn upload<B: Backend>(&self, device: &B::Device) -> Box<dyn Linear<B>> {
        let places: Vec<i32> = self.block_columns.iter().map(|&column| column as i32).collect();
        let shape = [self.rows, self.block_size, self.values.len() / (self.rows * self.block_size)];
        Box::new(BlockSparseLinear {
            block_size: self.block_size,
            block_columns: Tensor::from_data(TensorData::new(places, [self.block_columns.len()]), (device, DType::I32)),
            values: Tensor::from_data(TensorData::new(self.values.clone(), shape), (device, self.dtype.burn())),
            bytes: self.values.len() as u64 * self.dtype.bytes() + 4 * self.block_columns.len() as u64,
        })
    }
}

/// Nonzero blocks on a device.
struct BlockSparseLinear<B: Backend> {
    block_size: usize,
    block_columns: Tensor<B, 1, Int>,
    values: Tensor<B, 3>,
    bytes: u64,
}

impl<B: Backend> Linear<B> for BlockSparseLinear<B> {
    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2> {
        let ([m, k], [rows, side, width]) = (input.dims(), self.values.dims());
        // Gathers the input columns of the nonzero blocks of each row of blocks, then runs one batched matmul.
        let columns = input.reshape([m, k / side, side]).select(1, self.block_columns.clone());
        let columns = columns.reshape([m, rows, width]).swap_dims(0, 1);
        let product = columns.matmul(self.values.clone().swap_dims(1, 2));
        product.swap_dims(0, 1).reshape([m, rows * self.block_size])
    }

    fn weight_bytes(&self) -> u64 {
        self.bytes
    }
}
