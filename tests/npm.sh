#!/bin/sh
# npm.sh - sh tests/npm.sh FOLDER PACKAGE@VERSION...: install these packages into build/FOLDER
# unless they are there. Tests that run at the same time wait for each other. The status is not 0
# where npm is missing or cannot install them.
into=build/$1
shift
mkdir -p "$into" && exec 9>"$into/lock" && flock 9 || exit 1
for package; do
    grep -q "\"version\": \"${package##*@}\"" \
        "$into/node_modules/${package%@*}/package.json" 2>/dev/null || missing=1
done
[ -z "${missing:-}" ] ||
    npm install --silent --no-audit --no-fund --prefix "$into" "$@" >/dev/null 2>&1
