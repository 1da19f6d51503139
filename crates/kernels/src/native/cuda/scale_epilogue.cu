// Epilogue of a float8 GEMM with f32 sums: y[rows, columns] = sums, or sums * (row_scale * column_scale), or addend +
// sums * (row_scale * column_scale), in dtype `element`. Each operation is rounded separately (no fused multiply-add),
// to reproduce the unfused reference bit by bit.
//
// Algorithm: element-wise; a thread processes WIDTH columns of one row, THREADS threads follow each other along the
// row. Traffic: sums, addend and y once: 6 bytes per element with 16-bit y and without addend. Roofline: memory
// bandwidth, or L2 bandwidth if the sums are still cached.
//
// Parameters:
//   KERNEL     name of the kernel
//   ELEMENT_*  dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH      columns per access: 4 or 1 (checked in element.cuh)
//   THREADS    threads per block
//   INPUTS     2 to convert only, 4 to apply scales, 5 to apply scales and add the f32 addend

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef INPUTS
#error "INPUTS: 2 to convert only, 4 to apply scales, 5 to apply scales and add the f32 addend"
#endif

#include "element.cuh"

struct __align__(WIDTH * sizeof(float)) float_vec {
    float val[WIDTH];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const float_vec *__restrict__ sums,
#if INPUTS >= 4
           const float *__restrict__ row_scales, const float_vec *__restrict__ column_scales,
#endif
#if INPUTS >= 5
           const float_vec *__restrict__ addend,
#endif
           vec *__restrict__ y, u64 rows, u64 columns) {
    const unsigned row_vectors = columns / WIDTH;
    const unsigned row_blocks = (row_vectors + THREADS - 1) / THREADS;
    const unsigned vector = blockIdx.x % row_blocks * THREADS + threadIdx.x;
    const u64 row = blockIdx.x / row_blocks;
    if (vector >= row_vectors || row >= rows) return;

    float_vec values = sums[row * row_vectors + vector];
#if INPUTS >= 5
    const float_vec addends = addend[row * row_vectors + vector];
#endif
#if INPUTS >= 4
    const float row_scale = row_scales[row];
    const float_vec column_factors = column_scales[vector];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        values.val[i] = __fmul_rn(values.val[i], __fmul_rn(row_scale, column_factors.val[i]));
#if INPUTS >= 5
        values.val[i] = __fadd_rn(addends.val[i], values.val[i]);
#endif
    }
#endif
    vec result;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) result.val[i] = narrow(values.val[i]);
    y[row * row_vectors + vector] = result;
}
