// Numbers of a matrix, each of which follows from a key and its place: what the host would make of the same words `how`, to the
// bit. So whole numbers and single IEEE operations alone are used, none of which the compiler may put together with another.
//
// Each thread makes PIECES numbers, THREADS apart. The tables lie in shared memory, the rest of `how` is read where it is needed.
// Traffic: y once. It is bound by arithmetic: a gain takes six rounds of SplitMix64. On an H100 a case of 134 million floats was
// open after 4.7 ms with all gains and 2.3 without, where memory takes 0.2.
#include "element.cuh"

// Where words of `how` lie, as places.rs writes them.
enum { SPREAD, KEY, FROM = KEY + 2, REACH, TO, MEANS, FACTORS, LOUDER, SEED, ROWS = SEED + 2, COLUMNS, SQUARE, SKEWED, TAIL,
       TAIL_COLUMNS, EVENED, RUNS, FIRST_RUN, TABLES = FIRST_RUN + MOST_RUNS };

__device__ __forceinline__ u64 mix(u64 state) {
    u64 z = state + GOLDEN;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// Steps, of so many octaves around none, for a place.
__device__ __forceinline__ int draw(u64 seed, unsigned octaves, u64 a, u64 b, u64 c) {
    const u64 mixed = mix(mix(mix(seed ^ mix(a)) ^ mix(b)) ^ mix(c));
    const unsigned steps = octaves * STEPS;
    return (int)((steps * (mixed >> 40)) >> 24) - (int)(steps / 2);
}

// Two to the power of so many steps.
__device__ __forceinline__ float gain(const float *powers, int steps) {
    const int octave = (steps - (STEPS - 1) * (steps < 0)) / STEPS;
    return __fmul_rn(powers[steps - octave * STEPS], __uint_as_float((unsigned)(127 + octave) << 23));
}

__device__ __forceinline__ float normal(const float2 *quantiles, u64 bits) {
    const u64 rest = bits << 1;
    const int zeros = __clzll((long long)rest), octave = zeros < OCTAVES - 1 ? zeros : OCTAVES - 1;
    const u64 below = rest << (octave + 1);
    const float2 segment = quantiles[octave * SEGMENTS + (unsigned)(below >> 59)];
    const float size = __fadd_rn(segment.x, __fmul_rn(segment.y, (float)(unsigned)(below << 5 >> 40)));
    return __uint_as_float(__float_as_uint(size) | (unsigned)(bits >> 63) << 31);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    places(const unsigned *__restrict__ how, element *__restrict__ y, u64 cols, u64 count) {
    __shared__ float2 quantiles[OCTAVES * SEGMENTS];
    __shared__ float powers[STEPS];
    const float *tables = (const float *)how + TABLES;
    for (unsigned at = threadIdx.x; at < OCTAVES * SEGMENTS; at += THREADS)
        quantiles[at] = make_float2(tables[2 * at], tables[2 * at + 1]);
    for (unsigned at = threadIdx.x; at < STEPS; at += THREADS) powers[at] = tables[2 * OCTAVES * SEGMENTS + at];
    __syncthreads();
    const float *factors = tables + 2 * OCTAVES * SEGMENTS + STEPS;
    const auto wide = [=](int at) { return how[at] | (u64)how[at + 1] << 32; };
    const auto number = [=](int at) { return __uint_as_float(how[at]); };
    const u64 key = wide(KEY), seed = wide(SEED);

    for (int piece = 0; piece < PIECES; piece++) {
        const u64 index = ((u64)blockIdx.x * PIECES + piece) * THREADS + threadIdx.x;
        if (index >= count) return;
        const u64 row = index / cols, col = index - row * cols, bits = mix(key + index * GOLDEN);
        float value;
        if (how[SPREAD] == 0) {
            value = normal(quantiles, bits);
        } else {
            // Twenty-four bits are a float exactly.
            const float unit = __fmul_rn((float)(unsigned)(bits >> 40), 1.0f / (1 << 24));
            value = fminf(__fadd_rn(number(FROM), __fmul_rn(number(REACH), unit)), number(TO));
        }
        if (how[LOUDER]) {
            const float tail = col + how[TAIL_COLUMNS] >= cols && cols > how[TAIL_COLUMNS] ? number(TAIL) : 1.0f;
            const float of_column = gain(powers, draw(seed, how[COLUMNS], 0, col, 0));
            value = __fmul_rn(value, __fmul_rn(__fmul_rn(of_column, tail), number(EVENED)));
            int steps = draw(seed, how[ROWS], 1 + row, 0, 0), last = 0;
            u64 run = 1;
            for (unsigned at = 0; at < how[RUNS]; at++) {
                run = how[FIRST_RUN + at];
                last = draw(seed, 1, 1 + (how[SQUARE] ? row / run : row), col / run, run);
                steps += last;
            }
            if (how[SKEWED] && value < 0.0f) steps += draw(seed, 1, 1 + row, col / run, 1) - last;
            value = __fmul_rn(value, gain(powers, steps));
        }
        if (how[FACTORS]) value = __fmul_rn(value, factors[row]);
        const float mean = __fmul_rn(number(MEANS), __fsub_rn((float)(unsigned)(row % 9), 4.0f));
        y[index] = narrow(__fadd_rn(value, mean));
    }
}
