/* y = a + b, as a library that calorimeter times:
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
} sum;

static const char *message;

uint32_t calorimeter_version(void) { return CALORIMETER_VERSION; }

const char *calorimeter_message(void) { return message; }

int calorimeter_prepare(const calorimeter_problem *problem, void **state) {
    static const uint32_t roles[] = {CALORIMETER_IN, CALORIMETER_IN, CALORIMETER_OUT};
    const calorimeter_argument *given = problem->arguments;
    if (problem->argument_count != 3) {
        message = "add takes three arguments: two inputs and an output";
        return 1;
    }
    for (int i = 0; i < 3; i++) {
        if (strcmp(given[i].type, "f32") != 0 || given[i].role != roles[i] || given[i].length != given[0].length) {
            message = "add takes f32:n:in, f32:n:in and f32:n:out";
            return 1;
        }
    }
    sum *made = malloc(sizeof *made);
    if (made == NULL) {
        message = "there is no memory left";
        return 1;
    }
    *made = (sum){given[0].data, given[1].data, given[2].data, given[0].length};
    *state = made;
    return 0;
}

int calorimeter_run(void *state) {
    const sum *it = state;
    for (uint64_t i = 0; i < it->n; i++) {
        it->y[i] = it->a[i] + it->b[i];
    }
    return 0;
}

void calorimeter_finish(void *state) { free(state); }
