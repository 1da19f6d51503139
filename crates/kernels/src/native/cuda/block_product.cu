// y[m, n] = x[m, k] * w[n, k]^T [+ added[m, n]] for weights of which whole blocks of SIDE by SIDE are zero, on tensor cores: only what
// is stored is read and multiplied. Each row of blocks has KEPT of them, so all parts of y are the same work.
//
// Data flow: a block of threads makes TILE_N columns of y, which are of one row of blocks, for TILE_M rows of x. It goes through the
// kept blocks in steps of STEP numbers: rows of w as they lie, and the columns of x that meet them, into a ring of STAGES in shared
// memory by asynchronous copies of 16 bytes. Warps, ACROSS of them along the columns of y, take fragments from there and multiply. Sums are
// float.
//
// Traffic: the kept blocks once for each TILE_M rows of x, and of x KEPT * SIDE numbers of each row for each TILE_N columns of y, from the
// L2 cache. Roofline: the bytes of w over the memory's rate for few rows; for many 2 m n KEPT SIDE operations at the half or so of the
// tensor cores' rate that mma.sync reaches on Hopper.
#include "element.cuh"
#include "halves.cuh"

constexpr int WARPS = 4;
constexpr int THREADS = 32 * WARPS;
constexpr int WARP_M = TILE_M / (WARPS / ACROSS), WARP_N = TILE_N / ACROSS;
constexpr int M_TILES = WARP_M / 16, N_TILES = WARP_N / 8;
static_assert(M_TILES > 0 && N_TILES > 0 && SIDE % TILE_N == 0 && SIDE % STEP == 0, "warps have whole fragments");
constexpr int ROW_PIECES = STEP / 8;
constexpr int X_BYTES = TILE_M * STEP * 2, W_BYTES = TILE_N * STEP * 2;
constexpr unsigned STEPS_OF_BLOCK = SIDE / STEP, STEPS = KEPT * STEPS_OF_BLOCK;

__device__ __forceinline__ unsigned shared_address(const void *pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }

// Where a piece of a row lies: such that eight rows of the same piece meet as few banks twice as they can.
__device__ __forceinline__ unsigned place_of(unsigned row, unsigned piece) {
    const unsigned turn = ROW_PIECES == 8 ? row & 7 : ROW_PIECES == 4 ? row >> 1 & 3 : row >> 2 & 1;
    return (row * ROW_PIECES + (piece ^ turn)) * 16;
}

__device__ __forceinline__ void bring(unsigned to, const element *from, bool there) {
    const unsigned bytes = there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void take_four(unsigned (&words)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const element *__restrict__ x, const element *__restrict__ blocks, const unsigned *__restrict__ places,
#ifdef ADDED
           const element *__restrict__ added,
#endif
           element *__restrict__ y, u64 m, u64 n) {
    extern __shared__ __align__(1024) unsigned char ring[];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned row_tiles = ((unsigned)m + TILE_M - 1) / TILE_M;
    // Neighboring blocks have the same rows of w.
    const u64 first_row = (u64)(blockIdx.x % row_tiles) * TILE_M, first_column = (u64)(blockIdx.x / row_tiles) * TILE_N;
    const unsigned *const of_row = places + first_column / SIDE * KEPT;
    const element *const w = blocks + first_column * (KEPT * SIDE);

    const auto bring_step = [&](unsigned step) {
        if (step < STEPS) {
            const unsigned stage = shared_address(ring) + step % STAGES * (X_BYTES + W_BYTES);
            const unsigned block = step / STEPS_OF_BLOCK, inside = step % STEPS_OF_BLOCK * STEP;
            const u64 column = (u64)of_row[block] * SIDE + inside;
#pragma unroll
            for (unsigned at = threadIdx.x; at < TILE_M * ROW_PIECES; at += THREADS) {
                const unsigned row = at / ROW_PIECES, piece = at % ROW_PIECES;
                const bool there = first_row + row < m;
                bring(stage + place_of(row, piece), there ? x + (first_row + row) * K + column + piece * 8 : x, there);
            }
#pragma unroll
            for (unsigned at = threadIdx.x; at < TILE_N * ROW_PIECES; at += THREADS) {
                const unsigned row = at / ROW_PIECES, piece = at % ROW_PIECES;
                const element *const from = w + (u64)row * (KEPT * SIDE) + block * SIDE + inside + piece * 8;
                bring(stage + X_BYTES + place_of(row, piece), from, true);
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    float sums[M_TILES][N_TILES][4] = {};
    const unsigned warp_row = warp / ACROSS * WARP_M, warp_column = warp % ACROSS * WARP_N;
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; stage++) bring_step(stage);
    for (unsigned step = 0; step < STEPS; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        // Into the stage that all have left.
        bring_step(step + STAGES - 1);
        const unsigned of_x = shared_address(ring) + step % STAGES * (X_BYTES + W_BYTES), of_w = of_x + X_BYTES;
#pragma unroll
        for (int k = 0; k < STEP / 16; k++) {
            unsigned a[M_TILES][4], b[N_TILES][2];
#pragma unroll
            for (int i = 0; i < M_TILES; i++) {
                take_four(a[i], of_x + place_of(warp_row + i * 16 + lane % 16, 2 * k + lane / 16));
            }
#pragma unroll
            for (int j = 0; j < N_TILES; j += 2) {
                // Where there is a single eight, it is taken twice.
                const unsigned next = j + 1 < N_TILES ? lane / 16 * 8 : 0;
                unsigned words[4];
                take_four(words, of_w + place_of(warp_column + j * 8 + next + lane % 8, 2 * k + lane / 8 % 2));
                b[j][0] = words[0];
                b[j][1] = words[1];
                if (j + 1 < N_TILES) {
                    b[j + 1][0] = words[2];
                    b[j + 1][1] = words[3];
                }
            }
#pragma unroll
            for (int i = 0; i < M_TILES; i++) {
#pragma unroll
                for (int j = 0; j < N_TILES; j++) multiply(sums[i][j], a[i][0], a[i][1], a[i][2], a[i][3], b[j][0], b[j][1]);
            }
        }
    }

    // Two neighbors of y at once: n is a multiple of SIDE.
    struct __align__(2 * sizeof(element)) pair {
        element parts[2];
    };
#pragma unroll
    for (int i = 0; i < M_TILES; i++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const u64 row = first_row + warp_row + i * 16 + lane / 4 + 8 * h;
            if (row >= m) continue;
#pragma unroll
            for (int j = 0; j < N_TILES; j++) {
                const u64 at = row * n + first_column + warp_column + j * 8 + lane % 4 * 2;
                float two[2] = {sums[i][j][2 * h], sums[i][j][2 * h + 1]};
#ifdef ADDED
                const pair more = *reinterpret_cast<const pair *>(added + at);
                two[0] += widen(more.parts[0]);
                two[1] += widen(more.parts[1]);
#endif
                *reinterpret_cast<pair *>(y + at) = pair{{narrow(two[0]), narrow(two[1])}};
            }
        }
    }
}
