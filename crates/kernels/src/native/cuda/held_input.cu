// x[rows, columns] in codes under one scale for all of it, read once: x -> [norm or activation] -> largest magnitude -> scale ->
// codes[rows, STRIDE].
//
// Data flow: a block takes HELD rows, ROWS at a time. The first ROWS it has in registers, and copies of all others into its memory
// begin at once; none leaves the multiprocessor before its codes are made. Each block leaves its largest magnitude in `slots`, above
// it the number of the launch, and waits for those of the others. So all blocks have to run at once.
// Traffic: rows * columns elements read, as many bytes written. Roofline: memory; 4096 x 4096 of bf16 are 50 MB, 12 us at the
// 4.3 TB/s that a copy reaches on an H200. What rows are filled up with is not touched.
#include "input_row.cuh"
#include "hopper.cuh"

constexpr unsigned TURNS = (HELD + ROWS - 1) / ROWS;

// The largest of the block, given to each thread.
__device__ __forceinline__ unsigned largest_of_block(unsigned largest) {
    __shared__ unsigned of_warps[ROWS * WARPS];
    const unsigned lane = threadIdx.x % 32;
    largest = __reduce_max_sync(0xffffffffu, largest);
    // Nobody reads those of before any more.
    __syncthreads();
    if (lane == 0) of_warps[threadIdx.y * WARPS + threadIdx.x / 32] = largest;
    __syncthreads();
    return __reduce_max_sync(0xffffffffu, lane < ROWS * WARPS ? of_warps[lane] : 0u);
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS, 1)
    KERNEL(const element *__restrict__ x, unsigned char *__restrict__ codes, float *__restrict__ scale_of_all,
           volatile u64 *slots, u64 rows, u64 columns) {
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ __align__(8) u64 barriers[TURNS];
#ifdef STATISTICS
    __shared__ statistics known[TURNS][ROWS];
#endif
    const u64 first = (u64)blockIdx.x * HELD;
    const unsigned own = rows - first < HELD ? rows - first : HELD, row_bytes = (unsigned)columns * sizeof(element);
    const bool leads = threadIdx.x == 0 && threadIdx.y == 0;
    const unsigned arrived = shared_address(barriers), launch = (unsigned)(slots[blockIdx.x] >> 32) + 1;
    if (leads) {
        for (unsigned turn = 1; turn < TURNS; turn++) initialize(arrived + 8 * turn, 1);
    }
    show_barriers();
    if (leads) {
        for (unsigned turn = 1; turn * ROWS < own; turn++) {
            const unsigned from = turn * ROWS, bytes = min(own - from, (unsigned)ROWS) * row_bytes;
            expect(arrived + 8 * turn, bytes);
            bring_bytes(shared_address(shared) + (from - ROWS) * row_bytes, x + (first + from) * columns, bytes, arrived + 8 * turn);
        }
    }

    // The rows in the block's memory, counted from the first of them.
    const element *const held = reinterpret_cast<const element *>(shared);
    const unsigned held_rows = own > ROWS ? own - ROWS : 0;
    input_row in_registers;
    in_registers.load(x, first + threadIdx.y, first + own, columns);
    unsigned largest = in_registers.largest();
    for (unsigned turn = 1; turn * ROWS < own; turn++) {
#ifdef RMS_NORM
        // The sums that its threads share are those of the next row then.
        __syncthreads();
#endif
        wait(arrived + 8 * turn, 0);
        input_row input;
        input.take(held, (turn - 1) * ROWS + threadIdx.y, held_rows, columns);
        largest = max(largest, input.largest_to_be((float)columns));
#ifdef STATISTICS
        if (threadIdx.x == 0) known[turn][threadIdx.y] = input.known;
#endif
    }

    largest = largest_of_block(largest);
    // One word has both, so that nothing else has to be waited for.
    if (leads) slots[blockIdx.x] = (u64)launch << 32 | largest;
    for (unsigned block = threadIdx.y * THREADS + threadIdx.x; block < gridDim.x; block += ROWS * THREADS) {
        u64 slot;
        do slot = slots[block];
        while ((unsigned)(slot >> 32) != launch);
        largest = max(largest, (unsigned)slot);
    }
    const float scale = scale_of(largest_of_block(largest));
    if (leads && blockIdx.x == 0) *scale_of_all = scale;
    const encoder encode(scale);
    in_registers.store(codes + (first + threadIdx.y) * STRIDE, encode);
    for (unsigned turn = 1; turn * ROWS < own; turn++) {
        const unsigned row = turn * ROWS + threadIdx.y;
        input_row input;
        input.take(held, row - ROWS, held_rows, columns);
#ifdef STATISTICS
        input.known = known[turn][threadIdx.y];
#endif
        input.make_numbers();
        input.store(codes + (first + row) * STRIDE, encode);
    }
}
