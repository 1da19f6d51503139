// A weight whose kept numbers are stored row by row, with all its zeros: numbers[n, ...], places[n, ...] -> w[rows, STRIDE], for products
// that know nothing of sparsity. Rows beyond n, and what is beyond K, become zeros.
//
// Data flow: a thread writes four neighbors, two of which it reads. Traffic: 9/16 of the dense bytes read in 16 bits, all of them
// written; 53 MB for 4096 x 4096, roofline: 12 us at the 4.3 TB/s that a copy reaches on an H200, and less where they stay in the L2 cache.
#include "sparse_codes.cuh"

#if defined(KEPT_BYTES)
typedef unsigned char number;
#else
typedef element number;
#endif
struct __align__(4 * sizeof(number)) four {
    number parts[4];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const unsigned *__restrict__ numbers,
#if defined(KEPT_HALVES)
           const element *__restrict__ group_scales,
#endif
           const unsigned *__restrict__ places, four *__restrict__ w, u64 n, u64 rows) {
    constexpr unsigned FOURS = STRIDE / 4;
    const u64 at = (u64)blockIdx.x * THREADS + threadIdx.x;
    const u64 row = at / FOURS;
    const unsigned of_row = at % FOURS;
    if (row >= rows) return;
    four result = {};
    if (row < n && of_row < K / 4) {
        const unsigned kept = places[row * PLACES_ROW + of_row / 8] >> 4 * (of_row % 8);
#pragma unroll
        for (unsigned i = 0; i < 2; i++) {
            const u64 sought = row * STORED_ROW + 2 * of_row + i;
#if defined(KEPT_HALVES)
            const int code = (int)((numbers[sought / 8] >> 4 * (sought % 8) & 0xfu) ^ 8u) - 8;
            const number found = narrow((float)code * widen(group_scales[row * ((K + 127) / 128) + of_row / 32]));
#else
            const number found = reinterpret_cast<const number *>(numbers)[sought];
#endif
            result.parts[kept >> 2 * i & 3u] = found;
        }
    }
    w[at] = result;
}
