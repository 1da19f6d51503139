// y[M, n] = x[M, K] w[n, K]^T [+ addend[M, n]] for at most eight rows of x, which stay in shared memory, and a weight
// of 4-bit integers in groups of 128. x is row-major in f16 or bf16, w is packed (packed_weight.cuh), y and the addend
// have the output dtype. n is a multiple of 16, K of 128 * CHUNKS_PER_WARP * CONSUMER_WARPS.
//
// Algorithm: persistent, warp-specialized weight-streaming GEMM. Blocks loop over tiles of 16 weight rows. A producer
// warp fills a pipeline of STAGES with bulk copies (PTX ISA, "cp.async.bulk") of long row segments: few, large requests
// that run ahead of the consumers. Consumer warps dequantize in registers and multiply with mma.m16n8k16 (map in
// mma16.cuh), as in packed_weight_gemm.cu with SCALE_SUMS: they multiply 16 + q, and scale and zero point apply to the
// sums of a chunk. The sums of x per chunk are computed once, in the prologue.
//
//     one stage:   chunks of 128 values (64 bytes) of 16 weight rows
//                  | warp 0: CHUNKS_PER_WARP chunks | warp 1: CHUNKS_PER_WARP chunks | ...
//     row 0        | lanes 0..3: 16 bytes each      | one bulk copy per row: ROW_BYTES
//     ...          | lane 4 g + t: vector t of rows g and g + 8
//     row 15       |
//     scale slot:  | scales [16][K / 128] | zero points [16][K / 128] |   one per tile in flight
//
// Traffic: w with its scales and zero points once; x from L2 once per block. Roofline: these bytes over memory
// bandwidth; about 1.5 instructions per value leave half of the issue slots free.
//
// Parameters:
//   KERNEL                   name of the kernel
//   ELEMENT_*                dtype `element`: ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH                    elements in 16 bytes (checked in element.cuh)
//   M                        rows of x and y, 1 to 8
//   CHUNKS_PER_WARP          chunks of a weight row per consumer warp and stage
//   CONSUMER_WARPS           consumer warps, which split k; one producer warp is added
//   STAGES                   pipeline stages
//   MIN_BLOCKS               resident blocks per multiprocessor (launch bounds)
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
#ifndef K
#error "K: reduction size: elements of a weight row"
#endif
#ifndef M
#error "M: rows of x and y, 1 to 8"
#endif
#ifndef CHUNKS_PER_WARP
#error "CHUNKS_PER_WARP: chunks of a weight row per consumer warp and stage"
#endif
#ifndef CONSUMER_WARPS
#error "CONSUMER_WARPS: consumer warps, which split k"
#endif
#ifndef STAGES
#error "STAGES: pipeline stages"
#endif
#ifndef MIN_BLOCKS
#error "MIN_BLOCKS: resident blocks per multiprocessor (launch bounds)"
#endif

#include "element.cuh"
#include "hopper.cuh"
#include "output_dtype.cuh"
#include "packed_weight.cuh"
#include "dequantize_pairs.cuh"

constexpr int TILE_N = 16;
constexpr int CONSUMERS = 32 * CONSUMER_WARPS;
constexpr unsigned CHUNK = 128, CHUNKS = K / CHUNK;
// Chunks of a row in a stage, and stages of a tile.
constexpr int STAGE_CHUNKS = CHUNKS_PER_WARP * CONSUMER_WARPS, TILE_STAGES = CHUNKS / STAGE_CHUNKS;
constexpr int VECTOR_VALUES = CHUNK / 4, VECTOR_PAIRS = VECTOR_VALUES / 2, X_LOADS = VECTOR_PAIRS / 4;
constexpr int ROW_BYTES = STAGE_CHUNKS * CHUNK / 2;
static_assert(BITS == 4 && GROUP_SIZE == CHUNK && K % (CHUNK * STAGE_CHUNKS) == 0, "whole stages");

// Scales or zero points of one row that a warp needs in a stage, loaded in one access.
struct __align__(CHUNKS_PER_WARP * sizeof(stored_scale)) chunk_scales {
    stored_scale values[CHUNKS_PER_WARP];
};

// Pitch of a row in a stage: adjacent rows start in different halves of the banks.
constexpr int ROW_PITCH = ROW_BYTES % 128 == 64 ? ROW_BYTES : ROW_BYTES + 64;
constexpr int STAGE_BYTES = TILE_N * ROW_PITCH;
#if defined(HAS_ZERO_POINTS)
constexpr int SCALE_ARRAYS = 2;
#else
constexpr int SCALE_ARRAYS = 1;
#endif
// A slot holds the scales of a tile, then its zero points. It is free once the last stage of its tile is; the first
// stage of the next tile may be filled earlier.
constexpr int TILE_SCALES = TILE_N * GROUPS;
constexpr int SLOT_BYTES = SCALE_ARRAYS * TILE_SCALES * sizeof(stored_scale);
constexpr int SCALE_SLOTS = (STAGES + TILE_STAGES - 1) / TILE_STAGES + (TILE_STAGES > 1);

extern "C" __global__ void __launch_bounds__(CONSUMERS + 32, MIN_BLOCKS)
    KERNEL(const element *__restrict__ x, const unsigned *__restrict__ quantized,
           const stored_scale *__restrict__ scales,
#if defined(HAS_ZERO_POINTS)
           const stored_zero *__restrict__ zeros,
#endif
#ifdef ADDEND
           const output *__restrict__ addend,
#endif
           output *__restrict__ y, u64, u64 n) {
    extern __shared__ uint4 shared[];
    unsigned char *const stages = reinterpret_cast<unsigned char *>(shared);
    unsigned char *const slots = stages + STAGES * STAGE_BYTES;
    uint4 *const x_vectors = reinterpret_cast<uint4 *>(slots + SCALE_SLOTS * SLOT_BYTES);
    float *const x_sums = reinterpret_cast<float *>(x_vectors + M * K / 8);
    float *const warp_sums = x_sums + CHUNKS * M;
    __shared__ u64 barriers[2 * STAGES];
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const unsigned tiles = (unsigned)n / TILE_N;
    if (threadIdx.x == 0) init_pipeline_barriers<STAGES>(full, empty, CONSUMERS);
    publish_barriers();

    int stage = 0, slot = 0;
    if (warp == CONSUMER_WARPS) {
        int parity = 1;
        for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            for (int segment = 0; segment < TILE_STAGES; segment++) {
                mbarrier_wait(empty + 8 * stage, parity);
                const unsigned destination = shared_address(stages) + stage * STAGE_BYTES, barrier = full + 8 * stage;
                if (lane == 0) mbarrier_arrive_expect_tx(barrier, TILE_N * ROW_BYTES + (segment == 0 ? SLOT_BYTES : 0));
                __syncwarp();
                if (lane < TILE_N) {
                    const unsigned *const row = quantized + ((u64)tile * TILE_N + lane) * ROW_WORDS;
                    bulk_load(destination + lane * ROW_PITCH, row + segment * (ROW_BYTES / 4), ROW_BYTES, barrier);
                } else if (segment == 0 && lane < TILE_N + SCALE_ARRAYS) {
                    const int array = lane - TILE_N;
                    const void *source = scales + (u64)tile * TILE_SCALES;
#if defined(HAS_ZERO_POINTS)
                    if (array == 1) source = zeros + (u64)tile * TILE_SCALES;
#endif
                    const int bytes = SLOT_BYTES / SCALE_ARRAYS;
                    bulk_load(shared_address(slots) + slot * SLOT_BYTES + array * bytes, source, bytes, barrier);
                }
                if (++stage == STAGES) stage = 0, parity ^= 1;
            }
            if (++slot == SCALE_SLOTS) slot = 0;
        }
        return;
    }

    // Stores x in fragment order: a vector of 32 elements per quarter of a chunk, all rows and quarters of a load
    // adjacent. The four lanes of a quad process one chunk; other quads of the warp may be idle.
    const unsigned quad = 0xfu << (lane - t);
    for (int index = threadIdx.x; index < (int)(4 * CHUNKS) * M; index += CONSUMERS) {
        const unsigned vector = index % (4 * CHUNKS), row = index / (4 * CHUNKS), chunk = vector / 4;
        const uint4 *const source = reinterpret_cast<const uint4 *>(x + row * K + vector * VECTOR_VALUES);
        unsigned neighbors[VECTOR_PAIRS];
#pragma unroll
        for (int i = 0; i < X_LOADS; i++) {
            const uint4 four = __ldg(source + i);
            neighbors[4 * i] = four.x;
            neighbors[4 * i + 1] = four.y;
            neighbors[4 * i + 2] = four.z;
            neighbors[4 * i + 3] = four.w;
        }
        float sum = 0.0f;
#pragma unroll
        for (int p = 0; p < VECTOR_PAIRS; p++) {
            sum += widen((element)neighbors[p]) + widen((element)(neighbors[p] >> 16));
        }
#pragma unroll
        for (int i = 0; i < X_LOADS; i++) {
            x_vectors[((chunk * X_LOADS + i) * M + row) * 4 + vector % 4] =
                make_uint4(strided_pair(neighbors, 4 * i), strided_pair(neighbors, 4 * i + 1),
                           strided_pair(neighbors, 4 * i + 2), strided_pair(neighbors, 4 * i + 3));
        }
        sum += __shfl_xor_sync(quad, sum, 1);
        sum += __shfl_xor_sync(quad, sum, 2);
        if (vector % 4 == 0) x_sums[chunk * M + row] = sum;
    }
    named_barrier_sync(1, CONSUMERS);

    // Fragment columns beyond M repeat the last row of x; their results are not stored.
    const uint4 *const lane_x = x_vectors + min(g, M - 1) * 4 + t;
    int parity = 0, buffer = 0;
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float sums[4] = {};
        for (int segment = 0; segment < TILE_STAGES; segment++) {
            mbarrier_wait(full + 8 * stage, parity);
            const int first_chunk = segment * STAGE_CHUNKS + warp * CHUNKS_PER_WARP;
            const uint4 *const vectors = reinterpret_cast<const uint4 *>(stages + stage * STAGE_BYTES + g * ROW_PITCH) +
                                         warp * (CHUNKS_PER_WARP * 4) + t;
            const stored_scale *const lane_scales =
                reinterpret_cast<const stored_scale *>(slots + slot * SLOT_BYTES) + g * GROUPS + first_chunk;
            chunk_scales row_scales[2], row_zeros[2];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const chunk_scales *const source =
                    reinterpret_cast<const chunk_scales *>(lane_scales + h * (8 * GROUPS));
                row_scales[h] = *source;
#if defined(HAS_ZERO_POINTS)
                row_zeros[h] = source[TILE_SCALES / CHUNKS_PER_WARP];
#endif
            }
#pragma unroll
            for (int c = 0; c < CHUNKS_PER_WARP; c++) {
                unsigned words[2][4];
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const uint4 vector = vectors[c * 4 + h * (8 * ROW_PITCH / 16)];
                    words[h][0] = vector.x;
                    words[h][1] = vector.y;
                    words[h][2] = vector.z;
                    words[h][3] = vector.w;
                }
                // Two accumulators: consecutive mma instructions are independent.
                float biased_sums[2][4] = {};
#pragma unroll
                for (int i = 0; i < X_LOADS; i++) {
                    const uint4 four = lane_x[((first_chunk + c) * X_LOADS + i) * (M * 4)];
                    const unsigned pairs[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
                    for (int p = 0; p < 4; p += 2) {
                        // Load i of x matches word i of the weights.
                        const unsigned low_rows[2] = {decode_biased_pair(words[0][i], p * 4),
                                                      decode_biased_pair(words[0][i], p * 4 + 4)};
                        const unsigned high_rows[2] = {decode_biased_pair(words[1][i], p * 4),
                                                       decode_biased_pair(words[1][i], p * 4 + 4)};
                        mma_m16n8k16(biased_sums[p / 2], low_rows[0], high_rows[0], low_rows[1], high_rows[1], pairs[p],
                                     pairs[p + 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < (M == 1 ? 1 : 2); i++) {
                    const float x_sum = x_sums[(first_chunk + c) * M + min(2 * t + i, M - 1)];
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        const float scale = SCALE_DTYPE::to_float(row_scales[h].values[c]);
#if defined(HAS_ZERO_POINTS)
                        const float zero = ZERO_POINT_DTYPE::to_float(row_zeros[h].values[c]);
#else
                        const float zero = 0.0f;
#endif
                        float &sum = sums[2 * h + i];
                        const float biased_sum = biased_sums[0][2 * h + i] + biased_sums[1][2 * h + i];
                        sum = fmaf(scale, biased_sum, fmaf(biased_offset(scale, zero), x_sum, sum));
                    }
                }
            }
            // Each thread arrives on its own: only it knows that its reads are complete.
            mbarrier_arrive(empty + 8 * stage);
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
        if (++slot == SCALE_SLOTS) slot = 0;

        // Two alternating buffers: a warp that overwrites one has passed a barrier after all reads of it.
        float *const buffer_sums = warp_sums + buffer * (CONSUMER_WARPS * M * TILE_N);
        buffer ^= 1;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int m_index = 2 * t + i % 2;
            if (m_index < M) buffer_sums[(warp * M + m_index) * TILE_N + g + i / 2 * 8] = sums[i];
        }
        named_barrier_sync(1, CONSUMERS);
        for (int index = threadIdx.x; index < M * TILE_N; index += CONSUMERS) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < CONSUMER_WARPS; i++) sum += buffer_sums[i * M * TILE_N + index];
            const u64 y_index = index / TILE_N * n + (u64)tile * TILE_N + index % TILE_N;
#ifdef ADDEND
            sum += from_output(addend[y_index]);
#endif
            y[y_index] = to_output(sum);
        }
    }
}
