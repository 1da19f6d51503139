// The gradients of a and b, given both and the gradient dy of silu(a) b: da = dy b slope(a), db = dy silu(a).
//
// Each thread takes PIECES pieces of WIDTH elements, THREADS pieces apart, and loads all before it uses any; the elements
// after the last whole piece are taken one by one by the first threads.
// Traffic: every operand once. It is bound by memory: 14 instructions for each element, of which five move.
#include "element.cuh"
#include "slopes.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const element *__restrict__ a, const element *__restrict__ b, const element *__restrict__ dy,
           element *__restrict__ da, element *__restrict__ db, u64 length, u64) {
    const u64 pieces = length / WIDTH;
    const u64 first = (u64)blockIdx.x * (THREADS * PIECES) + threadIdx.x;
    const piece *from_a = reinterpret_cast<const piece *>(a);
    const piece *from_b = reinterpret_cast<const piece *>(b);
    const piece *from_dy = reinterpret_cast<const piece *>(dy);

    piece of_a[PIECES], of_b[PIECES], of_dy[PIECES];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const u64 at = first + p * THREADS;
        if (at < pieces) {
            of_a[p] = from_a[at];
            of_b[p] = from_b[at];
            of_dy[p] = from_dy[at];
        }
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const u64 at = first + p * THREADS;
        if (at >= pieces) break;
        float to_a[WIDTH], to_b[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            gated_gradient(widen(of_a[p].parts[i]), widen(of_b[p].parts[i]), widen(of_dy[p].parts[i]), to_a[i], to_b[i]);
        }
        reinterpret_cast<piece *>(da)[at] = narrow_all(to_a);
        reinterpret_cast<piece *>(db)[at] = narrow_all(to_b);
    }

    // Block 0 has more threads than there can be elements left over.
    const u64 left_over = pieces * WIDTH + first;
    if (blockIdx.x == 0 && left_over < length) {
        float to_a, to_b;
        gated_gradient(widen(a[left_over]), widen(b[left_over]), widen(dy[left_over]), to_a, to_b);
        da[left_over] = narrow(to_a);
        db[left_over] = narrow(to_b);
    }
}
