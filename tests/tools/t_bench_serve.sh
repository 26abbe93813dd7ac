#!/bin/sh
# mizzle bench serve against mizzle serve: the columns of each format, what is counted, keys, and
# what is said when a server refuses, is full, or dies.
. tests/support/demo_pair.sh
. tests/support/interrupt.sh
unset MIZZLE_SERVE_KEY
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; cleanup' EXIT

# start ARGS: run the server in the background; set pid and url.
start() {
    [ -z "$pid" ] || kill -9 "$pid"
    : >"$dir/serve"
    "$MIZZLE" serve --port 0 -m $edge --cloud off "$@" 2>"$dir/serve" 3>&- &
    pid=$!
    url=
    tries=0
    while [ -z "$url" ]; do
        url=$(sed -n 's/^listening on \(http:.*\)$/\1/p' "$dir/serve")
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "not ready in time"
        sleep 0.1
    done
}

# refused STATUS WORDS ARGS: it must fail with this status and one line with these words.
refused() {
    status=$1 words=$2
    shift 2
    expect "$status" bench serve "$@"
    [ "$(wc -l <"$dir/err")" -eq 1 ] && [ ! -s "$dir/out" ] || fail "$*: not one line"
    grep -q -e "$words" "$dir/err" || fail "$*: no word of $words"
}

expect 0 bench serve --help
grep -q -e '--clients' "$dir/out" && grep -q 'x one' "$dir/out" || fail "--help"
refused 2 'bench serve: expected --url, such as' -n 8
refused 2 'bench serve: --url: expected http:// or https://, found example.org' --url example.org
refused 2 '--clients: .*found 0' --url http://127.0.0.1:1 --clients 0,1
refused 2 '--clients: .*found 257' --url http://127.0.0.1:1 --clients 257
refused 2 '-p: expected one number' --url http://127.0.0.1:1 -p 8,16
refused 2 '-n: 2 to 65536, found 1$' --url http://127.0.0.1:1 -n 1
refused 2 'unknown option -m' --url http://127.0.0.1:1 -m $edge
refused 3 none --url http://127.0.0.1:1 --key-file "$dir/none"
refused 4 '^mizzle bench serve: http://127.0.0.1:1: .*onnect' --url http://127.0.0.1:1

start
expect 0 bench serve --url "$url" --clients 1,3 -n 24 -p 8 -r 3 -o csv
head -n 1 "$dir/out" | grep -qx 'clients,prompt_tokens,tokens,tokens_per_s,times_one,text_tokens_per_s,ttft_ms,ttft_p95_ms,gap_ms,gap_p95_ms,gap_max_ms,errors,long_ms,long_gap_ms' || fail "titles of csv"
awk -F, 'NR > 1 && !($1 == 2 * NR - 3 && $2 > 7 && $3 == 24 && $4 > 0 && $5 > 0 && $7 > 0 &&
    $7 <= $8 && $9 <= $10 && $10 <= $11 && $12 == 0 && $13 == "" && $14 == "") { bad = 1 }
    END { exit bad || NR != 3 }' "$dir/out" || fail "rows of csv"
[ "$(sed -n 2p "$dir/out" | cut -d, -f5)" = 1.000 ] || fail "one client is not one client"
expect 0 bench serve --url "$url/v1" --clients 2 -n 300 -p 4 -r 2 --long 40
grep -q '^| clients | prompt | n | t/s | x one | each | .* | errors | long | pause |$' "$dir/out" &&
    grep -q '^| 2 | [0-9]* | 300 | [0-9.]* |  | .* | 0 | [0-9]* | [0-9.]* |$' "$dir/out" &&
    tail -n 1 "$dir/out" | grep -q "^edge-0.5 at $url/v1\." || fail "rows of md"
expect 0 bench serve --url "$url" --clients 1 -n 8 -r 2 -o jsonl --name anything
grep -q '"model": "anything", .*"tokens": 8, .*"long_ms": null, .*"samples_tokens_per_s": \[[0-9.]*, [0-9.]*\]}$' "$dir/out" ||
    fail "jsonl"
expect 0 bench serve --url "$url" --clients 1,1 -n 2 -r 1 -o json
[ "$(tr -d '\n' <"$dir/out" | sed 's/[^][{},]//g; s/\[,*\]//g; s/{,*}/x/g')" = '[x,x]' ] || fail "json"
refused 4 "^mizzle bench serve: $url/nothing: status 404" --url "$url/nothing"
refused 4 "status 400: " --url "$url" --clients 1 -p 60000

# It is killed at work.
"$MIZZLE" bench serve --url "$url" --clients 2 -r 1000 >"$dir/out" 2>"$dir/err" 3>&- &
client=$!
sleep 0.5
kill -9 "$pid"
wait "$pid" 2>/dev/null
pid=
wait $client
status=$?
[ $status -eq 4 ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && [ ! -s "$dir/out" ] &&
    grep -q "^mizzle bench serve: $url: " "$dir/err" || fail "killed: status $status"

# A full server: answers that it refuses are counted, and the others measured.
start --parallel 1 --max-queue 0
expect 0 bench serve --url "$url" --clients 4 -n 900 -r 1 -o csv
awk -F, 'NR == 2 && $4 > 0 && $12 >= 1 && $12 <= 3 { good = 1 } END { exit !good }' "$dir/out" ||
    fail "a full server"
"$MIZZLE" bench serve --url "$url" --clients 1 -r 1000 >"$dir/out" 2>"$dir/err" 3>&- &
client=$!
interrupt $client
wait $client
status=$?
[ $status -eq 130 ] && [ ! -s "$dir/out" ] && [ ! -s "$dir/err" ] || fail "SIGINT: status $status"

# Keys are never shown.
echo sesame >"$dir/key"
echo fig-leaf >"$dir/wrong"
start --api-key-file "$dir/key"
refused 4 "status 401.*no API key was sent: give one with --key-file" --url "$url"
refused 4 "status 401" --url "$url" --key-file "$dir/wrong"
if grep -q fig-leaf "$dir/err"; then fail "it shows the key"; fi
expect 0 bench serve --url "$url" --key-file "$dir/key" --clients 1 -n 4 -r 1
MIZZLE_API_KEY=sesame expect 0 bench serve --url "$url" --clients 1 -n 4 -r 1
exit 0
