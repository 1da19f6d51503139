/* y = a + b, as a library for `calorimeter time`:
 *
 *   cc -O3 -shared -fPIC -o add.so add.c
 *   calorimeter time add.so --axis n=1048576 --arg f32:n:in --arg f32:n:in --arg f32:n:out --flops n --bytes '12*n'
 */

#include "calorimeter.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const float *a, *b;
    float *y;
    uint64_t n;
} add_state;

static const char *message;

uint32_t calorimeter_version(void) { return CALORIMETER_VERSION; }

const char *calorimeter_message(void) { return message; }

int calorimeter_prepare(const calorimeter_problem *problem, void **state) {
    static const uint32_t roles[] = {CALORIMETER_IN, CALORIMETER_IN, CALORIMETER_OUT};
    const calorimeter_argument *arguments = problem->arguments;
    if (problem->argument_count != 3) {
        message = "expected three arguments: two inputs and an output";
        return 1;
    }
    for (int i = 0; i < 3; i++) {
        if (strcmp(arguments[i].type, "f32") != 0 || arguments[i].role != roles[i] ||
            arguments[i].length != arguments[0].length) {
            message = "expected arguments f32:n:in, f32:n:in and f32:n:out";
            return 1;
        }
    }
    add_state *created = malloc(sizeof *created);
    if (created == NULL) {
        message = "out of memory";
        return 1;
    }
    *created = (add_state){arguments[0].data, arguments[1].data, arguments[2].data, arguments[0].length};
    *state = created;
    return 0;
}

int calorimeter_run(void *state) {
    const add_state *it = state;
    for (uint64_t i = 0; i < it->n; i++) {
        it->y[i] = it->a[i] + it->b[i];
    }
    return 0;
}

void calorimeter_finish(void *state) { free(state); }
