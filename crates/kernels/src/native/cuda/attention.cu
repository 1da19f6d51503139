// Attention of long sequences on Hopper: y = softmax(q kᵀ SCALE) v for each head, positions beyond a query's own hidden where
// CAUSAL is 1. Of HEAD numbers per position, in memory PADDED of 64 or 128, the rest zero.
//
// A block makes 128 rows of y. A thread of its first warp group starts the copy of q, and then those of tiles of 128 keys and
// of their values, two of each in a ring. The other two groups make 64 rows each. While the tensor cores multiply one group's tiles, the other's exponentials are
// taken, and within a group the next scores are multiplied beside the mixing of the last.
//
// Traffic: q and y once, k and v once for each 128 rows, nearly all of it from L2. Roofline: 4 PADDED operations and one
// exponential for each pair of positions; an SM makes 4096 operations and 16 exponentials a cycle, so that at PADDED = 128 a
// tile is 2048 cycles of the one and 1024 of the other.
#include "element.cuh"
#include "hopper.cuh"

constexpr int ROWS = 128;
constexpr int KEYS = 128;
constexpr int STAGES = 2;
constexpr int GROUP = 128;
// A tile is made of columns of 64 numbers, in each of which a row is 128 bytes, swizzled.
constexpr int COLUMN_BYTES = 128 * 128;
constexpr int TILE_BYTES = PADDED / 64 * COLUMN_BYTES;
constexpr int CHUNKS = PADDED / 8;

__device__ __forceinline__ float power_of_two(float value) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(value));
    return power;
}

// Starts the copies of 128 rows from the `first` of a head, column by column.
__device__ __forceinline__ void bring(unsigned tile, const tensor_map &matrix, int first, int head, unsigned barrier) {
    expect(barrier, TILE_BYTES);
#pragma unroll
    for (int column = 0; column < PADDED / 64; column++) {
        bring_box(tile + column * COLUMN_BYTES, matrix, column * 64, first, head, barrier);
    }
}

// Scores of 64 rows of queries and a tile of keys.
__device__ __forceinline__ void score(float (&scores)[KEYS / 2], unsigned queries, unsigned keys) {
    fence_products();
#pragma unroll
    for (int step = 0; step < PADDED / 16; step++) {
        const unsigned at = step / 4 * COLUMN_BYTES + step % 4 * 32;
        multiply_shared(scores, along_rows(queries + at), along_rows(keys + at), step != 0);
    }
    commit_products();
}

// Adds a tile of values, mixed by their shares.
__device__ __forceinline__ void mix(float (&mixed)[PADDED / 2], const unsigned (&shares)[KEYS / 4], unsigned values, bool more) {
    fence_products();
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++) {
        multiply_registers<true>(mixed, &shares[4 * step], across_rows(values + step * 2048, COLUMN_BYTES), more || step != 0);
    }
    commit_products();
}

// Of each of the two rows that a thread has a part of: the largest score so far and the sum of the shares in its columns.
struct State {
    float largest[2], sum[2];
};

// From scores to shares, and by how much what was mixed before shrinks.
__device__ __forceinline__ void share(float (&scores)[KEYS / 2], State &state, float (&shrinks)[2]) {
    constexpr float TO_POWERS = SCALE * 1.4426950408889634f;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float largest = state.largest[half];
#pragma unroll
        for (int at = 0; at < KEYS / 2; at += 4)
            largest = fmaxf(largest, fmaxf(scores[at + 2 * half], scores[at + 2 * half + 1]));
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
        shrinks[half] = power_of_two((state.largest[half] - largest) * TO_POWERS);
        state.largest[half] = largest;
        const float offset = -largest * TO_POWERS;
        float sum = state.sum[half] * shrinks[half];
#pragma unroll
        for (int at = 0; at < KEYS / 2; at += 4) {
#pragma unroll
            for (int place = at + 2 * half; place < at + 2 * half + 2; place++) {
                scores[place] = power_of_two(fmaf(scores[place], TO_POWERS, offset));
                sum += scores[place];
            }
        }
        state.sum[half] = sum;
    }
}

// As the operand of a product: 16 keys in four registers, of the rows in turn.
__device__ __forceinline__ void pack(unsigned (&shares)[KEYS / 4], const float (&scores)[KEYS / 2]) {
#pragma unroll
    for (int at = 0; at < KEYS / 4; at++) shares[at] = narrow_two(scores[2 * at], scores[2 * at + 1]);
}

// Hides keys beyond the sequence, and those that come after their query.
__device__ __forceinline__ void hide(float (&scores)[KEYS / 2], int first_key, int query, int sequence) {
#pragma unroll
    for (int at = 0; at < KEYS / 2; at++) {
        const int key = first_key + at / 4 * 8 + threadIdx.x % 4 * 2 + at % 2;
        const int row = query + at / 2 % 2 * 8;
        if (key >= sequence || (CAUSAL && key > row)) scores[at] = -__int_as_float(0x7f800000);
    }
}

extern "C" __global__ void __launch_bounds__(3 * GROUP, 1)
KERNEL(const element *, const element *, const element *, element *y, u64 positions, u64, const __grid_constant__ tensor_map q,
       const __grid_constant__ tensor_map k, const __grid_constant__ tensor_map v) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[4 * STAGES + 1];
    const unsigned queries = shared_address(shared);
    const unsigned keys = queries + TILE_BYTES, values = keys + STAGES * TILE_BYTES;
    const unsigned key_ready = shared_address(barriers), key_free = key_ready + 8 * STAGES;
    const unsigned value_ready = key_free + 8 * STAGES, value_free = value_ready + 8 * STAGES;
    const unsigned queries_ready = value_free + 8 * STAGES;
    if (threadIdx.x == 0) {
        initialize_ring<STAGES>(key_ready, key_free, 2 * GROUP / 32);
        initialize_ring<STAGES>(value_ready, value_free, 2 * GROUP / 32);
        initialize(queries_ready, 1);
    }
    show_barriers();

    // The last rows of a head have the most to do where positions are hidden, so they come first.
    const int sequence = (int)positions;
    const int cuts = (sequence + ROWS - 1) / ROWS;
    const int cut = cuts - 1 - blockIdx.x % cuts;
    const int head = blockIdx.x / cuts;
    const int tiles = CAUSAL ? cut + 1 : cuts;
    const int group = threadIdx.x / GROUP;
    if (group == 0) {
        keep_registers<24>();
        // From the last tile to the first.
        const auto start = [&](const tensor_map &from, unsigned ring, unsigned ready, unsigned free, int index) {
            const unsigned stage = index % STAGES;
            if (index >= STAGES) wait(free + 8 * stage, (index / STAGES - 1) % 2);
            bring(ring + stage * TILE_BYTES, from, (tiles - 1 - index) * KEYS, head, ready + 8 * stage);
        };
        if (threadIdx.x == 0) {
            bring(queries, q, cut * ROWS, head, queries_ready);
            for (int index = 0; index < tiles; index++) {
                start(k, keys, key_ready, key_free, index);
                start(v, values, value_ready, value_free, index);
            }
        }
        return;
    }

    more_registers<240>();
    const int lane = threadIdx.x % 32;
    const unsigned mine = queries + (group - 1) * 64 * 128;
    const auto at = [](unsigned barriers, int index) { return barriers + 8 * (index % STAGES); };
    const auto ready = [&](unsigned barriers, int index) { wait(at(barriers, index), index / STAGES % 2); };
    const auto free = [&](unsigned barriers, int index) {
        if (lane == 0) arrive(at(barriers, index));
    };
    const auto tile = [](unsigned ring, int index) { return ring + index % STAGES * TILE_BYTES; };
    const int in_group = threadIdx.x % GROUP;
    const int row = in_group / 32 * 16 + lane / 4;

    float scores[KEYS / 2] = {}, mixed[PADDED / 2] = {};
    unsigned shares[KEYS / 4];
    State state = {{-__int_as_float(0x7f800000), -__int_as_float(0x7f800000)}, {0, 0}};
    float shrinks[2];
    wait(queries_ready, 0);
    ready(key_ready, 0);
    score(scores, mine, tile(keys, 0));
    finish_products<0>(scores);
    free(key_free, 0);
    // The last tile comes first: every row sees a key of it, so that none is without a largest score.
    hide(scores, (tiles - 1) * KEYS, cut * ROWS + (group - 1) * 64 + row, sequence);
    share(scores, state, shrinks);
    pack(shares, scores);
    for (int index = 1; index < tiles; index++) {
        ready(key_ready, index);
        score(scores, mine, tile(keys, index));
        ready(value_ready, index - 1);
        mix(mixed, shares, tile(values, index - 1), index != 1);
        finish_products<1>(scores);
        free(key_free, index);
        share(scores, state, shrinks);
        finish_products<0>(mixed);
        free(value_free, index - 1);
#pragma unroll
        for (int place = 0; place < PADDED / 2; place++) mixed[place] *= shrinks[place / 2 % 2];
        pack(shares, scores);
    }
    ready(value_ready, tiles - 1);
    mix(mixed, shares, tile(values, tiles - 1), tiles != 1);
    finish_products<0>(mixed);

    // Through the memory of the queries, which nobody needs any more, so that a row is written whole.
    float inverse[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = state.sum[half];
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        inverse[half] = 1 / sum;
    }
    wait_for_group(group, GROUP);
    unsigned char *const place = shared + (group - 1) * 64 * 128;
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int to = chunk / 8 * COLUMN_BYTES + (row + 8 * half) * 128 + ((chunk % 8) ^ (row % 8)) * 16 + lane % 4 * 4;
            const float *const two = &mixed[4 * chunk + 2 * half];
            *(unsigned *)(place + to) = narrow_two(two[0] * inverse[half], two[1] * inverse[half]);
        }
    }
    wait_for_group(group, GROUP);
    const int chunk = in_group % CHUNKS;
#pragma unroll
    for (int step = 0; step < 64; step += GROUP / CHUNKS) {
        const int from = in_group / CHUNKS + step;
        const u64 to = (u64)cut * ROWS + (group - 1) * 64 + from;
        if (to < positions && chunk * 8 < HEAD) {
            const int piece = chunk / 8 * COLUMN_BYTES + from * 128 + ((chunk % 8) ^ (from % 8)) * 16;
            *(uint4 *)(y + ((u64)head * positions + to) * HEAD + chunk * 8) = *(const uint4 *)(place + piece);
        }
    }
}
