// An activation of every element: y[i] = ACTIVATE(x[i]), computed in float. x and y may be the same memory.
//
// Each thread takes PIECES pieces of WIDTH elements, THREADS pieces apart; the elements after the last whole piece are
// taken one by one by the first threads.
// Traffic: x and y once. Roofline: the memory's, as long as ACTIVATE keeps up (activations.cuh).
#include "activations.cuh"
#include "element.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL(const element *x, element *y, u64 rows, u64 columns) {
    const u64 length = rows * columns;
    const u64 pieces = length / WIDTH;
    const u64 first = (u64)blockIdx.x * (THREADS * PIECES) + threadIdx.x;
    const piece *from = reinterpret_cast<const piece *>(x);
    piece *to = reinterpret_cast<piece *>(y);

    piece loaded[PIECES];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (first + p * THREADS < pieces) loaded[p] = from[first + p * THREADS];
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (first + p * THREADS < pieces) {
            float results[WIDTH];
#pragma unroll
            for (int i = 0; i < WIDTH; i++) results[i] = ACTIVATE(widen(loaded[p].parts[i]));
            to[first + p * THREADS] = narrow_all(results);
        }
    }

    // Block 0 has more threads than there can be elements left over.
    const u64 left_over = pieces * WIDTH + first;
    if (blockIdx.x == 0 && left_over < length) y[left_over] = narrow(ACTIVATE(widen(x[left_over])));
}
