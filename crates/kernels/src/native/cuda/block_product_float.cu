// The product of `block_product.cu` without tensor cores: for f32, and for blocks of any side.
//
// Data flow: a block of threads makes 64 columns of y, or as many as a row of blocks has left, for 64 rows of x, in steps of 16 numbers of
// each kept block, which come to shared memory widened to float. A thread multiplies 4 by 4 of them.
//
// Traffic: as there, with tiles of 64. Roofline: 2 m n KEPT SIDE operations at the rate of float, of which 8 loads from shared memory
// for 16 products leave the half.
#include "element.cuh"

constexpr int TILE = 64, STEP = 16, THREADS = 256;
constexpr unsigned TILES_OF_SIDE = (SIDE + TILE - 1) / TILE;

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const element *__restrict__ x, const element *__restrict__ blocks, const unsigned *__restrict__ places,
#ifdef ADDED
           const element *__restrict__ added,
#endif
           element *__restrict__ y, u64 m, u64 n) {
    __shared__ float of_x[STEP][TILE + 4], of_w[STEP][TILE + 4];
    const unsigned row_tiles = ((unsigned)m + TILE - 1) / TILE;
    const u64 first_row = (u64)(blockIdx.x % row_tiles) * TILE;
    const unsigned column_tile = blockIdx.x / row_tiles;
    const u64 of_blocks = column_tile / TILES_OF_SIDE;
    const unsigned inside_row = column_tile % TILES_OF_SIDE * TILE;
    const unsigned columns = SIDE - inside_row < TILE ? SIDE - inside_row : TILE;
    const u64 first_column = of_blocks * SIDE + inside_row;

    const unsigned down = threadIdx.x / 16 * 4, across = threadIdx.x % 16 * 4;
    float sums[4][4] = {};
    for (unsigned block = 0; block < KEPT; block++) {
        const u64 column = (u64)places[of_blocks * KEPT + block] * SIDE;
        for (unsigned inside = 0; inside < SIDE; inside += STEP) {
            __syncthreads();
#pragma unroll
            for (unsigned at = threadIdx.x; at < TILE * STEP; at += THREADS) {
                const unsigned row = at / STEP, k = at % STEP;
                const bool in_block = inside + k < SIDE;
                const bool in_x = in_block && first_row + row < m, in_w = in_block && row < columns;
                of_x[k][row] = in_x ? widen(x[(first_row + row) * K + column + inside + k]) : 0.0f;
                of_w[k][row] =
                    in_w ? widen(blocks[(first_column + row) * (KEPT * SIDE) + block * SIDE + inside + k]) : 0.0f;
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < STEP; k++) {
                const float4 a = *reinterpret_cast<const float4 *>(&of_x[k][down]);
                const float4 b = *reinterpret_cast<const float4 *>(&of_w[k][across]);
                const float rows[4] = {a.x, a.y, a.z, a.w}, of_columns[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
                for (int i = 0; i < 4; i++) {
#pragma unroll
                    for (int j = 0; j < 4; j++) sums[i][j] = fmaf(rows[i], of_columns[j], sums[i][j]);
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
            const u64 at = row * n + first_column + across + j;
            float number = sums[i][j];
#ifdef ADDED
            number += widen(added[at]);
#endif
            y[at] = narrow(number);
        }
    }
}
