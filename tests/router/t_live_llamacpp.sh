#!/bin/sh
# A real llama.cpp server ($LLAMA_SERVER, the binary) as the cloud: token for token the text of
# `mizzle cloud` with the same file, the demo's.
. tests/support/demo_pair.sh
[ -x "${LLAMA_SERVER:-}" ] || skip "LLAMA_SERVER names no llama-server"
# started NAME: waits for the line with the address; sets url.
started() {
    wait_for "url=\$(sed -n 's/.*listening on \\(http:[^ ]*\\).*/\\1/p' '$dir/$1.log') && [ \"\$url\" ]"
}
# compare ARGS: `mizzle run` with both; sums up in $tokens and $cloud.
compare() {
    for way in theirs ours; do
        eval "url=\$$way"
        "$MIZZLE" run "$@" --json --cloud required --cloud-url "$url" --cloud-api llamacpp \
            >"$dir/out" 2>"$dir/err" || fail "$way: $*"
        sed -n 's/,"edge_id":.*//; /"event":"token"/p' "$dir/out" >"$dir/$way"
    done
    cmp "$dir/theirs" "$dir/ours" >&2 || fail "other tokens: $*"
    tokens=$((tokens + $(wc -l <"$dir/ours")))
    cloud=$((cloud + $(grep -c '"source":"cloud"' "$dir/ours")))
}
port=$((20000 + $$ % 20000)) # llama-server takes no 0

tokens=0 cloud=0
large=weights/milli/cloud.gguf
"$LLAMA_SERVER" -m $large --host 127.0.0.1 --port $port -t 1 -np 4 -ctk f32 -ctv f32 >"$dir/theirs.log" 2>&1 &
servers=$!
"$MIZZLE" cloud --port 0 -m $large --kv f32 >"$dir/ours.log" 2>&1 &
servers="$servers $!"
started theirs
theirs=$url
started ours
ours=$url
"$MIZZLE" cloud --check "$theirs" -m $edge >"$dir/check" 2>"$dir/err" || fail "--check"
grep -q 'dialect llamacpp' "$dir/check" && grep -q 'the same as here' "$dir/check" ||
    fail "--check says $(cat "$dir/check")"
for question in 1 2 3 4 5 6; do
    compare --question $question --policy always
    compare --question $question --policy mlp
    for ahead in 0 1; do
        compare --question $question --policy random --threshold 0.3 --ahead $ahead
        compare --question $question --policy max-prob --threshold 0.6 --ahead $ahead --cloud-tokens 4
    done
done
[ $cloud -gt 0 ] || fail "no tokens of the cloud"
echo "$tokens tokens the same, $cloud of them from the cloud"
exit 0
