// Column-wise e4m3 quantization of bf16 with transposed output for any shape: one scale per column, or one static
// scale.
//
// Contract: x[rows, columns], bf16, row-major -> quantized[columns, rows], e4m3; scales[columns], f32 (scales[1] if
// static). Bit-identical to quantize_columns.cu.
//
// One block of 32 x 32 threads per 32 columns: pass 1 computes amax, pass 2 quantizes tiles of 32 x 32 elements and
// transposes them in shared memory, padded to 33 words per row to avoid bank conflicts:
//   write tile[ty][tx] = q(x[first + ty][panel + tx]),  read tile[tx][ty] -> quantized[panel + ty][first + tx]
//
// Traffic: x twice, the second time possibly from cache, and the quantized values once: 3 to 5 bytes per element.
// Roofline: memory.
//
// Parameters:
//   KERNEL        kernel name
// Optional:
//   STATIC_SCALE  float; replaces the scales of amax

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif

#include "e4m3.cuh"

constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(TILE * TILE)
    KERNEL(const bf16 *__restrict__ x, unsigned char *__restrict__ quantized, float *__restrict__ scales, u64 rows,
           u64 columns) {
    // One word of padding per row, so that neither direction has bank conflicts.
    __shared__ unsigned tile[TILE][TILE + 1];
    const u64 panel = (u64)blockIdx.x * TILE;
    const u64 column = panel + threadIdx.x;

#ifdef STATIC_SCALE
    const float inverse = 1.0f / STATIC_SCALE;
    if (blockIdx.x == 0 && threadIdx.x == 0 && threadIdx.y == 0) scales[0] = STATIC_SCALE;
#else
    unsigned amax = 0;
    if (column < columns) {
        for (u64 row = threadIdx.y; row < rows; row += TILE) amax = max_magnitude(amax, x[row * columns + column]);
    }
    tile[threadIdx.y][threadIdx.x] = amax;
    __syncthreads();
    for (int y = 0; y < TILE; y++) amax = max(amax, tile[y][threadIdx.x]);
    const float scale = scale_from_amax(amax);
    const float inverse = reciprocal(scale);
    if (column < columns && threadIdx.y == 0) scales[column] = scale;
#endif

    for (u64 first = 0; first < rows; first += TILE) {
        __syncthreads();
        const u64 row = first + threadIdx.y;
        if (row < rows && column < columns) {
            tile[threadIdx.y][threadIdx.x] = to_e4m3(bf16x2_low(x[row * columns + column]) * inverse, 0.0f);
        }
        __syncthreads();
        if (first + threadIdx.x < rows && panel + threadIdx.y < columns) {
            quantized[(panel + threadIdx.y) * rows + first + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
        }
    }
}
