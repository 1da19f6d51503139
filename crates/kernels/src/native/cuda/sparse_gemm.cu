// y[m, n] = f(x[m, K] w[n, K]^T [* scales]) [+ addend[m, n]] for a 2:4 sparse w (sparse_weight.cuh) on sparse tensor
// cores, which process twice the elements of k per instruction. Operands: f16 or bf16; int4 w in groups of 128 with
// 16-bit x; int8 (s32 sums) or e4m3 (f32 sums) with scales per row and column or per tensor. x is row-major with STRIDE
// elements per row; y and the addend have dtype `element`.
//
// Algorithm: split-K GEMM with mma.sp.m16n8k32 or m16n8k64 (PTX ISA, "mma.sp with sparse matrix A"; compare CUTLASS
// example 15, ampere_sparse_tensorop_gemm). w is the sparse operand A. Each warp streams its own units of w into
// registers, PREFETCH_UNITS ahead; no other warp needs them. x goes through a cp.async pipeline of STAGES steps in
// shared memory, from which all warps load B fragments by ldmatrix. int4 values are converted to the dtype of x in
// registers, times their group scale. Partial sums of warps with equal rows meet in shared memory; those of the SPLIT_K
// blocks in global memory, where the last block to arrive adds them in fixed order.
//
//     w unit (16 rows x 64, 2:4)  --registers-->   A fragment    ]
//     x (BLOCK_M rows x 64)       --cp.async--> smem --ldmatrix--> B fragments (n8)   ]  mma.sp --> sums of y^T
//     block: 8 warps = WARPS_K along k x 8 / WARPS_K along n; BLOCK_N = 128 FRAGMENTS_N / WARPS_K columns of y
//
// Traffic: compressed w (9/16 of dense 16-bit, 10/16 of dense 8-bit bytes) once per BLOCK_M rows of x; x from L2 once
// per block. Roofline: bytes of w over memory bandwidth for few rows. For many rows shared memory bounds: 512 bytes per
// 8 rows of x are 4 cycles of an SM for FRAGMENTS_N instructions of at least 2 cycles.
//
// Parameters:
//   KERNEL             name of the kernel
//   K                  reduction size, a multiple of 4 (checked in sparse_weight.cuh)
//   NONZEROS_4BIT      optional: int4 values with group scales (sparse_weight.cuh)
//   NONZEROS_8BIT      optional: int8 or e4m3 operands (sparse_weight.cuh)
//   ELEMENT_*          dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH              elements of x per copy: those of 16 bytes, or 1 if rows are not aligned (checked in element.cuh)
//   STRIDE             elements per row of x
//   BLOCK_M            rows of x per block: 8, 16, 32 or 64
//   FRAGMENTS_N        fragments of 16 weight rows per warp
//   WARPS_K            warps that split k
//   SPLIT_K            blocks that split k
//   PREFETCH_UNITS     units of w that a warp loads in advance
//   STAGES             pipeline stages of x, of WARPS_K units each
//   QUANT_INT8         optional: 8-bit operands are int8; e4m3 by default
//   COLUMN_SCALES_F32  optional: column scales are f32 also for QUANT_INT8
//   PER_TENSOR         optional: one scale per tensor instead of one per row and column
//   ACTIVATE           optional: activation of activations.cuh, applied after the scales
//   ADDEND             optional: an addend is added to y

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef STRIDE
#error "STRIDE: elements per row of x"
#endif
#ifndef BLOCK_M
#error "BLOCK_M: rows of x per block: 8, 16, 32 or 64"
#endif
#ifndef FRAGMENTS_N
#error "FRAGMENTS_N: fragments of 16 weight rows per warp"
#endif
#ifndef WARPS_K
#error "WARPS_K: warps that split k"
#endif
#ifndef SPLIT_K
#error "SPLIT_K: blocks that split k"
#endif
#ifndef PREFETCH_UNITS
#error "PREFETCH_UNITS: units of w that a warp loads in advance"
#endif
#ifndef STAGES
#error "STAGES: pipeline stages of x, of WARPS_K units each"
#endif

#include "activations.cuh"
#include "mma16.cuh"
#include "sparse_weight.cuh"

constexpr int WARPS = 8;
constexpr int THREADS = 32 * WARPS;
constexpr int BLOCK_N = 16 * FRAGMENTS_N * WARPS / WARPS_K;
constexpr int FRAGMENTS_M = BLOCK_M / 8;
// Bytes of a row of x in a unit, and its 16-byte vectors.
#if defined(NONZEROS_8BIT)
constexpr int X_BYTES = 64;
#else
constexpr int X_BYTES = 128;
#endif
constexpr int X_VECTORS = X_BYTES / 16;
constexpr int X_UNIT_BYTES = BLOCK_M * X_BYTES;
constexpr int STAGE_BYTES = WARPS_K * X_UNIT_BYTES;
constexpr int UNIT_HALVES = X_BYTES / 64;

#if defined(NONZEROS_8BIT) && defined(QUANT_INT8)
typedef int accumulator;
#else
typedef float accumulator;
#endif
#if defined(NONZEROS_8BIT)
typedef unsigned char x_element;
#else
typedef element x_element;
#endif
#if defined(QUANT_INT8) && !defined(COLUMN_SCALES_F32)
typedef element column_scale;
__device__ __forceinline__ float to_f32(column_scale scale) { return widen(scale); }
#else
typedef float column_scale;
__device__ __forceinline__ float to_f32(column_scale scale) { return scale; }
#endif

// Before CUDA 12.5, mma.sp has no variant for ordered metadata.
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1205
#define MMA_SP "mma.sp::ordered_metadata.sync.aligned."
#else
#define MMA_SP "mma.sp.sync.aligned."
#endif
#if defined(NONZEROS_8BIT) && defined(QUANT_INT8)
#define MMA MMA_SP "m16n8k64.row.col.s32.s8.s8.s32"
#define ACCUMULATOR "+r"
#elif defined(NONZEROS_8BIT)
#define MMA MMA_SP "m16n8k64.row.col.f32.e4m3.e4m3.f32"
#define ACCUMULATOR "+f"
#elif defined(ELEMENT_BF16)
#define MMA MMA_SP "m16n8k32.row.col.f32.bf16.bf16.f32"
#define ACCUMULATOR "+f"
#else
#define MMA MMA_SP "m16n8k32.row.col.f32.f16.f16.f32"
#define ACCUMULATOR "+f"
#endif

// mma.sp: 16 rows of w by 8 rows of x over 64 bytes of x. SELECTOR chooses the lanes that provide the metadata.
template <int SELECTOR>
__device__ __forceinline__ void mma_sparse(accumulator (&sums)[4], const unsigned *a, const unsigned (&b)[4],
                                           unsigned metadata) {
    asm(MMA " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, %13;"
        : ACCUMULATOR(sums[0]), ACCUMULATOR(sums[1]), ACCUMULATOR(sums[2]), ACCUMULATOR(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(metadata),
          "n"(SELECTOR));
}

// Registers of a thread for one unit.
struct unit {
    unsigned words[THREAD_WORDS];
    unsigned metadata;
#if defined(NONZEROS_4BIT)
    element scales[2];
#endif

    __device__ __forceinline__ void load(const unsigned *source, unsigned lane) {
#if defined(NONZEROS_4BIT)
        const uint2 pair = __ldcg(reinterpret_cast<const uint2 *>(source) + lane);
        words[0] = pair.x;
        words[1] = pair.y;
#else
#pragma unroll
        for (int i = 0; i < THREAD_WORDS / 4; i++) {
            const uint4 four = __ldcg(reinterpret_cast<const uint4 *>(source) + i * 32 + lane);
            words[4 * i] = four.x;
            words[4 * i + 1] = four.y;
            words[4 * i + 2] = four.z;
            words[4 * i + 3] = four.w;
        }
#endif
        metadata = __ldcg(source + 32 * THREAD_WORDS + lane);
    }

    // A fragment of one half of the unit (8-bit: of the whole unit).
    __device__ __forceinline__ void fragment(int half, unsigned (&a)[4]) const {
#if defined(NONZEROS_4BIT)
#if defined(ELEMENT_BF16)
        constexpr unsigned ONES = 0x3f803f80u, BASE = 0x43004300u, MINUS_BASE = 0xc308c308u,
                           NEGATIVE_ZERO = 0x80008000u;
#define PAIR_DTYPE "bf16x2"
#else
        constexpr unsigned ONES = 0x3c003c00u, BASE = 0x64006400u, MINUS_BASE = 0xe408e408u,
                           NEGATIVE_ZERO = 0x80008000u;
#define PAIR_DTYPE "f16x2"
#endif
#pragma unroll
        for (int i = 0; i < 4; i++) {
            // Inserts nibbles i and i + 4 into the mantissa of a power of two whose ULP is 1, as in
            // dequantize_pairs.cuh.
            unsigned pair = (words[half] >> 4 * i & 0x000f000fu) | BASE;
            asm("fma.rn." PAIR_DTYPE " %0, %0, %1, %2;" : "+r"(pair) : "r"(ONES), "r"(MINUS_BASE));
            const unsigned scale = scales[i % 2] * 0x10001u;
            asm("fma.rn." PAIR_DTYPE " %0, %0, %1, %2;" : "+r"(pair) : "r"(scale), "r"(NEGATIVE_ZERO));
            a[i] = pair;
        }
#else
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = words[4 * half + i];
#endif
    }
};

__device__ __forceinline__ unsigned shared_address(const void *pointer) {
    return (unsigned)__cvta_generic_to_shared(pointer);
}

// Byte offset of a 16-byte vector of x in a unit, swizzled: eight rows of one vector column have no bank conflict.
__device__ __forceinline__ unsigned swizzle(unsigned row, unsigned vector) {
    const unsigned mask = X_VECTORS == 8 ? row & 7 : row >> 1 & 3;
    return row * X_BYTES + ((vector ^ mask) << 4);
}

extern "C" __global__ void __launch_bounds__(THREADS, FRAGMENTS_N > 1 ? 1 : 2)
    KERNEL(const x_element *__restrict__ x,
#if defined(NONZEROS_8BIT)
           const float *__restrict__ row_scales,
#endif
           const unsigned *__restrict__ units,
#if defined(NONZEROS_4BIT)
           const element *__restrict__ group_scales,
#elif defined(NONZEROS_8BIT)
           const column_scale *__restrict__ column_scales,
#endif
#ifdef ADDEND
           const element *__restrict__ addend,
#endif
           element *__restrict__ y,
#if SPLIT_K > 1
           accumulator *__restrict__ partials, unsigned *__restrict__ arrivals,
#endif
           u64 m, u64 n) {
    extern __shared__ __align__(1024) unsigned char stages[];

    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned g = lane / 4, t = lane % 4;
    const unsigned warp_k = warp % WARPS_K, warp_n = warp / WARPS_K;
    const unsigned output_tiles = gridDim.x / SPLIT_K, split = blockIdx.x / output_tiles,
                   tile_index = blockIdx.x % output_tiles;
    const unsigned m_tiles = ((unsigned)m + BLOCK_M - 1) / BLOCK_M;
    // Adjacent blocks share rows of w, which are then read from memory once.
    const u64 first_n = (u64)(tile_index / m_tiles) * BLOCK_N, first_m = (u64)(tile_index % m_tiles) * BLOCK_M;
    const unsigned begin = (u64)UNITS * split / SPLIT_K, end = (u64)UNITS * (split + 1) / SPLIT_K;

    // Out-of-range units are clamped to the last one; their results are not stored.
    const unsigned row_units = ((unsigned)n + 15) / 16;
    const unsigned *tile_units[FRAGMENTS_N];
    u64 unit_row[FRAGMENTS_N];
#pragma unroll
    for (int tile = 0; tile < FRAGMENTS_N; tile++) {
        unit_row[tile] = first_n / 16 + warp_n * FRAGMENTS_N + tile;
        const u64 clamped = unit_row[tile] < row_units ? unit_row[tile] : row_units - 1;
        tile_units[tile] = units + clamped * UNITS * UNIT_WORDS;
    }
    const unsigned steps = (end - begin + WARPS_K - 1) / WARPS_K;
    const auto load = [&](unit(&registers)[FRAGMENTS_N], unsigned step) {
        const unsigned unit_index = begin + step * WARPS_K + warp_k;
        const unsigned clamped = unit_index < end ? unit_index : end - 1;
#pragma unroll
        for (int tile = 0; tile < FRAGMENTS_N; tile++) {
            registers[tile].load(tile_units[tile] + (u64)clamped * UNIT_WORDS, lane);
#if defined(NONZEROS_4BIT)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const u64 row = unit_row[tile] * 16 + g + 8 * h;
                registers[tile].scales[h] =
                    __ldg(group_scales + (row < n ? row : n - 1) * ((K + 127) / 128) + clamped / 2);
            }
#endif
        }
    };

    // Loads the x of a step into its stage; zeros out of range, which cancel clamped units of w.
    const auto load_x = [&](unsigned step) {
        if (step < steps) {
            unsigned char *const stage = stages + step % STAGES * STAGE_BYTES;
#pragma unroll
            for (unsigned i = threadIdx.x; i < WARPS_K * BLOCK_M * X_VECTORS; i += THREADS) {
                const unsigned row = i / X_VECTORS % BLOCK_M, vector = i % X_VECTORS,
                               unit_in_step = i / (X_VECTORS * BLOCK_M);
                const u64 m_index = first_m + row;
                constexpr unsigned VECTOR_ELEMENTS = 16 / sizeof(x_element);
                const unsigned unit_index = begin + step * WARPS_K + unit_in_step,
                               k = unit_index * 64 + vector * VECTOR_ELEMENTS;
                const bool in_range = m_index < m && unit_index < end;
                unsigned char *const destination = stage + unit_in_step * X_UNIT_BYTES + swizzle(row, vector);
#if WIDTH > 1
                const unsigned bytes = in_range && k < STRIDE ? 16 : 0;
                const x_element *const source = bytes > 0 ? x + m_index * STRIDE + k : x;
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(destination)),
                             "l"(source), "r"(bytes)
                             : "memory");
#else
#pragma unroll
                for (unsigned j = 0; j < VECTOR_ELEMENTS; j++) {
                    reinterpret_cast<x_element *>(destination)[j] =
                        in_range && k + j < STRIDE ? x[m_index * STRIDE + k + j] : 0;
                }
#endif
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    accumulator sums[FRAGMENTS_N][FRAGMENTS_M][4] = {};
    unit prefetched[PREFETCH_UNITS][FRAGMENTS_N];
#pragma unroll
    for (int f = 0; f < PREFETCH_UNITS; f++) load(prefetched[f], f);
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; stage++) load_x(stage);

    // ldmatrix.x4: eight lanes address the rows of one 8 x 16-byte matrix.
    const unsigned ldmatrix_row = lane % 8, ldmatrix_vector = lane / 8;
    for (unsigned first = 0; first < steps; first += PREFETCH_UNITS) {
#pragma unroll
        for (int f = 0; f < PREFETCH_UNITS; f++) {
            const unsigned step = first + f;
            if (step >= steps) break;
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
            __syncthreads();
            // Refills the stage that all warps have consumed.
            load_x(step + STAGES - 1);
            const unsigned stage = shared_address(stages + step % STAGES * STAGE_BYTES + warp_k * X_UNIT_BYTES);
#pragma unroll
            for (int half = 0; half < UNIT_HALVES; half++) {
                unsigned a[FRAGMENTS_N][4];
#pragma unroll
                for (int tile = 0; tile < FRAGMENTS_N; tile++) prefetched[f][tile].fragment(half, a[tile]);
#pragma unroll
                for (int c = 0; c < FRAGMENTS_M; c++) {
                    unsigned b[4];
                    ldmatrix_x4(b, stage + swizzle(c * 8 + ldmatrix_row, half * 4 + ldmatrix_vector));
#pragma unroll
                    for (int tile = 0; tile < FRAGMENTS_N; tile++) {
                        if (half == 0) {
                            mma_sparse<0>(sums[tile][c], a[tile], b, prefetched[f][tile].metadata);
                        } else {
#if !defined(NONZEROS_8BIT)
                            mma_sparse<1>(sums[tile][c], a[tile], b, prefetched[f][tile].metadata);
#endif
                        }
                    }
                }
            }
            load(prefetched[f], step + PREFETCH_UNITS);
        }
    }

    const auto store = [&](u64 m_index, u64 n_index, accumulator sum) {
        if (n_index >= n || m_index >= m) return;
        float value = (float)sum;
#if defined(NONZEROS_8BIT)
#ifdef PER_TENSOR
        value = value * row_scales[0] * to_f32(column_scales[0]);
#else
        value = value * row_scales[m_index] * to_f32(column_scales[n_index]);
#endif
#ifdef ACTIVATE
        value = ACTIVATE(value);
#endif
#endif
#ifdef ADDEND
        value += widen(addend[m_index * n + n_index]);
#endif
        y[m_index * n + n_index] = narrow(value);
    };

    // Sums are transposed in shared memory, PASS_M rows of x at a time, so that adjacent threads store adjacent
    // elements of y.
    constexpr int PITCH = BLOCK_N + 4;
    constexpr int PASS_M = BLOCK_M < 16 ? BLOCK_M : 16;
    accumulator *const transposed = reinterpret_cast<accumulator *>(stages);
    const auto transpose_pass = [&](int pass) {
        __syncthreads();
#pragma unroll
        for (int tile = 0; tile < FRAGMENTS_N; tile++) {
#pragma unroll
            for (int c = 0; c < PASS_M / 8; c++) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int row = (warp_n * FRAGMENTS_N + tile) * 16 + g + 8 * (i / 2),
                              column = c * 8 + 2 * t + i % 2;
                    transposed[(warp_k * PASS_M + column) * PITCH + row] = sums[tile][pass * (PASS_M / 8) + c][i];
                }
            }
        }
        __syncthreads();
    };
    const auto reduce_warps = [&](int column, int row) {
        accumulator sum = 0;
#pragma unroll
        for (int i = 0; i < WARPS_K; i++) sum += transposed[(i * PASS_M + column) * PITCH + row];
        return sum;
    };
    // Outstanding copies must not overwrite the transposed sums.
    asm volatile("cp.async.wait_all;" ::: "memory");

#if SPLIT_K > 1
    constexpr int BLOCK_SUMS = BLOCK_N * BLOCK_M;
    accumulator *const block_partials = partials + (u64)blockIdx.x * BLOCK_SUMS;
#pragma unroll
    for (int pass = 0; pass < BLOCK_M / PASS_M; pass++) {
        transpose_pass(pass);
        for (int index = threadIdx.x; index < PASS_M * BLOCK_N; index += THREADS) {
            block_partials[pass * PASS_M * BLOCK_N + index] = reduce_warps(index / BLOCK_N, index % BLOCK_N);
        }
    }
    __threadfence();
    __syncthreads();
    __shared__ bool last;
    if (threadIdx.x == 0) last = atomicAdd(arrivals + tile_index, 1u) == SPLIT_K - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int index = threadIdx.x; index < BLOCK_SUMS; index += THREADS) {
        accumulator sum = 0;
        for (int i = 0; i < SPLIT_K; i++)
            sum += __ldcg(partials + ((u64)i * output_tiles + tile_index) * BLOCK_SUMS + index);
        store(first_m + index / BLOCK_N, first_n + index % BLOCK_N, sum);
    }
    // Resets the counter for the next launch.
    if (threadIdx.x == 0) arrivals[tile_index] = 0;
#else
#pragma unroll
    for (int pass = 0; pass < BLOCK_M / PASS_M; pass++) {
        transpose_pass(pass);
        for (int index = threadIdx.x; index < PASS_M * BLOCK_N; index += THREADS) {
            store(first_m + pass * PASS_M + index / BLOCK_N, first_n + index % BLOCK_N,
                  reduce_warps(index / BLOCK_N, index % BLOCK_N));
        }
    }
#endif
}
