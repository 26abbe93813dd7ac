#!/bin/sh
# mizzle cloud on the command line: the ready line, each server it imitates, the port in use,
# faults, keys, TLS, and how it stops.
MIZZLE=${MIZZLE:-build/mizzle}
dir=$(mktemp -d) || exit 1
. tests/support/server.sh
fail() {
    echo "t_cloud_cli: $*" >&2
    [ ! -s "$dir/cloud" ] || cat "$dir/cloud" >&2
    exit 1
}

start() {
    start_server cloud "$@"
}

# one_line STATUS COMMAND...: it must fail with this status and one line on stderr alone.
one_line() {
    want=$1
    shift
    "$@" >"$dir/out1" 2>"$dir/err1"
    status=$?
    [ $status -eq "$want" ] || fail "$*: status $status, not $want: $(cat "$dir/err1")"
    [ ! -s "$dir/out1" ] || fail "$*: wrote to stdout"
    [ "$(wc -l <"$dir/err1")" -eq 1 ] || fail "$*: not one line: $(cat "$dir/err1")"
}

"$MIZZLE" cloud --help >"$dir/help" || fail "--help"
grep -q -e --latency "$dir/help" || fail "--help does not name --latency"
# The options of a client are listed as such, and the server refuses them.
if grep -q '^ *--cloud-url' "$dir/help"; then fail "--help has a client's --cloud-url"; fi
sed -n '/^Cloud (only with --check):$/,/^$/p' "$dir/help" | grep -q -e --cloud-key-file ||
    fail "--help does not say that --cloud-key-file goes with --check"
one_line 2 "$MIZZLE" cloud --cloud-url http://127.0.0.1:1
one_line 2 "$MIZZLE" cloud --port 0 --cloud-key-file "$dir/help"
grep -q -e "--cloud-key-file goes with --check" "$dir/err1" || fail "$(cat "$dir/err1")"
for bad in "--cloud-ca x" "--cloud-model x" "--cloud-api openai" "--cloud-timeout 5" \
    "--cloud-tokens 2" "--compress"; do
    # shellcheck disable=SC2086
    one_line 2 "$MIZZLE" cloud --port 0 $bad
done
one_line 2 "$MIZZLE" cloud --port 0 --host 0.0.0.0
grep -q -e "0.0.0.0.*--api-key-file" "$dir/err1" || fail "$(cat "$dir/err1")"
one_line 2 "$MIZZLE" cloud --port 65536
one_line 2 "$MIZZLE" cloud --jitter 600001
one_line 2 "$MIZZLE" cloud extra
for bad in "--fault nope" "--fault 500:2" "--loss 1" "--loss -1" "--bandwidth x" "--bandwidth 1," \
    "--bandwidth 1,2,3" "--api vllm" "--tls-cert $dir/none" "--api-key sesame"; do
    # shellcheck disable=SC2086
    one_line 2 "$MIZZLE" cloud --port 0 $bad
done
"$MIZZLE" cloud --fault help >"$dir/faults" || fail "--fault help"
[ "$(wc -l <"$dir/faults")" -ge 60 ] || fail "--fault help lists $(wc -l <"$dir/faults")"
one_line 3 "$MIZZLE" cloud --port 0 -m "$dir/none.gguf"
one_line 4 "$MIZZLE" cloud --check http://127.0.0.1:1
one_line 2 "$MIZZLE" cloud --check ftp://127.0.0.1

if ! start; then
    echo "SKIP: no demo pair to serve: $(head -n 1 "$dir/cloud")"
    exit 77
fi
[ "$(wc -l <"$dir/cloud")" -eq 1 ] || fail "more than the ready line on stderr"
one_line 1 "$MIZZLE" cloud --port "${url##*:}"
for api in auto openai llamacpp; do
    "$MIZZLE" cloud --check "$url" --cloud-api $api >"$dir/check" || fail "--check $api"
    grep -q "dialect .*, model .*, round trip" "$dir/check" || fail "--check says $(cat "$dir/check")"
done
stop_server TERM 0
[ ! -s "$dir/served" ] || fail "the server wrote to stdout"

for api in openai sglang llamacpp; do
    start --api $api --bandwidth 1000000,2000000 --loss 0.001 || fail "no start as $api"
    "$MIZZLE" cloud --check "$url" >"$dir/check" || fail "--check of $api"
    grep -q "dialect $api" "$dir/check" || fail "--api $api is taken for $(cat "$dir/check")"
    stop_server TERM 0
done

# The name of a model, which the server chooses, is shown without control characters.
start || fail "no start for a name"
"$MIZZLE" cloud --check "$url" --cloud-model "$(printf 'red\033[31m')" >"$dir/check" ||
    fail "--check of a name of control characters"
grep -q "model red \[31m," "$dir/check" || fail "--check shows the name as $(cat -v "$dir/check")"
stop_server TERM 0

# A request in progress does not delay the end.
start --latency 60000 || fail "no start with a latency"
"$MIZZLE" cloud --check "$url" --cloud-timeout 50000 >"$dir/check" 2>&1 &
asker=$!
sleep 1
begin=$(date +%s)
stop_server TERM 0
[ $(($(date +%s) - begin)) -le 3 ] || fail "SIGTERM took $(($(date +%s) - begin)) s"
wait $asker || true

start --fault 403 || fail "no start with a fault"
one_line 4 "$MIZZLE" cloud --check "$url"
grep -q 403 "$dir/err1" || fail "--fault 403: $(cat "$dir/err1")"
stop_server TERM 0

MIZZLE_SERVER_KEY=sesame-5678
export MIZZLE_SERVER_KEY
start || fail "no start with a key of the environment"
MIZZLE_SERVER_KEY="sesame 5678"
one_line 2 "$MIZZLE" cloud --port 0
grep -q 'MIZZLE_SERVER_KEY: the API key must be one word' "$dir/err1" || fail "$(cat "$dir/err1")"
unset MIZZLE_SERVER_KEY
one_line 4 "$MIZZLE" cloud --check "$url"
grep -q "401.*no API key was sent.*--cloud-key-file" "$dir/err1" || fail "$(cat "$dir/err1")"
echo "sesame-5678" >"$dir/key"
"$MIZZLE" cloud --check "$url" --cloud-key-file "$dir/key" >"$dir/check" || fail "--check with key"
stop_server TERM 0

if openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
    -subj /CN=mizzle-test -addext subjectAltName=IP:127.0.0.1 -keyout "$dir/tls.key" \
    -out "$dir/tls.crt" >/dev/null 2>&1; then
    one_line 3 "$MIZZLE" cloud --port 0 --tls-cert "$dir/tls.crt" --tls-key "$dir/tls.crt"
    start --tls-cert "$dir/tls.crt" --tls-key "$dir/tls.key" || fail "no start with TLS"
    case $url in https://*) ;; *) fail "not https: $url" ;; esac
    one_line 4 "$MIZZLE" cloud --check "$url"
    echo nothing >"$dir/empty.crt"
    status=0
    "$MIZZLE" cloud --check "$url" --cloud-ca "$dir/empty.crt" >"$dir/check" 2>&1 || status=$?
    [ "$status" -eq 2 ] || fail "--cloud-ca without a certificate: status $status"
    "$MIZZLE" cloud --check "$url" --cloud-ca "$dir/tls.crt" >"$dir/check" || fail "--check of https"
    stop_server TERM 0
fi

echo "sesame-1234" >"$dir/key"
start --api-key-file "$dir/key" --latency 20 --jitter 10 --seed 3 || fail "no start with a key"
one_line 4 "$MIZZLE" cloud --check "$url"
"$MIZZLE" cloud --check "$url" --cloud-key-file "$dir/key" >"$dir/check" || fail "--check with key"
if grep -q sesame "$dir/check" "$dir/cloud" "$dir/err1"; then fail "the key is shown"; fi
# A shell without job control starts background commands with SIGINT ignored. Check whether the
# server catches it; if not, only TERM can be tested.
kill -s INT "$server"
sleep 1
if kill -0 "$server" 2>/dev/null; then
    stop_server TERM 0
else
    wait "$server"
    status=$?
    servers=
    [ $status -eq 130 ] || fail "SIGINT: status $status, not 130"
fi
exit 0
