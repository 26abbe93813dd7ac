#!/bin/sh
# The page of `mizzle serve` in a browser: Debian's chromium, driven by playwright-core, with
# axe-core for accessibility. The server has the demo pair; a second one requires a key. Hostile
# texts, faults and exact times come from mock.js. SHOTS=DIR keeps screenshots, PAGE_URL=URL tests a
# server of the demo pair that runs already, and PAGE_CHECKS='writing real' selects.
. tests/support/demo_pair.sh
case ${BUILD:-build/x-release} in
*-release) ;;
*) echo "SKIP: the page is the same in every build" && exit 77 ;;
esac
# The headless shell does without a browser's windows and needs a third of the processor time.
chromium=
for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    chromium=$(command -v $name) && break
done
[ -n "$chromium" ] || { echo "SKIP: no chromium (sh tools/setup.sh dev)" && exit 77; }
command -v node >/dev/null || { echo "SKIP: no node" && exit 77; }
playwright=1.65.1 axe=4.14.1
modules=build/npm-page/node_modules
has() { # PACKAGE VERSION: true if it is installed
    grep -q "\"version\": \"$2\"" "$modules/$1/package.json" 2>/dev/null
}
if ! has playwright-core $playwright || ! has axe-core $axe; then
    npm install --silent --no-audit --no-fund --prefix build/npm-page \
        playwright-core@$playwright axe-core@$axe >/dev/null 2>&1 ||
        { echo "SKIP: npm cannot install playwright-core and axe-core" && exit 77; }
fi
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
