// What is left to do with the f32 sums of a product: with INPUTS 2 they are only rounded, with 4 each is multiplied by the
// scales of its row and its column, and with 5 it is then added to a number of `added`. Rounded as it is written here,
// without fused multiply-adds.
//
// A thread takes WIDTH sums of one row; THREADS threads follow each other along it.
// Traffic: the sums, what is added and the result once: 6 bytes a number in 16 bits without what is added. Roofline: the
// memory's, or the L2 cache's where the sums of the product before are still in it.
#include "element.cuh"

struct __align__(WIDTH * sizeof(float)) floats {
    float parts[WIDTH];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const floats *__restrict__ sums,
#if INPUTS >= 4
           const float *__restrict__ row_scales, const floats *__restrict__ column_scales,
#endif
#if INPUTS >= 5
           const floats *__restrict__ added,
#endif
           piece *__restrict__ y, u64 rows, u64 columns) {
    const unsigned pieces = columns / WIDTH;
    const unsigned blocks_of_row = (pieces + THREADS - 1) / THREADS;
    const unsigned at = blockIdx.x % blocks_of_row * THREADS + threadIdx.x;
    const u64 row = blockIdx.x / blocks_of_row;
    if (at >= pieces || row >= rows) return;

    floats values = sums[row * pieces + at];
#if INPUTS >= 5
    const floats of_added = added[row * pieces + at];
#endif
#if INPUTS >= 4
    const float row_scale = row_scales[row];
    const floats of_columns = column_scales[at];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        values.parts[i] = __fmul_rn(values.parts[i], __fmul_rn(row_scale, of_columns.parts[i]));
#if INPUTS >= 5
        values.parts[i] = __fadd_rn(of_added.parts[i], values.parts[i]);
#endif
    }
#endif
    piece result;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) result.parts[i] = narrow(values.parts[i]);
    y[row * pieces + at] = result;
}
