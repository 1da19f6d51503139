// y[column] = the sum of x[row, column] over all rows, added up in f32 and rounded once.
//
// A block is 32 threads, one for each of 32 columns, times SLICES slices of the rows, whose sums are then added up.
// Traffic: x once. It is bound by memory, or where there is little of it by the few accesses that one thread waits for.
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
