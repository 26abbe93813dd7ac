#!/bin/sh
# Run tests: the programs named as arguments (each $BUILD/tests/FOLDER/NAME) and every
# tests/*/t_*.sh. Print one line for each with its result and seconds, the output of those that
# fail, and the counts at the end. `make test` calls this in the root of the repository.
#
# $RUN goes in front of each program (QEMU). $ONLY selects tests; its words are folders
# (tests/router/), beginnings of paths, or patterns of names (t_de*).
set -u
BUILD=${BUILD:-build}
MIZZLE=${MIZZLE:-$BUILD/mizzle}
MIZZLE_TESTDATA=${MIZZLE_TESTDATA:-../shared/data}
export MIZZLE MIZZLE_TESTDATA RUN BUILD
passed=0 failed=0 skipped=0
log=$BUILD/tests/output
mkdir -p "$BUILD/tests"

wanted() ( # tests/FOLDER/NAME: true if $ONLY selects the test
    set -f
    for word in ${ONLY:-*}; do
        case $word in
        */*) case $1 in $word*) exit 0 ;; esac ;;
        *) case ${1##*/} in $word) exit 0 ;; esac ;;
        esac
    done
    exit 1
)

one() { # tests/FOLDER/NAME COMMAND...: run a test and report its result
    wanted "$1" || return
    name=${1#tests/}
    shift
    begin=$(date +%s)
    "$@" >"$log" 2>&1 </dev/null
    status=$?
    seconds=$(($(date +%s) - begin))
    case $status in
    0) passed=$((passed + 1)) word=ok ;;
    77) skipped=$((skipped + 1)) word=SKIP ;;
    *) failed=$((failed + 1)) word="FAILED (status $status)" ;;
    esac
    printf '%-28s %3d s  %s\n' "$name" "$seconds" "$word"
    case $status in
    0 | 77) grep '^SKIP' "$log" | sed 's/^/    /' ;;
    *) tail -n 60 "$log" | sed 's/^/    /' ;;
    esac
}

for name in "$@"; do
    one "$name" ${RUN:-} "$BUILD/$name"
done
for script in tests/t_*.sh tests/*/t_*.sh; do
    [ -e "$script" ] || continue
    if [ -n "${RUN:-}" ]; then # scripts start the program themselves, without $RUN
        continue
    fi
    one "${script%.sh}" sh "$script"
done
rm -f "$log"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
