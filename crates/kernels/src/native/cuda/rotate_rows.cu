// Cyclic rotation of rows of words: y[row, (i + shift) % length] = x[row, i].
//
// Kernels: rotate_rows writes y; find_mismatch sets found[0] to 1 if y is not the rotation of x, and leaves it
// otherwise (0 before the launch).
//
// Contract: x and y hold rows of `length` WORDs without gaps; shift < length. A row is divided among blocks of THREADS
// * WORDS_PER_THREAD words; the grid has one block per part of every row. Each thread has WORDS_PER_THREAD loads in
// flight.
//
// Traffic: both buffers once. Roofline: memory with 16-byte words; narrower words use a fraction of the load width.
//
// Parameters:
//   WORD              word type: uint4, uint2 or an unsigned integer type
//   THREADS           threads per block
//   WORDS_PER_THREAD  words per thread

#ifndef WORD
#error "WORD: word type: uint4, uint2 or an unsigned integer type"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef WORDS_PER_THREAD
#error "WORDS_PER_THREAD: words per thread"
#endif

typedef unsigned long long u64;

__device__ __forceinline__ bool differ(uint4 a, uint4 b) {
    return ((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w)) != 0;
}
__device__ __forceinline__ bool differ(uint2 a, uint2 b) { return ((a.x ^ b.x) | (a.y ^ b.y)) != 0; }
template <class T> __device__ __forceinline__ bool differ(T a, T b) { return a != b; }

// Calls `visit` with the source and destination index of each word of this thread.
template <class Visitor> __device__ __forceinline__ void for_each_word(u64 length, u64 shift, Visitor visit) {
    const u64 row_blocks = (length + THREADS * WORDS_PER_THREAD - 1) / (THREADS * WORDS_PER_THREAD);
    const u64 row_start = blockIdx.x / row_blocks * length;
    const u64 start = blockIdx.x % row_blocks * (THREADS * WORDS_PER_THREAD) + threadIdx.x;
#pragma unroll
    for (int w = 0; w < WORDS_PER_THREAD; w++) {
        const u64 i = start + w * THREADS;
        if (i < length) visit(row_start + (i < shift ? i + length - shift : i - shift), row_start + i);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    rotate_rows(const WORD *__restrict__ x, WORD *__restrict__ y, u64 length, u64 shift) {
    for_each_word(length, shift, [=](u64 source, u64 destination) { y[destination] = x[source]; });
}

// Concurrent writes of `found` are benign: all write 1.
extern "C" __global__ void __launch_bounds__(THREADS)
    find_mismatch(const WORD *__restrict__ x, const WORD *__restrict__ y, unsigned *__restrict__ found, u64 length,
                  u64 shift) {
    bool mismatch = false;
    for_each_word(length, shift, [&](u64 source, u64 destination) { mismatch |= differ(x[source], y[destination]); });
    if (mismatch) *found = 1;
}
