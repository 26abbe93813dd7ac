# eval.sh - opens the scripts that source this file to try `mizzle eval` with the demo pair: $dir, a
# folder that is deleted at the end, a cloud (server.sh), and run.
set -u
MIZZLE=${MIZZLE:-build/mizzle}
dir=$(mktemp -d) || exit 1
. tests/support/server.sh
edge=weights/milli/edge-0.5.gguf
if [ ! -f $edge ]; then
    echo "SKIP: no demo pair in weights/milli"
    exit 77
fi
unset MIZZLE_CLOUD_URL

fail() {
    echo "$(basename "$0" .sh): $*" >&2
    exit 1
}

# run STATUS ARGS...: run eval, which must end with this status; set $last to its last line. $always
# are more arguments.
run() {
    want=$1
    shift
    # shellcheck disable=SC2086
    ${RUN:-} "$MIZZLE" eval ${always:-} "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    [ "$got" -eq "$want" ] || fail "eval $*: status $got, expected $want: $(cat "$dir/err")"
    last=$(tail -n 1 "$dir/out")
}
