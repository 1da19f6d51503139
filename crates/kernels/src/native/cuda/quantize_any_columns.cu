// e4m3 codes of the transpose of bf16, and one scale for each column; with SCALE defined, codes by that scale, which is
// the only one. For any shape: a block takes 32 columns, reads them once for their scales and once more for the codes.
//
// A tile of 32 rows turns in shared memory. A block has a warp for each row of it.
// Traffic: x once and once more, which may come from a cache, and the codes once: 3 to 5 bytes a number. Roofline: the
// memory's.
#include "e4m3.cuh"

constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(TILE * TILE)
    KERNEL(const bf16 *__restrict__ x, unsigned char *__restrict__ codes, float *__restrict__ scales, u64 rows,
           u64 columns) {
    // A row more, so that neither direction asks one bank twice.
    __shared__ unsigned turning[TILE][TILE + 1];
    const u64 panel = (u64)blockIdx.x * TILE;
    const u64 column = panel + threadIdx.x;

#ifdef SCALE
    const float inverse = 1.0f / SCALE;
    if (blockIdx.x == 0 && threadIdx.x == 0 && threadIdx.y == 0) scales[0] = SCALE;
#else
    unsigned largest = 0;
    if (column < columns) {
        for (u64 row = threadIdx.y; row < rows; row += TILE) largest = larger(largest, x[row * columns + column]);
    }
    turning[threadIdx.y][threadIdx.x] = largest;
    __syncthreads();
    for (int y = 0; y < TILE; y++) largest = max(largest, turning[y][threadIdx.x]);
    const float scale = scale_of(largest);
    const float inverse = inverse_of(scale);
    if (column < columns && threadIdx.y == 0) scales[column] = scale;
#endif

    for (u64 first = 0; first < rows; first += TILE) {
        __syncthreads();
        const u64 row = first + threadIdx.y;
        if (row < rows && column < columns) {
            turning[threadIdx.y][threadIdx.x] = codes_of(lower(x[row * columns + column]) * inverse, 0.0f);
        }
        __syncthreads();
        if (first + threadIdx.x < rows && panel + threadIdx.y < columns) {
            codes[(panel + threadIdx.y) * rows + first + threadIdx.x] = turning[threadIdx.x][threadIdx.y];
        }
    }
}
