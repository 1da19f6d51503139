// Backward pass of y = silu(a) b with separate operands: da = dy b silu'(a), db = dy silu(a).
//
// Contract: a, b, dy, da, db[length], element dtype.
//
// Each thread processes VECTORS_PER_THREAD vectors of WIDTH elements, THREADS vectors apart, and loads all of them
// before it uses the first.
//
// Traffic: every operand once. Roofline: memory, 14 instructions per element, five of which are loads and stores.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   KERNEL              kernel name
//   THREADS             threads per block
//   VECTORS_PER_THREAD  vectors per thread

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef VECTORS_PER_THREAD
#error "VECTORS_PER_THREAD: vectors per thread"
#endif

#include "element.cuh"
#include "activation_grad.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const element *__restrict__ a, const element *__restrict__ b, const element *__restrict__ dy,
           element *__restrict__ da, element *__restrict__ db, u64 length, u64) {
    const u64 vecs = length / WIDTH;
    const u64 first = (u64)blockIdx.x * (THREADS * VECTORS_PER_THREAD) + threadIdx.x;
    const vec *a_vecs = reinterpret_cast<const vec *>(a);
    const vec *b_vecs = reinterpret_cast<const vec *>(b);
    const vec *dy_vecs = reinterpret_cast<const vec *>(dy);

    vec a_loaded[VECTORS_PER_THREAD], b_loaded[VECTORS_PER_THREAD], dy_loaded[VECTORS_PER_THREAD];
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const u64 v = first + p * THREADS;
        if (v < vecs) {
            a_loaded[p] = a_vecs[v];
            b_loaded[p] = b_vecs[v];
            dy_loaded[p] = dy_vecs[v];
        }
    }
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        const u64 v = first + p * THREADS;
        if (v >= vecs) break;
        float grad_a[WIDTH], grad_b[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            silu_mul_grad(widen(a_loaded[p].val[i]), widen(b_loaded[p].val[i]), widen(dy_loaded[p].val[i]), grad_a[i],
                          grad_b[i]);
        }
        reinterpret_cast<vec *>(da)[v] = narrow_all(grad_a);
        reinterpret_cast<vec *>(db)[v] = narrow_all(grad_b);
    }

    // Tail: block 0 has more threads than there are elements behind the last whole vector.
    const u64 tail = vecs * WIDTH + first;
    if (blockIdx.x == 0 && tail < length) {
        float grad_a, grad_b;
        silu_mul_grad(widen(a[tail]), widen(b[tail]), widen(dy[tail]), grad_a, grad_b);
        da[tail] = narrow(grad_a);
        db[tail] = narrow(grad_b);
    }
}
