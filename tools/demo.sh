#!/bin/sh
# Show the whole system with the demo pair, on this machine: a small model that answers alone, the
# same model with a router that asks a large one over HTTP for a few tokens, and a table of the
# results.
#
# Usage: sh tools/demo.sh [path of mizzle]
#
# $QUESTIONS: number of questions for the table (default: 200).
set -eu
mizzle=${1:-build/mizzle}
questions=${QUESTIONS:-200}
dir=$(mktemp -d)
pid=
stop() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
    [ -z "$pid" ] || wait "$pid" 2>/dev/null || true
    rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

: >"$dir/cloud"
"$mizzle" cloud --port 0 2>"$dir/cloud" &
pid=$!
tries=0
url=
while [ -z "$url" ]; do
    url=$(sed -n 's/^listening on \(http:.*\)$/\1/p' "$dir/cloud")
    tries=$((tries + 1))
    if ! kill -0 "$pid" 2>/dev/null || [ "$tries" -gt 300 ]; then
        cat "$dir/cloud" >&2
        echo "demo: the stand-in cloud did not start" >&2
        exit 1
    fi
    [ -n "$url" ] || sleep 0.1
done
MIZZLE_CLOUD_URL=$url
export MIZZLE_CLOUD_URL
echo "The stand-in cloud serves the large model at $url."
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    echo "Tokens that it wrote are underlined and coloured."
else
    echo "Tokens that it wrote are shown as [cloud:...]."
fi

for n in ${DEMO:-1 2 3}; do
    echo
    "$mizzle" run --question "$n" -n 0 --policy never 2>&1
    printf 'small model alone:'
    "$mizzle" run --question "$n" --policy never --quiet
    printf 'with the router:  '
    "$mizzle" run --question "$n" --quiet
done

echo
echo "$questions other questions: never is the small model alone, always is the cloud alone,"
echo "and mlp asks the cloud when the router expects an error."
"$mizzle" eval --questions "$questions" --seed 2 --policy never,mlp,always
