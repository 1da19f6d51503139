// y[m, n] = f(x[m, K] w[n, K]^T * row_scale[m] * column_scale[n]) [+ addend[m, n]] for few rows of int8 x and a packed
// int4 weight (int4_weight.cuh), which is never written unpacked. x is row-major with STRIDE bytes per row, padded with
// zeros; y and the addend have dtype `element`; scales of rows and columns are f32.
//
// Algorithm: int4 x int8 GEMM with split-K on int8 tensor cores (PTX ISA, "Matrix Fragments for mma.m16n8k32"). Each
// warp streams 16 weight rows; a chunk is 64 bytes (128 values) of a row, one 16-byte vector per thread of a quad,
// CHUNKS_IN_FLIGHT chunks are loaded before the first is used. Values are widened in registers without arithmetic: the
// nibbles stay in the upper halves of bytes, and sums are 16 times too large, which the epilogue corrects by a shift.
// With GROUP_SCALES a group is one chunk, and a lookup table of the 16 dequantized int8 values is applied with prmt.
// Sums are exact s32.
//
//     lane 4 g + t of a warp, one chunk:                       widening of a word of w (8 nibbles):
//     row g     | vector 0 | vector 1 | vector 2 | vector 3 |    q7 q6 q5 q4 q3 q2 q1 q0
//                 t = 0      t = 1      t = 2      t = 3         word << 4 & 0xf0..  q6 q4 q2 q0   times x6 x4 x2 x0
//     row g + 8 | vector 0 | vector 1 | vector 2 | vector 3 |    word      & 0xf0..  q7 q5 q3 q1   times x7 x5 x3 x1
//
//     A slots k = 4t..4t+3: even values of word i, slots 4t+16..4t+19: odd values; x is permuted alike by prmt
//     block: WARPS_N groups along n, each of WARPS_K warps along k; grid: output tiles x SPLIT_K
//
// Traffic: w at 4 bits once per BLOCK_M rows of x; x at 8 bits from L2 once per block. Roofline: bytes of w over memory
// bandwidth, if widening keeps up: of 3 instructions per value that can be issued in that time, row scales take about
// 1, group scales about 2.5.
//
// Parameters:
//   KERNEL            name of the kernel
//   ELEMENT_*         dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH             any value; required by element.cuh
//   K                 reduction size (checked in int4_weight.cuh)
//   GROUP_SCALES      optional: scales per group of 128 in dtype `element` (int4_weight.cuh)
//   STRIDE            bytes per row of x, a multiple of 32
//   BLOCK_M           rows of x per block, a multiple of 8
//   WARPS_K           warps of a group, which split k
//   WARPS_N           warp groups per block along n
//   SPLIT_K           blocks that split k
//   CHUNKS_IN_FLIGHT  chunks that a thread loads before use
//   ACTIVATE          optional: activation of activations.cuh, applied after the scales
//   ADDEND            optional: an addend is added to y, after the activation

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef STRIDE
#error "STRIDE: bytes per row of x, a multiple of 32"
#endif
#ifndef BLOCK_M
#error "BLOCK_M: rows of x per block, a multiple of 8"
#endif
#ifndef WARPS_K
#error "WARPS_K: warps of a group, which split k"
#endif
#ifndef WARPS_N
#error "WARPS_N: warp groups per block along n"
#endif
#ifndef SPLIT_K
#error "SPLIT_K: blocks that split k"
#endif
#ifndef CHUNKS_IN_FLIGHT
#error "CHUNKS_IN_FLIGHT: chunks that a thread loads before use"
#endif

#include "activations.cuh"
#include "int4_weight.cuh"
#include "split_k.cuh"

constexpr int BLOCK_N = 16 * WARPS_N;
constexpr int THREADS = 32 * WARPS_K * WARPS_N;
constexpr int BLOCK_SUMS = BLOCK_N * BLOCK_M;
constexpr unsigned ROW_VECTORS = ROW_VALUES / 32;
constexpr unsigned K_VECTORS = (K + 31) / 32;
constexpr unsigned CHUNKS = (K_VECTORS + 3) / 4;
constexpr unsigned WARP_STRIDE = WARPS_K * SPLIT_K;
// Vectors in a row of x, which is padded with zeros.
constexpr unsigned X_VECTORS = STRIDE / 32;
// All vectors that threads load exist.
constexpr bool NO_TAIL = K_VECTORS % (4 * CHUNKS_IN_FLIGHT * WARP_STRIDE) == 0;

__device__ __forceinline__ void mma_m16n8k32(int (&sums)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                             unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

#ifdef GROUP_SCALES
// Lookup table of the int8 values of all 16 nibbles under a group scale; each lane of a quad computes four entries.
struct lookup_table {
    unsigned words[4];

    __device__ __forceinline__ lookup_table(float scale, int t) {
        unsigned entries = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) entries |= to_int8(4 * t + i, scale) << 8 * i;
#pragma unroll
        for (int i = 0; i < 4; i++) words[i] = __shfl_sync(0xffffffffu, entries, i, 4);
    }

    // Looks up the four nibbles in the lower half of a word.
    __device__ __forceinline__ unsigned look_up(unsigned nibbles) const {
        const unsigned selectors = nibbles & 0x77777777u;
        const unsigned low = select_bytes(words[0], words[1], selectors),
                       high = select_bytes(words[2], words[3], selectors);
        // Selector bit 3 of prmt replicates the sign: 0x7f without it, 0x00 for negative nibbles. The mask has all bits
        // of bytes with non-negative nibbles.
        const unsigned non_negative = select_bytes(0x7f7f7f7fu, 0x7f7f7f7fu, nibbles);
        const unsigned mask = non_negative | ((non_negative + 0x01010101u) & 0x80808080u);
        return (low & mask) | (high & ~mask);
    }
};
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    KERNEL(const uint4 *__restrict__ x, const float *__restrict__ row_scales, const uint4 *__restrict__ quantized,
#ifdef GROUP_SCALES
           const element *__restrict__ scales,
#endif
           const float *__restrict__ column_scales,
#ifdef ADDEND
           const element *__restrict__ addend,
#endif
           element *__restrict__ y,
#if SPLIT_K > 1
           int *__restrict__ partials, unsigned *__restrict__ arrivals,
#endif
           u64 m, u64 n) {
    __shared__ int warp_sums[WARPS_K][BLOCK_SUMS];

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int g = lane / 4, t = lane % 4;
    const unsigned split = blockIdx.x % SPLIT_K, tile_index = blockIdx.x / SPLIT_K;
    const unsigned n_tiles = ((unsigned)n + BLOCK_N - 1) / BLOCK_N;
    const u64 first_n = (u64)(tile_index % n_tiles) * BLOCK_N;
    const u64 first_m = (u64)(tile_index / n_tiles) * BLOCK_M;

    // Out-of-range rows are clamped to the last row; their results are not stored.
    const uint4 *weight_rows[2];
#ifdef GROUP_SCALES
    const element *scale_rows[2];
#endif
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const u64 row = first_n + 16 * threadIdx.y + g + 8 * h;
        const u64 clamped = row < n ? row : n - 1;
        weight_rows[h] = quantized + clamped * ROW_VECTORS;
#ifdef GROUP_SCALES
        scale_rows[h] = scales + clamped * (ROW_VALUES / 128);
#endif
    }

    int sums[BLOCK_M / 8][4] = {};
    for (unsigned chunk = split * WARPS_K + warp; chunk < CHUNKS; chunk += CHUNKS_IN_FLIGHT * WARP_STRIDE) {
        // All loads are issued before the first use, without branches. Values beyond K meet zeros of x.
        uint4 loaded[CHUNKS_IN_FLIGHT][2];
#ifdef GROUP_SCALES
        element group_scales[CHUNKS_IN_FLIGHT][2];
#endif
#pragma unroll
        for (int f = 0; f < CHUNKS_IN_FLIGHT; f++) {
            const unsigned vector = (chunk + f * WARP_STRIDE) * 4 + t;
            const unsigned clamped = NO_TAIL || vector < K_VECTORS ? vector : K_VECTORS - 1;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                loaded[f][h] = __ldcg(weight_rows[h] + clamped);
#ifdef GROUP_SCALES
                group_scales[f][h] = __ldg(scale_rows[h] + clamped / 4);
#endif
            }
        }
#pragma unroll
        for (int f = 0; f < CHUNKS_IN_FLIGHT; f++) {
            const unsigned vector = (chunk + f * WARP_STRIDE) * 4 + t;
            unsigned w[2][8];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const unsigned words[4] = {loaded[f][h].x, loaded[f][h].y, loaded[f][h].z, loaded[f][h].w};
#ifdef GROUP_SCALES
                // The four lanes of a quad have vectors of one group, or beyond the end.
                const lookup_table table(widen(group_scales[f][h]), t);
#endif
#pragma unroll
                for (int i = 0; i < 4; i++) {
#ifdef GROUP_SCALES
                    w[h][2 * i] = table.look_up(words[i]);
                    w[h][2 * i + 1] = table.look_up(words[i] >> 16);
#else
                    // Splits a word into its even and its odd nibbles.
                    w[h][2 * i] = words[i] << 4 & 0xf0f0f0f0u;
                    w[h][2 * i + 1] = words[i] & 0xf0f0f0f0u;
#endif
                }
            }
#pragma unroll
            for (int tile = 0; tile < BLOCK_M / 8; tile++) {
                const u64 m_index = first_m + tile * 8 + g;
                uint4 x_vector[2] = {make_uint4(0, 0, 0, 0), make_uint4(0, 0, 0, 0)};
                if (m_index < m && (NO_TAIL || vector < X_VECTORS)) {
                    const uint4 *const source = x + (m_index * X_VECTORS + vector) * 2;
                    x_vector[0] = __ldg(source);
                    x_vector[1] = __ldg(source + 1);
                }
                const unsigned words[8] = {x_vector[0].x, x_vector[0].y, x_vector[0].z, x_vector[0].w,
                                           x_vector[1].x, x_vector[1].y, x_vector[1].z, x_vector[1].w};
#pragma unroll
                for (int i = 0; i < 4; i++) {
#ifdef GROUP_SCALES
                    const unsigned b0 = words[2 * i], b1 = words[2 * i + 1];
#else
                    const unsigned b0 = __byte_perm(words[2 * i], words[2 * i + 1], 0x6420);
                    const unsigned b1 = __byte_perm(words[2 * i], words[2 * i + 1], 0x7531);
#endif
                    mma_m16n8k32(sums[tile], w[0][2 * i], w[1][2 * i], w[0][2 * i + 1], w[1][2 * i + 1], b0, b1);
                }
            }
        }
    }

    // Transposed to n-contiguous order, so that adjacent threads store adjacent elements of y.
    const int n_in_block = 16 * threadIdx.y + g;
#pragma unroll
    for (int tile = 0; tile < BLOCK_M / 8; tile++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            warp_sums[warp][(tile * 8 + 2 * t + i % 2) * BLOCK_N + n_in_block + 8 * (i / 2)] = sums[tile][i];
        }
    }
    __syncthreads();

    const int thread = threadIdx.y * (32 * WARPS_K) + threadIdx.x;
    const auto store = [&](int index, int sum) {
        const u64 n_index = first_n + index % BLOCK_N, m_index = first_m + index / BLOCK_N;
        if (n_index >= n || m_index >= m) return;
#ifndef GROUP_SCALES
        sum >>= 4;
#endif
        float value = (float)sum * row_scales[m_index] * column_scales[n_index];
#ifdef ACTIVATE
        value = ACTIVATE(value);
#endif
#ifdef ADDEND
        value += widen(addend[m_index * n + n_index]);
#endif
        y[m_index * n + n_index] = narrow(value);
    };
    const auto reduce_warps = [&](int index) {
        int sum = 0;
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
