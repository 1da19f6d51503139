// y[m, n] = f(x[m, K] w[n, K]^T * row_scale[m] * column_scale[n]) [+ addend[m, n]] on Hopper for 8-bit operands, with
// the epilogue fused. x and w are row-major int8 (exact s32 sums; column scales in dtype `element`) or e4m3 (f32 sums
// with fast accumulation, which keeps about 14 bits; f32 column scales). y and the addend have a 16-bit dtype; the
// result is rounded once. n is a multiple of 8.
//
// Algorithm: persistent, warp-specialized GEMM with clusters and TMA multicast, as
// `KernelTmaWarpSpecializedCooperative` of CUTLASS (examples 48 and 54). A producer thread fills STAGES stages of 128
// bytes of k by TMA. Two consumer warp groups multiply 64 rows each (PTX ISA, "wgmma.mma_async", m64n256k32). While
// they execute the epilogue, the producer already fills the stages of the next tile. A cluster is two blocks along m:
// each loads half of the w tile and multicasts it to both, so a stage is empty when both blocks have consumed it.
//
//                   w tile: 256 columns
//                   | half 0: loaded by block 0 | half 1: loaded by block 1 |   multicast to both blocks
//     block 0       +---------------------------+---------------------------+
//      rows   0..63 | consumer warp group 1     d[128] per thread           |
//      rows 64..127 | consumer warp group 2     d[128] per thread           |
//     block 1       +-------------------------------------------------------+
//      rows 128..   | as block 0                                            |
//
//     rasterization: row by row in bands of RASTER_BAND tile columns, so that the w tiles of a wave stay in L2
//
// Traffic: x, w and y once, if x and a band of w fit into L2; from L2 32 KiB per block and step. Roofline: an SM
// executes 8192 operations per cycle, so a step takes 2 * 128 * 256 * 128 / 8192 = 1024 cycles; 132 SMs at 1.98 GHz
// reach 2.14e15 operations/s.
//
// Parameters:
//   KERNEL       name of the kernel
//   ELEMENT_*    dtype `element`: ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH        any value; required by element.cuh
//   K            reduction size in bytes, the row length of x and w
//   STAGES       pipeline stages
//   RASTER_BAND  tile columns per band of the rasterization
//   QUANT_INT8   operands are int8, sums s32
//   QUANT_E4M3   operands are e4m3, sums f32; the default without QUANT_INT8
//   PER_TENSOR   optional: one scale per tensor instead of one per row and column
//   ACTIVATE     optional: activation of activations.cuh, applied after the scales
//   ADDEND       optional: an addend is added to y, after the activation

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef K
#error "K: reduction size in bytes, the row length of x and w"
#endif
#ifndef STAGES
#error "STAGES: pipeline stages"
#endif
#ifndef RASTER_BAND
#error "RASTER_BAND: tile columns per band of the rasterization"
#endif

#include "activations.cuh"
#include "element.cuh"
#include "hopper.cuh"

constexpr int BLOCK_M = 128;
constexpr int BLOCK_N = 256;
constexpr int BLOCK_K = 128;
constexpr int GROUP_THREADS = 128;
constexpr int CONSUMER_WARPS = 2 * GROUP_THREADS / 32;
constexpr int CLUSTER_SIZE = 2;
constexpr int X_BYTES = BLOCK_M * BLOCK_K;
constexpr int W_BYTES = BLOCK_N * BLOCK_K;
constexpr int STAGE_BYTES = X_BYTES + W_BYTES;
constexpr int STEPS = (K + BLOCK_K - 1) / BLOCK_K;

#if defined(QUANT_INT8)
typedef int accumulator;
typedef element column_scale;
#define ACCUMULATOR "+r"
#define WGMMA_DTYPES "s32.s8.s8"
#define IMM_SCALES ""
__device__ __forceinline__ float to_f32(column_scale scale) { return widen(scale); }
#else
typedef float accumulator;
typedef float column_scale;
#define ACCUMULATOR "+f"
#define WGMMA_DTYPES "f32.e4m3.e4m3"
#define IMM_SCALES ", 1, 1"
__device__ __forceinline__ float to_f32(column_scale scale) { return scale; }
#endif

// wgmma m64n256k32 with both operands in shared memory; overwrites d unless `accumulate` is set.
__device__ __forceinline__ void wgmma(accumulator (&d)[128], u64 a, u64 b, int accumulate) {
    asm volatile(
        "{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k32." WGMMA_DTYPES " {" ACCUMULATORS_128
        "}, %128, %129, accumulate" IMM_SCALES ";\n}"
        : BIND_128(ACCUMULATOR, d, 0)
        : "l"(a), "l"(b), "r"(accumulate));
}

// First row and column of the tile pair of a cluster. Pairs advance along the rows of a band, bands from left to right.
struct cluster_tile {
    unsigned row, column;
    __device__ __forceinline__ cluster_tile(unsigned index, unsigned tiles_m, unsigned tiles_n) {
        const unsigned band = index / (RASTER_BAND * tiles_m), in_band = index % (RASTER_BAND * tiles_m);
        const unsigned width = min((unsigned)RASTER_BAND, tiles_n - band * RASTER_BAND);
        row = in_band / width * (CLUSTER_SIZE * BLOCK_M);
        column = (band * RASTER_BAND + in_band % width) * BLOCK_N;
    }
};

__device__ __forceinline__ float epilogue(accumulator sum, float row_scale, float column_scale) {
    const float value = (float)sum * row_scale * column_scale;
#ifdef ACTIVATE
    return ACTIVATE(value);
#else
    return value;
#endif
}

extern "C" __global__ void __cluster_dims__(CLUSTER_SIZE, 1, 1) __launch_bounds__(3 * GROUP_THREADS, 1)
    KERNEL(const unsigned char *, const unsigned char *, const float *__restrict__ row_scales,
           const column_scale *__restrict__ column_scales,
#ifdef ADDEND
           const element *__restrict__ addend,
#endif
           element *__restrict__ y, u64 m, u64 n, const __grid_constant__ tensor_map x_map,
           const __grid_constant__ tensor_map w_map) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[2 * STAGES];
    const unsigned stages = shared_address(shared);
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
#ifndef PER_TENSOR
    __shared__ float smem_column_scales[2][BLOCK_N];
#endif
    // Arrivals at `empty`: each consumer warp of this block, and one warp per consumer group of the other block.
    if (threadIdx.x == 0) init_pipeline_barriers<STAGES>(full, empty, CONSUMER_WARPS + 2);
    publish_barriers();
    cluster_sync();

    const unsigned rank = blockIdx.x % CLUSTER_SIZE;
    const unsigned tiles_m = ((unsigned)m + CLUSTER_SIZE * BLOCK_M - 1) / (CLUSTER_SIZE * BLOCK_M),
                   tiles_n = ((unsigned)n + BLOCK_N - 1) / BLOCK_N;
    const int group = threadIdx.x / GROUP_THREADS;
    if (group == 0) {
        warpgroup_reg_dealloc<40>();
        pipeline_state<STAGES> pipe = {0, 0};
        for (unsigned tile_pair = blockIdx.x / CLUSTER_SIZE; threadIdx.x == 0 && tile_pair < tiles_m * tiles_n;
             tile_pair += gridDim.x / CLUSTER_SIZE) {
            const cluster_tile origin(tile_pair, tiles_m, tiles_n);
            for (int step = 0; step < STEPS; step++, pipe.advance()) {
                const unsigned barrier = full + 8 * pipe.stage, destination = stages + pipe.stage * STAGE_BYTES;
                if (pipe.round > 0) mbarrier_wait(empty + 8 * pipe.stage, (pipe.round - 1) % 2);
                mbarrier_arrive_expect_tx(barrier, STAGE_BYTES);
                // TMA boxes count 16-bit elements, i.e. pairs of 8-bit values.
                tma_load(destination, x_map, step * (BLOCK_K / 2), origin.row + rank * BLOCK_M, 0, barrier);
                tma_load_multicast(destination + X_BYTES + rank * (W_BYTES / CLUSTER_SIZE), w_map, step * (BLOCK_K / 2),
                                   origin.column + rank * (BLOCK_N / CLUSTER_SIZE), barrier, (1 << CLUSTER_SIZE) - 1);
            }
        }
    } else {
        warpgroup_reg_alloc<232>();
        const int lane = threadIdx.x % 32, warp = threadIdx.x % GROUP_THREADS / 32;
        const unsigned rows = (group - 1) * (BLOCK_M / 2);
        const auto release = [&](int stage) {
            if (lane == 0) mbarrier_arrive(empty + 8 * stage);
            // The wgmma of a warp group is complete for all of its four warps.
            if (lane == 0 && warp == 0) mbarrier_arrive_remote(empty + 8 * stage, rank ^ 1);
        };
        accumulator sums[BLOCK_N / 2];
        pipeline_state<STAGES> pipe = {0, 0};
        for (unsigned tile_pair = blockIdx.x / CLUSTER_SIZE; tile_pair < tiles_m * tiles_n;
             tile_pair += gridDim.x / CLUSTER_SIZE) {
            const cluster_tile origin(tile_pair, tiles_m, tiles_n);
#ifndef PER_TENSOR
            // Loaded early to hide the latency.
            const unsigned pair_column = threadIdx.x % GROUP_THREADS * 2, scale_column = origin.column + pair_column;
            const float first_scale = scale_column < n ? to_f32(column_scales[scale_column]) : 0.0f;
            const float second_scale = scale_column + 1 < n ? to_f32(column_scales[scale_column + 1]) : 0.0f;
#endif
            int previous = 0;
            for (int step = 0; step < STEPS; step++, pipe.advance()) {
                mbarrier_wait(full + 8 * pipe.stage, pipe.round % 2);
                const unsigned x_tile = stages + pipe.stage * STAGE_BYTES + rows * BLOCK_K;
                const unsigned w_tile = stages + pipe.stage * STAGE_BYTES + X_BYTES;
                wgmma_fence();
#pragma unroll
                for (int part = 0; part < BLOCK_K / 32; part++) {
                    wgmma(sums, k_major(x_tile + part * 32), k_major(w_tile + part * 32), step != 0 || part != 0);
                }
                wgmma_commit();
                // The wgmma group of the previous step is complete: its stage is free.
                wgmma_wait<1>();
                if (step != 0) release(previous);
                previous = pipe.stage;
            }
            wgmma_wait_accumulators<0>(sums);
            release(previous);

#ifndef PER_TENSOR
            float *const scales = smem_column_scales[group - 1];
            named_barrier_sync(group, GROUP_THREADS);
            scales[pair_column] = first_scale;
            scales[pair_column + 1] = second_scale;
            named_barrier_sync(group, GROUP_THREADS);
#endif
            const u64 row = (u64)origin.row + rank * BLOCK_M + rows + warp * 16 + lane / 4;
            float row_factors[2];
#pragma unroll
            for (int h = 0; h < 2; h++) {
#ifdef PER_TENSOR
                row_factors[h] = row_scales[0];
#else
                row_factors[h] = row + 8 * h < m ? row_scales[row + 8 * h] : 0.0f;
#endif
            }
#pragma unroll
            for (int part = 0; part < BLOCK_N; part += 32) {
                // A thread holds two adjacent columns in each of four 8-column blocks.
                const unsigned pairs = part + lane % 4 * 2;
                float column_factors[8];
#pragma unroll
                for (int i = 0; i < 8; i++) {
#ifdef PER_TENSOR
                    column_factors[i] = to_f32(column_scales[0]);
#else
                    column_factors[i] = scales[pairs + i / 2 * 8 + i % 2];
#endif
                }
                // After the transposition each lane stores eight columns; four lanes cover 64 contiguous bytes of a
                // row.
                const unsigned store_column = origin.column + part + lane % 4 * 8;
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    unsigned words[4];
#pragma unroll
                    for (int chunk = 0; chunk < 4; chunk++) {
                        const accumulator *const pair_sums = &sums[part / 2 + 4 * chunk + 2 * h];
                        float first = epilogue(pair_sums[0], row_factors[h], column_factors[2 * chunk]);
                        float second = epilogue(pair_sums[1], row_factors[h], column_factors[2 * chunk + 1]);
#ifdef ADDEND
                        const unsigned column = origin.column + pairs + 8 * chunk;
                        if (row + 8 * h < m && column < n) {
                            const u64 index = (row + 8 * h) * n + column;
                            const unsigned addends = *reinterpret_cast<const unsigned *>(addend + index);
                            first += widen((element)addends);
                            second += widen((element)(addends >> 16));
                        }
#endif
                        words[chunk] = pack_pair(first, second);
                    }
                    transpose_4x4(words, lane);
                    if (row + 8 * h < m && store_column < n) {
                        *reinterpret_cast<uint4 *>(y + (row + 8 * h) * n + store_column) =
                            make_uint4(words[0], words[1], words[2], words[3]);
                    }
                }
            }
        }
    }
    // Shared memory must remain valid until the other block has finished its multicast and remote arrivals.
    cluster_sync();
}
