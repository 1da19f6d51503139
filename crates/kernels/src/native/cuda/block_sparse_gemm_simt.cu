// y[m, n] = x[m, K] w[n, K]^T [+ addend[m, n]] for a block-sparse w (format in block_sparse_gemm.cu) without tensor
// cores: for f32, and for blocks of any size. "SIMT" is the CUTLASS term for GEMM on CUDA cores.
//
// Algorithm: register-tiled GEMM. A thread block computes 64 x 64 elements of y, or fewer columns at the edge of a
// block row, in steps of 16 elements of k. Both operands are widened to f32 in shared memory, k-major, so that a thread
// loads four adjacent rows in one access. 256 threads compute 4 x 4 elements each (outer products).
//
//     w_tile [16][64]             across = 4 (thread % 16)
//                                 | b0 b1 b2 b3 |
//     x_tile [16][64]      a0  -> |             |
//     down = 4 (thread/16) a1  -> | sums[4][4]  |
//                          a2  -> |             |
//                          a3  -> |             |
//
// Traffic: as block_sparse_gemm.cu, with tiles of 64. Roofline: 2 m n BLOCKS_PER_ROW BLOCK_SIZE FLOP at the f32 rate,
// of which about half is usable: 8 values are loaded from shared memory per 16 fma.
//
// Parameters:
//   KERNEL          name of the kernel
//   ELEMENT_*       dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH           any value; required by element.cuh
//   K               row length of x
//   BLOCK_SIZE      rows and columns of a block of w
//   BLOCKS_PER_ROW  stored blocks per row of blocks
//   ADDEND          optional: an addend is added to y

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef K
#error "K: row length of x"
#endif
#ifndef BLOCK_SIZE
#error "BLOCK_SIZE: rows and columns of a block of w"
#endif
#ifndef BLOCKS_PER_ROW
#error "BLOCKS_PER_ROW: stored blocks per row of blocks"
#endif

#include "element.cuh"

constexpr int TILE = 64, TILE_K = 16, THREADS = 256;
constexpr unsigned BLOCK_TILES = (BLOCK_SIZE + TILE - 1) / TILE;

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const element *__restrict__ x, const element *__restrict__ values,
           const unsigned *__restrict__ block_columns,
#ifdef ADDEND
           const element *__restrict__ addend,
#endif
           element *__restrict__ y, u64 m, u64 n) {
    __shared__ float x_tile[TILE_K][TILE + 4], w_tile[TILE_K][TILE + 4];
    const unsigned row_tiles = ((unsigned)m + TILE - 1) / TILE;
    const u64 first_row = (u64)(blockIdx.x % row_tiles) * TILE;
    const unsigned column_tile = blockIdx.x / row_tiles;
    const u64 block_row = column_tile / BLOCK_TILES;
    const unsigned row_in_block = column_tile % BLOCK_TILES * TILE;
    const unsigned columns = BLOCK_SIZE - row_in_block < TILE ? BLOCK_SIZE - row_in_block : TILE;
    const u64 first_column = block_row * BLOCK_SIZE + row_in_block;

    const unsigned down = threadIdx.x / 16 * 4, across = threadIdx.x % 16 * 4;
    float sums[4][4] = {};
    for (unsigned block = 0; block < BLOCKS_PER_ROW; block++) {
        const u64 column = (u64)block_columns[block_row * BLOCKS_PER_ROW + block] * BLOCK_SIZE;
        for (unsigned k_in_block = 0; k_in_block < BLOCK_SIZE; k_in_block += TILE_K) {
            __syncthreads();
#pragma unroll
            for (unsigned i = threadIdx.x; i < TILE * TILE_K; i += THREADS) {
                const unsigned row = i / TILE_K, k = i % TILE_K;
                const bool k_in_range = k_in_block + k < BLOCK_SIZE;
                const bool x_in_range = k_in_range && first_row + row < m, w_in_range = k_in_range && row < columns;
                x_tile[k][row] = x_in_range ? widen(x[(first_row + row) * K + column + k_in_block + k]) : 0.0f;
                w_tile[k][row] = w_in_range ? widen(values[(first_column + row) * (BLOCKS_PER_ROW * BLOCK_SIZE) +
                                                           block * BLOCK_SIZE + k_in_block + k])
                                            : 0.0f;
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < TILE_K; k++) {
                const float4 a = *reinterpret_cast<const float4 *>(&x_tile[k][down]);
                const float4 b = *reinterpret_cast<const float4 *>(&w_tile[k][across]);
                const float rows4[4] = {a.x, a.y, a.z, a.w}, columns4[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
                for (int i = 0; i < 4; i++) {
#pragma unroll
                    for (int j = 0; j < 4; j++) sums[i][j] = fmaf(rows4[i], columns4[j], sums[i][j]);
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const u64 row = first_row + down + i;
            if (row >= m || across + j >= columns) continue;
            const u64 index = row * n + first_column + across + j;
            float value = sums[i][j];
#ifdef ADDEND
            value += widen(addend[index]);
#endif
            y[index] = narrow(value);
        }
    }
}
