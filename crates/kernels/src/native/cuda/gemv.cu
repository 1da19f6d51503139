// y[BLOCK_M, n] = x[BLOCK_M, K] w[n, K]^T [* tensor-wide scales] [+ addend[BLOCK_M, n]] for one to four rows of x: a
// matrix-vector product (GEMV) per row. x is row-major in dtype `element`. w is row-major in dtype `element`
// (UNQUANTIZED) or packed (packed_weight.cuh). y and the addend have the output dtype. Sums are f32.
//
// Algorithm: memory-bound GEMV. A block computes ROWS elements of each row of y. Its WARPS warps split K. A warp loads 32
// adjacent vectors of a weight row, one per lane, i.e. 512 bytes of one DRAM page per access. Many small blocks start
// and end at different times, so that loads of some blocks overlap the reductions of others.
//
// With TENSOR_CORES, the rows of an mma fragment are eight segments of one weight row, the vectors of a quad each, and
// the columns are the same segments of a row of x. Only the diagonal of the result is used. Seven eighths of the
// multiplications are wasted, but one mma replaces the conversions and the multiply-adds of eight values per lane.
//
//     lane 4 g + t:  vector 4 g + t of weight rows r and r + 1, and of x
//
//                               column 0      column 1            column 7
//                               segment 0     segment 1   ...     segment 7 of x
//     row 0   segment 0 of r    partial sum   unused              unused
//     row 1   segment 1 of r    unused        partial sum         unused
//     ...
//     row 8   segment 0 of r+1  partial sum   unused              unused
//
//     Lane 4 g + t holds columns 2 t and 2 t + 1 of rows g and g + 8, so the diagonal is in the lanes with t = g / 2.
//
// Traffic: w once; x once per block, mostly from L1. Roofline: bytes of w over memory bandwidth. A launch of less than
// 20 MB is bound by latency: about 2 us for launch, first load and reduction. Times: docs/design/gemm_kernels.md.
//
// Parameters:
//   KERNEL                   name of the kernel
//   ELEMENT_*                dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH                    elements of x per load: those of 16 bytes, or 1 (checked in element.cuh)
//   TENSOR_CORES             1 for mma.m16n8k16; 0 for f32 fma, only with UNQUANTIZED (checked in weight_vectors.cuh)
//   BLOCK_M                  rows of x
//   ROWS                     weight rows per block; even with TENSOR_CORES
//   WARPS                    warps per block
//   VECTORS_IN_FLIGHT        vectors of each weight row that a thread loads before use
//   TENSOR_SCALES            optional: y is multiplied by tensor-wide scales of w and x
//   INPUT_SCALES             optional: each row of y is multiplied by the scale of the row of x
//   ADDEND                   optional: an addend is added to y
//   OUTPUT_F32               optional: y and addend are f32
//   OUTPUT_F16               optional: y and addend are f16; by default they have dtype `element`
//   ...                      all parameters of weight_vectors.cuh

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef BLOCK_M
#error "BLOCK_M: rows of x"
#endif
#ifndef ROWS
#error "ROWS: weight rows per block"
#endif
#ifndef WARPS
#error "WARPS: warps per block"
#endif
#ifndef VECTORS_IN_FLIGHT
#error "VECTORS_IN_FLIGHT: vectors of each weight row that a thread loads before use"
#endif

#include "element.cuh"
#include "output_dtype.cuh"
#include "weight_vectors.cuh"

#if !TENSOR_CORES && !defined(UNQUANTIZED)
#error "UNQUANTIZED: required without TENSOR_CORES"
#endif

constexpr unsigned STEP = 32 * WARPS * VECTORS_IN_FLIGHT;
// NO_TAIL: all vectors that threads load exist. NO_X_TAIL: all their elements are within K.
constexpr bool NO_TAIL = ROW_VECTORS % STEP == 0;
constexpr bool NO_X_TAIL = NO_TAIL && K % VECTOR_VALUES == 0;

#if defined(UNQUANTIZED)
typedef element stored_weight;
constexpr u64 ROW_LENGTH = K;
#else
typedef unsigned stored_weight;
constexpr u64 ROW_LENGTH = ROW_WORDS;
#endif

// Loads vector `vector` of a weight row.
__device__ __forceinline__ void load_row_vector(const stored_weight *row, unsigned vector, weight_vector &words) {
#if !defined(UNQUANTIZED)
    load_weights(row + vector * VECTOR_WORDS, words);
#elif WIDTH > 1
    load_weights(reinterpret_cast<const unsigned *>(row) + vector * VECTOR_WORDS, words);
#else
    load_x<false>(row + vector * VECTOR_VALUES, vector * VECTOR_VALUES, words);
#endif
}

// Element of the diagonal for weight row `row` of a pair, in the lanes with t = g / 2.
__device__ __forceinline__ float diagonal(const float (&fragment)[4], int row) {
    return threadIdx.x / 4 % 2 ? fragment[2 * row + 1] : fragment[2 * row];
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    KERNEL(const element *__restrict__ x, const stored_weight *__restrict__ w,
#if !defined(UNQUANTIZED)
           const stored_scale *__restrict__ scales,
#if defined(HAS_ZERO_POINTS)
           const stored_zero *__restrict__ zeros,
#endif
#endif
#ifdef TENSOR_SCALES
           const float *__restrict__ weight_tensor_scale, const float *__restrict__ x_tensor_scale,
#endif
#ifdef INPUT_SCALES
           const float *__restrict__ input_scales,
#endif
#ifdef ADDEND
           const output *__restrict__ addend,
#endif
           output *__restrict__ y, u64 m, u64 n) {
    __shared__ float warp_sums[WARPS][BLOCK_M * ROWS];

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u64 first_n = (u64)blockIdx.x * ROWS;

    // Rows beyond the last are clamped to it; their results are not stored.
    const stored_weight *rows[ROWS];
#if !defined(UNQUANTIZED)
    u64 first_group[ROWS];
#endif
#pragma unroll
    for (int h = 0; h < ROWS; h++) {
        const u64 row = first_n + h < n ? first_n + h : n - 1;
        rows[h] = w + row * ROW_LENGTH;
#if !defined(UNQUANTIZED)
        first_group[h] = row * GROUPS;
#endif
    }

#if TENSOR_CORES
    float fragments[ROWS / 2][BLOCK_M][4] = {};
#endif
#if !TENSOR_CORES || defined(SCALE_SUMS)
    float sums[ROWS][BLOCK_M] = {};
#endif

#pragma unroll 1
    for (unsigned first = warp * 32 * VECTORS_IN_FLIGHT + lane; first - lane < ROW_VECTORS; first += STEP) {
        // All loads are issued before the first use, without branches. Values beyond K meet zeros of x.
        weight_vector weights[VECTORS_IN_FLIGHT][ROWS];
#if !defined(UNQUANTIZED)
        vector_scales group_scales[VECTORS_IN_FLIGHT][ROWS];
#endif
#pragma unroll
        for (int f = 0; f < VECTORS_IN_FLIGHT; f++) {
            const unsigned vector = first + 32 * f, clamped = NO_TAIL || vector < ROW_VECTORS ? vector : ROW_VECTORS - 1;
#pragma unroll
            for (int h = 0; h < ROWS; h++) {
                load_row_vector(rows[h], clamped, weights[f][h]);
#if defined(GROUP_SIZE)
#pragma unroll
                for (int s = 0; s < (int)VECTOR_SCALES; s++) {
                    const u64 group = first_group[h] + group_of(clamped * VECTOR_VALUES + s * SCALE_SPAN);
                    group_scales[f][h].scales[s] = __ldg(scales + group);
#if defined(HAS_ZERO_POINTS)
                    group_scales[f][h].zeros[s] = load_zero(zeros, group);
#endif
                }
#endif
            }
        }
#pragma unroll
        for (int f = 0; f < VECTORS_IN_FLIGHT; f++) {
            const unsigned vector = first + 32 * f, clamped = NO_TAIL || vector < ROW_VECTORS ? vector : ROW_VECTORS - 1;
            unsigned x_words[BLOCK_M][X_WORDS];
#pragma unroll
            for (int c = 0; c < BLOCK_M; c++) {
                load_x<NO_X_TAIL>(x + (u64)c * K + vector * VECTOR_VALUES, vector * VECTOR_VALUES, x_words[c]);
            }
#if TENSOR_CORES
            unsigned pairs[BLOCK_M][VECTOR_PAIRS];
#pragma unroll
            for (int c = 0; c < BLOCK_M; c++) reorder(x_words[c], pairs[c]);
#endif
#if defined(SCALE_SUMS)
            float x_sums[BLOCK_M];
#pragma unroll
            for (int c = 0; c < BLOCK_M; c++) {
                float fragment[4] = {};
#pragma unroll
                for (int p = 0; p < VECTOR_PAIRS; p += 2) {
                    mma_m16n8k16(fragment, ONES, ONES, ONES, ONES, pairs[c][p], pairs[c][p + 1]);
                }
                x_sums[c] = diagonal(fragment, 0);
            }
#endif
#pragma unroll
            for (int a = 0; a < ROWS; a += TENSOR_CORES ? 2 : 1) {
#if TENSOR_CORES
                vector_values values[2];
#pragma unroll
                for (int h = 0; h < 2; h++) {
#if defined(UNQUANTIZED)
#pragma unroll
                    for (int p = 0; p < VECTOR_PAIRS; p++) values[h][p] = weights[f][a + h][p];
#else
                    dequantize(weights[f][a + h], group_scales[f][a + h], first_group[a + h], clamped, values[h]);
#endif
                }
#pragma unroll
                for (int c = 0; c < BLOCK_M; c++) {
#if defined(SCALE_SUMS)
                    float biased_sums[4] = {};
#pragma unroll
                    for (int p = 0; p < VECTOR_PAIRS; p += 2) mma_pairs(biased_sums, values[0], values[1], pairs[c], p);
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        float scale, offset;
                        sum_factors(group_scales[f][a + h], first_group[a + h], clamped, scale, offset);
                        float &sum = sums[a + h][c];
                        sum = fmaf(scale, diagonal(biased_sums, h), fmaf(offset, x_sums[c], sum));
                    }
#else
                    float(&fragment)[4] = fragments[a / 2][c];
#pragma unroll
                    for (int p = 0; p < VECTOR_PAIRS; p += 2) mma_pairs(fragment, values[0], values[1], pairs[c], p);
#endif
                }
#else
#pragma unroll
                for (int c = 0; c < BLOCK_M; c++) {
#pragma unroll
                    for (int i = 0; i < VECTOR_VALUES; i++) {
                        sums[a][c] = fmaf(x_value(weights[f][a], i), x_value(x_words[c], i), sums[a][c]);
                    }
                }
#endif
            }
        }
    }

#pragma unroll
    for (int h = 0; h < ROWS; h++) {
#pragma unroll
        for (int c = 0; c < BLOCK_M; c++) {
#if !TENSOR_CORES
            float sum = sums[h][c];
#else
#if defined(SCALE_SUMS)
            const float partial_sum = sums[h][c];
#else
            const float partial_sum = diagonal(fragments[h / 2][c], h % 2);
#endif
            // In other lanes, the elements are not on the diagonal.
            float sum = lane % 4 == lane / 8 ? partial_sum : 0.0f;
#endif
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
            if (lane == 0) warp_sums[warp][c * ROWS + h] = sum;
        }
    }
    __syncthreads();

    for (int index = threadIdx.x; index < BLOCK_M * ROWS; index += 32 * WARPS) {
        const u64 n_index = first_n + index % ROWS;
        const int m_index = index / ROWS;
        if (n_index >= n) continue;
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < WARPS; i++) sum += warp_sums[i][index];
#if !defined(UNQUANTIZED) && !defined(GROUP_SIZE)
        sum *= SCALE_DTYPE::to_float(scales[n_index]);
#endif
#ifdef TENSOR_SCALES
        sum *= *weight_tensor_scale * *x_tensor_scale;
#endif
#ifdef INPUT_SCALES
        sum *= input_scales[m_index];
#endif
#ifdef ADDEND
        sum += from_output(addend[m_index * n + n_index]);
#endif
        y[m_index * n + n_index] = to_output(sum);
    }
}
