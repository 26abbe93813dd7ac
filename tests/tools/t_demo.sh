#!/bin/sh
# make demo: shows answers with the source of each token and the table, and leaves nothing running.
. tests/support/demo_pair.sh
QUESTIONS=20 sh tools/demo.sh "$MIZZLE" >"$dir/out" 2>&1 </dev/null || fail "status $?"
for word in '^small model alone: ' '^with the router: ' '^reference: ' '\[cloud:' '^never ' '^mlp ' \
    '^always '; do
    shows "$word"
done
url=$(sed -n 's/.*\(http:[^ ]*[0-9]\)\.$/\1/p' "$dir/out")
[ -n "$url" ] || fail "the cloud's address is not named"
"$MIZZLE" cloud --check "$url" >"$dir/check" 2>&1 && fail "the cloud at $url still runs"
exit 0
