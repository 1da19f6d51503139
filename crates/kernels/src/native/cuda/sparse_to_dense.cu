// Expands a row-major 2:4 sparse weight for dense GEMMs: nonzeros[n, ROW_NONZEROS], metadata[n, METADATA_WORDS] ->
// w[rows, STRIDE], row-major. Rows from n on, and elements beyond K, become zero. int4 nonzeros are multiplied by their
// group scale.
//
// Algorithm: element-wise; a thread reads two nonzeros and writes four elements.
//
//     metadata of four elements (4 bits): | position of nonzero 1 | position of nonzero 0 |   11 01: elements 1, 3
//
// Traffic: 9/16 of the dense bytes read (16-bit), all of them written: 53 MB for 4096 x 4096. Roofline: 12 us at the
// copy bandwidth of an H200, 4.3 TB/s; less if the result stays in L2.
//
// Parameters:
//   KERNEL          name of the kernel
//   K               reduction size, a multiple of 4 (checked in sparse_weight.cuh)
//   NONZEROS_4BIT   optional: int4 nonzeros with group scales (sparse_weight.cuh)
//   NONZEROS_8BIT   optional: 8-bit nonzeros (sparse_weight.cuh)
//   NONZEROS_32BIT  optional: f32 nonzeros; 16 bits by default (sparse_weight.cuh)
//   ELEMENT_*       dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH           any value; required by element.cuh
//   STRIDE          elements per row of w, a multiple of 4
//   THREADS         threads per block

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef STRIDE
#error "STRIDE: elements per row of w, a multiple of 4"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif

#include "sparse_weight.cuh"

#if defined(NONZEROS_8BIT)
typedef unsigned char value;
#else
typedef element value;
#endif
struct __align__(4 * sizeof(value)) group {
    value val[4];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const unsigned *__restrict__ nonzeros,
#if defined(NONZEROS_4BIT)
           const element *__restrict__ group_scales,
#endif
           const unsigned *__restrict__ metadata, group *__restrict__ w, u64 n, u64 rows) {
    constexpr unsigned ROW_GROUPS = STRIDE / 4;
    const u64 thread = (u64)blockIdx.x * THREADS + threadIdx.x;
    const u64 row = thread / ROW_GROUPS;
    const unsigned group_in_row = thread % ROW_GROUPS;
    if (row >= rows) return;
    group result = {};
    if (row < n && group_in_row < K / 4) {
        const unsigned positions = metadata[row * METADATA_WORDS + group_in_row / 8] >> 4 * (group_in_row % 8);
#pragma unroll
        for (unsigned i = 0; i < 2; i++) {
            const u64 index = row * ROW_NONZEROS + 2 * group_in_row + i;
#if defined(NONZEROS_4BIT)
            const int q = (int)((nonzeros[index / 8] >> 4 * (index % 8) & 0xfu) ^ 8u) - 8;
            const value nonzero = narrow((float)q * widen(group_scales[row * ((K + 127) / 128) + group_in_row / 32]));
#else
            const value nonzero = reinterpret_cast<const value *>(nonzeros)[index];
#endif
            result.val[positions >> 2 * i & 3u] = nonzero;
        }
    }
    w[thread] = result;
}
