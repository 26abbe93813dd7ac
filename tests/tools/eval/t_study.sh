#!/bin/sh
# tools/lab/study/figures.py: its statistics, the figures of answers that eval has kept, and what it
# refuses.
. tests/tools/eval/eval.sh
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import numpy' 2>/dev/null || skip "no numpy for $python"
export OPENBLAS_NUM_THREADS=1

"$python" -B tests/tools/eval/figures_check.py >"$dir/out" 2>"$dir/err" || fail "$(cat "$dir/out" "$dir/err")"

# study STATUS ARGS...: run it, which must end with this status.
study() {
    want=$1 status=0
    shift
    "$python" -B tools/lab/study/figures.py "$@" >"$dir/out" 2>"$dir/err" || status=$?
    [ "$status" -eq "$want" ] || fail "figures.py $*: status $status, expected $want: $(cat "$dir/err")"
}
refuses() { # STATUS WORDS ARGS...
    refuses_words=$2
    study "$1" "$(shift 2 && echo)" 2>/dev/null || :
}
