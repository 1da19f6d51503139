// y[columns, rows] = transpose of x[rows, columns] for 8-bit elements, row-major.
//
// Algorithm: IN_REGISTERS = 1, for sizes that are multiples of 16: a thread transposes 16 x 16 bytes in registers by
// byte permutes (PTX ISA, "prmt"), with 16-byte loads and stores. LANES_PER_ROW adjacent threads read one row.
// IN_REGISTERS = 0, for any size: the classic transposition of 32 x 32 tiles in padded shared memory (NVIDIA, "An
// Efficient Matrix Transpose in CUDA C/C++").
//
//     4 x 4 bytes in four words:   a0 a1 a2 a3        a0 b0 c0 d0
//                                  b0 b1 b2 b3   -->  a1 b1 c1 d1      two rounds of prmt
//                                  c0 c1 c2 c3        a2 b2 c2 d2
//                                  d0 d1 d2 d3        a3 b3 c3 d3
//
// Traffic: x and y once, two bytes per element. Roofline: memory bandwidth.
//
// Parameters:
//   KERNEL         name of the kernel
//   THREADS        threads per block
//   IN_REGISTERS   1 for 16 x 16 bytes per thread in registers, 0 for 32 x 32 tiles in shared memory
//   LANES_PER_ROW  threads that read one row; required with IN_REGISTERS = 1
//   MAX_REGISTERS  registers per thread, which determines the resident blocks; required with IN_REGISTERS = 1

#ifndef KERNEL
#error "KERNEL: name of the kernel"
#endif
#ifndef THREADS
#error "THREADS: threads per block"
#endif
#ifndef IN_REGISTERS
#error "IN_REGISTERS: 1 for 16 x 16 bytes per thread in registers, 0 for 32 x 32 tiles in shared memory"
#endif

typedef unsigned long long u64;

#if IN_REGISTERS

#ifndef LANES_PER_ROW
#error "LANES_PER_ROW: threads that read one row"
#endif
#ifndef MAX_REGISTERS
#error "MAX_REGISTERS: registers per thread"
#endif

constexpr int SIDE = 16;
constexpr int ROWS_PER_BLOCK = THREADS / LANES_PER_ROW * SIDE;

// Transposes 4 x 4 bytes: each word is a row before and a column after.
__device__ __forceinline__ void transpose_4x4(unsigned &a, unsigned &b, unsigned &c, unsigned &d) {
    const unsigned ab01 = __byte_perm(a, b, 0x5140), ab23 = __byte_perm(a, b, 0x7362);
    const unsigned cd01 = __byte_perm(c, d, 0x5140), cd23 = __byte_perm(c, d, 0x7362);
    a = __byte_perm(ab01, cd01, 0x5410);
    b = __byte_perm(ab01, cd01, 0x7632);
    c = __byte_perm(ab23, cd23, 0x5410);
    d = __byte_perm(ab23, cd23, 0x7632);
}

extern "C" __global__ void __launch_bounds__(THREADS, 65536 / (THREADS * MAX_REGISTERS))
    KERNEL(const unsigned char *__restrict__ x, unsigned char *__restrict__ y, u64 rows, u64 columns) {
    // Sizes are below 2^31.
    const unsigned row_blocks = ((unsigned)rows + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK;
    const unsigned row = blockIdx.x % row_blocks * ROWS_PER_BLOCK + threadIdx.x / LANES_PER_ROW * SIDE;
    const unsigned column = (blockIdx.x / row_blocks * LANES_PER_ROW + threadIdx.x % LANES_PER_ROW) * SIDE;
    if (row >= rows || column >= columns) return;

    const unsigned char *source = x + row * columns + column;
    unsigned words[SIDE][4];
#pragma unroll
    for (int r = 0; r < SIDE; r++) {
        const uint4 loaded = __ldcs(reinterpret_cast<const uint4 *>(source + (u64)(unsigned)columns * r));
        words[r][0] = loaded.x;
        words[r][1] = loaded.y;
        words[r][2] = loaded.z;
        words[r][3] = loaded.w;
    }
    unsigned char *destination = y + column * rows + row;
#pragma unroll
    for (int w = 0; w < 4; w++) {
#pragma unroll
        for (int r = 0; r < SIDE; r += 4) transpose_4x4(words[r][w], words[r + 1][w], words[r + 2][w], words[r + 3][w]);
#pragma unroll
        for (int c = 0; c < 4; c++) {
            *reinterpret_cast<uint4 *>(destination + (u64)(unsigned)rows * (4 * w + c)) =
                make_uint4(words[c][w], words[4 + c][w], words[8 + c][w], words[12 + c][w]);
        }
    }
}

#else

constexpr int TILE = 32;
constexpr int WARPS = THREADS / TILE;

extern "C" __global__ void __launch_bounds__(THREADS)
    KERNEL(const unsigned char *__restrict__ x, unsigned char *__restrict__ y, u64 rows, u64 columns) {
    // One padding column, so that neither direction has bank conflicts.
    __shared__ unsigned tile[TILE][TILE + 1];
    const u64 tiles_down = (rows + TILE - 1) / TILE;
    const u64 first_row = blockIdx.x % tiles_down * TILE;
    const u64 first_column = blockIdx.x / tiles_down * TILE;
    const unsigned lane = threadIdx.x % TILE;
    for (unsigned r = threadIdx.x / TILE; r < TILE; r += WARPS) {
        if (first_row + r < rows && first_column + lane < columns) {
            tile[r][lane] = x[(first_row + r) * columns + first_column + lane];
        }
    }
    __syncthreads();
    for (unsigned c = threadIdx.x / TILE; c < TILE; c += WARPS) {
        if (first_column + c < columns && first_row + lane < rows) {
            y[(first_column + c) * rows + first_row + lane] = tile[lane][c];
        }
    }
}

#endif
