#!/usr/bin/env bash
# The tests of CUDA kernels under compute-sanitizer: memory, races and what was never written, a line for each tool and test.
#
#     cargo test -p calorimeter-kernels --features cuda --test cuda --no-run     # prints where the tests are
#     tools/sanitize.sh target/debug/deps/native-… [SECONDS] [FILTER…]
#
# CubeCL's products are in the recipes' tests: with --test arithmetic of -p calorimeter-recipes and the filter few_products.
#
# Eight run at a time, each for so many seconds (600). What measures, fills the memory or takes much of it is left out. On an H100
# initcheck named the kernels that read a product of cuBLASLt, whose numbers were right: it seems not to see what that writes. On an
# H200 it named burn's `copy_kernel`, and none of the recipes' kernels. racecheck ended with an error of its own in the tests of
# microscaling products, which memcheck finds nothing in, and in tests of dynamic recipes when it was told to look at some kernels
# alone. It names hazards inside cuBLASLt's `nvjet` kernels: a line counts those elsewhere. For one test it took up to 89 GB of the
# host's memory, and then others are killed: give those a filter each. For turned_product the filter is a_few_products_of_codes.
set -euo pipefail
tests=$(realpath "$1") seconds=${2:-600} logs=$(mktemp -d)
shift $(($# < 2 ? $# : 2))
export tests seconds logs CALORIMETER_TEST_DEVICE=cuda

one() {
    local tool=$1 test=$2 start=$SECONDS code=0
    local log="$logs/$tool-${test//::/-}.log"
    timeout "$seconds" compute-sanitizer --tool "$tool" --print-limit 100000 --error-exitcode 9 \
        "$tests" --exact "$test" >"$log" 2>&1 || code=$?
    local said
    said=$(grep -ho '\(ERROR\|RACECHECK\) SUMMARY: .*' "$log" | tail -1 || true)
    [ "$tool" != racecheck ] ||
        said+=", hazards outside nvjet: $(grep 'Race reported between' "$log" | grep -vc nvjet || true)"
    ! grep -q "process didn't terminate successfully" "$log" || said+=", the test was killed or failed"
    case $code in
        0) said="ok, $said" ;;
        124) said="no end in $seconds s$said" ;;
        *) said="exit $code, $said" ;;
    esac
    echo "$tool $test: $said, $((SECONDS - start)) s"
    [ "$code" -eq 0 ]
}
export -f one

"$tests" --list "$@" | sed -n 's/: test$//p' | grep -vE 'times_of|takes_longer|gigabyte|bandwidths|large|spin|out_of_memory' >"$logs/list"
for tool in memcheck racecheck initcheck; do sed "s/^/$tool /" "$logs/list"; done |
    xargs -P 8 -L 1 bash -c 'one "$@" || exit 1' _ || { echo "logs: $logs" >&2; exit 1; }
