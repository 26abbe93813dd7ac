#!/bin/sh
# A real llama.cpp server ($LLAMA_SERVER, the binary) as the cloud: token for token the text of
# `mizzle cloud` with the same file. Two pairs: stories260K in f32, with itself in q4_0 as the small
# model, and the demo pair.
. tests/support/shell.sh
[ -x "${LLAMA_SERVER:-}" ] || skip "LLAMA_SERVER names no llama-server"
# started NAME PATTERN: waits for the line with the address; sets url.
started() {
    wait_for "url=\$(sed -n 's/.*listening on \\(http:[^ ]*\\).*/\\1/p' '$dir/$1.log') && [ \"\$url\" ]"
}
# serve MODEL: both servers; sets theirs, ours.
serve() {
    : >"$dir/theirs.log" >"$dir/ours.log" # not the addresses of those before
    "$LLAMA_SERVER" -m "$1" --host 127.0.0.1 --port "$port" -t 1 -np 4 -ctk f32 -ctv f32 \
        >"$dir/theirs.log" 2>&1 &
    servers=$!
    "$MIZZLE" cloud --port 0 -m "$1" --kv f32 >"$dir/ours.log" 2>&1 &
    servers="$servers $!"
    started theirs
    theirs=$url
    started ours
    ours=$url
}
stop() {
    kill $servers
    wait $servers 2>/dev/null
    servers=
}
# compare NAME ARGS: `mizzle run` with both; sums up in $tokens and $cloud.
compare() {
    name=$1
    shift
    for way in theirs ours; do
        eval "url=\$$way"
        "$MIZZLE" run "$@" --json --cloud required --cloud-url "$url" --cloud-api llamacpp \
            >"$dir/out" 2>"$dir/err" || fail "$name, $way: $*"
        sed -n 's/,"edge_id":.*//; /"event":"token"/p' "$dir/out" >"$dir/$way"
    done
    cmp "$dir/theirs" "$dir/ours" >&2 || fail "$name: other tokens: $*"
    tokens=$((tokens + $(wc -l <"$dir/ours")))
    cloud=$((cloud + $(grep -c '"source":"cloud"' "$dir/ours")))
}
# told NAME
told() {
    [ $cloud -gt 0 ] || fail "$1: no tokens of the cloud"
    echo "$1: $tokens tokens the same, $cloud of them from the cloud"
}
port=$((20000 + $$ % 20000)) # llama-server takes no 0

tokens=0 cloud=0
if [ -e "$data/weights/stories260K/tok512.bin" ]; then
    mkdir "$dir/stories"
    cp "$data"/stories260K_qwen2/* "$dir/stories/"
    od -An -v -tu1 "$data/weights/stories260K/tok512.bin" |
        LC_ALL=C awk -v dir="$dir/stories" -f tests/support/stories_vocab.awk
    for type in f32 q4_0; do
        "$MIZZLE" convert "$dir/stories" "$dir/$type.gguf" --type $type >"$dir/err" 2>&1 ||
            fail "convert"
    done
    serve "$dir/f32.gguf"
    "$MIZZLE" cloud --check "$theirs" -m "$dir/q4_0.gguf" >"$dir/check" 2>"$dir/err" ||
        fail "--check"
    grep -q 'dialect llamacpp' "$dir/check" && grep -q 'the same as here' "$dir/check" ||
        fail "--check says $(cat "$dir/check")"
    for prompt in 'Once upon a time' 'Lily and Tom went to the' 'The dog was very'; do
        compare stories260K -m "$dir/q4_0.gguf" -p "$prompt" -n 200 --policy always
        for ahead in 0 1; do
            compare stories260K -m "$dir/q4_0.gguf" -p "$prompt" -n 200 --policy random \
                --threshold 0.3 --ahead $ahead
            compare stories260K -m "$dir/q4_0.gguf" -p "$prompt" -n 200 --policy max-prob \
                --threshold 0.6 --ahead $ahead --cloud-tokens 4
        done
    done
    stop
    told "stories260K"
    port=$((port + 1)) # the old one may still be in use
else
    echo "SKIP: no stories260K data"
fi

tokens=0 cloud=0
if [ -e weights/milli/cloud.gguf ]; then
    serve weights/milli/cloud.gguf
    for question in 1 2 3 4 5 6; do
        compare "demo pair" --question $question --policy always
        compare "demo pair" --question $question --policy mlp
        compare "demo pair" --question $question --policy random --threshold 0.3 --ahead 1
    done
    stop
    told "demo pair"
else
    echo "SKIP: no demo pair in weights/milli"
fi
exit 0
