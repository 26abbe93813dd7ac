#!/bin/sh
# OpenAI's own npm client, pinned, against mizzle serve.
. tests/support/demo_pair.sh
command -v node >/dev/null || skip "no node"
modules=build/npm-openai/node_modules
sh tests/npm.sh npm-openai openai@7.57.0 || skip "npm cannot install openai"

echo sesame >"$dir/key"
start
first=$url
start -m $edge --cloud off --api-key-file "$dir/key"
second=$url
start_cloud --latency 300
start --parallel 1 --max-queue 0 --cloud-url "$url"
NODE_PATH=$modules node tests/tools/serve/openai_check.js "$first" "$second" "$url"
