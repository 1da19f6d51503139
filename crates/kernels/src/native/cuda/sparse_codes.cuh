// A weight w[n, K] of which two of every four numbers of a row are kept, in the order in which sparse tensor cores take it.
//
// A unit is 16 rows by 64 numbers, of which 32 are kept; units of the same rows follow each other. In it each of 32 threads, with
// g = lane / 4 and t = lane % 4, has what it multiplies: of the rows g and g + 8 the kept numbers 2 t, 2 t + 1, 2 t + 8 and 2 t + 9
// of each half, or of bytes 4 t to 4 t + 3 and those plus 16. The first and third words are row g's, the others row g + 8's; half bytes
// (KEPT_HALVES) are a word for each half of the unit, the two of a pair four places apart, and stand for themselves less 8. Behind the
// numbers is a word of each thread that says which are kept, two bits each: of bytes a row's 32 numbers, row g's in even threads;
// otherwise 16 numbers of each row, row g's below, and of the second half in the threads with t of 2 and 3.
#pragma once
#include "element.cuh"

#if defined(KEPT_HALVES)
constexpr unsigned KEPT_BITS = 4;
#elif defined(KEPT_BYTES)
constexpr unsigned KEPT_BITS = 8;
#elif defined(KEPT_WORDS)
constexpr unsigned KEPT_BITS = 32;
#else
constexpr unsigned KEPT_BITS = 16;
#endif
constexpr unsigned UNITS = (K + 63) / 64;
// Words of a thread's numbers in a unit.
constexpr unsigned THREAD_WORDS = KEPT_BITS / 2;
constexpr unsigned UNIT_WORDS = 32 * (THREAD_WORDS + 1);
// A stored row: its kept numbers in blocks of 32, whole groups of 128 where it has groups; and four bits for every four numbers.
#if defined(KEPT_HALVES)
constexpr unsigned STORED_ROW = (K + 127) / 128 * 64;
#else
constexpr unsigned STORED_ROW = (K / 2 + 31) / 32 * 32;
#endif
constexpr unsigned PLACES_ROW = (K + 31) / 32;
