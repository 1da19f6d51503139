// y[ROWS, n] = x[ROWS, K] * w[n, K]^T [+ added[ROWS, n]] for so few rows of x that a block keeps all of them, and a weight of
// 4-bit codes in groups of 128.
//
// Data flow: as many blocks as run at once take tiles of 16 rows of w in turn. A warp of each starts copies of whole pieces of
// rows into a ring of STAGES, and of a tile's scales and zeros into slots of their own, so that memory is always asked for what
// comes next, in few and long requests. The other WARPS multiply: each has PART_CHUNKS chunks of 128 numbers of a stage, of
// which the thread 4 g + t takes pieces of 32 codes of the rows g and g + 8. Codes become pairs in registers, tensor cores
// multiply them by x, which was put into the same order once, and scales and zeros are applied to the sums of a chunk, as in
// `packed_product.cu`; what x sums up to in a chunk is known from the start. Sums of warps meet at the end of a tile.
//
// Traffic: w, its scales and zeros once; x from L2 once for each block. Roofline: these bytes over the memory's rate; some 1.5
// instructions for each code of a thread leave room for twice that.
#include "element.cuh"
#include "hopper.cuh"
#include "output.cuh"
#include "packed.cuh"
#include "packed_pairs.cuh"

constexpr int TILE = 16;
constexpr int READERS = 32 * WARPS;
constexpr unsigned CHUNK = 128, CHUNKS = K / CHUNK;
// Chunks of a row in a stage, and stages of a tile.
constexpr int STAGE_CHUNKS = PART_CHUNKS * WARPS, PARTS = CHUNKS / STAGE_CHUNKS;
constexpr int PIECE_CODES = CHUNK / 4, PIECE_PAIRS = PIECE_CODES / 2, X_ACCESSES = PIECE_PAIRS / 4;
constexpr int ROW_BYTES = STAGE_CHUNKS * CHUNK / 2;
static_assert(BITS == 4 && GROUP == CHUNK && K % (CHUNK * STAGE_CHUNKS) == 0, "whole stages");

// Those of a row that a warp needs in a stage, in one access.
struct __align__(PART_CHUNKS * sizeof(stored_scale)) some_scales {
    stored_scale of[PART_CHUNKS];
};

// Two rows of a stage that threads read at once begin in different halves of the banks.
constexpr int ROW_PITCH = ROW_BYTES % 128 == 64 ? ROW_BYTES : ROW_BYTES + 64;
constexpr int STAGE_BYTES = TILE * ROW_PITCH;
#if defined(ZEROS)
constexpr int KINDS = 2;
#else
constexpr int KINDS = 1;
#endif
// Scales of a tile, and beside them its zeros. A slot is free when the last stage of its tile is, before which the next tile's
// first may be.
constexpr int TILE_SCALES = TILE * GROUPS;
constexpr int SLOT_BYTES = KINDS * TILE_SCALES * sizeof(stored_scale);
constexpr int SLOTS = (STAGES + PARTS - 1) / PARTS + (PARTS > 1);

extern "C" __global__ void __launch_bounds__(READERS + 32, AT_ONCE)
    KERNEL(const element *__restrict__ x, const unsigned *__restrict__ codes, const stored_scale *__restrict__ scales,
#if defined(ZEROS)
           const stored_zero *__restrict__ zeros,
#endif
#ifdef ADDED
           const output *__restrict__ added,
#endif
           output *__restrict__ y, u64, u64 n) {
    extern __shared__ uint4 memory[];
    unsigned char *const ring = reinterpret_cast<unsigned char *>(memory);
    unsigned char *const slots = ring + STAGES * STAGE_BYTES;
    uint4 *const of_x = reinterpret_cast<uint4 *>(slots + SLOTS * SLOT_BYTES);
    float *const sums_of_x = reinterpret_cast<float *>(of_x + ROWS * K / 8);
    float *const of_warps = sums_of_x + CHUNKS * ROWS;
    __shared__ u64 barriers[2 * STAGES];
    const unsigned ready = shared_address(barriers), free = ready + 8 * STAGES;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const unsigned tiles = (unsigned)n / TILE;
    if (threadIdx.x == 0) initialize_ring<STAGES>(ready, free, READERS);
    show_barriers();

    int stage = 0, slot = 0;
    if (warp == WARPS) {
        int parity = 1;
        for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            for (int part = 0; part < PARTS; part++) {
                wait(free + 8 * stage, parity);
                const unsigned to = shared_address(ring) + stage * STAGE_BYTES, barrier = ready + 8 * stage;
                if (lane == 0) expect(barrier, TILE * ROW_BYTES + (part == 0 ? SLOT_BYTES : 0));
                __syncwarp();
                if (lane < TILE) {
                    const unsigned *const row = codes + ((u64)tile * TILE + lane) * ROW_WORDS;
                    bring_bytes(to + lane * ROW_PITCH, row + part * (ROW_BYTES / 4), ROW_BYTES, barrier);
                } else if (part == 0 && lane < TILE + KINDS) {
                    const int kind = lane - TILE;
                    const void *from = scales + (u64)tile * TILE_SCALES;
#if defined(ZEROS)
                    if (kind == 1) from = zeros + (u64)tile * TILE_SCALES;
#endif
                    const int bytes = SLOT_BYTES / KINDS;
                    bring_bytes(shared_address(slots) + slot * SLOT_BYTES + kind * bytes, from, bytes, barrier);
                }
                if (++stage == STAGES) stage = 0, parity ^= 1;
            }
            if (++slot == SLOTS) slot = 0;
        }
        return;
    }

    // A piece of x for each quarter of a chunk, those of all rows and quarters side by side. Four threads have a chunk, of which
    // others of their warp may have none.
    const unsigned quad = 0xfu << (lane - t);
    for (int at = threadIdx.x; at < (int)(4 * CHUNKS) * ROWS; at += READERS) {
        const unsigned piece = at % (4 * CHUNKS), row = at / (4 * CHUNKS), chunk = piece / 4;
        const uint4 *const from = reinterpret_cast<const uint4 *>(x + row * K + piece * PIECE_CODES);
        unsigned neighbors[PIECE_PAIRS];
#pragma unroll
        for (int i = 0; i < X_ACCESSES; i++) {
            const uint4 four = __ldg(from + i);
            neighbors[4 * i] = four.x;
            neighbors[4 * i + 1] = four.y;
            neighbors[4 * i + 2] = four.z;
            neighbors[4 * i + 3] = four.w;
        }
        float sum = 0.0f;
#pragma unroll
        for (int p = 0; p < PIECE_PAIRS; p++) {
            sum += widen((element)neighbors[p]) + widen((element)(neighbors[p] >> 16));
        }
#pragma unroll
        for (int i = 0; i < X_ACCESSES; i++) {
            of_x[((chunk * X_ACCESSES + i) * ROWS + row) * 4 + piece % 4] =
                make_uint4(far_pair(neighbors, 4 * i), far_pair(neighbors, 4 * i + 1), far_pair(neighbors, 4 * i + 2),
                           far_pair(neighbors, 4 * i + 3));
        }
        sum += __shfl_xor_sync(quad, sum, 1);
        sum += __shfl_xor_sync(quad, sum, 2);
        if (piece % 4 == 0) sums_of_x[chunk * ROWS + row] = sum;
    }
    wait_for_group(1, READERS);

    // Columns of the tensor cores' tile that are no rows of x have those of the last one, and are not written.
    const uint4 *const own_x = of_x + min(g, ROWS - 1) * 4 + t;
    int parity = 0, half = 0;
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float sums[4] = {};
        for (int part = 0; part < PARTS; part++) {
            wait(ready + 8 * stage, parity);
            const int first_chunk = part * STAGE_CHUNKS + warp * PART_CHUNKS;
            const uint4 *const pieces = reinterpret_cast<const uint4 *>(ring + stage * STAGE_BYTES + g * ROW_PITCH) +
                                        warp * (PART_CHUNKS * 4) + t;
            const stored_scale *const own_scales =
                reinterpret_cast<const stored_scale *>(slots + slot * SLOT_BYTES) + g * GROUPS + first_chunk;
            some_scales scales_of[2], zeros_of[2];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const some_scales *const at = reinterpret_cast<const some_scales *>(own_scales + h * (8 * GROUPS));
                scales_of[h] = *at;
#if defined(ZEROS)
                zeros_of[h] = at[TILE_SCALES / PART_CHUNKS];
#endif
            }
#pragma unroll
            for (int c = 0; c < PART_CHUNKS; c++) {
                unsigned words[2][4];
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const uint4 piece = pieces[c * 4 + h * (8 * ROW_PITCH / 16)];
                    words[h][0] = piece.x;
                    words[h][1] = piece.y;
                    words[h][2] = piece.z;
                    words[h][3] = piece.w;
                }
                // Two sums, so that a product need not wait for the one before it.
                float of_codes[2][4] = {};
#pragma unroll
                for (int i = 0; i < X_ACCESSES; i++) {
                    const uint4 four = own_x[((first_chunk + c) * X_ACCESSES + i) * (ROWS * 4)];
                    const unsigned pairs[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
                    for (int p = 0; p < 4; p += 2) {
                        // The codes of each access of x are those of a word.
                        const unsigned first[2] = {above_sixteen(words[0][i], p * 4), above_sixteen(words[0][i], p * 4 + 4)};
                        const unsigned second[2] = {above_sixteen(words[1][i], p * 4), above_sixteen(words[1][i], p * 4 + 4)};
                        multiply(of_codes[p / 2], first[0], second[0], first[1], second[1], pairs[p], pairs[p + 1]);
                    }
                }
#pragma unroll
                for (int i = 0; i < (ROWS == 1 ? 1 : 2); i++) {
                    const float of_x_alone = sums_of_x[(first_chunk + c) * ROWS + min(2 * t + i, ROWS - 1)];
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        const float scale = SCALE::number(scales_of[h].of[c]);
#if defined(ZEROS)
                        const float zero = ZERO::number(zeros_of[h].of[c]);
#else
                        const float zero = 0.0f;
#endif
                        float &sum = sums[2 * h + i];
                        const float of_both = of_codes[0][2 * h + i] + of_codes[1][2 * h + i];
                        sum = fmaf(scale, of_both, fmaf(rest_of(scale, zero), of_x_alone, sum));
                    }
                }
            }
            // Each thread for itself, which costs nothing to speak of: it alone knows that it has read.
            arrive(free + 8 * stage);
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
        if (++slot == SLOTS) slot = 0;

        // Two halves in turn: who writes one again has been in the wait since all of it was read.
        float *const all = of_warps + half * (WARPS * ROWS * TILE);
        half ^= 1;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int column = 2 * t + i % 2;
            if (column < ROWS) all[(warp * ROWS + column) * TILE + g + i / 2 * 8] = sums[i];
        }
        wait_for_group(1, READERS);
        for (int at = threadIdx.x; at < ROWS * TILE; at += READERS) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < WARPS; i++) sum += all[i * ROWS * TILE + at];
            const u64 of_y = at / TILE * n + (u64)tile * TILE + at % TILE;
#ifdef ADDED
            sum += from_output(added[of_y]);
#endif
            y[of_y] = to_output(sum);
        }
    }
}
