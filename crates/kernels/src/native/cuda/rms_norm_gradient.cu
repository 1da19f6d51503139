// Backward pass of RMS normalization. With r = 1 / sqrt(mean(x^2) + EPSILON) for each row:
//   dx      = r weight dy - r^3 x mean(weight dy x)   [+ residual_grad with ADD_RESIDUAL 1]
//   dweight = sum over rows of r x dy; `partial` receives one row of partial sums per worker (split over rows as in the
//             Liger kernel's RMSNorm backward), which column_sums.cu adds.
//
// Contract: x, dy, residual_grad, dx[rows, columns], row-major, element dtype; weight[columns], f32 or element dtype;
// partial[gridDim.x * ROWS, columns], f32.
//
// A worker is the THREADS threads of one threadIdx.y; workers loop over rows with a stride of the grid. Each thread
// owns fixed columns: VECTORS_PER_THREAD vectors of x and dy in registers, and their partial sums of dweight. With
// VECTORS_PER_THREAD 0 a row is read twice, and the partial sums are accumulated in memory.
//
// Traffic: x, dy, dx and residual_grad once, plus a few hundred rows of f32. Roofline: memory, 14 instructions per
// element.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   KERNEL              kernel name
//   THREADS             threads per row: whole warps
//   ROWS                rows per block
//   VECTORS_PER_THREAD  vectors of a row per thread in registers; 0 if the row is too long
//   EPSILON             float that is added to the variance
//   WEIGHT_F32          1 if the weight is f32, 0 if it has the element dtype (norm_weight.cuh)
//   ADD_RESIDUAL        1 to add the gradient of the residual branch to dx

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
#ifndef EPSILON
#error "EPSILON: float that is added to the variance"
#endif
#ifndef ADD_RESIDUAL
#error "ADD_RESIDUAL: 1 to add the gradient of the residual branch to dx"
#endif

#include "element.cuh"
#include "norm_weight.cuh"
#include "row_reduce.cuh"

struct __align__(WIDTH * sizeof(float)) float_vec {
    float val[WIDTH];
};

__device__ __forceinline__ void accumulate(sum_array<2> &sums, vec x, vec dy, weight_vec weight) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float value = widen(x.val[i]);
        sums.val[0] = fmaf(value, value, sums.val[0]);
        sums.val[1] = fmaf(widen(dy.val[i]) * widen_weight(weight.val[i]), value, sums.val[1]);
    }
}

__device__ __forceinline__ vec input_grad(vec x, vec dy, vec residual, weight_vec weight, float rrms, float x_factor,
                                          float (&dweight)[WIDTH]) {
    float results[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const float value = widen(x.val[i]), upstream = widen(dy.val[i]);
        results[i] = fmaf(upstream * widen_weight(weight.val[i]), rrms, -value * x_factor);
        if (ADD_RESIDUAL) results[i] += widen(residual.val[i]);
        dweight[i] = fmaf(value * rrms, upstream, dweight[i]);
    }
    return narrow_all(results);
}

#if ADD_RESIDUAL
#define RESIDUAL_ARGUMENT const element *__restrict__ residual,
#else
#define RESIDUAL_ARGUMENT
#endif

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ x, const weight_element *__restrict__ weight, const element *__restrict__ dy,
           RESIDUAL_ARGUMENT element *__restrict__ dx, float *__restrict__ partial, u64 rows, u64 columns) {
    // Double buffering: warps may start the next row while others still read the sums of the current one.
    __shared__ sum_array<2> shared[2][ROWS][WARPS];
    const unsigned vecs = columns / WIDTH;
    const weight_vec *weights = reinterpret_cast<const weight_vec *>(weight);
    float_vec *partial_row = reinterpret_cast<float_vec *>(partial + ((u64)blockIdx.x * ROWS + threadIdx.y) * columns);

#if VECTORS_PER_THREAD > 0
    float dweight[VECTORS_PER_THREAD][WIDTH] = {};
#else
    for (unsigned v = threadIdx.x; v < vecs; v += THREADS) partial_row[v] = {};
#endif

    int buffer = 0;
    for (u64 first_row = (u64)blockIdx.x * ROWS; first_row < rows; first_row += (u64)gridDim.x * ROWS, buffer ^= 1) {
        // Threads beyond the last row have no vectors, but take part in the barrier.
        const u64 row = first_row + threadIdx.y;
        const unsigned end = row < rows ? vecs : 0;
        const vec *x_row = reinterpret_cast<const vec *>(x + row * columns);
        const vec *dy_row = reinterpret_cast<const vec *>(dy + row * columns);
        vec *dx_row = reinterpret_cast<vec *>(dx + row * columns);
#if ADD_RESIDUAL
        const vec *residual_row = reinterpret_cast<const vec *>(residual + row * columns);
#else
        const vec *residual_row = dy_row;
#endif

        sum_array<2> sums = {};
#if VECTORS_PER_THREAD > 0
        vec values[VECTORS_PER_THREAD], upstreams[VECTORS_PER_THREAD];
#pragma unroll
        for (int p = 0; p < VECTORS_PER_THREAD; p++) {
            const unsigned v = p * THREADS + threadIdx.x;
            if (v < end) {
                values[p] = x_row[v];
                upstreams[p] = dy_row[v];
            }
        }
#pragma unroll
        for (int p = 0; p < VECTORS_PER_THREAD; p++) {
            const unsigned v = p * THREADS + threadIdx.x;
            if (v < end) accumulate(sums, values[p], upstreams[p], weights[v]);
        }
#else
        for (unsigned v = threadIdx.x; v < end; v += THREADS) accumulate(sums, x_row[v], dy_row[v], weights[v]);
#endif
        sums = row_sum(sums, shared[buffer]);
        const float count = (float)columns;
        const float rrms = 1.0f / sqrtf(sums.val[0] / count + EPSILON);
        const float x_factor = sums.val[1] / count * rrms * rrms * rrms;
#if VECTORS_PER_THREAD > 0
#pragma unroll
        for (int p = 0; p < VECTORS_PER_THREAD; p++) {
            const unsigned v = p * THREADS + threadIdx.x;
            if (v < end)
                dx_row[v] =
                    input_grad(values[p], upstreams[p], residual_row[v], weights[v], rrms, x_factor, dweight[p]);
        }
#else
        for (unsigned v = threadIdx.x; v < end; v += THREADS) {
            dx_row[v] =
                input_grad(x_row[v], dy_row[v], residual_row[v], weights[v], rrms, x_factor, partial_row[v].val);
        }
#endif
    }

#if VECTORS_PER_THREAD > 0
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned v = p * THREADS + threadIdx.x;
        if (v < vecs) {
            float_vec sums;
#pragma unroll
            for (int i = 0; i < WIDTH; i++) sums.val[i] = dweight[p][i];
            partial_row[v] = sums;
        }
    }
#endif
}
