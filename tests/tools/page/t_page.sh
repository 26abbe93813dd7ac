#!/bin/sh
# The page of `mizzle serve` in a browser. The server has the demo pair; a second one requires a key.
# Hostile texts, faults and exact times come from mock.js. SHOTS=DIR keeps screenshots, PAGE_URL=URL
# tests a server of the demo pair that runs already, and PAGE_CHECKS='writing real' selects.
. tests/support/demo_pair.sh
. tests/support/browser.sh
unset MIZZLE_SERVE_KEY
pids=
trap '[ -z "$pids" ] || kill -9 $pids 2>/dev/null; cleanup' EXIT

# start ARGS: run a server in the background; set url.
start() {
    : >"$dir/serve"
    "$MIZZLE" serve --port 0 "$@" 2>"$dir/serve" 3>&- &
    pids="$pids $!"
    url=
    tries=0
    while [ -z "$url" ]; do
        url=$(sed -n 's/^listening on \(http:.*\)$/\1/p' "$dir/serve")
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "not ready in time"
        sleep 0.1
    done
}

echo sesame >"$dir/key"
start -m $edge --cloud off --api-key-file "$dir/key"
locked=$url
[ -n "${PAGE_URL:-}" ] || start
# shellcheck disable=SC2086
PAGE_URL=${PAGE_URL:-$url} LOCKED_URL=$locked CHROMIUM=$chromium NODE_PATH=$modules \
    node tests/tools/page/page_check.js ${PAGE_CHECKS:-}
