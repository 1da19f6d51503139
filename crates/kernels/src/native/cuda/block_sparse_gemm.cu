// y[m, n] = x[m, K] w[n, K]^T [+ addend[m, n]] for a block-sparse w on tensor cores: w consists of blocks of BLOCK_SIZE
// by BLOCK_SIZE elements, and each row of blocks stores BLOCKS_PER_ROW of them (BSR format with a fixed number of
// blocks). x, y and the addend are row-major in f16 or bf16.
//
// Algorithm: tiled GEMM over the stored blocks with a cp.async pipeline, ldmatrix and mma.m16n8k16 (as in the
// multistage Ampere kernels of CUTLASS; blocks as in Triton's block-sparse matmul and torchao). All output tiles cost
// the same. Shared-memory rows are XOR-swizzled in units of 16 bytes, so that ldmatrix of eight rows has no bank
// conflicts, or as few as short rows allow. Fragment maps: mma16.cuh.
//
//     w values of block row r:     | block 0 | block 1 | ... | last stored block |      row-major
//     block_columns[r]:            | c0      | c1      | ... |                          column of each block in w
//     k loop:                      x[:, c0 * BLOCK_SIZE ...] * block 0, x[:, c1 * BLOCK_SIZE ...] * block 1, ...
//
//     thread block: 4 warps on a TILE_M x TILE_N tile of y: WARPS_N along n, 4 / WARPS_N along m
//
// Traffic: the stored blocks once per TILE_M rows of x; from L2, BLOCKS_PER_ROW * BLOCK_SIZE elements of each row of x
// per TILE_N columns of y. Roofline: bytes of w over memory bandwidth for few rows; for many rows 2 m n BLOCKS_PER_ROW
// BLOCK_SIZE FLOP at about half of the peak of Hopper, which mma.sync can reach.
//
// Parameters:
//   KERNEL          name of the kernel
//   ELEMENT_*       dtype `element`: ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH           any value; required by element.cuh
//   K               row length of x
//   BLOCK_SIZE      rows and columns of a block of w
//   BLOCKS_PER_ROW  stored blocks per row of blocks
//   TILE_M          rows of x per thread block
//   TILE_N          columns of y per thread block; divides BLOCK_SIZE
//   TILE_K          elements of k per pipeline stage: 16, 32 or 64; divides BLOCK_SIZE
//   WARPS_N         warps along n
//   STAGES          pipeline stages
//   ADDEND          optional: an addend is added to y

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef K
#error "K: row length of x"
#endif
#ifndef BLOCK_SIZE
#error "BLOCK_SIZE: rows and columns of a block of w"
#endif
#ifndef BLOCKS_PER_ROW
#error "BLOCKS_PER_ROW: stored blocks per row of blocks"
#endif
#ifndef TILE_M
#error "TILE_M: rows of x per thread block"
#endif
#ifndef TILE_N
#error "TILE_N: columns of y per thread block"
#endif
#ifndef TILE_K
#error "TILE_K: elements of k per pipeline stage: 16, 32 or 64"
#endif
#ifndef WARPS_N
#error "WARPS_N: warps along n"
#endif
#ifndef STAGES
#error "STAGES: pipeline stages"
#endif

#include "element.cuh"
#include "mma16.cuh"

constexpr int WARPS = 4;
constexpr int THREADS = 32 * WARPS;
constexpr int WARP_M = TILE_M / (WARPS / WARPS_N), WARP_N = TILE_N / WARPS_N;
constexpr int FRAGMENTS_M = WARP_M / 16, FRAGMENTS_N = WARP_N / 8;
static_assert(FRAGMENTS_M > 0 && FRAGMENTS_N > 0 && BLOCK_SIZE % TILE_N == 0 && BLOCK_SIZE % TILE_K == 0,
              "warp tiles must consist of whole fragments");
constexpr int ROW_VECTORS = TILE_K / 8;
constexpr int X_BYTES = TILE_M * TILE_K * 2, W_BYTES = TILE_N * TILE_K * 2;
constexpr unsigned BLOCK_STEPS = BLOCK_SIZE / TILE_K, STEPS = BLOCKS_PER_ROW * BLOCK_STEPS;

__device__ __forceinline__ unsigned shared_address(const void *pointer) {
    return (unsigned)__cvta_generic_to_shared(pointer);
}

// Byte offset of a 16-byte vector in a tile, swizzled: eight rows of one vector column share as few banks as possible.
__device__ __forceinline__ unsigned swizzle(unsigned row, unsigned vector) {
    const unsigned mask = ROW_VECTORS == 8 ? row & 7 : ROW_VECTORS == 4 ? row >> 1 & 3 : row >> 2 & 1;
    return (row * ROW_VECTORS + (vector ^ mask)) * 16;
}

__device__ __forceinline__ void cp_async(unsigned destination, const element *source, bool in_range) {
    const unsigned bytes = in_range ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination), "l"(source), "r"(bytes)
                 : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const element *__restrict__ x, const element *__restrict__ values,
           const unsigned *__restrict__ block_columns,
#ifdef ADDEND
           const element *__restrict__ addend,
#endif
           element *__restrict__ y, u64 m, u64 n) {
    extern __shared__ __align__(1024) unsigned char stages[];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned row_tiles = ((unsigned)m + TILE_M - 1) / TILE_M;
    // Adjacent thread blocks share rows of w, for L2 reuse.
    const u64 first_row = (u64)(blockIdx.x % row_tiles) * TILE_M, first_column = (u64)(blockIdx.x / row_tiles) * TILE_N;
    const unsigned *const row_blocks = block_columns + first_column / BLOCK_SIZE * BLOCKS_PER_ROW;
    const element *const w = values + first_column * (BLOCKS_PER_ROW * BLOCK_SIZE);

    const auto load_step = [&](unsigned step) {
        if (step < STEPS) {
            const unsigned stage = shared_address(stages) + step % STAGES * (X_BYTES + W_BYTES);
            const unsigned block = step / BLOCK_STEPS, k_in_block = step % BLOCK_STEPS * TILE_K;
            const u64 column = (u64)row_blocks[block] * BLOCK_SIZE + k_in_block;
#pragma unroll
            for (unsigned i = threadIdx.x; i < TILE_M * ROW_VECTORS; i += THREADS) {
                const unsigned row = i / ROW_VECTORS, vector = i % ROW_VECTORS;
                const bool in_range = first_row + row < m;
                cp_async(stage + swizzle(row, vector), in_range ? x + (first_row + row) * K + column + vector * 8 : x,
                         in_range);
            }
#pragma unroll
            for (unsigned i = threadIdx.x; i < TILE_N * ROW_VECTORS; i += THREADS) {
                const unsigned row = i / ROW_VECTORS, vector = i % ROW_VECTORS;
                const element *const source =
                    w + (u64)row * (BLOCKS_PER_ROW * BLOCK_SIZE) + block * BLOCK_SIZE + k_in_block + vector * 8;
                cp_async(stage + X_BYTES + swizzle(row, vector), source, true);
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    float sums[FRAGMENTS_M][FRAGMENTS_N][4] = {};
    const unsigned warp_row = warp / WARPS_N * WARP_M, warp_column = warp % WARPS_N * WARP_N;
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; stage++) load_step(stage);
    for (unsigned step = 0; step < STEPS; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        // Refills the stage that all warps have consumed.
        load_step(step + STAGES - 1);
        const unsigned x_tile = shared_address(stages) + step % STAGES * (X_BYTES + W_BYTES), w_tile = x_tile + X_BYTES;
#pragma unroll
        for (int k = 0; k < TILE_K / 16; k++) {
            unsigned a[FRAGMENTS_M][4], b[FRAGMENTS_N][2];
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; i++) {
                ldmatrix_x4(a[i], x_tile + swizzle(warp_row + i * 16 + lane % 16, 2 * k + lane / 16));
            }
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N; j += 2) {
                // A single n8 fragment is loaded twice.
                const unsigned next = j + 1 < FRAGMENTS_N ? lane / 16 * 8 : 0;
                unsigned words[4];
                ldmatrix_x4(words, w_tile + swizzle(warp_column + j * 8 + next + lane % 8, 2 * k + lane / 8 % 2));
                b[j][0] = words[0];
                b[j][1] = words[1];
                if (j + 1 < FRAGMENTS_N) {
                    b[j + 1][0] = words[2];
                    b[j + 1][1] = words[3];
                }
            }
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; i++) {
#pragma unroll
                for (int j = 0; j < FRAGMENTS_N; j++)
                    mma_m16n8k16(sums[i][j], a[i][0], a[i][1], a[i][2], a[i][3], b[j][0], b[j][1]);
            }
        }
    }

    // Stores two adjacent elements; n is a multiple of BLOCK_SIZE.
    struct __align__(2 * sizeof(element)) element_pair {
        element val[2];
    };
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; i++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const u64 row = first_row + warp_row + i * 16 + lane / 4 + 8 * h;
            if (row >= m) continue;
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N; j++) {
                const u64 index = row * n + first_column + warp_column + j * 8 + lane % 4 * 2;
                float pair_sums[2] = {sums[i][j][2 * h], sums[i][j][2 * h + 1]};
#ifdef ADDEND
                const element_pair addends = *reinterpret_cast<const element_pair *>(addend + index);
                pair_sums[0] += widen(addends.val[0]);
                pair_sums[1] += widen(addends.val[1]);
#endif
                *reinterpret_cast<element_pair *>(y + index) =
                    element_pair{{narrow(pair_sums[0]), narrow(pair_sums[1])}};
            }
        }
    }
}
