// FlashAttention forward for Hopper: y = softmax(SOFTMAX_SCALE q k^T) v for each head, causal if CAUSAL is 1.
//
// Contract: q, k, v, y[heads, positions, HEAD_DIM], row-major, f16 or bf16; q, k and v are read by TMA (3D tensor maps
// with boxes of 64 columns x 128 rows, 128-byte swizzle, zero fill beyond the ends, so that HEAD_DIM is padded to
// PADDED_HEAD_DIM). Scores and accumulators are f32; probabilities are rounded to the element dtype.
//
// Algorithm: FlashAttention-3 (Shah et al. 2024) without its explicit named-barrier schedule; online softmax as in
// FlashAttention-2 (Dao 2023). One block computes 128 query rows of one head:
//
//   warp group 0   producer, 24 registers   TMA: q once, then tiles k_i, v_i -> ring of 2 stages each
//   warp group 1   consumer, 240 registers  query rows  0..63:  S = q k_i^T -> softmax -> O += P v_i
//   warp group 2   consumer, 240 registers  query rows 64..127; its softmax overlaps with the wgmma of group 1
//
//   shared memory: [ q | k stage 0 | k stage 1 | v stage 0 | v stage 1 ], 5 tiles of 128 rows x D = PADDED_HEAD_DIM
//   tile:          D / 64 column blocks of 128 rows x 128 bytes, each with the 128-byte swizzle
//   pipeline of a consumer in step i (intra-warp-group overlap):
//     tensor cores  | S_i = q k_i^T, O += P_{i-1} v_{i-1} |
//     other units   |                  softmax(S_i) while O is accumulated | O *= rescale | P_i = pack(S_i)
//
// Accumulator fragment of wgmma m64nNk16 (PTX ISA, wgmma register fragments), lane = 4 g + t of warp w in the group:
//     register 4 j + 0, 1  ->  row 16 w + g,      columns 8 j + 2 t, + 1
//     register 4 j + 2, 3  ->  row 16 w + g + 8,  columns 8 j + 2 t, + 1
// Eight consecutive registers of S, packed in pairs to 16 bits, are the A fragment of one k16 step of P v: no data
// moves between threads.
//
// Traffic: q and y once, k and v once per 128 query rows, nearly all of it from L2. Roofline: 4 D FLOP and one ex2 per
// pair of query and key. An SM executes 4096 FLOP and 16 ex2 per cycle: with D = 128 a 128 x 128 tile takes 2048 and
// 1024 cycles.
//
// Parameters:
//   ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH            elements per vector access (element.cuh)
//   KERNEL           kernel name
//   HEAD_DIM         elements per head: a multiple of 8, at most 128
//   PADDED_HEAD_DIM  HEAD_DIM rounded up to 64 or 128
//   CAUSAL           1 to mask keys after the query (causal mask)
//   SOFTMAX_SCALE    float factor of the scores: 1 / sqrt(HEAD_DIM)

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef HEAD_DIM
#error "HEAD_DIM: elements per head: a multiple of 8, at most 128"
#endif
#ifndef PADDED_HEAD_DIM
#error "PADDED_HEAD_DIM: HEAD_DIM rounded up to 64 or 128"
#endif
#ifndef CAUSAL
#error "CAUSAL: 1 to mask keys after the query (causal mask)"
#endif
#ifndef SOFTMAX_SCALE
#error "SOFTMAX_SCALE: float factor of the scores: 1 / sqrt(HEAD_DIM)"
#endif

#include "element.cuh"
#include "hopper.cuh"

constexpr int ROWS = 128;
constexpr int KEYS = 128;
constexpr int STAGES = 2;
constexpr int GROUP_THREADS = 128;
// A tile consists of column blocks of 64 elements, in which a row is 128 bytes, swizzled.
constexpr int COLUMN_BLOCK_BYTES = 128 * 128;
constexpr int TILE_BYTES = PADDED_HEAD_DIM / 64 * COLUMN_BLOCK_BYTES;
constexpr int ROW_CHUNKS = PADDED_HEAD_DIM / 8;

__device__ __forceinline__ float exp2_approx(float value) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
    return result;
}

// Starts the TMA loads of a tile of 128 rows, from row `first` of a head, one per column block.
__device__ __forceinline__ void load_tile(unsigned tile, const tensor_map &matrix, int first, int head,
                                          unsigned barrier) {
    mbarrier_arrive_expect_tx(barrier, TILE_BYTES);
#pragma unroll
    for (int column_block = 0; column_block < PADDED_HEAD_DIM / 64; column_block++) {
        tma_load(tile + column_block * COLUMN_BLOCK_BYTES, matrix, column_block * 64, first, head, barrier);
    }
}

// Issues S = q k^T for 64 query rows and one tile of keys.
__device__ __forceinline__ void issue_scores(float (&scores)[KEYS / 2], unsigned q_tile, unsigned k_tile) {
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < PADDED_HEAD_DIM / 16; step++) {
        const unsigned offset = step / 4 * COLUMN_BLOCK_BYTES + step % 4 * 32;
        wgmma_shared(scores, k_major(q_tile + offset), k_major(k_tile + offset), step != 0);
    }
    wgmma_commit();
}

// Issues O += P v for one tile of values; overwrites O unless `accumulate`.
__device__ __forceinline__ void issue_output(float (&output)[PADDED_HEAD_DIM / 2],
                                             const unsigned (&probabilities)[KEYS / 4], unsigned v_tile,
                                             bool accumulate) {
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++) {
        wgmma_registers<true>(output, &probabilities[4 * step], mn_major(v_tile + step * 2048, COLUMN_BLOCK_BYTES),
                              accumulate || step != 0);
    }
    wgmma_commit();
}

// Online softmax state of the two rows of a thread: running maximum of the scores, and sum of the probabilities in the
// columns of this thread.
struct softmax_state {
    float max[2], sum[2];
};

// Replaces scores by unnormalized probabilities; returns the factors that rescale the output accumulated so far.
__device__ __forceinline__ void online_softmax(float (&scores)[KEYS / 2], softmax_state &state, float (&rescale)[2]) {
    constexpr float EXP2_SCALE = SOFTMAX_SCALE * 1.4426950408889634f;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float max = state.max[half];
#pragma unroll
        for (int i = 0; i < KEYS / 2; i += 4) max = fmaxf(max, fmaxf(scores[i + 2 * half], scores[i + 2 * half + 1]));
        max = fmaxf(max, __shfl_xor_sync(~0u, max, 1));
        max = fmaxf(max, __shfl_xor_sync(~0u, max, 2));
        rescale[half] = exp2_approx((state.max[half] - max) * EXP2_SCALE);
        state.max[half] = max;
        const float offset = -max * EXP2_SCALE;
        float sum = state.sum[half] * rescale[half];
#pragma unroll
        for (int i = 0; i < KEYS / 2; i += 4) {
#pragma unroll
            for (int j = i + 2 * half; j < i + 2 * half + 2; j++) {
                scores[j] = exp2_approx(fmaf(scores[j], EXP2_SCALE, offset));
                sum += scores[j];
            }
        }
        state.sum[half] = sum;
    }
}

// Packs probabilities into A fragments: four registers per 16 keys.
__device__ __forceinline__ void pack_probabilities(unsigned (&probabilities)[KEYS / 4],
                                                   const float (&scores)[KEYS / 2]) {
#pragma unroll
    for (int i = 0; i < KEYS / 4; i++) probabilities[i] = pack_pair(scores[2 * i], scores[2 * i + 1]);
}

// Masks keys beyond the sequence and, if causal, keys after the query.
__device__ __forceinline__ void apply_mask(float (&scores)[KEYS / 2], int first_key, int query, int sequence) {
#pragma unroll
    for (int i = 0; i < KEYS / 2; i++) {
        const int key = first_key + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
        const int row = query + i / 2 % 2 * 8;
        if (key >= sequence || (CAUSAL && key > row)) scores[i] = -__int_as_float(0x7f800000);
    }
}

extern "C" __global__ void __launch_bounds__(3 * GROUP_THREADS, 1)
    KERNEL(const element *, const element *, const element *, element *y, u64 positions, u64,
           const __grid_constant__ tensor_map q, const __grid_constant__ tensor_map k,
           const __grid_constant__ tensor_map v) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[4 * STAGES + 1];
    const unsigned q_tile = shared_address(shared);
    const unsigned k_tiles = q_tile + TILE_BYTES, v_tiles = k_tiles + STAGES * TILE_BYTES;
    const unsigned k_full = shared_address(barriers), k_empty = k_full + 8 * STAGES;
    const unsigned v_full = k_empty + 8 * STAGES, v_empty = v_full + 8 * STAGES;
    const unsigned q_full = v_empty + 8 * STAGES;
    if (threadIdx.x == 0) {
        init_pipeline_barriers<STAGES>(k_full, k_empty, 2 * GROUP_THREADS / 32);
        init_pipeline_barriers<STAGES>(v_full, v_empty, 2 * GROUP_THREADS / 32);
        mbarrier_init(q_full, 1);
    }
    publish_barriers();

    // Longest tiles first: with a causal mask the last query rows have the most keys.
    const int sequence = (int)positions;
    const int query_tiles = (sequence + ROWS - 1) / ROWS;
    const int query_tile = query_tiles - 1 - blockIdx.x % query_tiles;
    const int head = blockIdx.x / query_tiles;
    const int tiles = CAUSAL ? query_tile + 1 : query_tiles;
    const int warp_group = threadIdx.x / GROUP_THREADS;
    if (warp_group == 0) {
        warpgroup_reg_dealloc<24>();
        // From the last key tile to the first.
        const auto produce = [&](const tensor_map &matrix, unsigned ring, unsigned full, unsigned empty, int index) {
            const unsigned stage = index % STAGES;
            if (index >= STAGES) mbarrier_wait(empty + 8 * stage, (index / STAGES - 1) % 2);
            load_tile(ring + stage * TILE_BYTES, matrix, (tiles - 1 - index) * KEYS, head, full + 8 * stage);
        };
        if (threadIdx.x == 0) {
            load_tile(q_tile, q, query_tile * ROWS, head, q_full);
            for (int index = 0; index < tiles; index++) {
                produce(k, k_tiles, k_full, k_empty, index);
                produce(v, v_tiles, v_full, v_empty, index);
            }
        }
        return;
    }

    warpgroup_reg_alloc<240>();
    const int lane = threadIdx.x % 32;
    const unsigned q_rows = q_tile + (warp_group - 1) * 64 * 128;
    const auto barrier_of = [](unsigned barriers, int index) { return barriers + 8 * (index % STAGES); };
    const auto wait_full = [&](unsigned barriers, int index) {
        mbarrier_wait(barrier_of(barriers, index), index / STAGES % 2);
    };
    const auto release = [&](unsigned barriers, int index) {
        if (lane == 0) mbarrier_arrive(barrier_of(barriers, index));
    };
    const auto stage_of = [](unsigned ring, int index) { return ring + index % STAGES * TILE_BYTES; };
    const int thread_in_group = threadIdx.x % GROUP_THREADS;
    const int row = thread_in_group / 32 * 16 + lane / 4;

    float scores[KEYS / 2] = {}, output[PADDED_HEAD_DIM / 2] = {};
    unsigned probabilities[KEYS / 4];
    softmax_state state = {{-__int_as_float(0x7f800000), -__int_as_float(0x7f800000)}, {0, 0}};
    float rescale[2];
    mbarrier_wait(q_full, 0);
    wait_full(k_full, 0);
    issue_scores(scores, q_rows, stage_of(k_tiles, 0));
    wgmma_wait_accumulators<0>(scores);
    release(k_empty, 0);
    // The last key tile is processed first. It is the only one that needs a mask, and every row has an unmasked key in
    // it, so that the maximum is finite.
    apply_mask(scores, (tiles - 1) * KEYS, query_tile * ROWS + (warp_group - 1) * 64 + row, sequence);
    online_softmax(scores, state, rescale);
    pack_probabilities(probabilities, scores);
    for (int index = 1; index < tiles; index++) {
        wait_full(k_full, index);
        issue_scores(scores, q_rows, stage_of(k_tiles, index));
        wait_full(v_full, index - 1);
        issue_output(output, probabilities, stage_of(v_tiles, index - 1), index != 1);
        wgmma_wait_accumulators<1>(scores);
        release(k_empty, index);
        online_softmax(scores, state, rescale);
        wgmma_wait_accumulators<0>(output);
        release(v_empty, index - 1);
#pragma unroll
        for (int i = 0; i < PADDED_HEAD_DIM / 2; i++) output[i] *= rescale[i / 2 % 2];
        pack_probabilities(probabilities, scores);
    }
    wait_full(v_full, tiles - 1);
    issue_output(output, probabilities, stage_of(v_tiles, tiles - 1), tiles != 1);
    wgmma_wait_accumulators<0>(output);

    // Epilogue: normalize, stage in the shared memory of q, which is no longer needed, and write whole rows.
    float inverse[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = state.sum[half];
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        inverse[half] = 1 / sum;
    }
    named_barrier_sync(warp_group, GROUP_THREADS);
    unsigned char *const staging = shared + (warp_group - 1) * 64 * 128;
#pragma unroll
    for (int chunk = 0; chunk < ROW_CHUNKS; chunk++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int offset =
                chunk / 8 * COLUMN_BLOCK_BYTES + (row + 8 * half) * 128 + ((chunk % 8) ^ (row % 8)) * 16 + lane % 4 * 4;
            const float *const pair = &output[4 * chunk + 2 * half];
            *(unsigned *)(staging + offset) = pack_pair(pair[0] * inverse[half], pair[1] * inverse[half]);
        }
    }
    named_barrier_sync(warp_group, GROUP_THREADS);
    const int chunk = thread_in_group % ROW_CHUNKS;
#pragma unroll
    for (int step = 0; step < 64; step += GROUP_THREADS / ROW_CHUNKS) {
        const int tile_row = thread_in_group / ROW_CHUNKS + step;
        const u64 query = (u64)query_tile * ROWS + (warp_group - 1) * 64 + tile_row;
        if (query < positions && chunk * 8 < HEAD_DIM) {
            const int offset = chunk / 8 * COLUMN_BLOCK_BYTES + tile_row * 128 + ((chunk % 8) ^ (tile_row % 8)) * 16;
            *(uint4 *)(y + ((u64)head * positions + query) * HEAD_DIM + chunk * 8) = *(const uint4 *)(staging + offset);
        }
    }
}
