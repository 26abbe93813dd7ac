#!/bin/sh
# Show where the time of a benchmark goes, by symbol, and with SYMBOL by instruction. Only the
# program's own time is recorded, not that of the system, which clears the pages that it hands out.
# The recording is kept in build/perf/data, for `perf report` and `perf annotate`.
#
# Usage: [BENCH="model --shape qwen2.5-0.5b"] [SYMBOL=matmul_q4_k] sh tools/perf.sh [path of mizzle]
#
# $BENCH: arguments of `mizzle bench`. $SYMBOL: part of a symbol's name; the hottest one is taken.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -eu
mizzle=${1:-build/mizzle}
bench=${BENCH:-model --shape qwen2.5-0.5b --type q8_0 -p 512 -n 64 -r 3}
symbol=${SYMBOL:-}
data=build/perf/data
fail() {
    echo "perf.sh: $*" >&2
    exit 1
}
[ -x "$mizzle" ] || fail "$mizzle: no such program; 'make' builds it"
command -v perf >/dev/null ||
    fail "perf is not installed; on Debian, 'sh tools/setup.sh dev' brings it"
mkdir -p build/perf
level=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null || echo unknown)
perf record -q -e cpu-clock:u -o build/perf/try true >/dev/null 2>&1 ||
    fail "this system does not let perf count (kernel.perf_event_paranoid is $level; 2 would do)"
rm -f build/perf/try
event=cpu-clock:u
! perf stat -x, -e cycles:u true 2>&1 | grep -Eq '^[0-9]+,,cycles' || event=cycles:u

echo "perf record -e $event: mizzle bench $bench"
# shellcheck disable=SC2086
perf record -q -e $event -F 997 -o $data "$mizzle" bench $bench || {
    status=$?
    [ $status -ne 255 ] || fail "$mizzle cannot be started, or perf cannot record it"
    exit $status
}
report() { perf report -i $data --no-children --stdio "$@" 2>/dev/null | grep -Ev '^(#|$)'; }
if [ -z "$symbol" ]; then
    report -F overhead,sample,comm,sym | head -n 25
    echo "kept in $data: perf annotate -i $data SYMBOL"
    exit 0
fi
name=$(report -F overhead,sym | awk -v part="$symbol" '!found && index($3, part) { print $3; found = 1 }')
[ "$name" ] || fail "no symbol with '$symbol' in its name has samples; without SYMBOL they are listed"
text=build/perf/$name.txt
perf annotate -i $data --stdio -s "$name" >"$text" 2>/dev/null || fail "perf annotate fails for $name"
report -F overhead,sample,sym | grep -wF -- "$name" | head -n 1 |
    awk '{ print $1, "of the time,", $2, "samples:", $NF
           if ($2 < 100) print "the shares are rough with fewer than 100 samples; let a benchmark run longer" }'
# An instruction begins with its share and its address; the source that it belongs to stands above.
awk '
    /^ *[0-9]+\.[0-9]+ +: +[0-9a-f]+:/ {
        share = $1
        sub(/^ *[0-9.]+ +: +[0-9a-f]+: +/, "")
        if (share >= 0.5) printf "%6.2f %%  %-52s %s\n", share, substr($0, 1, 52), source
        next
    }
    / : +[0-9]+ / { source = $0; sub(/^[^:]*: +[0-9]+ +/, "", source) }' "$text"
echo "all of it is in $text"
