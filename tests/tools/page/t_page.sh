#!/bin/sh
# The page of `mizzle serve` in a browser. The server has the demo pair; a second one requires a key.
# Hostile texts, faults and exact times come from mock.js. SHOTS=DIR keeps screenshots, PAGE_URL=URL
# tests a server of the demo pair that runs already, and PAGE_CHECKS='writing real' selects.
. tests/support/demo_pair.sh
. tests/support/browser.sh

echo sesame >"$dir/key"
start -m $edge --cloud off --api-key-file "$dir/key"
locked=$url
[ -n "${PAGE_URL:-}" ] || start
PAGE_URL=${PAGE_URL:-$url} LOCKED_URL=$locked DIR=$dir CHROMIUM=$chromium NODE_PATH=$modules \
    node tests/tools/page/page_check.js ${PAGE_CHECKS:-}
