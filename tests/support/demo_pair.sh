# demo_pair.sh - the beginning of a script that runs the program with the demo pair: it says SKIP
# without it, and gives what shell.sh does, and field, and start.
. tests/support/shell.sh
edge=weights/milli/edge-0.5.gguf
[ -e $edge ] || skip "no demo pair in weights/milli"
# field NAME: print this field of the last line of $dir/out.
field() {
    tail -n 1 "$dir/out" | sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"
}
# start ARGS: start mizzle serve.
start() {
    start_server serve "$@" || fail "it ended: $(cat "$dir/serve")"
}
# tokens: print the tokens of $dir/out with their sources. calls: and how many calls they took.
tokens() {
    [ "$(grep -c ',"edge_id"' "$dir/out")" -gt 5 ] || fail "too few tokens"
    sed -n 's/,"edge_id".*//p' "$dir/out"
}
calls() {
    tokens
    tail -n 1 "$dir/out" | grep -o '"calls":[0-9]*,"committed":[0-9]*,"failed":[0-9]*'
}
# alike KIND ARGS: run the program; the function KIND prints the same as the first time since anew.
anew() { rm -f "$dir/first"; }
alike() {
    kind=$1
    shift
    expect 0 "$@"
    $kind >"$dir/again"
    [ -e "$dir/first" ] || cp "$dir/again" "$dir/first"
    cmp -s "$dir/first" "$dir/again" || fail "not the same $kind: $*"
}
