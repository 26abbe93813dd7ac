#!/bin/sh
# make demo: shows answers with the source of each token, README.md's three lines, and the table.
. tests/support/demo_pair.sh
QUESTIONS=20 sh tools/demo.sh "$MIZZLE" >"$dir/out" 2>&1 </dev/null || fail "status $?"
for word in '^small model alone: ' '^with the router: ' '^reference: ' '\[cloud:' '^never ' '^mlp ' \
    '^always '; do
    shows "$word"
done
sed -n 's/^    \(small model alone:\|where least sure:\|with the router: \)/\1/p' README.md \
    >"$dir/lines"
[ "$(wc -l <"$dir/lines")" -eq 3 ] || fail "README.md: $(cat "$dir/lines")"
while IFS= read -r line; do
    sed 's/  *$//' "$dir/out" | grep -qxF -- "$line" || fail "README.md: $line"
done <"$dir/lines"
