// Codes of a packed weight, of 4 or 8 bits, in the order in which Hopper's warp groups take them, so that nothing is turned when
// they are used.
//
// A tile is 128 rows of the weight by 64 numbers, rows of tiles after each other. In it each of 256 threads has the pieces
// of 16 bytes that it decodes, piece by piece: of its rows g and g + 8, with g = lane / 4, at each step of 16 numbers those at
// 2 t, 2 t + 1, 2 t + 8 and 2 t + 9, with t = lane % 4. A word of bytes has one row's, the first and third of them being the
// neighbours at 2 t; a word of halves has both rows'. Where groups have scales, behind the pieces are those of the tile's rows in
// the element type, as `scaled_pair` takes them, group by group, and then their zeros.
#pragma once
#include "packed.cuh"
#include "packed_pairs.cuh"

constexpr int TILE_ROWS = 128;
constexpr int STEP = 64;
constexpr int THREAD_PIECES = BITS / 4;
constexpr int CODE_BYTES = TILE_ROWS * STEP * BITS / 8;
#if defined(GROUP)
static_assert(GROUP % STEP == 0 || GROUP == 16 || GROUP == 32, "steps of a tile have whole groups");
constexpr int TILE_GROUPS = GROUP < STEP ? STEP / GROUP : 1;
#if defined(ZEROS)
constexpr int SCALE_BYTES = 2 * TILE_GROUPS * TILE_ROWS * sizeof(element);
#else
constexpr int SCALE_BYTES = TILE_GROUPS * TILE_ROWS * sizeof(element);
#endif
#else
constexpr int SCALE_BYTES = 0;
#endif
constexpr int WEIGHT_BYTES = CODE_BYTES + SCALE_BYTES;
constexpr unsigned K_TILES = (K + STEP - 1) / STEP;
