# demo_pair.sh - the beginning of a script that runs the program with the demo pair: it says SKIP
# without it, and gives $dir (server.sh), fail, expect and field.
MIZZLE=${MIZZLE:-build/mizzle}
edge=weights/milli/edge-0.5.gguf
if [ ! -e $edge ]; then
    echo "SKIP: no demo pair in weights/milli"
    exit 77
fi
dir=$(mktemp -d) || exit 1
. tests/support/server.sh
unset MIZZLE_CLOUD_URL MIZZLE_API_KEY OPENAI_API_KEY NO_COLOR
fail() {
    echo "$(basename "$0" .sh): $*" >&2
    tail -n 5 "$dir/out" "$dir/err" >&2
    exit 1
}
# expect STATUS ARGS: run mizzle, under $before if that is set, which must end with this status;
# keep its output in $dir.
before=
expect() {
    want=$1
    shift
    $before "$MIZZLE" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
    [ $status -eq "$want" ] || fail "$*: status $status, not $want"
}
# field NAME: print this field of the last line of $dir/out.
field() {
    tail -n 1 "$dir/out" | sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"
}
