// Lines of words that go round in a circle: y is x with every line moved on by `by` words, the last come first.
// `moved_on` writes it, `differs` tells whether y is anything else.
//
// A line is cut into parts of THREADS * PIECES words, a block for each; a thread has PIECES words in flight. The blocks of
// the grid are as many as all lines have parts.
// Traffic: both buffers once. Bound by memory where words are of 16 bytes; one of 2 bytes is a fourth of what a load may be.
typedef unsigned long long u64;

__device__ __forceinline__ bool differ(uint4 a, uint4 b) {
    return ((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w)) != 0;
}
__device__ __forceinline__ bool differ(uint2 a, uint2 b) { return ((a.x ^ b.x) | (a.y ^ b.y)) != 0; }
template <class T> __device__ __forceinline__ bool differ(T a, T b) { return a != b; }

// What a block does with each word of its part: where it comes from, and where it goes.
template <class F> __device__ __forceinline__ void each(u64 line, u64 by, F f) {
    const u64 parts = (line + THREADS * PIECES - 1) / (THREADS * PIECES);
    const u64 first = blockIdx.x / parts * line;
    const u64 start = blockIdx.x % parts * (THREADS * PIECES) + threadIdx.x;
#pragma unroll
    for (int piece = 0; piece < PIECES; piece++) {
        const u64 at = start + piece * THREADS;
        if (at < line) f(first + (at < by ? at + line - by : at - by), first + at);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    moved_on(const WORD *__restrict__ x, WORD *__restrict__ y, u64 line, u64 by) {
    each(line, by, [=](u64 from, u64 to) { y[to] = x[from]; });
}

// `found` is 0 before, and is written by whoever finds something: all of them write the same.
extern "C" __global__ void __launch_bounds__(THREADS)
    differs(const WORD *__restrict__ x, const WORD *__restrict__ y, unsigned *__restrict__ found, u64 line, u64 by) {
    bool any = false;
    each(line, by, [&](u64 from, u64 to) { any |= differ(x[from], y[to]); });
    if (any) *found = 1;
}
