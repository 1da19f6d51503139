// Mean cross-entropy over rows: y = mean(ln(sum(exp(x))) - x[target]), one f32.
//
// Contract: x[rows, columns] logits, row-major, element dtype; targets[rows], i32 class indices; y[1], f32. A row with
// NaN or plus infinity, with only minus infinity, or with a target outside the classes makes the result NaN.
//
// Online softmax (online_softmax.cuh) in one pass over the logits, as in the Liger kernel's cross-entropy. Persistent
// blocks: blockDim = (THREADS, ROWS), rows with a stride of the grid. Software pipelining: while a thread processes
// VECTORS_PER_THREAD vectors, the next VECTORS_PER_THREAD vectors, of this row or of the next one, are being loaded;
// targets are loaded one row ahead. At the end of a row lanes and warps combine their states; at the end of the grid
// the losses are added deterministically (grid_reduce.cuh).
//
// Workspace: partials[gridDim.x], f32; arrived[1], 0 before and after each launch.
//
// Traffic: the logits once. Roofline: memory, 6 instructions per logit, one of them ex2 at 16 per SM and cycle: 67
// million bf16 logits take 18 us of ex2 and 31 us of memory time at 4.3 TB/s.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   KERNEL              kernel name
//   THREADS             threads per row: whole warps
//   ROWS                rows per block and iteration
//   VECTORS_PER_THREAD  vectors per thread in flight
//   MIN_BLOCKS          resident blocks per SM for __launch_bounds__

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef THREADS
#error "THREADS: threads per row: whole warps"
#endif
#ifndef ROWS
#error "ROWS: rows per block and iteration"
#endif
#ifndef VECTORS_PER_THREAD
#error "VECTORS_PER_THREAD: vectors per thread in flight"
#endif
#ifndef MIN_BLOCKS
#error "MIN_BLOCKS: resident blocks per SM for __launch_bounds__"
#endif

#include "element.cuh"
#include "online_softmax.cuh"

constexpr int WARPS = THREADS / 32;

// Loads vectors THREADS apart. Vectors beyond the end are minus infinity, which contributes nothing.
__device__ __forceinline__ void load_vecs(vec (&vecs_now)[VECTORS_PER_THREAD], const vec *x_row, unsigned start,
                                          unsigned end) {
    const element padding = narrow(neg_infinity());
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned v = start + p * THREADS;
        if (v < end) {
            vecs_now[p] = x_row[v];
        } else {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) vecs_now[p].val[i] = padding;
        }
    }
}

__device__ __forceinline__ void accumulate_vecs(softmax_state &state, const vec (&vecs_now)[VECTORS_PER_THREAD]) {
    float values[VECTORS_PER_THREAD * WIDTH];
#pragma unroll
    for (int i = 0; i < VECTORS_PER_THREAD * WIDTH; i++) values[i] = widen(vecs_now[i / WIDTH].val[i % WIDTH]);
    accumulate(state, values);
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS, MIN_BLOCKS)
    KERNEL(const element *__restrict__ x, const int *__restrict__ targets, float *__restrict__ y,
           float *__restrict__ partials, unsigned *__restrict__ arrived, u64 rows, u64 columns) {
    // Double buffering: warps may start the next row while others still read the states of the current one.
    __shared__ softmax_state warp_states[2][ROWS][WARPS];
    const int thread = threadIdx.y * THREADS + threadIdx.x;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u64 row_stride = (u64)gridDim.x * ROWS;
    const unsigned vecs = columns / WIDTH;

    // Threads beyond the last row load padding, but take part in the barrier.
    const auto prefetch = [&](vec(&vecs_now)[VECTORS_PER_THREAD], u64 row, unsigned start) {
        load_vecs(vecs_now, reinterpret_cast<const vec *>(x + row * columns), start + threadIdx.x,
                  row < rows ? vecs : 0);
    };
    u64 first_row = (u64)blockIdx.x * ROWS;
    unsigned start = 0;
    vec next_vecs[VECTORS_PER_THREAD];
    prefetch(next_vecs, first_row + threadIdx.y, 0);
    // The target is loaded one row ahead; its logit is loaded at the start of the row and used at the end.
    int next_target = threadIdx.x == 0 && first_row + threadIdx.y < rows ? targets[first_row + threadIdx.y] : 0;
    float target_logit = 0.0f;

    float losses = 0.0f;
    softmax_state state = {neg_infinity(), 0.0f};
    int buffer = 0;
    while (first_row < rows) {
        const u64 row = first_row + threadIdx.y;
        vec vecs_now[VECTORS_PER_THREAD];
#pragma unroll
        for (int p = 0; p < VECTORS_PER_THREAD; p++) vecs_now[p] = next_vecs[p];
        if (start == 0 && threadIdx.x == 0 && row < rows) {
            const bool is_valid = 0 <= next_target && (u64)next_target < columns;
            target_logit = is_valid ? widen(x[row * columns + next_target]) : __uint_as_float(0x7fffffffu);
            if (row + row_stride < rows) next_target = targets[row + row_stride];
        }
        start += VECTORS_PER_THREAD * THREADS;
        const bool is_row_end = start >= vecs;
        if (is_row_end) {
            start = 0;
            first_row += row_stride;
        }
        prefetch(next_vecs, first_row + threadIdx.y, start);
        accumulate_vecs(state, vecs_now);
        if (!is_row_end) continue;

        state = warp_combine(state);
        if (WARPS > 1) {
            if (lane == 0) warp_states[buffer][threadIdx.y][warp] = state;
            __syncthreads();
            if (warp == 0) {
                state = {neg_infinity(), 0.0f};
                if (lane < WARPS) state = warp_states[buffer][threadIdx.y][lane];
                state = warp_combine(state);
            }
            buffer ^= 1;
        }
        if (threadIdx.x == 0 && row < rows) losses += logf(state.sum) + (finite_max(state.max) - target_logit);
        state = {neg_infinity(), 0.0f};
    }
    if (grid_sum<WARPS * ROWS>(losses, thread, partials, arrived)) *y = losses / (float)rows;
}
