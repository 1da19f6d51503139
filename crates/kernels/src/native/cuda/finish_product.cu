// From the sums of codes to the output: sums[rows, STRIDE] -> times the scales of row and column -> [activation] ->
// [plus added[rows, columns]] -> y[rows, columns]. Sums of CODES_INT8 are s32 and the scales of columns of the element type,
// unless they are COLUMNS_IN_F32; both are f32 otherwise. With TENSOR there is one scale for all rows and one for all columns.
// Rounded once, at the end.
//
// Traffic: 4 bytes read and an element written for each sum; 4096 x 4096 to bf16 are 101 MB, 23 us at the 4.3 TB/s that a
// copy reaches on an H200. `byte_product.cu` needs none of it, on Hopper; cuBLASLt has no such epilogue for s32.
//
// Roofline: memory. A thread takes WIDTH columns of ROWS rows, so that ROWS loads are in flight; blocks run from the end
// of the sums to their beginning, because the last written are those that the cache still has.
#include "activations.cuh"
#include "element.cuh"

#ifdef CODES_INT8
typedef int sum;
#else
typedef float sum;
#endif

#if defined(CODES_INT8) && !defined(COLUMNS_IN_F32)
typedef element column_scale;
__device__ __forceinline__ float wide(column_scale scale) { return widen(scale); }
#else
typedef float column_scale;
__device__ __forceinline__ float wide(column_scale scale) { return scale; }
#endif

struct __align__(WIDTH * sizeof(sum)) sums_piece {
    sum parts[WIDTH];
};

struct __align__(WIDTH * sizeof(column_scale)) scales_piece {
    column_scale parts[WIDTH];
};

#if WIDTH == 4
__device__ __forceinline__ sums_piece read(const sums_piece *at) {
    const uint4 words = __ldcs(reinterpret_cast<const uint4 *>(at));
    return *reinterpret_cast<const sums_piece *>(&words);
}
#else
__device__ __forceinline__ sums_piece read(const sums_piece *at) { return *at; }
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const sums_piece *__restrict__ sums, const float *__restrict__ row_scales,
           const column_scale *__restrict__ column_scales,
#ifdef ADDED
           const piece *__restrict__ added,
#endif
           piece *__restrict__ y, u64 rows, u64 columns) {
    const unsigned pieces = columns / WIDTH;
    const unsigned blocks_of_row = (pieces + THREADS - 1) / THREADS;
    const unsigned block = gridDim.x - 1 - blockIdx.x;
    const unsigned at = block % blocks_of_row * THREADS + threadIdx.x;
    const u64 first = (u64)(block / blocks_of_row) * ROWS;
    if (at >= pieces) return;

    sums_piece found[ROWS];
#ifdef ADDED
    piece addends[ROWS];
#endif
    float of_rows[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (first + r < rows) {
            found[r] = read(sums + (first + r) * (STRIDE / WIDTH) + at);
#ifdef ADDED
            addends[r] = added[(first + r) * pieces + at];
#endif
#ifdef TENSOR
            of_rows[r] = row_scales[0];
#else
            of_rows[r] = row_scales[first + r];
#endif
        }
    }
    float of_columns[WIDTH];
#ifdef TENSOR
#pragma unroll
    for (int i = 0; i < WIDTH; i++) of_columns[i] = wide(column_scales[0]);
#else
    const scales_piece scales = reinterpret_cast<const scales_piece *>(column_scales)[at];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) of_columns[i] = wide(scales.parts[i]);
#endif
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (first + r < rows) {
            piece result;
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                float number = (float)found[r].parts[i] * of_rows[r] * of_columns[i];
#ifdef ACTIVATE
                number = ACTIVATE(number);
#endif
#ifdef ADDED
                number += widen(addends[r].parts[i]);
#endif
                result.parts[i] = narrow(number);
            }
            y[(first + r) * pieces + at] = result;
        }
    }
}
