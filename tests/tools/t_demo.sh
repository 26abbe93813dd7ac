#!/bin/sh
# make demo: shows answers with the source of each token and the table, and leaves nothing running.
MIZZLE=${MIZZLE:-build/mizzle}
if [ ! -e weights/milli/edge-0.5.gguf ]; then
    echo "SKIP: no demo pair in weights/milli"
    exit 77
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "t_demo: $*" >&2
    cat "$dir/out" >&2
    exit 1
}
unset MIZZLE_CLOUD_URL
QUESTIONS=20 sh tools/demo.sh "$MIZZLE" >"$dir/out" 2>&1 </dev/null || fail "status $?"
for word in '^small model alone: ' '^with the router: ' '^reference: ' '\[cloud:' '^never ' '^mlp ' \
    '^always '; do
    grep -q "$word" "$dir/out" || fail "no line with $word"
done
url=$(sed -n 's/.*\(http:[^ ]*[0-9]\)\.$/\1/p' "$dir/out")
[ -n "$url" ] || fail "the cloud's address is not named"
"$MIZZLE" cloud --check "$url" >"$dir/check" 2>&1 && fail "the cloud at $url still runs"
exit 0
