// The scale of a whole x[rows, columns]: each block takes rows in turn, x -> [norm or activation] -> largest magnitude.
//
// Traffic: rows * columns elements read; an x that fits into the L2 cache stays there for `quantize_input.cu`, which reads
// it again. Roofline: memory.
#include "input_row.cuh"
#include "largest_of_all.cuh"

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ x, float *__restrict__ scale, unsigned *state, u64 rows, u64 columns) {
    unsigned largest = 0;
    const u64 turns = (rows + ROWS - 1) / ROWS;
    // The last come first: they were written last, so that a cache may still have them.
    for (u64 turn = blockIdx.x; turn < turns; turn += gridDim.x) {
        input_row input;
        input.take(x, (turns - 1 - turn) * ROWS + threadIdx.y, rows, columns);
        largest = max(largest, input.largest_to_be((float)columns));
#ifdef RMS_NORM
        // The sums that its threads share are those of the next row then.
        __syncthreads();
#endif
    }
    scale_of_all<ROWS * WARPS>(largest, scale, state);
}
