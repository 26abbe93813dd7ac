# study.sh - the beginning of a script for a program of tools/lab/study, $script: what eval.sh gives, and
# functions that run it. It says SKIP without numpy.
. tests/tools/eval/eval.sh
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import numpy' 2>/dev/null || skip "no numpy for $python"
export OPENBLAS_NUM_THREADS=1

# study STATUS ARGS...: run it, which must end with this status. refused STATUS WORDS ARGS...: and
# say this in one line, and nothing else.
study() {
    want=$1 status=0
    shift
    "$python" -B "tools/lab/study/$script" "$@" >"$dir/out" 2>"$dir/err" || status=$?
    [ "$status" -eq "$want" ] || fail "$script $*: status $status, expected $want"
}
refused() {
    code=$1 words=$2
    shift 2
    study "$code" "$@"
    says "$words"
    one_line
    [ ! -s "$dir/out" ] || fail "$*: wrote to stdout"
}
