// 2:4 sparse weight w[n, K] in the fragment order of sparse tensor cores: at most two of four consecutive elements of a
// row are nonzero.
//
// References: PTX ISA, "Matrix multiply-accumulate operation using mma.sp instruction with sparse matrix A" (fragments
// and metadata of mma.sp.m16n8k32 for 16-bit and m16n8k64 for 8-bit operands); "Accelerating Sparse Deep Neural
// Networks" (Mishra et al., 2021).
//
// A unit is 16 rows by 64 elements, of which 32 are stored; units of the same rows follow each other. Lane 4 g + t
// holds
//
//     16-bit, 4-bit: per half (32 elements): row g and row g + 8, nonzeros 2t, 2t+1 and 2t+8, 2t+9
//     8-bit:         per unit:               row g and row g + 8, nonzeros 4t..4t+3 and 4t+16..4t+19
//     words 0, 2: row g          words 1, 3: row g + 8
//
//     unit in memory:  | values: 32 lanes x THREAD_WORDS words | metadata: 32 words, one per lane |
//
// 4-bit values take one word per half: nibble i is the first nonzero of word i, nibble i + 4 the second, both stored as
// q + 8. Metadata has two bits per nonzero, its position among four. 16-bit and 4-bit: 16 bits of row g below 16 bits
// of row g + 8; lanes with t = 0, 1 serve the first half, t = 2, 3 the second. 8-bit: 32 bits of row g in lanes with
// even t, of row g + 8 in lanes with odd t.
//
// Parameters:
//   K                                               reduction size, a multiple of 4
//   NONZEROS_4BIT | NONZEROS_8BIT | NONZEROS_32BIT  width of the stored nonzeros; 16 bits without any of these
//   ELEMENT_*                                       dtype `element`: ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 (checked
//                                                   in element.cuh)
#pragma once

#ifndef K
#error "K: reduction size, a multiple of 4"
#endif
#include "element.cuh"

#if defined(NONZEROS_4BIT)
constexpr unsigned NONZERO_BITS = 4;
#elif defined(NONZEROS_8BIT)
constexpr unsigned NONZERO_BITS = 8;
#elif defined(NONZEROS_32BIT)
constexpr unsigned NONZERO_BITS = 32;
#else
constexpr unsigned NONZERO_BITS = 16;
#endif
constexpr unsigned UNITS = (K + 63) / 64;
// Words of values of a lane in a unit.
constexpr unsigned THREAD_WORDS = NONZERO_BITS / 2;
constexpr unsigned UNIT_WORDS = 32 * (THREAD_WORDS + 1);
// Row-major storage before reordering: nonzeros padded to 32, or to whole groups of 128 elements; four bits of metadata
// per four elements.
#if defined(NONZEROS_4BIT)
constexpr unsigned ROW_NONZEROS = (K + 127) / 128 * 64;
#else
constexpr unsigned ROW_NONZEROS = (K / 2 + 31) / 32 * 32;
#endif
constexpr unsigned METADATA_WORDS = (K + 31) / 32;
