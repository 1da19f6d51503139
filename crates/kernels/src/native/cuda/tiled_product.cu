// y[m, n] = x[m, K] * w[n, K]^T [* outer scales] [+ added[m, n]] for weights in codes, in the order of `tiled_codes.cuh`, by products of Hopper's
// warp groups. The codes are never written unpacked.
//
// A block makes 128 columns of y for COLUMNS rows of x, over one of SPLITS parts of K. A thread of its first warp group starts
// the copies of tiles of 64 numbers, of x and of codes, into a ring of STAGES. The other two groups make numbers of the codes of 64 rows each, in registers, and the tensor cores
// multiply them by x in shared memory, while the next tile's are made. Sums are float; scales of rows are left to them. Sums
// of blocks that share columns meet in device memory, where the last block to arrive adds them up, always in the same order.
//
// Traffic: w once for each COLUMNS rows of x; x from L2 n / 128 times; partial sums, if SPLITS is above one, 8 m n SPLITS
// bytes. Roofline: the bytes of w over the memory's rate, or 2 m n K over 4096 operations a cycle of each multiprocessor: a
// tile is 4 COLUMNS cycles of products and some 200 of decoding beside them.
#include "element.cuh"
#include "hopper.cuh"
#include "output.cuh"
#include "tiled_codes.cuh"

constexpr int GROUP_THREADS = 128;
constexpr int X_BYTES = COLUMNS * STEP * 2;
constexpr int SUMS = COLUMNS / 2;
// Floats from one row of staged sums to the next, such that no two threads of a warp meet in a bank.
constexpr int PITCH = TILE_ROWS + 4;

#if defined(GROUP)
// The scale that a row of a tile has at a step of 16 numbers.
__device__ __forceinline__ pair_scale scale_of(const unsigned char *tile, int row, int step) {
    const element *const scales = reinterpret_cast<const element *>(tile + CODE_BYTES);
    const int at = (TILE_GROUPS == 1 ? 0 : step * 16 / (int)GROUP) * TILE_ROWS + row;
#if defined(ZEROS)
    return {scales[at] * BOTH, scales[TILE_GROUPS * TILE_ROWS + at] * BOTH};
#else
    return {scales[at] * BOTH, 0};
#endif
}
#endif

// Adds the bits of a plane to the codes of pairs, all from the lowest bit of a half on.
template <int OF_CODE>
__device__ __forceinline__ void add_plane(const unsigned char *tile, int thread, unsigned (&codes)[THREAD_PAIRS]) {
    typedef plane<OF_CODE> own;
    if (!own::IS_THERE) return;
    const own bits = own::in(tile)[thread];
#pragma unroll
    for (int i = 0; i < THREAD_PAIRS; i++) {
        const unsigned mask = ((1u << OF_CODE) - 1) * BOTH << own::BELOW;
        codes[i] = pick(moved(bits.words[i * OF_CODE / 16], own::BELOW - own::from(i)), mask, codes[i]);
    }
}

// The numbers of a thread's codes in a tile, for its four steps.
__device__ __forceinline__ void numbers_of(const unsigned char *tile, int thread, unsigned (&numbers)[THREAD_PAIRS]) {
#if BITS == 4 || BITS == 2 || BITS == 1
    const plane<BITS> all = plane<BITS>::in(tile)[thread];
#pragma unroll
    for (int i = 0; i < THREAD_PAIRS; i++) numbers[i] = decode_pair(all.words[i * BITS / 16], plane<BITS>::from(i));
#elif BITS < 8
    unsigned codes[THREAD_PAIRS] = {};
    add_plane<4>(tile, thread, codes);
    add_plane<2>(tile, thread, codes);
    add_plane<1>(tile, thread, codes);
#pragma unroll
    for (int i = 0; i < THREAD_PAIRS; i++) numbers[i] = decode_pair(codes[i], 0);
#else
    const uint4 *const pieces = reinterpret_cast<const uint4 *>(tile);
#pragma unroll
    for (int p = 0; p < 2; p++) {
        const uint4 piece = pieces[p * TILE_THREADS + thread];
        const unsigned words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
        for (int w = 0; w < 4; w++) {
#pragma unroll
            for (int i = 0; i < 2; i++) numbers[8 * p + w / 2 * 4 + w % 2 + 2 * i] = decode_pair(words[w], i * 8);
        }
    }
#endif
#if defined(GROUP)
    const int row = thread / 32 * 16 + thread % 32 / 4;
    pair_scale of[2];
#pragma unroll
    for (int i = 0; i < THREAD_PAIRS; i++) {
        // Numbers of a step are those of both rows in turn.
        if (i % (TILE_GROUPS == 1 ? 16 : (int)GROUP / 4) == 0) {
            of[0] = scale_of(tile, row, i / 4);
            of[1] = scale_of(tile, row + 8, i / 4);
        }
        numbers[i] = scaled_pair(numbers[i], of[i % 2]);
    }
#endif
}

extern "C" __global__ void __launch_bounds__(3 * GROUP_THREADS, 1)
    KERNEL(const element *, const unsigned char *__restrict__ weights,
#if !defined(GROUP)
           const stored_scale *__restrict__ scales,
#endif
#ifdef OUTER
           const float *__restrict__ outer_of_weight, const float *__restrict__ outer_of_input,
#endif
#ifdef ADDED
           const output *__restrict__ added,
#endif
           output *__restrict__ y,
#if SPLITS > 1
           float *__restrict__ parts, unsigned *__restrict__ arrived,
#endif
           u64 m, u64 n, const __grid_constant__ tensor_map boxes_of_x) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[2 * STAGES];
    const unsigned ready = shared_address(barriers), free = ready + 8 * STAGES;
    unsigned char *const codes_ring = shared + STAGES * X_BYTES;
    const unsigned x_ring = shared_address(shared);
    if (threadIdx.x == 0) initialize_ring<STAGES>(ready, free, 2 * GROUP_THREADS / 32);
    show_barriers();

    const unsigned blocks = gridDim.x / SPLITS;
    const unsigned split = blockIdx.x / blocks, block = blockIdx.x % blocks;
    const unsigned row_tiles = ((unsigned)n + TILE_ROWS - 1) / TILE_ROWS;
    const u64 first_row = (u64)(block % row_tiles) * TILE_ROWS;
    const u64 first_column = (u64)(block / row_tiles) * COLUMNS;
    const int first_tile = (int)((u64)K_TILES * split / SPLITS);
    const int tiles = (int)((u64)K_TILES * (split + 1) / SPLITS) - first_tile;

    if (threadIdx.x < GROUP_THREADS) {
        keep_registers<24>();
        const unsigned char *const from = weights + ((u64)(block % row_tiles) * K_TILES + first_tile) * WEIGHT_BYTES;
        for (int tile = 0; threadIdx.x == 0 && tile < tiles; tile++) {
            const int stage = tile % STAGES;
            const unsigned barrier = ready + 8 * stage;
            if (tile >= STAGES) wait(free + 8 * stage, (tile / STAGES - 1) % 2);
            expect(barrier, X_BYTES + WEIGHT_BYTES);
            bring_box(x_ring + stage * X_BYTES, boxes_of_x, (first_tile + tile) * STEP, (int)first_column, 0, barrier);
            bring_bytes(x_ring + STAGES * X_BYTES + stage * WEIGHT_BYTES, from + (u64)tile * WEIGHT_BYTES, WEIGHT_BYTES, barrier);
        }
        return;
    }

    more_registers<240>();
    const int thread = threadIdx.x - GROUP_THREADS, lane = thread % 32;
    float sums[SUMS] = {};
    const auto multiply_tile = [&](int tile, unsigned(&numbers)[THREAD_PAIRS]) {
        const int stage = tile % STAGES;
        wait(ready + 8 * stage, tile / STAGES % 2);
        numbers_of(codes_ring + stage * WEIGHT_BYTES, thread, numbers);
        // All of them are made before the first product begins, or products would wait for each other.
#pragma unroll
        for (int i = 0; i < THREAD_PAIRS; i++) asm volatile("" : "+r"(numbers[i]));
        fence_products();
#pragma unroll
        for (int step = 0; step < STEP / 16; step++) {
            const u64 of_x = along_rows(x_ring + stage * X_BYTES + step * 32);
            multiply_registers<false>(sums, &numbers[4 * step], of_x, tile != 0 || step != 0);
        }
        commit_products();
        // Until those of the tile before are done: their numbers and their stage are free then.
        leave_products<1>();
        if (tile > 0 && lane == 0) arrive(free + 8 * ((tile - 1) % STAGES));
    };
    unsigned even[THREAD_PAIRS], odd[THREAD_PAIRS];
    int tile = 0;
    for (; tile + 1 < tiles; tile += 2) {
        multiply_tile(tile, even);
        multiply_tile(tile + 1, odd);
    }
    if (tile < tiles) multiply_tile(tile, even);
    finish_products<0>(sums);

    const auto both_groups = [] { wait_for_group(1, 2 * GROUP_THREADS); };
#if SPLITS > 1
    float *const own = parts + ((u64)block * SPLITS + split) * (TILE_ROWS * COLUMNS) + thread;
#pragma unroll
    for (int i = 0; i < SUMS; i++) own[i * 2 * GROUP_THREADS] = sums[i];
    __threadfence();
    both_groups();
    __shared__ bool last;
    if (thread == 0) last = atomicAdd(arrived + block, 1u) == SPLITS - 1;
    both_groups();
    if (!last) return;
    __threadfence();
    const float *const all = parts + (u64)block * SPLITS * (TILE_ROWS * COLUMNS) + thread;
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        sums[i] = 0;
        for (int from = 0; from < SPLITS; from++) sums[i] += __ldcg(all + (u64)from * (TILE_ROWS * COLUMNS) + i * 2 * GROUP_THREADS);
    }
    // For the next launch.
    if (thread == 0) arrived[block] = 0;
#endif

    // Through shared memory, which nobody reads any more once both groups are here, so that rows of y are written whole.
    both_groups();
    float *const staged = reinterpret_cast<float *>(shared);
    const int row = thread / 32 * 16 + lane / 4;
#if !defined(GROUP)
    float scale[2];
#pragma unroll
    for (int h = 0; h < 2; h++) scale[h] = first_row + row + 8 * h < n ? SCALE::number(scales[first_row + row + 8 * h]) : 0;
#elif defined(OUTER)
    const float outer = *outer_of_weight * *outer_of_input;
#endif
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        const int column = i / 4 * 8 + lane % 4 * 2 + i % 2, h = i / 2 % 2;
#if !defined(GROUP)
        sums[i] *= scale[h];
#elif defined(OUTER)
        sums[i] *= outer;
#endif
        staged[column * PITCH + row + 8 * h] = sums[i];
    }
    both_groups();
    for (int at = thread * WIDTH; at < COLUMNS * TILE_ROWS; at += 2 * GROUP_THREADS * WIDTH) {
        const u64 column = first_column + at / TILE_ROWS, of_y = first_row + at % TILE_ROWS;
        if (column >= m || of_y >= n) continue;
        float values[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] = staged[at / TILE_ROWS * PITCH + at % TILE_ROWS + i];
#ifdef ADDED
        const output_piece more = *reinterpret_cast<const output_piece *>(added + column * n + of_y);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] += from_output(more.parts[i]);
#endif
        output_piece result;
#pragma unroll
        for (int i = 0; i < WIDTH; i++) result.parts[i] = to_output(values[i]);
        *reinterpret_cast<output_piece *>(y + column * n + of_y) = result;
    }
}
