// y[m, n] = x[m, k] w[n, k]^T [* tensor-wide scales] [+ addend[m, n]] on Hopper for a packed weight in the tiled layout
// of tiled_weight.cuh. x is row-major in f16 or bf16, y and the addend have the output dtype. No dequantized weight is
// written to memory.
//
// Algorithm: persistent, warp-specialized mixed-input GEMM, as in CUTLASS example 55 (hopper_mixed_dtype_gemm). The
// operands are swapped, y^T = w x^T, because wgmma takes only A from registers: A is the dequantized weight, B is x in
// shared memory (PTX ISA, "wgmma.mma_async"). A producer thread loads x by TMA and tiles of w by bulk copies into STAGES
// stages. Each of CONSUMERS warp groups takes FRAGMENTS_N tiles of 64 weight rows and dequantizes the next tile while the
// tensor cores multiply the previous one (two register buffers). The warp groups take turns with wgmma, as in
// FlashAttention-3. Up to 32 rows of x are multiplied by mma.m16n8k16 instead of wgmma. Sums are f32; row scales are
// applied in the epilogue.
//
// A cluster has CLUSTER_N x SPLIT_K blocks. CLUSTER_N blocks of different weight rows share the rows of x: each loads a
// part of them and multicasts it to the others. SPLIT_K blocks share an output tile: each sums a part of k, and then adds
// the partial sums of all for a part of the rows, read from distributed shared memory in fixed order. Partial sums keep
// the layout of the accumulators, so that each access has 16 bytes per thread.
//
// Epilogue: stmatrix transposes the accumulators to rows of y in shared memory, 32 / FRAGMENTS_N rows at a time, and the
// warp group stores whole rows of 64 FRAGMENTS_N elements. With an addend, with f32 outputs or with WIDTH = 1, each warp
// transposes its own 16 columns in f32.
//
//     warp group 0:  producer     x tile [BLOCK_M][64], swizzled                  ]
//                                 w tiles [FRAGMENTS_N * CONSUMERS][64][64]       ]  x STAGES
//     warp group 1:  w tiles 0 to FRAGMENTS_N - 1  --dequantize-->  A fragments  --wgmma m64n(BLOCK_M)k16-->  y^T
//     warp group 2:  the next FRAGMENTS_N w tiles  --dequantize-->  A fragments  --wgmma m64n(BLOCK_M)k16-->  y^T
//
// Traffic: w once per BLOCK_M rows of x; x from L2 n / (CLUSTER_N * BLOCK_N) times; y once. Roofline: bytes of w over
// memory bandwidth, or 2 m n k over 4096 FLOP per cycle and SM: a tile of w takes max(256, 2 BLOCK_M) cycles of wgmma,
// since A fragments in registers are read at a rate of one m64k16 fragment per 64 cycles.
//
// Parameters:
//   KERNEL                   name of the kernel
//   ELEMENT_*                dtype `element`: ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH                    elements of y per store: those of 16 bytes, or 1 (checked in element.cuh)
//   BLOCK_M                  rows of x per block: 8, 16, 32, 64, 96, 128, 160, 192 or 256
//   CONSUMERS                consumer warp groups: 1, 2 or 3
//   FRAGMENTS_N              w tiles per consumer warp group: 1 or 2
//   CLUSTER_N                blocks that share rows of x: 1 or 2
//   SPLIT_K                  blocks that split k: 1 to 8; with more than one, a cluster computes one output tile
//   STAGES                   pipeline stages
//   TENSOR_SCALES            optional: y is multiplied by tensor-wide scales of w and x
//   ADDEND                   optional: an addend is added to y
//   OUTPUT_F32               optional: y and addend are f32
//   OUTPUT_F16               optional: y and addend are f16; by default they have dtype `element`
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
#error "BLOCK_M: rows of x per block: 8, 16, 32, 64, 96, 128, 160, 192 or 256"
#endif
#ifndef CONSUMERS
#error "CONSUMERS: consumer warp groups: 1, 2 or 3"
#endif
#ifndef FRAGMENTS_N
#error "FRAGMENTS_N: w tiles per consumer warp group: 1 or 2"
#endif
#ifndef CLUSTER_N
#error "CLUSTER_N: blocks that share rows of x: 1 or 2"
#endif
#ifndef SPLIT_K
#error "SPLIT_K: blocks that split k: 1 to 8"
#endif
#ifndef STAGES
#error "STAGES: pipeline stages"
#endif

#include "element.cuh"
#include "hopper.cuh"
#include "output_dtype.cuh"
#include "tiled_weight.cuh"

constexpr int GROUP_THREADS = 128;
constexpr int CONSUMER_THREADS = CONSUMERS * GROUP_THREADS;
constexpr int CLUSTER_SIZE = CLUSTER_N * SPLIT_K;
constexpr int BLOCK_TILES = CONSUMERS * FRAGMENTS_N;
constexpr int BLOCK_N = BLOCK_TILES * TILE_N;
constexpr int X_BYTES = BLOCK_M * TILE_K * 2;
constexpr int W_BYTES = BLOCK_TILES * TILE_BYTES;
constexpr int STAGE_BYTES = X_BYTES + W_BYTES;
constexpr int THREAD_SUMS = BLOCK_M / 2;
// For few rows mma takes less time: wgmma with A in registers takes 64 cycles for any BLOCK_M up to 128.
#define USE_WGMMA (BLOCK_M > 32)
// Named barriers: one for all consumers, and one for the turn of each consumer warp group.
constexpr int CONSUMERS_BARRIER = 1, TURN_BARRIER = 2;
// The registers of an SM, distributed over the threads of a block in multiples of 8.
constexpr int CONSUMER_REGISTERS = CONSUMERS == 3 ? 160 : 240;
// x tiles come first, because they need an alignment of 1024 bytes.
constexpr int W_OFFSET = STAGES * X_BYTES;
// Rows of x, in units of eight, whose sums a block stores.
constexpr int EPILOGUE_UNITS = (BLOCK_M / 8 + SPLIT_K - 1) / SPLIT_K;
// Staging of outputs, behind the stages.
constexpr int STAGING_OFFSET = STAGES * STAGE_BYTES;
#define STORE_BY_GROUP (WIDTH > 1 && !defined(ADDEND) && !defined(OUTPUT_F32))
#if STORE_BY_GROUP
// Two buffers of a warp group. The pitch avoids bank conflicts.
constexpr int STAGING_UNITS = 4 / FRAGMENTS_N, GROUP_COLUMNS = FRAGMENTS_N * TILE_N;
constexpr int STAGING_PITCH = GROUP_COLUMNS * 2 + 16, STAGING_BYTES = STAGING_UNITS * 8 * STAGING_PITCH;
constexpr int STAGING_BARRIER = TURN_BARRIER + CONSUMERS;
#else
// 16 columns by 16 rows of a warp, in f32. The pitch avoids bank conflicts.
constexpr int STAGING_UNITS = 2, STAGING_PITCH = 20, STAGING_BYTES = 16 * STAGING_PITCH * 4;
#endif
// With SPLIT_K > 1, the partial sums of the block take the place of the stages.
static_assert(SPLIT_K == 1 || BLOCK_M * BLOCK_N * 4 <= STAGES * STAGE_BYTES, "partial sums must fit");

#if defined(GROUP_SIZE)
// Scale and zero point of a tile row at a step of 16 elements.
__device__ __forceinline__ pair_scale tile_scale(const unsigned char *tile, int row, int step) {
    const element *const scales = reinterpret_cast<const element *>(tile + VALUE_BYTES);
    const int index = (TILE_GROUPS == 1 ? 0 : step * 16 / (int)GROUP_SIZE) * TILE_N + row;
#if defined(HAS_ZERO_POINTS)
    return {scales[index] * BOTH_HALVES, scales[TILE_GROUPS * TILE_N + index] * BOTH_HALVES};
#else
    return {scales[index] * BOTH_HALVES, 0};
#endif
}
#endif

// Merges the bits of a plane into the values, which start at the lowest bit of each half.
template <int PLANE_BITS>
__device__ __forceinline__ void add_plane(const unsigned char *tile, int thread, unsigned (&values)[THREAD_PAIRS]) {
    typedef plane<PLANE_BITS> thread_plane;
    if (!thread_plane::EXISTS) return;
    const thread_plane bits = thread_plane::in(tile)[thread];
#pragma unroll
    for (int i = 0; i < THREAD_PAIRS; i++) {
        const unsigned mask = ((1u << PLANE_BITS) - 1) * BOTH_HALVES << thread_plane::LOW_BIT;
        values[i] =
            and_or(shift_left(bits.words[i * PLANE_BITS / 16], thread_plane::LOW_BIT - thread_plane::first_bit(i)),
                   mask, values[i]);
    }
}

// Dequantizes the values of a thread in a tile: A fragments of four wgmma steps.
__device__ __forceinline__ void dequantize_tile(const unsigned char *tile, int thread,
                                                unsigned (&fragments)[THREAD_PAIRS]) {
#if BITS == 4 || BITS == 2 || BITS == 1
    const plane<BITS> bits = plane<BITS>::in(tile)[thread];
#pragma unroll
    for (int i = 0; i < THREAD_PAIRS; i++)
        fragments[i] = decode_pair(bits.words[i * BITS / 16], plane<BITS>::first_bit(i));
#elif BITS < 8
    unsigned values[THREAD_PAIRS] = {};
    add_plane<4>(tile, thread, values);
    add_plane<2>(tile, thread, values);
    add_plane<1>(tile, thread, values);
#pragma unroll
    for (int i = 0; i < THREAD_PAIRS; i++) fragments[i] = decode_pair(values[i], 0);
#else
    const uint4 *const vectors = reinterpret_cast<const uint4 *>(tile);
#pragma unroll
    for (int p = 0; p < 2; p++) {
        const uint4 vector = vectors[p * TILE_THREADS + thread];
        const unsigned words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
        for (int w = 0; w < 4; w++) {
#pragma unroll
            for (int i = 0; i < 2; i++) fragments[8 * p + w / 2 * 4 + w % 2 + 2 * i] = decode_pair(words[w], i * 8);
        }
    }
#endif
#if defined(GROUP_SIZE)
    const int row = thread / 32 * 16 + thread % 32 / 4;
    pair_scale factors[2];
#pragma unroll
    for (int i = 0; i < THREAD_PAIRS; i++) {
        // Pairs alternate between rows g and g + 8.
        if (i % (TILE_GROUPS == 1 ? 16 : (int)GROUP_SIZE / 4) == 0) {
            factors[0] = tile_scale(tile, row, i / 4);
            factors[1] = tile_scale(tile, row + 8, i / 4);
        }
        fragments[i] = scale_pair(fragments[i], factors[i % 2]);
    }
#endif
}

#if !USE_WGMMA
// Multiplies 16 rows of dequantized weights per warp by the tile of x, with mma. The fragments of A and of the sums are
// those of wgmma; two B fragments are loaded from the swizzled tile at a time.
__device__ __forceinline__ void multiply_by_mma(float (&sums)[THREAD_SUMS], const unsigned (&values)[THREAD_PAIRS],
                                                unsigned x_stage, int lane) {
    constexpr int LOADED_ROWS = BLOCK_M == 8 ? 8 : 16;
#pragma unroll
    for (int part = 0; part < TILE_K / 16; part += 16 / LOADED_ROWS) {
#pragma unroll
        for (int first = 0; first < BLOCK_M; first += LOADED_ROWS) {
            // Lane 8 i + r passes the address of row r of matrix i: two halves of a step, then the next rows or step.
            const int row = first + lane % 8 + (LOADED_ROWS == 16 ? lane / 16 * 8 : 0);
            const int vector = 2 * part + (LOADED_ROWS == 16 ? lane / 8 % 2 : lane / 8);
            unsigned b[4];
            ldmatrix_x4(b, x_stage + row * 128 + ((vector ^ row % 8) << 4));
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int fragment = LOADED_ROWS == 16 ? first / 8 + i : 0, k_step = LOADED_ROWS == 16 ? part : part + i;
                float(&fragment_sums)[4] = *reinterpret_cast<float(*)[4]>(&sums[4 * fragment]);
                const unsigned *const a = &values[4 * k_step];
                mma_m16n8k16(fragment_sums, a[0], a[1], a[2], a[3], b[2 * i], b[2 * i + 1]);
            }
        }
    }
}
#endif

// Loads four floats from the shared memory of another block of the cluster.
__device__ __forceinline__ float4 load_remote(unsigned address, unsigned block) {
    float4 value;
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];\n}"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(address), "r"(block));
    return value;
}

// One store of 16 bytes. In this kernel, the compiler splits an assignment of a uint4 into four stores.
__device__ __forceinline__ void store_16_bytes(output *to, const unsigned (&words)[4]) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                 "r"(words[3])
                 : "memory");
}

#if STORE_BY_GROUP
// Stores the transposes of two 8 x 8 matrices of 16-bit elements, given as fragments of mma. Lanes 0 to 7 give the
// addresses of the rows of the first transpose, lanes 8 to 15 the addresses of the rows of the second.
__device__ __forceinline__ void stmatrix_x2_transposed(unsigned address, unsigned first, unsigned second) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [%0], {%1, %2};" ::"r"(address), "r"(first),
                 "r"(second)
                 : "memory");
}

// Two outputs as a word, the first in the lower half.
__device__ __forceinline__ unsigned pack_outputs(float first, float second) {
#if defined(OUTPUT_F16)
    return to_output(first) | (unsigned)to_output(second) << 16;
#else
    return pack_pair(first, second);
#endif
}
#else
// Adds an addend, if there is one, to eight adjacent elements of a row and stores them, in accesses of 16 bytes unless
// WIDTH is 1. `count` is the number of elements up to the end of the row, or zero to store none.
__device__ __forceinline__ void store_eight(float (&values)[8], output *y, const output *addend, u64 count) {
#if WIDTH == 1
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (i >= count) return;
        y[i] = to_output(addend ? values[i] + from_output(addend[i]) : values[i]);
    }
#elif defined(OUTPUT_F32)
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        if (i >= count) return;
        unsigned words[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            words[j] = __float_as_uint(addend ? values[i + j] + addend[i + j] : values[i + j]);
        store_16_bytes(y + i, words);
    }
#else
    if (count == 0) return;
    if (addend) {
        const uint4 addends = *reinterpret_cast<const uint4 *>(addend);
        const unsigned words[4] = {addends.x, addends.y, addends.z, addends.w};
#pragma unroll
        for (int i = 0; i < 8; i++) values[i] += from_output((output)(words[i / 2] >> 16 * (i % 2)));
    }
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; i++) words[i] = to_output(values[2 * i]) | (unsigned)to_output(values[2 * i + 1]) << 16;
    store_16_bytes(y, words);
#endif
}
#endif

extern "C" __global__ void __cluster_dims__(CLUSTER_SIZE, 1, 1) __launch_bounds__(GROUP_THREADS + CONSUMER_THREADS, 1)
    KERNEL(const element *, const unsigned char *__restrict__ weights,
#if !defined(GROUP_SIZE)
           const stored_scale *__restrict__ scales,
#endif
#ifdef TENSOR_SCALES
           const float *__restrict__ weight_tensor_scale, const float *__restrict__ x_tensor_scale,
#endif
#ifdef ADDEND
           const output *__restrict__ addend,
#endif
           output *__restrict__ y, u64 m, u64 n, u64 k, const __grid_constant__ tensor_map x_map) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[2 * STAGES];
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    const unsigned stages = shared_address(shared);
    // Arrivals at `empty`: each consumer warp of this block, and one warp per consumer group of the other block.
    if (threadIdx.x == 0) {
        init_pipeline_barriers<STAGES>(full, empty, CONSUMER_THREADS / 32 + (CLUSTER_N - 1) * CONSUMERS);
        prefetch_tensor_map(x_map);
    }
    publish_barriers();
    if (CLUSTER_SIZE > 1) cluster_sync();

    const unsigned rank = blockIdx.x % CLUSTER_SIZE, column = rank % CLUSTER_N, split = rank / CLUSTER_N;
    const unsigned first_cluster = blockIdx.x / CLUSTER_SIZE, clusters = gridDim.x / CLUSTER_SIZE;
    const unsigned m_tiles = ((unsigned)m + BLOCK_M - 1) / BLOCK_M;
    const unsigned n_tiles = ((unsigned)n + BLOCK_N - 1) / BLOCK_N;
    const unsigned output_tiles = (n_tiles + CLUSTER_N - 1) / CLUSTER_N * m_tiles;
    const unsigned k_tiles = row_tiles((unsigned)k), first_step = k_tiles * split / SPLIT_K;
    const unsigned steps = k_tiles * (split + 1) / SPLIT_K - first_step;
    // First row of x and first row of w of an output tile. Tiles advance along m first, so that w is read once.
    const auto first_row = [&](unsigned tile) { return tile % m_tiles * BLOCK_M; };
    const auto n_tile = [&](unsigned tile) { return tile / m_tiles * CLUSTER_N + column; };

    if (threadIdx.x < GROUP_THREADS) {
        warpgroup_reg_dealloc<24>();
        pipeline_state<STAGES> pipe = {0, 0};
        for (unsigned tile = first_cluster; threadIdx.x == 0 && tile < output_tiles; tile += clusters) {
            const unsigned row = first_row(tile) + column * (BLOCK_M / CLUSTER_N);
            const unsigned char *w_source = weights + ((u64)n_tile(tile) * k_tiles + first_step) * W_BYTES;
            // The last cluster may have a block without weights. It multiplies old values, which reach no element of y.
            const bool has_weights = n_tile(tile) < n_tiles;
            for (unsigned step = first_step; step < first_step + steps; step++, pipe.advance(), w_source += W_BYTES) {
                const unsigned barrier = full + 8 * pipe.stage;
                const unsigned x_stage = stages + pipe.stage * X_BYTES + column * (X_BYTES / CLUSTER_N);
                if (pipe.round > 0) mbarrier_wait(empty + 8 * pipe.stage, (pipe.round - 1) % 2);
                mbarrier_arrive_expect_tx(barrier, X_BYTES + (has_weights ? W_BYTES : 0));
                if (CLUSTER_N == 1) {
                    tma_load(x_stage, x_map, step * TILE_K, row, 0, barrier);
                } else {
                    const unsigned short blocks = ((1 << CLUSTER_N) - 1) << split * CLUSTER_N;
                    tma_load_multicast(x_stage, x_map, step * TILE_K, row, barrier, blocks);
                }
                // One long copy: the copy engine needs about 250 cycles for a copy of any length.
                if (has_weights) bulk_load(stages + W_OFFSET + pipe.stage * W_BYTES, w_source, W_BYTES, barrier);
            }
        }
        __syncwarp();
        // The consumers write and read partial sums.
        if (SPLIT_K > 1) cluster_sync();
    } else {
        warpgroup_reg_alloc<CONSUMER_REGISTERS>();
        const int group = threadIdx.x / GROUP_THREADS - 1, thread = threadIdx.x % GROUP_THREADS;
        const int warp = thread / 32, lane = thread % 32;
        const auto release = [&](int stage) {
            if (lane == 0) mbarrier_arrive(empty + 8 * stage);
            // The wgmma of a warp group is complete for all of its four warps.
            if (CLUSTER_N > 1 && lane == 0 && warp == 0) mbarrier_arrive_remote(empty + 8 * stage, rank ^ 1);
        };
#if STORE_BY_GROUP
        int buffer = 0;
#endif
        pipeline_state<STAGES> pipe = {0, 0};
        // The first warp group has the first turn.
        if (USE_WGMMA && CONSUMERS > 1 && group == CONSUMERS - 1) named_barrier_arrive(TURN_BARRIER, 2 * GROUP_THREADS);
        for (unsigned tile = first_cluster; tile < output_tiles; tile += clusters) {
            const u64 first_n = (u64)n_tile(tile) * BLOCK_N + group * FRAGMENTS_N * TILE_N + warp * 16;
            float factors[FRAGMENTS_N][2];
#pragma unroll
            for (int f = 0; f < FRAGMENTS_N; f++) {
#pragma unroll
                for (int h = 0; h < 2; h++) {
#if !defined(GROUP_SIZE)
                    const u64 row = first_n + f * TILE_N + 8 * h + lane / 4;
                    factors[f][h] = row < n ? SCALE_DTYPE::to_float(scales[row]) : 0;
#elif defined(TENSOR_SCALES)
                    factors[f][h] = *weight_tensor_scale * *x_tensor_scale;
#else
                    factors[f][h] = 1;
#endif
                }
            }
            float sums[FRAGMENTS_N][THREAD_SUMS] = {};
            int previous = 0;
            // Multiplies the tile of fragment f. With wgmma, `values` stay in use until the next call has returned.
            const auto multiply = [&](unsigned (&values)[THREAD_PAIRS], int f, unsigned step) {
                const unsigned char *const w_stage = shared + W_OFFSET + pipe.stage * W_BYTES;
                const unsigned x_stage = stages + pipe.stage * X_BYTES;
                dequantize_tile(w_stage + (group * FRAGMENTS_N + f) * TILE_BYTES, thread, values);
#if USE_WGMMA
                // All values are complete before the first wgmma; otherwise the instructions would be serialized.
#pragma unroll
                for (int i = 0; i < THREAD_PAIRS; i++) asm volatile("" : "+r"(values[i]));
                // The warp groups take turns: otherwise all would dequantize, and then all would multiply.
                if (CONSUMERS > 1) named_barrier_sync(TURN_BARRIER + group, 2 * GROUP_THREADS);
                wgmma_fence();
#pragma unroll
                for (int part = 0; part < TILE_K / 16; part++) {
                    wgmma_registers<false>(sums[f], &values[4 * part], k_major(x_stage + part * 32),
                                           step != 0 || part != 0);
                }
                wgmma_commit();
                if (CONSUMERS > 1) named_barrier_arrive(TURN_BARRIER + (group + 1) % CONSUMERS, 2 * GROUP_THREADS);
                // The previous wgmma group is complete: its registers are free, and so is the previous stage.
                wgmma_wait<1>();
                if (f == 0 && step != 0) release(previous);
#else
                multiply_by_mma(sums[f], values, x_stage, lane);
                if (f == FRAGMENTS_N - 1) {
                    __syncwarp();
                    release(pipe.stage);
                }
#endif
            };
            unsigned even[THREAD_PAIRS], odd[THREAD_PAIRS];
            const auto consume = [&](unsigned (&first)[THREAD_PAIRS], unsigned (&second)[THREAD_PAIRS], unsigned step) {
                mbarrier_wait(full + 8 * pipe.stage, pipe.round % 2);
                multiply(first, 0, step);
                if constexpr (FRAGMENTS_N == 2) multiply(second, FRAGMENTS_N - 1, step);
                previous = pipe.stage;
                pipe.advance();
            };
            // The buffers alternate from one wgmma group to the next.
            for (unsigned step = 0; step < steps; step += 2) {
                consume(even, odd, step);
                if (step + 1 == steps) break;
                if constexpr (FRAGMENTS_N == 2) {
                    consume(even, odd, step + 1);
                } else {
                    consume(odd, even, step + 1);
                }
            }
#if USE_WGMMA
#pragma unroll
            for (int f = 0; f < FRAGMENTS_N; f++) wgmma_wait_accumulators<0>(sums[f]);
            release(previous);
#endif

#if SPLIT_K > 1
            // No stage is read any more: the partial sums take their place, per fragment and unit a vector per thread.
            named_barrier_sync(CONSUMERS_BARRIER, CONSUMER_THREADS);
            const auto partial = [&](int f, int unit) {
                return ((f * (BLOCK_M / 8) + unit) * CONSUMER_THREADS + group * GROUP_THREADS + thread) * 16;
            };
#pragma unroll
            for (int f = 0; f < FRAGMENTS_N; f++) {
#pragma unroll
                for (int unit = 0; unit < BLOCK_M / 8; unit++) {
                    const float *const unit_sums = &sums[f][4 * unit];
                    *reinterpret_cast<float4 *>(shared + partial(f, unit)) = {unit_sums[0], unit_sums[1], unit_sums[2],
                                                                             unit_sums[3]};
                }
            }
            cluster_sync();
            const int first_unit = BLOCK_M / 8 * split / SPLIT_K, units = BLOCK_M / 8 * (split + 1) / SPLIT_K - first_unit;
            float totals[FRAGMENTS_N][4 * EPILOGUE_UNITS] = {};
#pragma unroll
            for (int f = 0; f < FRAGMENTS_N; f++) {
#pragma unroll
                for (int unit = 0; unit < EPILOGUE_UNITS; unit++) {
                    // The last unit of a shorter part is loaded, but not stored.
                    const unsigned address = stages + partial(f, min(first_unit + unit, BLOCK_M / 8 - 1));
#pragma unroll
                    for (int block = 0; block < SPLIT_K; block++) {
                        const float4 loaded = load_remote(address, block * CLUSTER_N + column);
                        float *const unit_totals = &totals[f][4 * unit];
                        unit_totals[0] += loaded.x, unit_totals[1] += loaded.y;
                        unit_totals[2] += loaded.z, unit_totals[3] += loaded.w;
                    }
                }
            }
#else
            constexpr int first_unit = 0, units = EPILOGUE_UNITS;
            auto &totals = sums;
#endif
            const u64 first_m = first_row(tile) + 8 * first_unit;
            const u64 rows = first_m < m ? min((u64)(8 * units), m - first_m) : 0;
#if STORE_BY_GROUP
            const u64 group_n = (u64)n_tile(tile) * BLOCK_N + group * GROUP_COLUMNS;
#pragma unroll
            for (int first = 0; first < EPILOGUE_UNITS; first += STAGING_UNITS, buffer ^= 1) {
                const unsigned staging = stages + STAGING_OFFSET + (2 * group + buffer) * STAGING_BYTES;
#pragma unroll
                for (int f = 0; f < FRAGMENTS_N; f++) {
#pragma unroll
                    for (int unit = 0; unit < STAGING_UNITS && first + unit < EPILOGUE_UNITS; unit++) {
                        const float *const unit_totals = &totals[f][4 * (first + unit)];
                        const unsigned low = pack_outputs(unit_totals[0] * factors[f][0], unit_totals[1] * factors[f][0]);
                        const unsigned high = pack_outputs(unit_totals[2] * factors[f][1], unit_totals[3] * factors[f][1]);
                        const int row = 8 * unit + lane % 8, n_index = f * TILE_N + warp * 16 + lane / 8 % 2 * 8;
                        stmatrix_x2_transposed(staging + row * STAGING_PITCH + n_index * 2, low, high);
                    }
                }
                // The other buffer is free after the barrier: all threads have read it before.
                named_barrier_sync(STAGING_BARRIER + group, GROUP_THREADS);
#pragma unroll
                for (int part = thread; part < STAGING_UNITS * GROUP_COLUMNS; part += GROUP_THREADS) {
                    const int row = part / (GROUP_COLUMNS / 8), n_part = part % (GROUP_COLUMNS / 8) * 8;
                    if (8 * first + row >= rows || group_n + n_part >= n) continue;
                    const uint4 source = *reinterpret_cast<const uint4 *>(
                        shared + STAGING_OFFSET + (2 * group + buffer) * STAGING_BYTES + row * STAGING_PITCH + n_part * 2);
                    *reinterpret_cast<uint4 *>(y + (first_m + 8 * first + row) * n + group_n + n_part) = source;
                }
            }
#else
            float *const staging =
                reinterpret_cast<float *>(shared + STAGING_OFFSET + (group * 4 + warp) * STAGING_BYTES);
#pragma unroll
            for (int f = 0; f < FRAGMENTS_N; f++) {
#pragma unroll
                for (int first = 0; first < EPILOGUE_UNITS; first += STAGING_UNITS) {
                    __syncwarp();
#pragma unroll
                    for (int i = 0; i < 4 * STAGING_UNITS && 4 * first + i < 4 * EPILOGUE_UNITS; i++) {
                        const int row = i / 4 * 8 + lane % 4 * 2 + i % 2, h = i / 2 % 2;
                        staging[row * STAGING_PITCH + 8 * h + lane / 4] = totals[f][4 * first + i] * factors[f][h];
                    }
                    __syncwarp();
                    const int row = lane % 16;
                    const float4 *const source =
                        reinterpret_cast<const float4 *>(staging + row * STAGING_PITCH + lane / 16 * 8);
                    const float4 low = source[0], high = source[1];
                    float values[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
                    const u64 n_index = first_n + f * TILE_N + lane / 16 * 8;
                    const u64 index = (first_m + 8 * first + row) * n + n_index;
#ifdef ADDEND
                    const output *const addends = addend + index;
#else
                    const output *const addends = nullptr;
#endif
                    store_eight(values, y + index, addends, 8 * first + row < rows && n_index < n ? n - n_index : 0);
                }
            }
#endif
        }
    }
    // Shared memory must remain valid until the other blocks have finished multicasts, remote arrivals and remote loads.
    if (CLUSTER_SIZE > 1) cluster_sync();
}
