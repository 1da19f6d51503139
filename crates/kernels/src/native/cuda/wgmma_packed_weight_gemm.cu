// y[m, n] = x[m, K] w[n, K]^T [* tensor-wide scales] [+ addend[m, n]] on Hopper for a packed weight in the tiled layout
// of tiled_weight.cuh. x is row-major in f16 or bf16, y and the addend have the output dtype. No dequantized weight is
// written to memory.
//
// Algorithm: warp-specialized mixed-input GEMM, as in CUTLASS example 55 (hopper_mixed_dtype_gemm). The operands are
// swapped, y^T = w x^T, because wgmma takes only A from registers: A is the dequantized weight, B is x in shared memory
// (PTX ISA, "wgmma.mma_async"). A producer thread loads x by TMA and tiles of w by bulk copies into STAGES stages. Two
// consumer warp groups take 64 weight rows each and dequantize the next tile while the tensor cores multiply the
// previous one (two register buffers). Sums are f32; row scales are applied in the epilogue. The last block to arrive
// adds the SPLIT_K partial tiles in fixed order.
//
//     warp group 0:  producer     x tile [BLOCK_M][64], swizzled  ]
//                                 w tile [128][64], BITS bits     ]  x STAGES
//     warp group 1:  rows   0.. 63 of the w tile  --dequantize-->  A fragments  --wgmma m64n(BLOCK_M)k16-->  y^T
//     warp group 2:  rows  64..127 of the w tile  --dequantize-->  A fragments  --wgmma m64n(BLOCK_M)k16-->  y^T
//
// Traffic: w once per BLOCK_M rows of x; x from L2 n / 128 times; with SPLIT_K > 1 also 8 m n SPLIT_K bytes of partial
// sums. Roofline: bytes of w over memory bandwidth, or 2 m n K over 4096 FLOP per cycle and SM: a tile of w is 4
// BLOCK_M cycles of wgmma, and about 200 cycles of dequantization that overlap them.
//
// Parameters:
//   KERNEL                   name of the kernel
//   ELEMENT_*                dtype `element`: ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH                    elements of y per store: those of 16 bytes, or 1 (checked in element.cuh)
//   BLOCK_M                  rows of x per block: 16, 32, 64 or 128
//   SPLIT_K                  blocks that split k
//   STAGES                   pipeline stages
//   TENSOR_SCALES            optional: y is multiplied by tensor-wide scales of w and x
//   ADDEND                   optional: an addend is added to y
//   OUTPUT_F32               optional: y and addend are f32
//   OUTPUT_F16               optional: y and addend are f16; by default they have dtype `element`
//   K                        reduction size: elements of a weight row
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
#error "BLOCK_M: rows of x per block: 16, 32, 64 or 128"
#endif
#ifndef SPLIT_K
#error "SPLIT_K: blocks that split k"
#endif
#ifndef STAGES
#error "STAGES: pipeline stages"
#endif

#include "element.cuh"
#include "hopper.cuh"
#include "output_dtype.cuh"
#include "tiled_weight.cuh"

constexpr int GROUP_THREADS = 128;
constexpr int X_BYTES = BLOCK_M * TILE_K * 2;
constexpr int THREAD_SUMS = BLOCK_M / 2;
// Pitch of the staged sums, in floats: no two threads of a warp access one bank.
constexpr int PITCH = TILE_N + 4;

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

extern "C" __global__ void __launch_bounds__(3 * GROUP_THREADS, 1)
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
           output *__restrict__ y,
#if SPLIT_K > 1
           float *__restrict__ partials, unsigned *__restrict__ arrivals,
#endif
           u64 m, u64 n, const __grid_constant__ tensor_map x_map) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[2 * STAGES];
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    unsigned char *const w_stages = shared + STAGES * X_BYTES;
    const unsigned x_stages = shared_address(shared);
    if (threadIdx.x == 0) init_pipeline_barriers<STAGES>(full, empty, 2 * GROUP_THREADS / 32);
    publish_barriers();

    const unsigned output_tiles = gridDim.x / SPLIT_K;
    const unsigned split = blockIdx.x / output_tiles, output_tile = blockIdx.x % output_tiles;
    const unsigned n_tiles = ((unsigned)n + TILE_N - 1) / TILE_N;
    const u64 first_n = (u64)(output_tile % n_tiles) * TILE_N;
    const u64 first_m = (u64)(output_tile / n_tiles) * BLOCK_M;
    const int first_tile = (int)((u64)K_TILES * split / SPLIT_K);
    const int tiles = (int)((u64)K_TILES * (split + 1) / SPLIT_K) - first_tile;

    if (threadIdx.x < GROUP_THREADS) {
        warpgroup_reg_dealloc<24>();
        const unsigned char *const source =
            weights + ((u64)(output_tile % n_tiles) * K_TILES + first_tile) * TILE_BYTES;
        for (int tile = 0; threadIdx.x == 0 && tile < tiles; tile++) {
            const int stage = tile % STAGES;
            const unsigned barrier = full + 8 * stage;
            if (tile >= STAGES) mbarrier_wait(empty + 8 * stage, (tile / STAGES - 1) % 2);
            mbarrier_arrive_expect_tx(barrier, X_BYTES + TILE_BYTES);
            tma_load(x_stages + stage * X_BYTES, x_map, (first_tile + tile) * TILE_K, (int)first_m, 0, barrier);
            bulk_load(x_stages + STAGES * X_BYTES + stage * TILE_BYTES, source + (u64)tile * TILE_BYTES, TILE_BYTES,
                      barrier);
        }
        return;
    }

    warpgroup_reg_alloc<240>();
    const int thread = threadIdx.x - GROUP_THREADS, lane = thread % 32;
    float sums[THREAD_SUMS] = {};
    const auto multiply_tile = [&](int tile, unsigned (&fragments)[THREAD_PAIRS]) {
        const int stage = tile % STAGES;
        mbarrier_wait(full + 8 * stage, tile / STAGES % 2);
        dequantize_tile(w_stages + stage * TILE_BYTES, thread, fragments);
        // All values are complete before the first wgmma; otherwise the instructions would be serialized.
#pragma unroll
        for (int i = 0; i < THREAD_PAIRS; i++) asm volatile("" : "+r"(fragments[i]));
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < TILE_K / 16; step++) {
            const u64 x_descriptor = k_major(x_stages + stage * X_BYTES + step * 32);
            wgmma_registers<false>(sums, &fragments[4 * step], x_descriptor, tile != 0 || step != 0);
        }
        wgmma_commit();
        // The wgmma group of the previous tile is complete: its registers and its stage are free.
        wgmma_wait<1>();
        if (tile > 0 && lane == 0) mbarrier_arrive(empty + 8 * ((tile - 1) % STAGES));
    };
    unsigned even[THREAD_PAIRS], odd[THREAD_PAIRS];
    int tile = 0;
    for (; tile + 1 < tiles; tile += 2) {
        multiply_tile(tile, even);
        multiply_tile(tile + 1, odd);
    }
    if (tile < tiles) multiply_tile(tile, even);
    wgmma_wait_accumulators<0>(sums);

    const auto sync_consumers = [] { named_barrier_sync(1, 2 * GROUP_THREADS); };
#if SPLIT_K > 1
    float *const block_partials = partials + ((u64)output_tile * SPLIT_K + split) * (TILE_N * BLOCK_M) + thread;
#pragma unroll
    for (int i = 0; i < THREAD_SUMS; i++) block_partials[i * 2 * GROUP_THREADS] = sums[i];
    __threadfence();
    sync_consumers();
    __shared__ bool last;
    if (thread == 0) last = atomicAdd(arrivals + output_tile, 1u) == SPLIT_K - 1;
    sync_consumers();
    if (!last) return;
    __threadfence();
    const float *const tile_partials = partials + (u64)output_tile * SPLIT_K * (TILE_N * BLOCK_M) + thread;
#pragma unroll
    for (int i = 0; i < THREAD_SUMS; i++) {
        sums[i] = 0;
        for (int part = 0; part < SPLIT_K; part++)
            sums[i] += __ldcg(tile_partials + (u64)part * (TILE_N * BLOCK_M) + i * 2 * GROUP_THREADS);
    }
    // Resets the counter for the next launch.
    if (thread == 0) arrivals[output_tile] = 0;
#endif

    // Epilogue through shared memory, which is unused once both groups are here, so that rows of y are written
    // contiguously.
    sync_consumers();
    float *const staged = reinterpret_cast<float *>(shared);
    const int row = thread / 32 * 16 + lane / 4;
#if !defined(GROUP_SIZE)
    float scale[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
        scale[h] = first_n + row + 8 * h < n ? SCALE_DTYPE::to_float(scales[first_n + row + 8 * h]) : 0;
#elif defined(TENSOR_SCALES)
    const float tensor_scale = *weight_tensor_scale * *x_tensor_scale;
#endif
#pragma unroll
    for (int i = 0; i < THREAD_SUMS; i++) {
        const int column = i / 4 * 8 + lane % 4 * 2 + i % 2, h = i / 2 % 2;
#if !defined(GROUP_SIZE)
        sums[i] *= scale[h];
#elif defined(TENSOR_SCALES)
        sums[i] *= tensor_scale;
#endif
        staged[column * PITCH + row + 8 * h] = sums[i];
    }
    sync_consumers();
    for (int index = thread * WIDTH; index < BLOCK_M * TILE_N; index += 2 * GROUP_THREADS * WIDTH) {
        const u64 m_index = first_m + index / TILE_N, n_index = first_n + index % TILE_N;
        if (m_index >= m || n_index >= n) continue;
        float values[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] = staged[index / TILE_N * PITCH + index % TILE_N + i];
#ifdef ADDEND
        const output_vec addends = *reinterpret_cast<const output_vec *>(addend + m_index * n + n_index);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] += from_output(addends.val[i]);
#endif
        output_vec result;
#pragma unroll
        for (int i = 0; i < WIDTH; i++) result.val[i] = to_output(values[i]);
        *reinterpret_cast<output_vec *>(y + m_index * n + n_index) = result;
    }
}
