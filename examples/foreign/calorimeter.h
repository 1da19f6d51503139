/* What a shared library offers so that calorimeter can time it: see docs/src/foreign.md. */

#ifndef CALORIMETER_H
#define CALORIMETER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What calorimeter_version must answer. */
#define CALORIMETER_VERSION 1u

/* What is done with an argument. */
enum {
    CALORIMETER_IN = 0,    /* a buffer that is read */
    CALORIMETER_OUT = 1,   /* a buffer that is written, all of it */
    CALORIMETER_INOUT = 2, /* a buffer that is read and written */
    CALORIMETER_VALUE = 3  /* a single number, not to be written */
};

/* An axis of the size: --axis n=1024 is { "n", 1024 }. */
typedef struct {
    const char *name;
    uint64_t value;
} calorimeter_axis;

/* An argument, in the order in which they were given: --arg f32:n:in is { "f32", CALORIMETER_IN, 1024, … }. */
typedef struct {
    const char *type; /* f32, f16, bf16, e4m3, e5m2, i8, u8, i32; of values f32, f64, i32, u32, i64, u64 */
    uint32_t role;
    uint64_t length; /* numbers in a buffer; 1 for a value */
    void *data;      /* aligned to 64 bytes */
} calorimeter_argument;

/* One problem. It and all that it points to belong to calorimeter, and stay where they are until calorimeter_finish. */
typedef struct {
    uint64_t axis_count;
    const calorimeter_axis *axes;
    uint64_t argument_count;
    const calorimeter_argument *arguments;
    uint64_t seed; /* for data of the library's own */
} calorimeter_problem;

/* CALORIMETER_VERSION, as the library was built with it. */
uint32_t calorimeter_version(void);

/* Makes everything ready; untimed. *state is the library's own, and comes back in the calls below. There may be many at a
   time, each with buffers of its own. Answers 0, or something else if it cannot be done: then it has no state, and
   calorimeter_finish is not called. */
int calorimeter_prepare(const calorimeter_problem *problem, void **state);

/* The work that is timed. It must have been done when it returns. Answers 0, or something else if it failed. */
int calorimeter_run(void *state);

/* Gives back what calorimeter_prepare took. */
void calorimeter_finish(void *state);

/* Not needed: why the last call did not answer 0, or NULL. The text stays the library's. */
const char *calorimeter_message(void);

#ifdef __cplusplus
}
#endif

#endif
