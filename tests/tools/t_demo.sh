#!/bin/sh
# make demo: shows answers with the source of each token and the table.
. tests/support/demo_pair.sh
QUESTIONS=20 sh tools/demo.sh "$MIZZLE" >"$dir/out" 2>&1 </dev/null || fail "status $?"
for word in '^small model alone: ' '^with the router: ' '^reference: ' '\[cloud:' '^never ' '^mlp ' \
    '^always '; do
    shows "$word"
done
