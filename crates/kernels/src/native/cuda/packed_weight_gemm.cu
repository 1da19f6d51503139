// y[m, n] = x[m, K] w[n, K]^T [* tensor-wide scales] [+ addend[m, n]] for few rows of x and a packed weight,
// dequantized in registers. x is row-major in dtype `element`, w is packed (packed_weight.cuh), y and the addend have
// the output dtype.
//
// Algorithm: weight-only quantized GEMM with split-K, as in Marlin (Frantar et al., 2024) and tinygemm: no dequantized
// weight is written to memory. Each warp streams 16 FRAGMENTS_N weight rows. A chunk is four vectors of VECTOR_WORDS
// words (32 values, or 16 bytes), one per thread of a quad; CHUNKS_IN_FLIGHT adjacent chunks are loaded before the
// first is used. With TENSOR_CORES the values become pairs of dtype `element` for mma.m16n8k16 (PTX ISA, "Matrix
// Fragments for mma.m16n8k16"; map in mma16.cuh). Otherwise f32 fma is used. All sums are f32.
//
//     lane 4 g + t of a warp, one chunk of weight rows g and g + 8, and of row g of x:
//
//                  vector 0   vector 1   vector 2   vector 3        mma p (p = 0, 2, ...) of the chunk:
//     row 0        lane 0     lane 1     lane 2     lane 3            A k slots 2t, 2t+1:    pair p of vector t
//     ...                                                             A k slots 2t+8, 2t+9:  pair p + 1 of vector t
//     row 7        lane 28    lane 29    lane 30    lane 31           B: same pairs of x, so k is permuted alike
//     row 8        lane 0     lane 1     lane 2     lane 3
//
//     block: WARPS_N groups along n, each of WARPS_K warps along k; grid: output tiles x SPLIT_K
//
// Traffic: w once per BLOCK_M rows of x; x from L2 once per block, i.e. n / BLOCK_N times; with SPLIT_K > 1 also 8 m n
// SPLIT_K bytes of partial sums. Roofline: bytes of w over memory bandwidth, if dequantization keeps up: at 4.8 TB/s,
// 132 SMs at 1.8 GHz can issue 3.2 instructions per 4-bit value and 1.6 per 2-bit value. Instruction counts:
// docs/design/gemm_kernels.md.
//
// Parameters:
//   KERNEL                   name of the kernel
//   ELEMENT_*                dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH                    elements of x per load: those of 16 bytes, or 1 (checked in element.cuh)
//   TENSOR_CORES             1 for mma.m16n8k16, 0 for f32 fma (checked in weight_vectors.cuh)
//   SCALE_PAIRS              1 if the dtype `element` represents scales and zero points exactly (checked there)
//   VECTOR_WORDS             words of w per thread and chunk: 32 values, or 16 bytes for 8-bit values (checked there)
//   BLOCK_M                  rows of x per block; a multiple of 8 with TENSOR_CORES
//   WARPS_K                  warps of a group, which split k
//   WARPS_N                  warp groups per block along n
//   FRAGMENTS_N              fragments of 16 weight rows per warp; 1 without TENSOR_CORES
//   SPLIT_K                  blocks that split k
//   CHUNKS_IN_FLIGHT         adjacent chunks that a thread loads before use
//   MIN_BLOCKS               resident blocks per multiprocessor (launch bounds)
//   N_IS_MULTIPLE            1 if n is a multiple of the weight rows per block
//   TENSOR_SCALES            optional: y is multiplied by tensor-wide scales of w and x
//   INPUT_SCALES             optional: each row of y is multiplied by the scale of the row of x
//   ADDEND                   optional: an addend is added to y
//   OUTPUT_F32               optional: y and addend are f32
//   OUTPUT_F16               optional: y and addend are f16; by default they have dtype `element`
//   K                        reduction size: elements of a weight row (checked in weight_vectors.cuh)
//   BITS                     bits of a quantized value, 1 to 8
//   SIGNED_VALUES            defined if the values are signed integers
//   UNSIGNED_VALUES          defined if the values are unsigned integers
//   MANTISSA_BITS            defined if the values are small floats: bits of the mantissa
//   EXPONENT_BIAS            exponent bias of small floats
//   GROUP_SIZE               optional: elements of a row that share a scale; by default one scale per row
//   SCALE_DTYPE              stored_f32, stored_f16, stored_bf16, stored_e8m0 or stored_e4m3
//   ZERO_POINT_BEFORE_SCALE  optional: zero points in units of the quantized values
//   ZERO_POINT_AFTER_SCALE   optional: zero points in units of the dequantized values
//   ZERO_POINT_DTYPE         dtype of float zero points, as SCALE_DTYPE
//   ZERO_POINT_BITS          bits of packed integer zero points

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef BLOCK_M
#error "BLOCK_M: rows of x per block"
#endif
#ifndef WARPS_K
#error "WARPS_K: warps of a group, which split k"
#endif
#ifndef WARPS_N
#error "WARPS_N: warp groups per block along n"
#endif
#ifndef FRAGMENTS_N
#error "FRAGMENTS_N: fragments of 16 weight rows per warp"
#endif
#ifndef SPLIT_K
#error "SPLIT_K: blocks that split k"
#endif
#ifndef CHUNKS_IN_FLIGHT
#error "CHUNKS_IN_FLIGHT: adjacent chunks that a thread loads before use"
#endif
#ifndef MIN_BLOCKS
#error "MIN_BLOCKS: resident blocks per multiprocessor (launch bounds)"
#endif
#ifndef N_IS_MULTIPLE
#error "N_IS_MULTIPLE: 1 if n is a multiple of the weight rows per block"
#endif

#include "element.cuh"
#include "output_dtype.cuh"
#include "split_k.cuh"
#include "weight_vectors.cuh"

constexpr int THREAD_ROWS = 2 * FRAGMENTS_N;
constexpr int BLOCK_N = 8 * THREAD_ROWS * WARPS_N;
constexpr int THREADS = 32 * WARPS_K * WARPS_N;
constexpr int BLOCK_SUMS = BLOCK_N * BLOCK_M;
constexpr unsigned CHUNKS = (ROW_VECTORS + 3) / 4;
constexpr unsigned WARP_STRIDE = WARPS_K * SPLIT_K;
// Distance between chunks, in words of w and in elements of x.
constexpr int CHUNK_WORDS = 4 * VECTOR_WORDS, CHUNK_VALUES = 4 * VECTOR_VALUES;
// NO_TAIL: all vectors that threads load exist. NO_X_TAIL: all their elements are within K.
constexpr bool NO_TAIL = ROW_VECTORS % (4 * CHUNKS_IN_FLIGHT * WARP_STRIDE) == 0;
constexpr bool NO_X_TAIL = NO_TAIL && K % VECTOR_VALUES == 0;
// Scales of the chunks in flight are adjacent, one per chunk, and are loaded in one access.
#if defined(GROUP_SIZE) && !defined(ZERO_POINT_BITS)
constexpr bool WIDE_SCALE_LOADS = NO_TAIL && GROUP_SIZE == 4 * VECTOR_VALUES &&
                                  (CHUNKS_IN_FLIGHT == 2 || CHUNKS_IN_FLIGHT == 4) && GROUPS % CHUNKS_IN_FLIGHT == 0 &&
                                  CHUNKS_IN_FLIGHT * sizeof(stored_scale) >= 4;
#else
constexpr bool WIDE_SCALE_LOADS = false;
#endif

// Scales or zero points of the chunks in flight, loaded in one access.
template <int BYTES> struct wide_access {
    typedef unsigned char word;
};
template <> struct wide_access<4> {
    typedef unsigned word;
};
template <> struct wide_access<8> {
    typedef uint2 word;
};
template <> struct wide_access<16> {
    typedef uint4 word;
};

template <class Stored> union scales_in_flight {
    typename wide_access<CHUNKS_IN_FLIGHT * sizeof(Stored)>::word word;
    Stored chunk[CHUNKS_IN_FLIGHT];

    __device__ __forceinline__ void load(const Stored *source) {
        word = __ldcg(reinterpret_cast<const decltype(word) *>(source));
    }
};

__device__ __forceinline__ u64 clamp_index(u64 index, u64 count) { return index < count ? index : count - 1; }

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    KERNEL(const element *__restrict__ x, const unsigned *__restrict__ quantized,
           const stored_scale *__restrict__ scales,
#if defined(HAS_ZERO_POINTS)
           const stored_zero *__restrict__ zeros,
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
           output *__restrict__ y,
#if SPLIT_K > 1
           float *__restrict__ partials, unsigned *__restrict__ arrivals,
#endif
           u64 m, u64 n) {
    __shared__ float warp_sums[WARPS_K][BLOCK_SUMS];

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int g = lane / 4, t = lane % 4;
    const unsigned split = blockIdx.x % SPLIT_K, tile_index = blockIdx.x / SPLIT_K;
    const unsigned n_tiles = ((unsigned)n + BLOCK_N - 1) / BLOCK_N;
    const u64 first_n = (u64)(tile_index % n_tiles) * BLOCK_N;
    const u64 first_m = (u64)(tile_index / n_tiles) * BLOCK_M;

    // Out-of-range rows of x and w are clamped to the last row; their results are not stored. Without clamping, the
    // weight rows of a thread are at constant distances.
    const unsigned *weight_rows[THREAD_ROWS];
    u64 first_group[THREAD_ROWS];
#pragma unroll
    for (int h = 0; h < THREAD_ROWS; h++) {
        const u64 row = first_n + 8 * THREAD_ROWS * threadIdx.y + g + 8 * h;
        const u64 clamped = N_IS_MULTIPLE ? row : clamp_index(row, n);
        weight_rows[h] = quantized + clamped * ROW_WORDS;
        first_group[h] = clamped * GROUPS;
    }

#if TENSOR_CORES
    float sums[FRAGMENTS_N][BLOCK_M / 8][4] = {};
#else
    float sums[THREAD_ROWS][BLOCK_M] = {};
#endif

    for (unsigned chunk = CHUNKS_IN_FLIGHT * (split * WARPS_K + warp); chunk < CHUNKS;
         chunk += CHUNKS_IN_FLIGHT * WARP_STRIDE) {
        // All loads are issued before the first use, without branches. Values beyond K meet zeros of x. Chunks are at
        // constant distances from the first one, so their addresses are immediate offsets.
        const unsigned first_vector = chunk * 4 + t;
        weight_vector weights[CHUNKS_IN_FLIGHT][THREAD_ROWS];
        vector_scales group_scales[CHUNKS_IN_FLIGHT][THREAD_ROWS];
#if defined(GROUP_SIZE)
#pragma unroll
        for (int h = 0; h < THREAD_ROWS; h++) {
            if (WIDE_SCALE_LOADS) {
                const u64 group = first_group[h] + chunk;
                scales_in_flight<stored_scale> loaded;
                loaded.load(scales + group);
#pragma unroll
                for (int f = 0; f < CHUNKS_IN_FLIGHT; f++) group_scales[f][h].scales[0] = loaded.chunk[f];
#if defined(HAS_ZERO_POINTS) && !defined(ZERO_POINT_BITS)
                scales_in_flight<stored_zero> loaded_zeros;
                loaded_zeros.load(zeros + group);
#pragma unroll
                for (int f = 0; f < CHUNKS_IN_FLIGHT; f++) group_scales[f][h].zeros[0] = loaded_zeros.chunk[f];
#endif
                continue;
            }
#pragma unroll
            for (int i = 0; i < CHUNKS_IN_FLIGHT * (int)VECTOR_SCALES; i++) {
                const int f = i / VECTOR_SCALES, s = i % VECTOR_SCALES;
                const unsigned vector = first_vector + f * 4,
                               clamped = NO_TAIL || vector < ROW_VECTORS ? vector : ROW_VECTORS - 1;
                const u64 group = first_group[h] + group_of(clamped * VECTOR_VALUES + s * SCALE_SPAN);
                group_scales[f][h].scales[s] = __ldg(scales + group);
#if defined(HAS_ZERO_POINTS)
                group_scales[f][h].zeros[s] = load_zero(zeros, group);
#endif
            }
        }
#endif
#pragma unroll
        for (int f = 0; f < CHUNKS_IN_FLIGHT; f++) {
            const unsigned vector = first_vector + f * 4;
            const unsigned clamped = NO_TAIL || vector < ROW_VECTORS ? vector : ROW_VECTORS - 1;
#pragma unroll
            for (int h = 0; h < THREAD_ROWS; h++) {
                const unsigned *const source = weight_rows[h] + first_vector * VECTOR_WORDS + f * CHUNK_WORDS;
                load_weights(NO_TAIL ? source : weight_rows[h] + clamped * VECTOR_WORDS, weights[f][h]);
            }
        }
#pragma unroll
        for (int f = 0; f < CHUNKS_IN_FLIGHT; f++) {
            const unsigned vector = first_vector + f * 4;
            const unsigned clamped = NO_TAIL || vector < ROW_VECTORS ? vector : ROW_VECTORS - 1;
            vector_values values[THREAD_ROWS];
#pragma unroll
            for (int h = 0; h < THREAD_ROWS; h++)
                dequantize(weights[f][h], group_scales[f][h], first_group[h], clamped, values[h]);

#if defined(SCALE_SUMS)
            float scale[THREAD_ROWS], offset[THREAD_ROWS];
#pragma unroll
            for (int h = 0; h < THREAD_ROWS; h++)
                sum_factors(group_scales[f][h], first_group[h], clamped, scale[h], offset[h]);
#endif
#if TENSOR_CORES
#pragma unroll
            for (int tile = 0; tile < BLOCK_M / 8; tile++) {
                const u64 m_index = clamp_index(first_m + tile * 8 + g, m);
                unsigned words[X_WORDS], pairs[VECTOR_PAIRS];
                load_x<NO_X_TAIL>(x + m_index * K + first_vector * VECTOR_VALUES + f * CHUNK_VALUES,
                                  vector * VECTOR_VALUES, words);
                reorder(words, pairs);
#if defined(SCALE_SUMS)
                float biased_sums[FRAGMENTS_N][4] = {}, x_sums[4] = {};
#pragma unroll
                for (int p = 0; p < VECTOR_PAIRS; p += 2) {
#pragma unroll
                    for (int a = 0; a < FRAGMENTS_N; a++)
                        mma_pairs(biased_sums[a], values[2 * a], values[2 * a + 1], pairs, p);
                    mma_m16n8k16(x_sums, ONES, ONES, ONES, ONES, pairs[p], pairs[p + 1]);
                }
#pragma unroll
                for (int i = 0; i < 4 * FRAGMENTS_N; i++) {
                    const int a = i / 4, h = i / 2;
                    float &sum = sums[a][tile][i % 4];
                    sum = fmaf(scale[h], biased_sums[a][i % 4], fmaf(offset[h], x_sums[i % 4], sum));
                }
#else
#pragma unroll
                for (int p = 0; p < VECTOR_PAIRS; p += 2) {
#pragma unroll
                    for (int a = 0; a < FRAGMENTS_N; a++)
                        mma_pairs(sums[a][tile], values[2 * a], values[2 * a + 1], pairs, p);
                }
#endif
            }
#else
#pragma unroll
            for (int c = 0; c < BLOCK_M; c++) {
                unsigned words[X_WORDS];
                const u64 m_index = clamp_index(first_m + c, m);
                load_x<NO_X_TAIL>(x + m_index * K + first_vector * VECTOR_VALUES + f * CHUNK_VALUES,
                                  vector * VECTOR_VALUES, words);
#pragma unroll
                for (int i = 0; i < VECTOR_VALUES; i++) {
                    const float x_k = x_value(words, i);
#pragma unroll
                    for (int h = 0; h < THREAD_ROWS; h++) sums[h][c] = fmaf(values[h][i], x_k, sums[h][c]);
                }
            }
#endif
        }
    }

    // Transposed to n-contiguous order, so that adjacent threads store adjacent elements of y.
    const int n_in_block = 8 * THREAD_ROWS * threadIdx.y + g;
#if TENSOR_CORES
#pragma unroll
    for (int tile = 0; tile < BLOCK_M / 8; tile++) {
#pragma unroll
        for (int i = 0; i < 4 * FRAGMENTS_N; i++) {
            warp_sums[warp][(tile * 8 + 2 * t + i % 2) * BLOCK_N + n_in_block + 8 * (i / 2)] = sums[i / 4][tile][i % 4];
        }
    }
#else
#pragma unroll
    for (int h = 0; h < THREAD_ROWS; h++) {
#pragma unroll
        for (int c = 0; c < BLOCK_M; c++) {
            float sum = sums[h][c];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            if (t == 0) warp_sums[warp][c * BLOCK_N + n_in_block + 8 * h] = sum;
        }
    }
#endif
    __syncthreads();

    const int thread = threadIdx.y * (32 * WARPS_K) + threadIdx.x;
    const auto store = [&](int index, float sum) {
        const u64 n_index = first_n + index % BLOCK_N, m_index = first_m + index / BLOCK_N;
        if (n_index >= n || m_index >= m) return;
#if !defined(GROUP_SIZE)
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
    };
    const auto reduce_warps = [&](int index) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < WARPS_K; i++) sum += warp_sums[i][index];
        return sum;
    };

#if SPLIT_K > 1
    split_k_reduce<SPLIT_K, BLOCK_SUMS, THREADS>(partials, arrivals, thread, reduce_warps, store);
#else
    for (int index = thread; index < BLOCK_SUMS; index += THREADS) store(index, reduce_warps(index));
#endif
}
