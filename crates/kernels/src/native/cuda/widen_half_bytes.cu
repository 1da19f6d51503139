// The 4-bit codes of a weight as bytes, in the rows that cuBLASLt multiplies: codes[n, K] -> bytes[rows, STRIDE]. Rows beyond n,
// and what is beyond K, become zeros.
//
// Data flow: a thread turns 16 bytes of codes into 32. Traffic: half a byte read and one written for each code, 25 MB for
// 4096 x 4096. Roofline: 6 us at the 4.3 TB/s that a copy reaches on an H200, and less of it, since the bytes stay in the L2 cache for the product.
#include "half_byte_codes.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const uint4 *__restrict__ codes,
#ifdef GROUPED
           const element *__restrict__ scales,
#endif
           uint4 *__restrict__ bytes, u64 n, u64 rows) {
    constexpr unsigned PIECES = STRIDE / 32, ROW_PIECES = ROW_CODES / 32;
    const u64 at = (u64)blockIdx.x * THREADS + threadIdx.x;
    const u64 row = at / PIECES;
    const unsigned piece = at % PIECES;
    if (row >= rows) return;
    unsigned wide[8] = {};
    if (row < n) {
        const uint4 four = __ldcs(codes + row * ROW_PIECES + piece);
        const unsigned words[4] = {four.x, four.y, four.z, four.w};
#ifdef GROUPED
        const float scale = widen(scales[row * (ROW_CODES / 128) + piece / 4]);
#endif
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const unsigned code = words[i / 2] >> (16 * (i % 2) + 4 * j) & 0xfu;
#ifdef GROUPED
                wide[i] |= byte_of(code, scale) << 8 * j;
#else
                wide[i] |= (((code ^ 8u) - 8u) & 0xffu) << 8 * j;
#endif
            }
        }
    }
    uint4 *const to = bytes + at * 2;
    to[0] = make_uint4(wide[0], wide[1], wide[2], wide[3]);
    to[1] = make_uint4(wide[4], wide[5], wide[6], wide[7]);
}
