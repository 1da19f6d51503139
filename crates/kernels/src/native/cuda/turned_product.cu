// y[m, n] = x[m, K] * w[K, n] of e4m3 codes on Hopper, where w runs along n and tensor cores want codes that run along K. With
// INPUTS 4 each sum is multiplied by the scales of its row and its column, and with 5 then added to a number of `added`, as in
// `scale_product.cu`. Sums are moved to f32 at every step of 128, and are never written.
//
// A block makes 128 columns of y for 128 rows, and goes on to the next tile that is its own. A thread of its first warp group
// starts the copies of 128 codes of each row of x and of each column of w into a ring of STAGES. The other two groups take 64
// columns each: w is the first factor there, in registers, where pieces of two rows by two columns come turned by `ldmatrix` and
// are put together by byte permutes; x is the second, in shared memory. One group adds up while the other multiplies. Two blocks
// beside each other form a cluster: each brings half of the rows of x that both need, for both.
//
// Traffic: x, w, what is added and y once, if x fits into L2. Roofline: a step is 512 cycles of tensor cores, but the 48 KiB that
// both blocks need for it take 890 on their way into a pair of multiprocessors, 54 bytes a cycle: measured on an H100 at 512 x 32768
// x 8192 on zeros, 243 us. On random codes 264, and 308 after two seconds, when power holds it back.
#include "element.cuh"
#include "hopper.cuh"

constexpr int ROWS = 128;
constexpr int COLUMNS = 128;
constexpr int STEP = 128;
constexpr int GROUP = 128;
constexpr int WARPS = 2 * GROUP / 32;
constexpr int BLOCKS = 2;
constexpr int X_BYTES = ROWS * STEP;
constexpr int STAGE_BYTES = X_BYTES + COLUMNS * STEP;
constexpr int STEPS = (K + STEP - 1) / STEP;

// 64 columns of y by 128 rows, of 32 products each; on top of what is there if `more`.
__device__ __forceinline__ void multiply(float (&d)[ROWS / 2], const unsigned *a, u64 b, int more) {
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" REGISTERS_64
                 "}, {%64, %65, %66, %67}, %68, more, 1, 1;\n}"
                 : BOUND_64("+f", d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));
}

// Codes of w as they lie, 128 of a row: where a piece of 16 of a row is, swizzled.
__device__ __forceinline__ unsigned piece_of(unsigned rows, unsigned row, unsigned piece) {
    return rows + row * STEP + (piece ^ row % 8) * 16;
}

// The codes of a warp's 16 columns at 32 rows. A thread has those of rows 4 t to 4 t + 3 and 16 + 4 t to 16 + 4 t + 3, t being its
// lane's number in four, of two columns beside each other. Which of a matrix's rows come from where is such that no two of them
// meet in a bank: threads of t >= 2 have theirs in the other order.
__device__ __forceinline__ void turned(unsigned rows, unsigned piece, int lane, unsigned *words) {
    // The lane names row `lane % 8` of matrix `lane / 8`: of the first or the second pair of the four, and of the lower or upper 16.
    const unsigned of_four = lane % 8 / 2, second = (lane / 8 % 2) ^ (of_four >= 2);
    const unsigned from = piece_of(rows, lane / 16 * 16 + of_four * 4 + second * 2 + lane % 2, piece);
    unsigned pairs[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
                 : "r"(from));
    const unsigned even = lane % 4 < 2 ? 0x6420 : 0x2064, odd = lane % 4 < 2 ? 0x7531 : 0x3175;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        words[2 * half] = __byte_perm(pairs[2 * half], pairs[2 * half + 1], even);
        words[2 * half + 1] = __byte_perm(pairs[2 * half], pairs[2 * half + 1], odd);
    }
}

struct __align__(2 * sizeof(element)) two_elements {
    element parts[2];
};

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(3 * GROUP, 1)
KERNEL(const unsigned char *, const unsigned char *,
#if INPUTS >= 4
       const float *__restrict__ row_scales, const float *__restrict__ column_scales,
#endif
#if INPUTS >= 5
       const element *__restrict__ added,
#endif
       element *__restrict__ y, u64 m, u64 n, const __grid_constant__ tensor_map boxes_of_x,
       const __grid_constant__ tensor_map boxes_of_w) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[2 * STAGES];
    const unsigned ring = shared_address(shared);
    const unsigned ready = shared_address(barriers), free = ready + 8 * STAGES;
    // Each warp that multiplies here, and each group that does in the other block.
    if (threadIdx.x == 0) initialize_ring<STAGES>(ready, free, WARPS + 2);
    show_barriers();
    wait_for_cluster();

    // Tiles go down first, for what is read of w is read once then.
    const unsigned rank = blockIdx.x % BLOCKS;
    const unsigned down = ((unsigned)m + ROWS - 1) / ROWS, across = ((unsigned)n + BLOCKS * COLUMNS - 1) / (BLOCKS * COLUMNS);
    const unsigned pairs = down * across, first_pair = blockIdx.x / BLOCKS, next = gridDim.x / BLOCKS;
    const int group = threadIdx.x / GROUP;
    if (group == 0) {
        keep_registers<40>();
        place<STAGES> at = {0, 0};
        for (unsigned pair = first_pair; threadIdx.x == 0 && pair < pairs; pair += next) {
            const int row = pair % down * ROWS, column = (pair / down * BLOCKS + rank) * COLUMNS;
            for (int step = 0; step < STEPS; step++, at.next()) {
                const unsigned barrier = ready + 8 * at.stage, to = ring + at.stage * STAGE_BYTES;
                if (at.round > 0) wait(free + 8 * at.stage, (at.round - 1) % 2);
                expect(barrier, STAGE_BYTES);
                // Boxes count pairs of codes.
                bring_box_to_both(to + rank * (X_BYTES / BLOCKS), boxes_of_x, step * (STEP / 2), row + rank * (ROWS / BLOCKS),
                                  barrier);
                bring_box(to + X_BYTES, boxes_of_w, column / 2, step * STEP, 0, barrier);
            }
        }
    } else {
        more_registers<232>();
        const int lane = threadIdx.x % 32, warp = threadIdx.x % GROUP / 32;
        const unsigned columns = (group - 1) * (COLUMNS / 2) + warp * 16;
        const auto release = [&](int stage) {
            if (lane == 0) arrive(free + 8 * stage);
            // The products of a group are those of its four warps.
            if (lane == 0 && warp == 0) arrive_at(free + 8 * stage, rank ^ 1);
        };
        place<STAGES> at = {0, 0};
        for (unsigned pair = first_pair; pair < pairs; pair += next) {
            float sums[ROWS / 2] = {}, of_step[ROWS / 2];
            unsigned even[STEP / 8], odd[STEP / 8];
            const auto take = [&](unsigned(&codes)[STEP / 8]) {
                wait(ready + 8 * at.stage, at.round % 2);
                const unsigned of_w = ring + at.stage * STAGE_BYTES + X_BYTES;
#pragma unroll
                for (int part = 0; part < STEP / 32; part++) {
                    turned(of_w + part * 32 * COLUMNS, columns / 16, lane, &codes[4 * part]);
                }
                // All of them are there before the first product begins, or products would wait for each other.
#pragma unroll
                for (int i = 0; i < STEP / 8; i++) asm volatile("" : "+r"(codes[i]));
            };
            // A step's products, while the codes of the next are taken if there is one.
            const auto multiply_step = [&](const unsigned(&codes)[STEP / 8], unsigned(&of_next)[STEP / 8], bool more) {
                const int stage = at.stage;
                fence_products();
#pragma unroll
                for (int part = 0; part < STEP / 32; part++) {
                    multiply(of_step, &codes[4 * part], along_rows(ring + stage * STAGE_BYTES + part * 32), part != 0);
                }
                commit_products();
                at.next();
                if (more) take(of_next);
                finish_products<0>(of_step);
                release(stage);
#pragma unroll
                for (int i = 0; i < ROWS / 2; i++) sums[i] += of_step[i];
            };
            take(even);
            for (int step = 0; step + 1 < STEPS; step += 2) {
                multiply_step(even, odd, true);
                multiply_step(odd, even, step + 2 < STEPS);
            }
            if constexpr (STEPS % 2 == 1) multiply_step(even, odd, false);

            // Two columns of a row for each lane.
            const unsigned column = (pair / down * BLOCKS + rank) * COLUMNS + columns + lane / 4 * 2;
            if (column >= n) continue;
#if INPUTS >= 4
            const float of_columns[2] = {column_scales[column], column_scales[column + 1]};
#endif
#pragma unroll
            for (int i = 0; i < ROWS / 4; i++) {
                const u64 row = pair % down * ROWS + i / 2 * 8 + lane % 4 * 2 + i % 2;
                if (row >= m) continue;
                float values[2] = {sums[i / 2 * 4 + i % 2], sums[i / 2 * 4 + 2 + i % 2]};
                two_elements *const to = reinterpret_cast<two_elements *>(y + row * n + column);
#if INPUTS >= 5
                const two_elements more = *reinterpret_cast<const two_elements *>(added + row * n + column);
#endif
                two_elements result;
#pragma unroll
                for (int side = 0; side < 2; side++) {
#if INPUTS >= 4
                    values[side] = __fmul_rn(values[side], __fmul_rn(row_scales[row], of_columns[side]));
#endif
#if INPUTS >= 5
                    values[side] = __fadd_rn(widen(more.parts[side]), values[side]);
#endif
                    result.parts[side] = narrow(values[side]);
                }
                *to = result;
            }
        }
    }
    // Nobody leaves while the other may still reach its memory.
    wait_for_cluster();
}
