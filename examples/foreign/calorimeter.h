/* Interface of shared libraries that calorimeter times; see docs/src/foreign.md. */

#ifndef CALORIMETER_H
#define CALORIMETER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return value of calorimeter_version. */
#define CALORIMETER_VERSION 1u

/* Role of an argument. */
enum {
    CALORIMETER_IN = 0,    /* buffer that is read */
    CALORIMETER_OUT = 1,   /* buffer that is written completely */
    CALORIMETER_INOUT = 2, /* buffer that is read and written */
    CALORIMETER_VALUE = 3  /* scalar, read-only */
};

/* Axis of the problem size: --axis n=1024 is { "n", 1024 }. */
typedef struct {
    const char *name;
    uint64_t value;
} calorimeter_axis;

/* Argument, in command-line order: --arg f32:n:in is { "f32", CALORIMETER_IN, 1024, … }. */
typedef struct {
    const char *type; /* buffers: f32, f16, bf16, e4m3, e5m2, i8, u8, i16, i32, i64; scalars: f32, f64, i32, u32, i64, u64 */
    uint32_t role;
    uint64_t length; /* elements of a buffer; 1 for a scalar */
    void *data;      /* aligned to 64 bytes */
} calorimeter_argument;

/* Problem instance. Calorimeter owns it and all memory it points to; both stay valid until calorimeter_finish. */
typedef struct {
    uint64_t axis_count;
    const calorimeter_axis *axes;
    uint64_t argument_count;
    const calorimeter_argument *arguments;
    uint64_t seed; /* for data that the library generates */
} calorimeter_problem;

/* Returns the CALORIMETER_VERSION that the library was compiled with. */
uint32_t calorimeter_version(void);

/* Prepares the computation; untimed. Stores library-defined state in *state, which is passed to the functions below. Several
   states may exist concurrently, each with separate buffers. Returns 0 on success. After a failure there is no state, and
   calorimeter_finish is not called. */
int calorimeter_prepare(const calorimeter_problem *problem, void **state);

/* Timed computation, which must be complete on return. Returns 0 on success. */
int calorimeter_run(void *state);

/* Releases the resources of calorimeter_prepare. */
void calorimeter_finish(void *state);

/* Optional. Returns the reason of the last failure, or NULL. The library owns the text. */
const char *calorimeter_message(void);

#ifdef __cplusplus
}
#endif

#endif
