// Column sums: y[column] = sum over rows of x[row, column], accumulated in f32 in a fixed order and rounded once.
//
// Contract: x[rows, columns], f32, row-major; y[columns], element dtype.
//
// blockDim = (32, SLICES): one thread per column and slice; slice s adds rows s, s + SLICES, ...; the first slice adds
// the partial sums of all slices from shared memory.
//
// Traffic: x once. Roofline: memory, or for few rows the latency of the loads of one thread.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH   elements per vector access (element.cuh)
//   KERNEL  kernel name
//   SLICES  row slices per block

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef SLICES
#error "SLICES: row slices per block"
#endif

#include "element.cuh"

extern "C" __global__ void __launch_bounds__(32 * SLICES)
    KERNEL(const float *__restrict__ x, element *__restrict__ y, u64 rows, u64 columns) {
    __shared__ float sums[SLICES][32];
    const u64 column = (u64)blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    if (column < columns) {
#pragma unroll 4
        for (u64 row = threadIdx.y; row < rows; row += SLICES) sum += x[row * columns + column];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= columns) return;
    float total = 0.0f;
#pragma unroll
    for (int slice = 0; slice < SLICES; slice++) total += sums[slice][threadIdx.x];
    y[column] = narrow(total);
}
