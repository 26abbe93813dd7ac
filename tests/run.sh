#!/bin/sh
# Run the test programs named (each $BUILD/tests/NAME) and every tests/t_*.sh: one line each with
# result and seconds, the output of those that fail, and at the end the counts. Called by `make test`
# in the repository root. $RUN goes in front of each program (QEMU); $ONLY picks tests by a pattern.
set -u
BUILD=${BUILD:-build}
MIZZLE=${MIZZLE:-$BUILD/mizzle}
MIZZLE_TESTDATA=${MIZZLE_TESTDATA:-../shared/data}
export MIZZLE MIZZLE_TESTDATA RUN BUILD
passed=0 failed=0 skipped=0
log=$BUILD/tests/output
mkdir -p "$BUILD/tests"

one() { # NAME COMMAND...
    name=$1
    shift
    case $name in ${ONLY:-*}) ;; *) return ;; esac
    begin=$(date +%s)
    "$@" >"$log" 2>&1 </dev/null
    status=$?
    seconds=$(($(date +%s) - begin))
    case $status in
    0) passed=$((passed + 1)) word=ok ;;
    77) skipped=$((skipped + 1)) word=SKIP ;;
    *) failed=$((failed + 1)) word="FAILED (status $status)" ;;
    esac
    printf '%-20s %3d s  %s\n' "$name" "$seconds" "$word"
    case $status in
    0 | 77) grep '^SKIP' "$log" | sed 's/^/    /' ;;
    *) tail -n 60 "$log" | sed 's/^/    /' ;;
    esac
}

for name in "$@"; do
    one "$name" ${RUN:-} "$BUILD/tests/$name"
done
for script in tests/t_*.sh; do
    [ -e "$script" ] || continue
    if [ -n "${RUN:-}" ]; then # they start the program themselves
        continue
    fi
    one "$(basename "$script" .sh)" sh "$script"
done
rm -f "$log"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
