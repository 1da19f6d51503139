// y[columns, rows] = the transpose of x[rows, columns], bytes.
//
// WIDE, for rows and columns in sixteens: a thread turns 16 by 16 bytes in registers. It reads 16 bytes of each of its
// rows, LANES neighbors of a row, and writes 16 bytes of each of its columns. Else tiles of 32 by 32 turn in shared
// memory, with THREADS threads in a block of either kind.
// Traffic: x and y once, two bytes a number. Roofline: the memory's.

typedef unsigned long long u64;

#if WIDE

constexpr int SIDE = 16;
constexpr int ROWS_PER_BLOCK = THREADS / LANES * SIDE;

// Turns 4 by 4 bytes: each word is a row before and a column after.
__device__ __forceinline__ void turn(unsigned &a, unsigned &b, unsigned &c, unsigned &d) {
    const unsigned ab01 = __byte_perm(a, b, 0x5140), ab23 = __byte_perm(a, b, 0x7362);
    const unsigned cd01 = __byte_perm(c, d, 0x5140), cd23 = __byte_perm(c, d, 0x7362);
    a = __byte_perm(ab01, cd01, 0x5410);
    b = __byte_perm(ab01, cd01, 0x7632);
    c = __byte_perm(ab23, cd23, 0x5410);
    d = __byte_perm(ab23, cd23, 0x7632);
}

extern "C" __global__ void __launch_bounds__(THREADS, 65536 / (THREADS * REGISTERS))
    KERNEL(const unsigned char *__restrict__ x, unsigned char *__restrict__ y, u64 rows, u64 columns) {
    // Sizes are below 2^31.
    const unsigned parts = ((unsigned)rows + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK;
    const unsigned row = blockIdx.x % parts * ROWS_PER_BLOCK + threadIdx.x / LANES * SIDE;
    const unsigned column = (blockIdx.x / parts * LANES + threadIdx.x % LANES) * SIDE;
    if (row >= rows || column >= columns) return;

    const unsigned char *from = x + row * columns + column;
    unsigned words[SIDE][4];
#pragma unroll
    for (int r = 0; r < SIDE; r++) {
        const uint4 loaded = __ldcs(reinterpret_cast<const uint4 *>(from + (u64)(unsigned)columns * r));
        words[r][0] = loaded.x;
        words[r][1] = loaded.y;
        words[r][2] = loaded.z;
        words[r][3] = loaded.w;
    }
    unsigned char *to = y + column * rows + row;
#pragma unroll
    for (int w = 0; w < 4; w++) {
#pragma unroll
        for (int r = 0; r < SIDE; r += 4) turn(words[r][w], words[r + 1][w], words[r + 2][w], words[r + 3][w]);
#pragma unroll
        for (int c = 0; c < 4; c++) {
            *reinterpret_cast<uint4 *>(to + (u64)(unsigned)rows * (4 * w + c)) =
                make_uint4(words[c][w], words[4 + c][w], words[8 + c][w], words[12 + c][w]);
        }
    }
}

#else

constexpr int TILE = 32;
constexpr int WARPS = THREADS / TILE;

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const unsigned char *__restrict__ x, unsigned char *__restrict__ y, u64 rows, u64 columns) {
    // A column more, so that neither direction asks one bank twice.
    __shared__ unsigned turning[TILE][TILE + 1];
    const u64 tiles_down = (rows + TILE - 1) / TILE;
    const u64 first_row = blockIdx.x % tiles_down * TILE;
    const u64 first_column = blockIdx.x / tiles_down * TILE;
    const unsigned lane = threadIdx.x % TILE;
    for (unsigned r = threadIdx.x / TILE; r < TILE; r += WARPS) {
        if (first_row + r < rows && first_column + lane < columns) {
            turning[r][lane] = x[(first_row + r) * columns + first_column + lane];
        }
    }
    __syncthreads();
    for (unsigned c = threadIdx.x / TILE; c < TILE; c += WARPS) {
        if (first_column + c < columns && first_row + lane < rows) {
            y[(first_column + c) * rows + first_row + lane] = turning[lane][c];
        }
    }
}

#endif
