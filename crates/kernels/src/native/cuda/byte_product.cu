// y[m, n] = f(x[m, K] * w[n, K]^T * scales of rows and columns) [+ added[m, n]] on Hopper, for codes of a byte: CODES_INT8, whose
// sums are exact, or CODES_E4M3, whose sums keep the 14 bits of the tensor cores. The sums are never written. Scales are as in
// `finish_product.cu`; rounded once, at the end.
//
// A block takes a tile of 128 rows by 256 columns, and goes on to the next that is its own. A thread of its first warp group
// starts the copies of 128 codes of each row into a ring of STAGES. The other two groups multiply 64 rows each; while they write,
// the next tile's steps are brought. Two blocks under each other form a cluster: each brings half of the columns that both
// need, for both, so that a stage is free when both have done with it. Tiles go down in bands of BAND columns of tiles, so that what
// a wave of blocks reads stays in L2.
//
// Traffic: x, w and y once, if x and a band of w fit into L2; from L2 32 KiB for each step of a block. Roofline: an SM makes
// 8192 operations a cycle, so that a step is 1024 cycles: 2.14 10^15 operations a second at the 1.98 GHz of an H100 that nothing
// holds back. Measured there at 8192 x 8192 x 8192: 1.75 on zeros, and 1.35 on random codes after three seconds, when power does.
// On zeros what limits is the way into a pair of multiprocessors, 54 bytes a cycle: the 64 KiB of a step take it 1210 cycles.
#include "activations.cuh"
#include "element.cuh"
#include "hopper.cuh"

constexpr int ROWS = 128;
constexpr int COLUMNS = 256;
constexpr int STEP = 128;
constexpr int GROUP = 128;
constexpr int WARPS = 2 * GROUP / 32;
constexpr int BLOCKS = 2;
constexpr int X_BYTES = ROWS * STEP;
constexpr int W_BYTES = COLUMNS * STEP;
constexpr int STAGE_BYTES = X_BYTES + W_BYTES;
constexpr int STEPS = (K + STEP - 1) / STEP;

#if defined(CODES_INT8)
typedef int sum;
typedef element column_scale;
#define SUM "+r"
#define KINDS "s32.s8.s8"
#define SIGNS ""
__device__ __forceinline__ float wide(column_scale scale) { return widen(scale); }
#else
typedef float sum;
typedef float column_scale;
#define SUM "+f"
#define KINDS "f32.e4m3.e4m3"
#define SIGNS ", 1, 1"
__device__ __forceinline__ float wide(column_scale scale) { return scale; }
#endif

// 64 rows of sums of 32 products each, from two operands in shared memory; on top of what is there if `more`.
__device__ __forceinline__ void multiply(sum (&d)[128], u64 a, u64 b, int more) {
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k32." KINDS " {" REGISTERS_128 "}, %128, %129, more" SIGNS ";\n}"
                 : BOUND_128(SUM, d)
                 : "l"(a), "l"(b), "r"(more));
}

// Where a pair of tiles begins: pairs go along the rows of a band, and bands from left to right.
struct corner {
    unsigned row, column;
    __device__ __forceinline__ corner(unsigned pair, unsigned down, unsigned across) {
        const unsigned band = pair / (BAND * down), in_band = pair % (BAND * down);
        const unsigned width = min((unsigned)BAND, across - band * BAND);
        row = in_band / width * (BLOCKS * ROWS);
        column = (band * BAND + in_band % width) * COLUMNS;
    }
};

__device__ __forceinline__ float finished(sum of, float of_row, float of_column) {
    const float number = (float)of * of_row * of_column;
#ifdef ACTIVATE
    return ACTIVATE(number);
#else
    return number;
#endif
}

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(3 * GROUP, 1)
KERNEL(const unsigned char *, const unsigned char *, const float *__restrict__ row_scales,
       const column_scale *__restrict__ column_scales,
#ifdef ADDED
       const element *__restrict__ added,
#endif
       element *__restrict__ y, u64 m, u64 n, const __grid_constant__ tensor_map boxes_of_x,
       const __grid_constant__ tensor_map boxes_of_w) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[2 * STAGES];
    const unsigned ring = shared_address(shared);
    const unsigned ready = shared_address(barriers), free = ready + 8 * STAGES;
#ifndef TENSOR
    __shared__ float scales_of_columns[2][COLUMNS];
#endif
    // Each warp that multiplies here, and each group that does in the other block.
    if (threadIdx.x == 0) initialize_ring<STAGES>(ready, free, WARPS + 2);
    show_barriers();
    wait_for_cluster();

    const unsigned rank = blockIdx.x % BLOCKS;
    const unsigned down = ((unsigned)m + BLOCKS * ROWS - 1) / (BLOCKS * ROWS), across = ((unsigned)n + COLUMNS - 1) / COLUMNS;
    const int group = threadIdx.x / GROUP;
    if (group == 0) {
        keep_registers<40>();
        place<STAGES> at = {0, 0};
        for (unsigned pair = blockIdx.x / BLOCKS; threadIdx.x == 0 && pair < down * across; pair += gridDim.x / BLOCKS) {
            const corner from(pair, down, across);
            for (int step = 0; step < STEPS; step++, at.next()) {
                const unsigned barrier = ready + 8 * at.stage, to = ring + at.stage * STAGE_BYTES;
                if (at.round > 0) wait(free + 8 * at.stage, (at.round - 1) % 2);
                expect(barrier, STAGE_BYTES);
                // Boxes count pairs of codes.
                bring_box(to, boxes_of_x, step * (STEP / 2), from.row + rank * ROWS, 0, barrier);
                bring_box_to_both(to + X_BYTES + rank * (W_BYTES / BLOCKS), boxes_of_w, step * (STEP / 2),
                                  from.column + rank * (COLUMNS / BLOCKS), barrier);
            }
        }
    } else {
        more_registers<232>();
        const int lane = threadIdx.x % 32, warp = threadIdx.x % GROUP / 32;
        const unsigned rows = (group - 1) * (ROWS / 2);
        const auto release = [&](int stage) {
            if (lane == 0) arrive(free + 8 * stage);
            // The products of a group are those of its four warps.
            if (lane == 0 && warp == 0) arrive_at(free + 8 * stage, rank ^ 1);
        };
        sum sums[COLUMNS / 2];
        place<STAGES> at = {0, 0};
        for (unsigned pair = blockIdx.x / BLOCKS; pair < down * across; pair += gridDim.x / BLOCKS) {
            const corner from(pair, down, across);
#ifndef TENSOR
            // Asked for before they are needed.
            const unsigned own = threadIdx.x % GROUP * 2, own_column = from.column + own;
            const float first_scale = own_column < n ? wide(column_scales[own_column]) : 0.0f;
            const float second_scale = own_column + 1 < n ? wide(column_scales[own_column + 1]) : 0.0f;
#endif
            int last = 0;
            for (int step = 0; step < STEPS; step++, at.next()) {
                wait(ready + 8 * at.stage, at.round % 2);
                const unsigned of_x = ring + at.stage * STAGE_BYTES + rows * STEP;
                const unsigned of_w = ring + at.stage * STAGE_BYTES + X_BYTES;
                fence_products();
#pragma unroll
                for (int part = 0; part < STEP / 32; part++) {
                    multiply(sums, along_rows(of_x + part * 32), along_rows(of_w + part * 32), step != 0 || part != 0);
                }
                commit_products();
                // Until those of the step before are done: its stage is free then.
                leave_products<1>();
                if (step != 0) release(last);
                last = at.stage;
            }
            finish_products<0>(sums);
            release(last);

#ifndef TENSOR
            float *const scales = scales_of_columns[group - 1];
            wait_for_group(group, GROUP);
            scales[own] = first_scale;
            scales[own + 1] = second_scale;
            wait_for_group(group, GROUP);
#endif
            const u64 row = (u64)from.row + rank * ROWS + rows + warp * 16 + lane / 4;
            float of_rows[2];
#pragma unroll
            for (int half = 0; half < 2; half++) {
#ifdef TENSOR
                of_rows[half] = row_scales[0];
#else
                of_rows[half] = row + 8 * half < m ? row_scales[row + 8 * half] : 0.0f;
#endif
            }
#pragma unroll
            for (int part = 0; part < COLUMNS; part += 32) {
                // Two neighbors in each of four chunks of eight columns.
                const unsigned pairs = part + lane % 4 * 2;
                float of_columns[8];
#pragma unroll
                for (int i = 0; i < 8; i++) {
#ifdef TENSOR
                    of_columns[i] = wide(column_scales[0]);
#else
                    of_columns[i] = scales[pairs + i / 2 * 8 + i % 2];
#endif
                }
                // Eight columns of a row for each lane, 64 bytes of a row from four of them.
                const unsigned to = from.column + part + lane % 4 * 8;
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    unsigned words[4];
#pragma unroll
                    for (int chunk = 0; chunk < 4; chunk++) {
                        const sum *const two = &sums[part / 2 + 4 * chunk + 2 * half];
                        float first = finished(two[0], of_rows[half], of_columns[2 * chunk]);
                        float second = finished(two[1], of_rows[half], of_columns[2 * chunk + 1]);
#ifdef ADDED
                        const unsigned column = from.column + pairs + 8 * chunk;
                        if (row + 8 * half < m && column < n) {
                            const u64 there = (row + 8 * half) * n + column;
                            const unsigned both = *reinterpret_cast<const unsigned *>(added + there);
                            first += widen((element)both);
                            second += widen((element)(both >> 16));
                        }
#endif
                        words[chunk] = narrow_two(first, second);
                    }
                    turn(words, lane);
                    if (row + 8 * half < m && to < n) {
                        *reinterpret_cast<uint4 *>(y + (row + 8 * half) * n + to) =
                            make_uint4(words[0], words[1], words[2], words[3]);
                    }
                }
            }
        }
    }
    // Nobody leaves while the other may still reach its memory.
    wait_for_cluster();
}
