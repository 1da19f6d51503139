// SwiGLU of rows whose columns are halved into a and b: y = silu(a) b, with half as many columns as x. With BACKWARD 1 the
// gradient of x, given x and that of y: dy b slope(a) in the first half and dy silu(a) in the second.
//
// A block is THREADS threads for a part of each of ROWS rows, and each thread takes PIECES pieces of WIDTH elements of
// either half, THREADS pieces apart. Halves whose length is no multiple of a wide access have a WIDTH of 1.
// Traffic: every operand once. It is bound by memory: about 10 instructions for each element of y, backward 14.
#include "element.cuh"
#include "slopes.cuh"

#if BACKWARD
#define ARGUMENTS const element *__restrict__ x, const element *__restrict__ dy, element *__restrict__ dx
#else
#define ARGUMENTS const element *__restrict__ x, element *__restrict__ y
#endif

extern "C" __global__ void __launch_bounds__(THREADS * ROWS) KERNEL(ARGUMENTS, u64 rows, u64 columns) {
    const unsigned pieces = columns / 2 / WIDTH;
    const unsigned parts = (pieces + THREADS * PIECES - 1) / (THREADS * PIECES);
    const u64 row = (u64)(blockIdx.x / parts) * ROWS + threadIdx.y;
    if (row >= rows) return;
    const unsigned first = blockIdx.x % parts * (THREADS * PIECES) + threadIdx.x;
    const piece *of_a = reinterpret_cast<const piece *>(x + row * columns);
    const piece *of_b = of_a + pieces;

    piece a[PIECES], b[PIECES];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = first + p * THREADS;
        if (at < pieces) {
            a[p] = of_a[at];
            b[p] = of_b[at];
        }
    }

#if BACKWARD
    const piece *of_dy = reinterpret_cast<const piece *>(dy + row * (columns / 2));
    piece *to_a = reinterpret_cast<piece *>(dx + row * columns);
    piece d[PIECES];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (first + p * THREADS < pieces) d[p] = of_dy[first + p * THREADS];
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = first + p * THREADS;
        if (at >= pieces) break;
        float of_first[WIDTH], of_second[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            gated_gradient(widen(a[p].parts[i]), widen(b[p].parts[i]), widen(d[p].parts[i]), of_first[i], of_second[i]);
        }
        to_a[at] = narrow_all(of_first);
        to_a[pieces + at] = narrow_all(of_second);
    }
#else
    piece *to = reinterpret_cast<piece *>(y + row * (columns / 2));
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        const unsigned at = first + p * THREADS;
        if (at >= pieces) break;
        float results[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) results[i] = silu(widen(a[p].parts[i])) * widen(b[p].parts[i]);
        to[at] = narrow_all(results);
    }
#endif
}
