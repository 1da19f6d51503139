// SwiGLU of rows that hold both operands, [a | b] (Shazeer 2020): y = silu(a) b. With BACKWARD 1:
//   dx = [dy b silu'(a) | dy silu(a)], with the upstream gradient dy.
//
// Contract: x[rows, columns] with a in the first and b in the second half; y, dy[rows, columns / 2]; dx[rows, columns];
// row-major, element dtype. WIDTH divides columns / 2.
//
// blockDim = (THREADS, ROWS); a thread processes VECTORS_PER_THREAD vectors of either half, THREADS vectors apart; a
// row may take several blocks.
//
// Traffic: every operand once. Roofline: memory, about 10 instructions per element of y (backward 14).
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   KERNEL              kernel name
//   THREADS             threads per row in a block
//   ROWS                rows per block
//   VECTORS_PER_THREAD  vectors of either half per thread
//   BACKWARD            1 for the gradient

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef THREADS
#error "THREADS: threads per row in a block"
#endif
#ifndef ROWS
#error "ROWS: rows per block"
#endif
#ifndef VECTORS_PER_THREAD
#error "VECTORS_PER_THREAD: vectors of either half per thread"
#endif
#ifndef BACKWARD
#error "BACKWARD: 1 for the gradient"
#endif

#include "element.cuh"
#include "activation_grad.cuh"

#if BACKWARD
#define ARGUMENTS const element *__restrict__ x, const element *__restrict__ dy, element *__restrict__ dx
#else
#define ARGUMENTS const element *__restrict__ x, element *__restrict__ y
#endif

extern "C" __global__ void __launch_bounds__(THREADS * ROWS) KERNEL(ARGUMENTS, u64 rows, u64 columns) {
    const unsigned vecs = columns / 2 / WIDTH;
    const unsigned row_blocks = (vecs + THREADS * VECTORS_PER_THREAD - 1) / (THREADS * VECTORS_PER_THREAD);
    const u64 row = (u64)(blockIdx.x / row_blocks) * ROWS + threadIdx.y;
    if (row >= rows) return;
    const unsigned first_vec = blockIdx.x % row_blocks * (THREADS * VECTORS_PER_THREAD) + threadIdx.x;
    const vec *a_row = reinterpret_cast<const vec *>(x + row * columns);
    const vec *b_row = a_row + vecs;

    vec a[VECTORS_PER_THREAD], b[VECTORS_PER_THREAD];
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned v = first_vec + p * THREADS;
        if (v < vecs) {
            a[p] = a_row[v];
            b[p] = b_row[v];
        }
    }

#if BACKWARD
    const vec *dy_row = reinterpret_cast<const vec *>(dy + row * (columns / 2));
    vec *da_row = reinterpret_cast<vec *>(dx + row * columns);
    vec upstream[VECTORS_PER_THREAD];
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        if (first_vec + p * THREADS < vecs) upstream[p] = dy_row[first_vec + p * THREADS];
    }
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned v = first_vec + p * THREADS;
        if (v >= vecs) break;
        float da[WIDTH], db[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            silu_mul_grad(widen(a[p].val[i]), widen(b[p].val[i]), widen(upstream[p].val[i]), da[i], db[i]);
        }
        da_row[v] = narrow_all(da);
        da_row[vecs + v] = narrow_all(db);
    }
#else
    vec *y_row = reinterpret_cast<vec *>(y + row * (columns / 2));
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const unsigned v = first_vec + p * THREADS;
        if (v >= vecs) break;
        float results[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) results[i] = silu(widen(a[p].val[i])) * widen(b[p].val[i]);
        y_row[v] = narrow_all(results);
    }
#endif
}
