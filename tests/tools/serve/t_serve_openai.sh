#!/bin/sh
# OpenAI's own npm client, pinned, against mizzle serve.
. tests/support/demo_pair.sh
command -v node >/dev/null || { echo "SKIP: no node" && exit 77; }
modules=build/npm-openai/node_modules
sh tests/npm.sh npm-openai openai@7.57.0 ||
    { echo "SKIP: npm cannot install openai" && exit 77; }
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
start
first=$url
start -m $edge --cloud off --strict-model --api-key-file "$dir/key"
second=$url
start_cloud --latency 300
start --parallel 1 --max-queue 0 --cloud-url "$url"
NODE_PATH=$modules node tests/tools/serve/openai_check.js "$first" "$second" "$url"
