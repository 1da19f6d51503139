// Matrix-vector product (GEMV): y[row] = sum over columns of a[row, column] x[column], accumulated in f32.
//
// Contract: a[rows, columns], row-major; x[columns]; y[rows]; all in the element dtype; rows are whole vectors.
//
// blockDim = (THREADS, ROWS): a row per threadIdx.y. Each thread strides over the vectors of its row with
// VECTORS_PER_THREAD loads in flight and one accumulator; then a block-wide sum (row_reduce.cuh).
//
// Traffic: a once; x is read for every row, from the caches. Roofline: memory, 4 instructions per element.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   KERNEL              kernel name
//   THREADS             threads per row: whole warps
//   ROWS                rows per block
//   VECTORS_PER_THREAD  vectors per thread in flight

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
#error "VECTORS_PER_THREAD: vectors per thread in flight"
#endif

#include "element.cuh"
#include "row_reduce.cuh"

__device__ __forceinline__ float dot_vec(vec a, vec x, float sum) {
#pragma unroll
    for (int i = 0; i < WIDTH; i++) sum = fmaf(widen(a.val[i]), widen(x.val[i]), sum);
    return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
    KERNEL(const element *__restrict__ a, const element *__restrict__ x, element *__restrict__ y, u64 rows,
           u64 columns) {
    __shared__ sum_array<1> shared[ROWS][WARPS];
    const u64 row = (u64)blockIdx.x * ROWS + threadIdx.y;
    // Threads beyond the last row have no vectors, but take part in the barrier.
    const unsigned vecs = row < rows ? columns / WIDTH : 0;
    const vec *a_row = reinterpret_cast<const vec *>(a + row * columns);
    const vec *x_vecs = reinterpret_cast<const vec *>(x);

    float sum = 0.0f;
    for (unsigned first = threadIdx.x; first < vecs; first += VECTORS_PER_THREAD * THREADS) {
        if (first + (VECTORS_PER_THREAD - 1) * THREADS < vecs) {
            vec loaded[VECTORS_PER_THREAD];
#pragma unroll
            for (int p = 0; p < VECTORS_PER_THREAD; p++) loaded[p] = a_row[first + p * THREADS];
#pragma unroll
            for (int p = 0; p < VECTORS_PER_THREAD; p++) sum = dot_vec(loaded[p], x_vecs[first + p * THREADS], sum);
        } else {
#pragma unroll 1
            for (unsigned v = first; v < vecs; v += THREADS) sum = dot_vec(a_row[v], x_vecs[v], sum);
        }
    }
    sum = row_sum<1>({sum}, shared).val[0];
    if (row < rows && threadIdx.x == 0) y[row] = narrow(sum);
}
