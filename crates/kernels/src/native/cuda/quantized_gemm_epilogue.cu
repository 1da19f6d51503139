// Epilogue of a quantized GEMM: y[rows, columns] = f(sums[rows, STRIDE] * row_scale * column_scale) [+ addend[rows,
// columns]], rounded once. Sums are s32 for QUANT_INT8, f32 otherwise. Column scales have dtype `element` for
// QUANT_INT8 without COLUMN_SCALES_F32, and f32 otherwise; row scales are f32.
//
// Algorithm: element-wise, after a cuBLASLt GEMM with s32 output, for which cuBLASLt has no scaling epilogue (cuBLASLt
// documentation, cublasLtMatmul, table of supported types). A thread processes WIDTH columns of ROWS_PER_THREAD rows,
// so that ROWS_PER_THREAD loads are in flight. Blocks run from the end of the sums to their beginning, since the sums
// written last are still in L2.
//
//     thread t:   columns WIDTH t .. WIDTH t + WIDTH - 1 of rows r, r + 1, ..., r + ROWS_PER_THREAD - 1
//
// Traffic: 4 bytes read and one element written per sum, 101 MB for 4096 x 4096 to bf16. Roofline: memory bandwidth; 23
// us at the copy bandwidth of an H200, 4.3 TB/s. int8_fp8_gemm.cu needs no such pass.
//
// Parameters:
//   KERNEL             name of the kernel
//   ELEMENT_*          dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH              columns per access: 4 or 1 (checked in element.cuh)
//   THREADS            threads per block
//   ROWS_PER_THREAD    rows per thread
//   STRIDE             row length of the sums, a multiple of 4
//   QUANT_INT8         optional: sums are s32; f32 by default
//   COLUMN_SCALES_F32  optional: column scales are f32 also for QUANT_INT8
//   PER_TENSOR         optional: one scale per tensor instead of one per row and column
//   ACTIVATE           optional: activation of activations.cuh, applied after the scales
//   ADDEND             optional: an addend is added to y, after the activation

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef ROWS_PER_THREAD
#error "ROWS_PER_THREAD: rows per thread"
#endif
#ifndef STRIDE
#error "STRIDE: row length of the sums, a multiple of 4"
#endif

#include "activations.cuh"
#include "element.cuh"

#ifdef QUANT_INT8
typedef int accumulator;
#else
typedef float accumulator;
#endif

#if defined(QUANT_INT8) && !defined(COLUMN_SCALES_F32)
typedef element column_scale;
__device__ __forceinline__ float to_f32(column_scale scale) { return widen(scale); }
#else
typedef float column_scale;
__device__ __forceinline__ float to_f32(column_scale scale) { return scale; }
#endif

struct __align__(WIDTH * sizeof(accumulator)) sums_vec {
    accumulator val[WIDTH];
};

struct __align__(WIDTH * sizeof(column_scale)) scales_vec {
    column_scale val[WIDTH];
};

#if WIDTH == 4
__device__ __forceinline__ sums_vec load_sums(const sums_vec *source) {
    const uint4 words = __ldcs(reinterpret_cast<const uint4 *>(source));
    return *reinterpret_cast<const sums_vec *>(&words);
}
#else
__device__ __forceinline__ sums_vec load_sums(const sums_vec *source) { return *source; }
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const sums_vec *__restrict__ sums, const float *__restrict__ row_scales,
           const column_scale *__restrict__ column_scales,
#ifdef ADDEND
           const vec *__restrict__ addend,
#endif
           vec *__restrict__ y, u64 rows, u64 columns) {
    const unsigned row_vectors = columns / WIDTH;
    const unsigned row_blocks = (row_vectors + THREADS - 1) / THREADS;
    const unsigned block = gridDim.x - 1 - blockIdx.x;
    const unsigned vector = block % row_blocks * THREADS + threadIdx.x;
    const u64 first_row = (u64)(block / row_blocks) * ROWS_PER_THREAD;
    if (vector >= row_vectors) return;

    sums_vec row_sums[ROWS_PER_THREAD];
#ifdef ADDEND
    vec addends[ROWS_PER_THREAD];
#endif
    float row_factors[ROWS_PER_THREAD];
#pragma unroll
    for (int r = 0; r < ROWS_PER_THREAD; r++) {
        if (first_row + r < rows) {
            row_sums[r] = load_sums(sums + (first_row + r) * (STRIDE / WIDTH) + vector);
#ifdef ADDEND
            addends[r] = addend[(first_row + r) * row_vectors + vector];
#endif
#ifdef PER_TENSOR
            row_factors[r] = row_scales[0];
#else
            row_factors[r] = row_scales[first_row + r];
#endif
        }
    }
    float column_factors[WIDTH];
#ifdef PER_TENSOR
#pragma unroll
    for (int i = 0; i < WIDTH; i++) column_factors[i] = to_f32(column_scales[0]);
#else
    const scales_vec scales = reinterpret_cast<const scales_vec *>(column_scales)[vector];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) column_factors[i] = to_f32(scales.val[i]);
#endif
#pragma unroll
    for (int r = 0; r < ROWS_PER_THREAD; r++) {
        if (first_row + r < rows) {
            vec result;
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                float value = (float)row_sums[r].val[i] * row_factors[r] * column_factors[i];
#ifdef ACTIVATE
                value = ACTIVATE(value);
#endif
#ifdef ADDEND
                value += widen(addends[r].val[i]);
#endif
                result.val[i] = narrow(value);
            }
            y[(first_row + r) * row_vectors + vector] = result;
        }
    }
}
