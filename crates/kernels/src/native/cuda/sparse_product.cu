// y[m, n] = x[m, K] * w[n, K]^T for weights of which two of every four numbers are kept, in the order of `sparse_codes.cuh`, on sparse
// tensor cores: twice the products of dense ones in an instruction.
//
// Data flow: a block makes 128 * TILES / DEEP columns of y for COLUMNS rows of x, over one of SPLITS parts of K. Each of its eight warps
// has 16 * TILES rows of w, and every DEEP-th unit of them, which it reads into registers, FLIGHT ahead; nobody else reads them. x
// goes through a ring of STAGES times DEEP units in shared memory, brought by asynchronous copies in pieces of 16 bytes, or number by number where rows do not begin at
// such, and is taken from there by all warps. Half bytes become numbers of x's own type in registers, times the scale of their group. Sums
// are float, or 32-bit integers of bytes around zero. Those of warps with the same rows meet in shared memory, those of blocks that share columns meet in device memory, where the last block to
// arrive adds them up, always in the same order, and finishes: scales of rows and columns, activation, what is added.
//
// Traffic: w compressed (9/16 of its bytes in 16 bits, 10/16 in 8) once for each COLUMNS rows of x; x from L2 once for each block.
// Roofline: the bytes of w over the memory's rate for few rows. For many the products: a warp takes 512 bytes of x out of
// shared memory for 8 rows of it, which is 4 cycles of a multiprocessor for TILES instructions of 2 cycles at least.
#include "activations.cuh"
#include "sparse_codes.cuh"
#if defined(KEPT_HALVES)
#define CODES_INT4
#define WORD_CODES 8
#endif

constexpr int WARPS = 8;
constexpr int THREADS = 32 * WARPS;
constexpr int ROWS = 16 * TILES * WARPS / DEEP;
constexpr int COLUMN_TILES = COLUMNS / 8;
// Bytes of a row of x in a unit, and pieces of 16.
#if defined(KEPT_BYTES)
constexpr int X_BYTES = 64;
#else
constexpr int X_BYTES = 128;
#endif
constexpr int X_PIECES = X_BYTES / 16;
constexpr int UNIT_BYTES = COLUMNS * X_BYTES;
constexpr int STAGE_BYTES = DEEP * UNIT_BYTES;
constexpr int HALVES = X_BYTES / 64;

#if defined(KEPT_BYTES) && defined(CODES_INT8)
typedef int sum_type;
#else
typedef float sum_type;
#endif
#if defined(KEPT_BYTES)
typedef unsigned char of_x;
#else
typedef element of_x;
#endif
#if defined(CODES_INT8) && !defined(COLUMNS_IN_F32)
typedef element column_scale;
__device__ __forceinline__ float wide(column_scale scale) { return widen(scale); }
#else
typedef float column_scale;
__device__ __forceinline__ float wide(column_scale scale) { return scale; }
#endif

// Before CUDA 12.5 there is one name for all.
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1205
#define SPARSE "mma.sp::ordered_metadata.sync.aligned."
#else
#define SPARSE "mma.sp.sync.aligned."
#endif
#if defined(KEPT_BYTES) && defined(CODES_INT8)
#define PRODUCT SPARSE "m16n8k64.row.col.s32.s8.s8.s32"
#define SUM "+r"
#elif defined(KEPT_BYTES)
#define PRODUCT SPARSE "m16n8k64.row.col.f32.e4m3.e4m3.f32"
#define SUM "+f"
#elif defined(ELEMENT_BF16)
#define PRODUCT SPARSE "m16n8k32.row.col.f32.bf16.bf16.f32"
#define SUM "+f"
#else
#define PRODUCT SPARSE "m16n8k32.row.col.f32.f16.f16.f32"
#define SUM "+f"
#endif

// Adds the products of 16 rows of w by 8 of x over 64 bytes of x. WHICH of the threads tell the places.
template <int WHICH>
__device__ __forceinline__ void multiply(sum_type (&sums)[4], const unsigned *a, const unsigned (&b)[4], unsigned places) {
    asm(PRODUCT " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, %13;"
        : SUM(sums[0]), SUM(sums[1]), SUM(sums[2]), SUM(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(places), "n"(WHICH));
}

// What a thread holds of a unit.
struct unit {
    unsigned words[THREAD_WORDS];
    unsigned places;
#if defined(KEPT_HALVES)
    element scales[2];
#endif

    __device__ __forceinline__ void load(const unsigned *from, unsigned lane) {
#if defined(KEPT_HALVES)
        const uint2 pair = __ldcg(reinterpret_cast<const uint2 *>(from) + lane);
        words[0] = pair.x;
        words[1] = pair.y;
#else
#pragma unroll
        for (int i = 0; i < THREAD_WORDS / 4; i++) {
            const uint4 four = __ldcg(reinterpret_cast<const uint4 *>(from) + i * 32 + lane);
            words[4 * i] = four.x;
            words[4 * i + 1] = four.y;
            words[4 * i + 2] = four.z;
            words[4 * i + 3] = four.w;
        }
#endif
        places = __ldcg(from + 32 * THREAD_WORDS + lane);
    }

    // The numbers of one half, or all bytes.
    __device__ __forceinline__ void numbers(int half, unsigned (&a)[4]) const {
#if defined(KEPT_HALVES)
#if defined(ELEMENT_BF16)
        constexpr unsigned ONES = 0x3f803f80u, BASE = 0x43004300u, LESS = 0xc308c308u, NOTHING = 0x80008000u;
#define PAIRS "bf16x2"
#else
        constexpr unsigned ONES = 0x3c003c00u, BASE = 0x64006400u, LESS = 0xe408e408u, NOTHING = 0x80008000u;
#define PAIRS "f16x2"
#endif
#pragma unroll
        for (int i = 0; i < 4; i++) {
            // Codes i and i + 4 as the lowest bits of a power of two whose steps are 1.
            unsigned pair = (words[half] >> 4 * i & 0x000f000fu) | BASE;
            asm("fma.rn." PAIRS " %0, %0, %1, %2;" : "+r"(pair) : "r"(ONES), "r"(LESS));
            const unsigned scale = scales[i % 2] * 0x10001u;
            asm("fma.rn." PAIRS " %0, %0, %1, %2;" : "+r"(pair) : "r"(scale), "r"(NOTHING));
            a[i] = pair;
        }
#else
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = words[4 * half + i];
#endif
    }
};

__device__ __forceinline__ unsigned shared_address(const void *pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }

// Where a piece of a row of x lies in a stage: such that eight rows of the same piece meet no bank twice.
__device__ __forceinline__ unsigned place_of(unsigned row, unsigned piece) {
    const unsigned turn = X_PIECES == 8 ? row & 7 : row >> 1 & 3;
    return row * X_BYTES + ((piece ^ turn) << 4);
}

extern "C" __global__ void __launch_bounds__(THREADS, TILES > 1 ? 1 : 2)
    KERNEL(const of_x *__restrict__ x,
#if defined(KEPT_BYTES)
           const float *__restrict__ row_scales,
#endif
           const unsigned *__restrict__ units,
#if defined(KEPT_HALVES)
           const element *__restrict__ group_scales,
#elif defined(KEPT_BYTES)
           const column_scale *__restrict__ column_scales,
#endif
#ifdef ADDED
           const element *__restrict__ added,
#endif
           element *__restrict__ y,
#if SPLITS > 1
           sum_type *__restrict__ parts, unsigned *__restrict__ arrived,
#endif
           u64 m, u64 n) {
    extern __shared__ __align__(1024) unsigned char ring[];

    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned g = lane / 4, t = lane % 4;
    const unsigned deep = warp % DEEP, of_rows = warp / DEEP;
    const unsigned blocks = gridDim.x / SPLITS, split = blockIdx.x / blocks, block = blockIdx.x % blocks;
    const unsigned column_blocks = ((unsigned)m + COLUMNS - 1) / COLUMNS;
    // Neighboring blocks have the same rows of w, which are then read from memory once.
    const u64 first_row = (u64)(block / column_blocks) * ROWS, first_column = (u64)(block % column_blocks) * COLUMNS;
    const unsigned begin = (u64)UNITS * split / SPLITS, end = (u64)UNITS * (split + 1) / SPLITS;

    // Beyond the last row the last unit is read again, and what comes of it is not written.
    const unsigned row_units = ((unsigned)n + 15) / 16;
    const unsigned *from[TILES];
    u64 of_tile[TILES];
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
        of_tile[tile] = first_row / 16 + of_rows * TILES + tile;
        const u64 read = of_tile[tile] < row_units ? of_tile[tile] : row_units - 1;
        from[tile] = units + read * UNITS * UNIT_WORDS;
    }
    const unsigned steps = (end - begin + DEEP - 1) / DEEP;
    const auto load = [&](unit (&into)[TILES], unsigned step) {
        const unsigned at = begin + step * DEEP + deep;
        const unsigned sought = at < end ? at : end - 1;
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            into[tile].load(from[tile] + (u64)sought * UNIT_WORDS, lane);
#if defined(KEPT_HALVES)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const u64 row = of_tile[tile] * 16 + g + 8 * h;
                into[tile].scales[h] = __ldg(group_scales + (row < n ? row : n - 1) * ((K + 127) / 128) + sought / 2);
            }
#endif
        }
    };

    // Brings units of x into a stage; zeros where there are none, and where a warp has read a unit again.
    const auto bring = [&](unsigned step) {
        if (step < steps) {
            unsigned char *const stage = ring + step % STAGES * STAGE_BYTES;
#pragma unroll
            for (unsigned of = threadIdx.x; of < DEEP * COLUMNS * X_PIECES; of += THREADS) {
                const unsigned row = of / X_PIECES % COLUMNS, piece = of % X_PIECES, which = of / (X_PIECES * COLUMNS);
                const u64 column = first_column + row;
                constexpr unsigned PIECE = 16 / sizeof(of_x);
                const unsigned at = begin + step * DEEP + which, k = at * 64 + piece * PIECE;
                const bool there = column < m && at < end;
                unsigned char *const to = stage + which * UNIT_BYTES + place_of(row, piece);
#if WIDTH > 1
                const unsigned bytes = there && k < STRIDE ? 16 : 0;
                const of_x *const source = bytes > 0 ? x + column * STRIDE + k : x;
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(source), "r"(bytes)
                             : "memory");
#else
#pragma unroll
                for (unsigned i = 0; i < PIECE; i++) {
                    reinterpret_cast<of_x *>(to)[i] = there && k + i < STRIDE ? x[column * STRIDE + k + i] : 0;
                }
#endif
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    sum_type sums[TILES][COLUMN_TILES][4] = {};
    unit held[FLIGHT][TILES];
#pragma unroll
    for (int f = 0; f < FLIGHT; f++) load(held[f], f);
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; stage++) bring(stage);

    // Of a matrix of eight rows by 16 bytes each of eight threads names a row; four matrices are taken at once.
    const unsigned taken_row = lane % 8, taken_piece = lane / 8;
    for (unsigned first = 0; first < steps; first += FLIGHT) {
#pragma unroll
        for (int f = 0; f < FLIGHT; f++) {
            const unsigned step = first + f;
            if (step >= steps) break;
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
            __syncthreads();
            // Into the stage that all have left.
            bring(step + STAGES - 1);
            const unsigned stage = shared_address(ring + step % STAGES * STAGE_BYTES + deep * UNIT_BYTES);
#pragma unroll
            for (int half = 0; half < HALVES; half++) {
                unsigned a[TILES][4];
#pragma unroll
                for (int tile = 0; tile < TILES; tile++) held[f][tile].numbers(half, a[tile]);
#pragma unroll
                for (int c = 0; c < COLUMN_TILES; c++) {
                    unsigned b[4];
                    const unsigned address = stage + place_of(c * 8 + taken_row, half * 4 + taken_piece);
                    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                                 : "r"(address)
                                 : "memory");
#pragma unroll
                    for (int tile = 0; tile < TILES; tile++) {
                        if (half == 0) {
                            multiply<0>(sums[tile][c], a[tile], b, held[f][tile].places);
                        } else {
#if !defined(KEPT_BYTES)
                            multiply<1>(sums[tile][c], a[tile], b, held[f][tile].places);
#endif
                        }
                    }
                }
            }
            load(held[f], step + FLIGHT);
        }
    }

    const auto finish = [&](u64 column, u64 of_y, sum_type sum) {
        if (of_y >= n || column >= m) return;
        float number = (float)sum;
#if defined(KEPT_BYTES)
#ifdef TENSOR
        number = number * row_scales[0] * wide(column_scales[0]);
#else
        number = number * row_scales[column] * wide(column_scales[of_y]);
#endif
#ifdef ACTIVATE
        number = ACTIVATE(number);
#endif
#endif
#ifdef ADDED
        number += widen(added[column * n + of_y]);
#endif
        y[column * n + of_y] = narrow(number);
    };

    // Sums are turned in shared memory, so that neighboring threads write neighbors of y.
    constexpr int PITCH = ROWS + 4;
    constexpr int AT_ONCE = COLUMNS < 16 ? COLUMNS : 16;
    sum_type *const turned = reinterpret_cast<sum_type *>(ring);
    const auto turn = [&](int part) {
        __syncthreads();
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
#pragma unroll
            for (int c = 0; c < AT_ONCE / 8; c++) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int row = (of_rows * TILES + tile) * 16 + g + 8 * (i / 2), column = c * 8 + 2 * t + i % 2;
                    turned[(deep * AT_ONCE + column) * PITCH + row] = sums[tile][part * (AT_ONCE / 8) + c][i];
                }
            }
        }
        __syncthreads();
    };
    const auto of_block = [&](int column, int row) {
        sum_type sum = 0;
#pragma unroll
        for (int i = 0; i < DEEP; i++) sum += turned[(i * AT_ONCE + column) * PITCH + row];
        return sum;
    };
    // No copy may come over what is turned.
    asm volatile("cp.async.wait_all;" ::: "memory");

#if SPLITS > 1
    constexpr int SUMS = ROWS * COLUMNS;
    sum_type *const own = parts + (u64)blockIdx.x * SUMS;
#pragma unroll
    for (int part = 0; part < COLUMNS / AT_ONCE; part++) {
        turn(part);
        for (int at = threadIdx.x; at < AT_ONCE * ROWS; at += THREADS) {
            own[part * AT_ONCE * ROWS + at] = of_block(at / ROWS, at % ROWS);
        }
    }
    __threadfence();
    __syncthreads();
    __shared__ bool last;
    if (threadIdx.x == 0) last = atomicAdd(arrived + block, 1u) == SPLITS - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int at = threadIdx.x; at < SUMS; at += THREADS) {
        sum_type sum = 0;
        for (int i = 0; i < SPLITS; i++) sum += __ldcg(parts + ((u64)i * blocks + block) * SUMS + at);
        finish(first_column + at / ROWS, first_row + at % ROWS, sum);
    }
    // For the next launch.
    if (threadIdx.x == 0) arrived[block] = 0;
#else
#pragma unroll
    for (int part = 0; part < COLUMNS / AT_ONCE; part++) {
        turn(part);
        for (int at = threadIdx.x; at < AT_ONCE * ROWS; at += THREADS) {
            finish(first_column + part * AT_ONCE + at / ROWS, first_row + at % ROWS, of_block(at / ROWS, at % ROWS));
        }
    }
#endif
}
