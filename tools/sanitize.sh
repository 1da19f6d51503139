#!/usr/bin/env bash
# Runs CUDA tests under compute-sanitizer: memcheck, racecheck and initcheck. Prints one line per tool and test.
#
#     cargo test -p calorimeter-kernels --features cuda --test cuda --no-run     # prints the path of the test binary
#     tools/sanitize.sh target/debug/deps/cuda-… [SECONDS] [FILTER…]
#
# Eight tests run concurrently, with a time limit of SECONDS each (default 600). Benchmarks and tests that allocate much
# memory are excluded.
#
# GEMMs of CubeCL are tested in calorimeter-recipes: use the binary of `--test arithmetic` with the filter
# cuda_gemm_subset_for_sanitizers. For transposed_b_gemm, use the filter float8_gemm_matches_on_two_shapes.
#
# Known false positives and limits:
# - initcheck, H100: reports kernels that read the output of cuBLASLt, although the results are correct. It appears to
#   miss the writes of cuBLASLt.
# - initcheck, H200: reports `copy_kernel` of burn, but no kernel of the recipes.
# - racecheck reports hazards inside the `nvjet` kernels of cuBLASLt. The printed count excludes them.
# - racecheck fails with an internal error in tests of microscaling GEMMs, in which memcheck finds no error. It also
#   fails in tests of dynamic recipes if it is restricted to some kernels.
# - racecheck used up to 89 GB of host memory for one test. Other tests are then killed; run such tests one by one, with
#   a filter.
set -euo pipefail
tests=$(realpath "$1") seconds=${2:-600} logs=$(mktemp -d)
shift $(($# < 2 ? $# : 2))
export tests seconds logs

run_test() {
    local tool=$1 test=$2 start=$SECONDS code=0
    local log="$logs/$tool-${test//::/-}.log"
    timeout "$seconds" compute-sanitizer --tool "$tool" --print-limit 100000 --error-exitcode 9 \
        "$tests" --exact "$test" --ignored >"$log" 2>&1 || code=$?
    local result
    result=$(grep -ho '\(ERROR\|RACECHECK\) SUMMARY: .*' "$log" | tail -1 || true)
    [ "$tool" != racecheck ] ||
        result+=", hazards outside nvjet: $(grep 'Race reported between' "$log" | grep -vc nvjet || true)"
    ! grep -q "process didn't terminate successfully" "$log" || result+=", the test was killed or failed"
    case $code in
        0) result="ok, $result" ;;
        124) result="timed out after $seconds s$result" ;;
        *) result="exit code $code, $result" ;;
    esac
    echo "$tool $test: $result, $((SECONDS - start)) s"
    [ "$code" -eq 0 ]
}
export -f run_test

"$tests" --list --ignored "$@" | sed -n 's/: test$//p' |
    grep -vE 'times_of|takes_longer|gigabyte|bandwidths|large|spin|out_of_memory' >"$logs/list"
for tool in memcheck racecheck initcheck; do sed "s/^/$tool /" "$logs/list"; done |
    xargs -P 8 -L 1 bash -c 'run_test "$@" || exit 1' _ || { echo "logs: $logs" >&2; exit 1; }
