#!/bin/sh
# Measure a machine that nobody of us has, such as an Apple M1 or a Raspberry Pi, for its row in
# kernels/SPEED.md. In a clone, on a machine that does nothing else, for five minutes or so:
#
#   sh tools/setup.sh && sh tools/m1.sh [FILE]
#
# All that is measured goes into one text file (default: build/m1.txt). Read it, and send it in. It
# names the processor, the system and the compiler, and nobody. $MIZZLE: measure this program, and
# build nothing. $QUICK=1: tiny sizes, to try the script; the figures are worth nothing.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/m1.txt}
sizes='-p 512 -n 64'
[ -z "${QUICK:-}" ] || sizes='-p 8 -n 2 -r 1'
if [ -z "${MIZZLE:-}" ]; then
    make -s
    MIZZLE=build/mizzle
    tests=build/$(dirname "$(readlink build/mizzle)")/tests/kernels/alone/t_kernels
    make -s "$tests" || true # their part says so
fi

part() { # TITLE COMMAND...: the command's output below the title; its failure is noted, and no end
    title=$1
    shift
    echo "m1.sh: $title" >&2
    printf '\n== %s\n' "$title"
    "$@" 2>&1 || echo "failed with status $?"
}

{
    echo "version    $("$MIZZLE" --version) $(git rev-parse --short HEAD 2>/dev/null || true)"
    echo "date       $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    echo "system     $(uname -srm)"
    echo "compiler   $(cc --version 2>/dev/null | head -n 1)"
    echo "busy       $(uptime | sed 's/.*load/load/')"
    "$MIZZLE" info | sed -n '1,/^tune/p'
    # shellcheck disable=SC2086
    {
        part "limits" "$MIZZLE" bench limits -o csv
        # Prefetching by the program won on Intel and lost on AMD (kernels/SPEED.md).
        for type in q8_0 q4_0; do
            for ahead in 0 4096; do
                part "$type, prefetch $ahead bytes ahead" "$MIZZLE" bench model --isa ,ahead=$ahead \
                    --shape qwen2.5-0.5b --type $type $sizes -o csv
            done
        done
        part "products of each set" "$MIZZLE" bench kernels matmul_q8 ${QUICK:+-r 1} -o csv
        [ -z "${tests:-}" ] || part "tests of each set" env ${QUICK:+KERNELS_ROUNDS=1} "$tests"
    }
} >"$out"
echo "measured: $out" >&2
