// Softmax of each row: y = exp(x - max(x)) / sum(exp(x - max(x))).
//
// Contract: x[rows, columns] -> y[rows, columns], row-major, element dtype; rows are whole vectors. A row with NaN or
// plus infinity, or with only minus infinity, gives NaN.
//
// Online softmax per thread (Milakov and Gimelshein 2018; online_softmax.cuh): each thread exponentiates its
// VECTORS_PER_THREAD vectors in registers relative to its own maximum. The states (max, sum) of threads and warps are
// combined once; the difference between the maxima of thread and row is part of the final factor. Thread layout as in
// layer_norm.cu.
//
// Traffic: x and y once (x twice with VECTORS_PER_THREAD 0). Roofline: memory, 8 instructions per element.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   KERNEL              kernel name
//   THREADS             threads per row: whole warps
//   ROWS                rows per block
//   VECTORS_PER_THREAD  vectors of a row per thread in registers; 0 if the row is too long

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef THREADS
#error "THREADS: threads per row: whole warps"
#endif
#ifndef ROWS
#error "ROWS: rows per block"
#endif
#ifndef VECTORS_PER_THREAD
#error "VECTORS_PER_THREAD: vectors of a row per thread in registers"
#endif

#include "element.cuh"
#include "online_softmax.cuh"

constexpr int WARPS = THREADS / 32;

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ x, element *__restrict__ y, u64 rows, u64 columns) {
    __shared__ softmax_state warp_states[ROWS][WARPS];
    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row have no vectors, but take part in the barrier.
    const unsigned vecs = row < rows ? columns / WIDTH : 0;
    const vec *x_row = reinterpret_cast<const vec *>(x + row * columns);
    vec *y_row = reinterpret_cast<vec *>(y + row * columns);

    softmax_state local = {neg_infinity(), 0.0f};
#if VECTORS_PER_THREAD > 0
    float values[VECTORS_PER_THREAD][WIDTH];
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned v = p * THREADS + threadIdx.x;
        if (v < vecs) {
            const vec loaded = x_row[v];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) values[p][i] = widen(loaded.val[i]);
        }
    }
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        if (p * THREADS + threadIdx.x < vecs) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) local.max = fmaxf(local.max, values[p][i]);
        }
    }
    const float base = finite_max(local.max);
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        if (p * THREADS + threadIdx.x < vecs) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) {
                values[p][i] = exp_approx(values[p][i] - base);
                local.sum += values[p][i];
            }
        }
    }
#else
    for (unsigned v = threadIdx.x; v < vecs; v += THREADS) {
        const vec loaded = x_row[v];
        float values[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] = widen(loaded.val[i]);
        accumulate(local, values);
    }
#endif
    softmax_state row_state = warp_combine(local);
    if (WARPS > 1) {
        const int lane = threadIdx.x % 32;
        if (lane == 0) warp_states[threadIdx.y][threadIdx.x / 32] = row_state;
        __syncthreads();
        row_state = {neg_infinity(), 0.0f};
        if (lane < WARPS) row_state = warp_states[threadIdx.y][lane];
        row_state = warp_combine(row_state);
    }

#if VECTORS_PER_THREAD > 0
    // A thread with only minus infinity holds zeros; the factor must not be NaN.
    const float distance = local.max == neg_infinity() ? 0.0f : base - finite_max(row_state.max);
    const float factor = exp_approx(distance) / row_state.sum;
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned v = p * THREADS + threadIdx.x;
        if (v < vecs) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++) values[p][i] *= factor;
            y_row[v] = narrow_all(values[p]);
        }
    }
#else
    const float base = finite_max(row_state.max), factor = 1.0f / row_state.sum;
    for (unsigned v = threadIdx.x; v < vecs; v += THREADS) {
        const vec loaded = x_row[v];
        float values[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) values[i] = exp_approx(widen(loaded.val[i]) - base) * factor;
        y_row[v] = narrow_all(values);
    }
#endif
}
