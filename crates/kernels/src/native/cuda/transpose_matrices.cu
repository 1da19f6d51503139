// The transposes of matrices that lie behind each other: y[column, row] = x[row, column] of each. A row of x takes FROM
// numbers in memory and one of y takes TO, of which those beyond the transpose are zero.
//
// A block turns a tile of 32 by 32 in shared memory. Traffic: x and y once. Roofline: the memory's. It runs before and after what is timed.
#include "element.cuh"

constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const element *__restrict__ x, element *__restrict__ y, u64 rows, u64 columns) {
    // A column more, so that neither direction asks one bank twice.
    __shared__ element turning[TILE][TILE + 1];
    const unsigned down = (TO + TILE - 1) / TILE, across = ((unsigned)columns + TILE - 1) / TILE;
    const u64 matrix = blockIdx.x / (down * across);
    const unsigned tile = blockIdx.x % (down * across);
    const u64 first_row = (u64)(tile % down) * TILE, first_column = (u64)(tile / down) * TILE;
    const unsigned lane = threadIdx.x % TILE;
    const element *const from = x + matrix * rows * FROM;
    element *const to = y + matrix * columns * TO;
    for (unsigned r = threadIdx.x / TILE; r < TILE; r += THREADS / TILE) {
        const bool inside = first_row + r < rows && first_column + lane < columns;
        turning[r][lane] = inside ? from[(first_row + r) * FROM + first_column + lane] : narrow(0.0f);
    }
    __syncthreads();
    for (unsigned c = threadIdx.x / TILE; c < TILE; c += THREADS / TILE) {
        if (first_column + c < columns && first_row + lane < TO) {
            to[(first_column + c) * TO + first_row + lane] = turning[lane][c];
        }
    }
}
