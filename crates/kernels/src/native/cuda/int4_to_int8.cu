// Widens a packed int4 weight (int4_weight.cuh) to int8 for cuBLASLt: quantized[n, K] -> bytes[rows, STRIDE],
// row-major. Rows from n on, and elements beyond K, become zero.
//
// Algorithm: element-wise; a thread widens one 16-byte vector of 32 values to 32 bytes. With GROUP_SCALES the group
// scale is applied and the result rounded. Traffic: 0.5 bytes read and 1 byte written per value, 25 MB for 4096 x 4096.
// Roofline: 6 us at a copy bandwidth of 4.3 TB/s (H200); less if the bytes stay in L2 for the GEMM.
//
// Parameters:
//   KERNEL        name of the kernel
//   ELEMENT_*     dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH         any value; required by element.cuh
//   K             reduction size (checked in int4_weight.cuh)
//   GROUP_SCALES  optional: scales per group of 128 in dtype `element` (int4_weight.cuh)
//   STRIDE        bytes per row of the result, a multiple of 32
//   THREADS       threads per block

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef STRIDE
#error "STRIDE: bytes per row of the result, a multiple of 32"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif

#include "int4_weight.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const uint4 *__restrict__ quantized,
#ifdef GROUP_SCALES
           const element *__restrict__ scales,
#endif
           uint4 *__restrict__ bytes, u64 n, u64 rows) {
    constexpr unsigned STRIDE_VECTORS = STRIDE / 32, ROW_VECTORS = ROW_VALUES / 32;
    const u64 index = (u64)blockIdx.x * THREADS + threadIdx.x;
    const u64 row = index / STRIDE_VECTORS;
    const unsigned vector = index % STRIDE_VECTORS;
    if (row >= rows) return;
    unsigned widened[8] = {};
    if (row < n) {
        const uint4 four = __ldcs(quantized + row * ROW_VECTORS + vector);
        const unsigned words[4] = {four.x, four.y, four.z, four.w};
#ifdef GROUP_SCALES
        const float scale = widen(scales[row * (ROW_VALUES / 128) + vector / 4]);
#endif
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const unsigned nibble = words[i / 2] >> (16 * (i % 2) + 4 * j) & 0xfu;
#ifdef GROUP_SCALES
                widened[i] |= to_int8(nibble, scale) << 8 * j;
#else
                widened[i] |= (((nibble ^ 8u) - 8u) & 0xffu) << 8 * j;
#endif
            }
        }
    }
    uint4 *const destination = bytes + index * 2;
    destination[0] = make_uint4(widened[0], widened[1], widened[2], widened[3]);
    destination[1] = make_uint4(widened[4], widened[5], widened[6], widened[7]);
}
