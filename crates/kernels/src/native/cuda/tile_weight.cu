// Reorders a packed weight w[n, k] (packed_weight.cuh) into the tiled layout of tiled_weight.cuh; runs once per weight.
//
// Algorithm: one block per tile; each thread gathers the values of its wgmma fragment (layout in tiled_weight.cuh).
// Elements outside the weight become zero. Traffic: the packed values and the tiles once. Roofline: memory bandwidth;
// not optimized, since it is not timed.
//
// Parameters:
//   KERNEL                   name of the kernel
//   ELEMENT_*                dtype `element`: ELEMENT_F16 or ELEMENT_BF16 (checked in element.cuh)
//   WIDTH                    any value; required by element.cuh
//   BLOCK_TILES              adjacent tiles of weight rows that a block of the GEMM multiplies
//   BITS                     bits of a quantized value, 1 to 8
//   SIGNED_VALUES            defined if the values are signed integers
//   UNSIGNED_VALUES          defined if the values are unsigned integers
//   MANTISSA_BITS            defined if the values are small floats: bits of the mantissa
//   EXPONENT_BIAS            exponent bias of small floats
//   GROUP_SIZE               optional: elements of a row that share a scale; by default one scale per row
//   SCALE_DTYPE              stored_f32, stored_f16, stored_bf16, stored_e8m0 or stored_e4m3
//   ZERO_POINT_BEFORE_SCALE  optional: zero points in units of the quantized values
//   ZERO_POINT_AFTER_SCALE   optional: zero points in units of the dequantized values
//   ZERO_POINT_DTYPE         dtype of float zero points, as SCALE_DTYPE
//   ZERO_POINT_BITS          bits of packed integer zero points

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif

#ifndef BLOCK_TILES
#error "BLOCK_TILES: adjacent tiles of weight rows that a block of the GEMM multiplies"
#endif

#include "element.cuh"
#include "tiled_weight.cuh"

// Packed weight of n rows of k elements.
struct packed_rows {
    const unsigned *words;
    u64 n;
    unsigned k;
};

// Value `column` of a row.
__device__ __forceinline__ unsigned value_at(const packed_rows &rows, u64 row, unsigned column) {
    const unsigned *const words = rows.words;
    if (row >= rows.n || column >= padded_row(rows.k)) return 0;
    const u64 bit = (row * padded_row(rows.k) + column) * BITS;
    const unsigned low = words[bit / 32], high = words[(bit + BITS - 1) / 32];
    return __funnelshift_r(low, high, (unsigned)(bit % 32)) & MASK;
}

// Index of one of the four elements that a thread holds per row and step of 16; `first` is the first one of the tile.
__device__ __forceinline__ unsigned element_index(unsigned first, int step, int half, int neighbor) {
    return first + 16 * step + 8 * half + neighbor;
}

// Writes the words of a thread in one plane.
template <int PLANE_BITS>
__device__ __forceinline__ void write_plane(const packed_rows &rows, unsigned char *tile, u64 row, unsigned first) {
    typedef plane<PLANE_BITS> thread_plane;
    if (!thread_plane::EXISTS) return;
    thread_plane result = {};
    for (int i = 0; i < THREAD_PAIRS; i++) {
        for (int neighbor = 0; neighbor < 2; neighbor++) {
            const unsigned value =
                value_at(rows, row + 8 * (i % 2), element_index(first, i / 4, i / 2 % 2, neighbor));
            const unsigned bits = value >> thread_plane::LOW_BIT & ((1u << PLANE_BITS) - 1);
            result.words[i * PLANE_BITS / 16] |= bits << (thread_plane::first_bit(i) + 16 * neighbor);
        }
    }
    thread_plane::in(tile)[threadIdx.x] = result;
}

extern "C" __global__ void __launch_bounds__(TILE_THREADS)
    KERNEL(const unsigned *__restrict__ quantized,
#if defined(GROUP_SIZE)
           const stored_scale *__restrict__ scales,
#if defined(HAS_ZERO_POINTS)
           const stored_zero *__restrict__ zeros,
#endif
#endif
           unsigned char *__restrict__ tiles, u64 n, u64 k_size) {
    const packed_rows rows = {quantized, n, (unsigned)k_size};
    const unsigned k_tiles = row_tiles(rows.k);
    const unsigned k_tile = blockIdx.x / BLOCK_TILES % k_tiles;
    const unsigned n_tile = blockIdx.x / BLOCK_TILES / k_tiles * BLOCK_TILES + blockIdx.x % BLOCK_TILES;
    const u64 first_row = (u64)n_tile * TILE_N;
    const unsigned first_k = k_tile * TILE_K;
    unsigned char *const tile = tiles + (u64)blockIdx.x * TILE_BYTES;

    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const u64 row = first_row + threadIdx.x / 32 * 16 + g;
    const unsigned first = first_k + 2 * t;
#if BITS == 8
    for (int vector = 0; vector < 2; vector++) {
        unsigned words[4] = {};
        for (int w = 0; w < 4; w++) {
            for (int i = 0; i < 4; i++) {
                const unsigned k = element_index(first, 2 * vector + w / 2, i / 2, i % 2);
                words[w] |= value_at(rows, row + 8 * (w % 2), k) << 8 * (2 * (i % 2) + i / 2);
            }
        }
        reinterpret_cast<uint4 *>(tile)[vector * TILE_THREADS + threadIdx.x] =
            make_uint4(words[0], words[1], words[2], words[3]);
    }
#else
    write_plane<4>(rows, tile, row, first);
    write_plane<2>(rows, tile, row, first);
    write_plane<1>(rows, tile, row, first);
#endif
#if defined(GROUP_SIZE)
    element *const tile_scales = reinterpret_cast<element *>(tile + VALUE_BYTES);
    for (int index = threadIdx.x; index < TILE_GROUPS * TILE_N; index += TILE_THREADS) {
        const u64 scale_row = first_row + index % TILE_N;
        const unsigned scale_group = first_k / GROUP_SIZE + index / TILE_N;
        pair_scale scale = {0, 0};
        // Scales outside the weight are zero.
        if (scale_row < n && scale_group < row_groups(rows.k)) {
            const u64 group = scale_row * row_groups(rows.k) + scale_group;
#if defined(HAS_ZERO_POINTS)
            scale = make_pair_scale(SCALE_DTYPE::to_float(scales[group]), zero_value(load_zero(zeros, group), group));
#else
            scale = make_pair_scale(SCALE_DTYPE::to_float(scales[group]), 0.0f);
#endif
        }
        tile_scales[index] = (element)scale.scale;
#if defined(HAS_ZERO_POINTS)
        tile_scales[TILE_GROUPS * TILE_N + index] = (element)scale.zero;
#endif
    }
#endif
}
