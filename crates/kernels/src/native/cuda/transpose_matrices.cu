// Batched transposition y[b, column, row] = x[b, row, column]. A row of x has X_STRIDE elements in memory, a row of y
// has Y_STRIDE; elements of y beyond the transpose become zero.
//
// Algorithm: a block transposes a 32 x 32 tile in padded shared memory (NVIDIA, "An Efficient Matrix Transpose in CUDA
// C/C++"). Traffic: x and y once. Roofline: memory bandwidth; not optimized, since it runs outside of timed regions.
//
// Parameters:
//   KERNEL     name of the kernel
//   ELEMENT_*  dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH      any value; required by element.cuh
//   THREADS    threads per block
//   X_STRIDE   elements per row of x
//   Y_STRIDE   elements per row of y

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef X_STRIDE
#error "X_STRIDE: elements per row of x"
#endif
#ifndef Y_STRIDE
#error "Y_STRIDE: elements per row of y"
#endif

#include "element.cuh"

constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const element *__restrict__ x, element *__restrict__ y, u64 rows, u64 columns) {
    // One padding column, so that neither direction has bank conflicts.
    __shared__ element smem_tile[TILE][TILE + 1];
    const unsigned tiles_m = (Y_STRIDE + TILE - 1) / TILE, tiles_n = ((unsigned)columns + TILE - 1) / TILE;
    const u64 matrix = blockIdx.x / (tiles_m * tiles_n);
    const unsigned tile = blockIdx.x % (tiles_m * tiles_n);
    const u64 first_row = (u64)(tile % tiles_m) * TILE, first_column = (u64)(tile / tiles_m) * TILE;
    const unsigned lane = threadIdx.x % TILE;
    const element *const source = x + matrix * rows * X_STRIDE;
    element *const destination = y + matrix * columns * Y_STRIDE;
    for (unsigned r = threadIdx.x / TILE; r < TILE; r += THREADS / TILE) {
        const bool in_range = first_row + r < rows && first_column + lane < columns;
        smem_tile[r][lane] = in_range ? source[(first_row + r) * X_STRIDE + first_column + lane] : narrow(0.0f);
    }
    __syncthreads();
    for (unsigned c = threadIdx.x / TILE; c < TILE; c += THREADS / TILE) {
        if (first_column + c < columns && first_row + lane < Y_STRIDE) {
            destination[(first_column + c) * Y_STRIDE + first_row + lane] = smem_tile[lane][c];
        }
    }
}
