// Activation of every element: y[i] = ACTIVATE(x[i]), in f32.
//
// Contract: x, y[rows * columns], element dtype; y may alias x, because every thread loads before it stores.
//
// Each thread processes VECTORS_PER_THREAD vectors of WIDTH elements, THREADS vectors apart.
//
// Traffic: x and y once. Roofline: memory; instruction counts in activations.cuh.
//
// Parameters:
//   ELEMENT_F32 | ELEMENT_F16 | ELEMENT_BF16  element dtype (element.cuh)
//   WIDTH               elements per vector access (element.cuh)
//   KERNEL              kernel name
//   THREADS             threads per block
//   VECTORS_PER_THREAD  vectors per thread
//   ACTIVATE            activation function (activations.cuh)

#ifndef KERNEL
#error "KERNEL: kernel name"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef VECTORS_PER_THREAD
#error "VECTORS_PER_THREAD: vectors per thread"
#endif
#ifndef ACTIVATE
#error "ACTIVATE: activation function"
#endif

#include "activations.cuh"
#include "element.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const element *x, element *y, u64 rows, u64 columns) {
    const u64 length = rows * columns;
    const u64 vecs = length / WIDTH;
    const u64 first = (u64)blockIdx.x * (THREADS * VECTORS_PER_THREAD) + threadIdx.x;
    const vec *x_vecs = reinterpret_cast<const vec *>(x);
    vec *y_vecs = reinterpret_cast<vec *>(y);

    vec loaded[VECTORS_PER_THREAD];
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        if (first + p * THREADS < vecs) loaded[p] = x_vecs[first + p * THREADS];
    }
#pragma unroll
    for (int p = 0; p < VECTORS_PER_THREAD; p++) {
        if (first + p * THREADS < vecs) {
            float results[WIDTH];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) results[i] = ACTIVATE(widen(loaded[p].val[i]));
            y_vecs[first + p * THREADS] = narrow_all(results);
        }
    }

    // Tail: block 0 has more threads than there are elements behind the last whole vector.
    const u64 tail = vecs * WIDTH + first;
    if (blockIdx.x == 0 && tail < length) y[tail] = narrow(ACTIVATE(widen(x[tail])));
}
