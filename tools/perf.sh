#!/bin/sh
# Show where the time of a benchmark goes, by symbol: with perf and the events that this machine
# has, or else with callgrind.
#
# Usage: sh tools/perf.sh [path of mizzle [arguments of mizzle]]
set -eu
mizzle=${1:-build/mizzle}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- bench model --shape qwen2.5-0.5b --type q8_0 -p 512 -n 64 -r 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if command -v perf >/dev/null && perf record -e cpu-clock -o "$dir/try" true >/dev/null 2>&1; then
    event=cpu-clock
    if perf stat -x, -e cycles true 2>&1 | grep -Eq '^[0-9]+,,cycles'; then
        event=cycles
    fi
    echo "perf record -e $event: mizzle $*"
    perf record -q -e $event -F 997 -o "$dir/data" "$mizzle" "$@"
    perf report -i "$dir/data" --no-children --stdio 2>/dev/null | grep -v '^#' | grep -v '^$' |
        head -n 25
elif command -v valgrind >/dev/null; then
    echo "perf is not available; callgrind counts the instructions of a small run:"
    valgrind --tool=callgrind --callgrind-out-file="$dir/out" "$mizzle" bench model -p 64 -n 8 -r 1
    callgrind_annotate "$dir/out" | head -n 40
else
    echo "perf.sh: neither perf nor valgrind is installed" >&2
    exit 1
fi
