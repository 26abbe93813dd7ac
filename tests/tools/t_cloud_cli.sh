#!/bin/sh
# mizzle cloud on the command line: the ready line, each server it imitates, the port in use,
# faults, keys, TLS, and how it stops.
. tests/support/shell.sh

expect 0 cloud --help
cp "$dir/out" "$dir/help"
grep -q -e --latency "$dir/help" || fail "--help does not name --latency"
# The options of a client are listed as such, and the server refuses them.
if grep -q '^ *--cloud-url' "$dir/help"; then fail "--help has a client's --cloud-url"; fi
sed -n '/^Calls of the cloud:$/,/^$/p' "$dir/help" | grep -q -e --cloud-key-file &&
    grep -q 'options of calls below go' "$dir/help" ||
    fail "--help does not say that --cloud-key-file goes with --check"
refused 2 cloud --cloud-url http://127.0.0.1:1
refuses 2 "--cloud-key-file goes with --check" cloud --port 0 --cloud-key-file "$dir/help"
refuses 2 "0.0.0.0.*--api-key-file" cloud --port 0 --host 0.0.0.0
refused 2 cloud --port 65536
each 'refused 2 cloud --port 0' "--cloud-proxy x" "--cloud-model x" "--cloud-timeout 5" "--cloud-tokens 2" \
    "--latency 600001" extra "--fault nope" "--fault 500:2" "--cloud-api vllm" \
    "--api-key sesame"
"$MIZZLE" cloud --fault help >"$dir/faults" || fail "--fault help"
[ "$(wc -l <"$dir/faults")" -ge 60 ] || fail "--fault help lists $(wc -l <"$dir/faults")"
refused 3 cloud --port 0 -m "$dir/none.gguf"
refused 4 cloud --check http://127.0.0.1:1
refused 2 cloud --check ftp://127.0.0.1

if ! start_server cloud; then
    echo "SKIP: no demo pair to serve: $(head -n 1 "$dir/cloud")"
    exit 77
fi
[ "$(wc -l <"$dir/cloud")" -eq 1 ] || fail "more than the ready line on stderr"
refuses 1 "Address already in use; try --port$" cloud --port "${url##*:}"
for api in auto openai llamacpp; do
    prints "dialect .*, model .*, round trip" cloud --check "$url" --cloud-api $api
    [ $api != auto ] || shows '^  weights    {"fingerprint":"[0-9a-f]*"'
done
refused 4 cloud --check "$url" --cloud-proxy http://127.0.0.1:1
export http_proxy=http://127.0.0.1:1
refused 4 cloud --check "$url"
expect 0 cloud --check "$url" --cloud-proxy ''
unset http_proxy
stop_server TERM 0
[ ! -s "$dir/served" ] || fail "the server wrote to stdout"

for api in openai sglang llamacpp; do
    start_cloud --cloud-api $api --latency 1
    prints "dialect $api" cloud --check "$url"
    if [ $api = sglang ]; then # whose other path gives text alone
        prints "dialect openai, .*, token ids no (text" cloud --check "$url" --cloud-api openai
    fi
    stop_server TERM 0
done

# The name of a model, which the server chooses, is shown without control characters.
start_cloud
prints "model red \[31m," cloud --check "$url" --cloud-model "$(printf 'red\033[31m')"
stop_server TERM 0

# A request in progress does not delay the end.
start_cloud --latency 60000
"$MIZZLE" cloud --check "$url" --cloud-timeout 50000 >"$dir/check" 2>&1 &
asker=$!
sleep 1
begin=$(date +%s)
stop_server TERM 0
[ $(($(date +%s) - begin)) -le 3 ] || fail "SIGTERM took $(($(date +%s) - begin)) s"
wait $asker || true

# SIGHUP ends it as SIGTERM does, unless it was ignored, as here under nohup.
hup=HUP
[ -z "$(sh -c 'kill -HUP $$; echo ignored' 2>/dev/null)" ] || hup=TERM
start_cloud --fault 403
refuses 4 403 cloud --check "$url"
stop_server $hup 0

MIZZLE_SERVE_KEY=sesame-5678
export MIZZLE_SERVE_KEY
start_cloud
MIZZLE_SERVE_KEY="sesame 5678"
refuses 2 'MIZZLE_SERVE_KEY: the API key must be one word' cloud --port 0
unset MIZZLE_SERVE_KEY
refuses 4 "401.*no API key was sent.*--cloud-key-file" cloud --check "$url"
echo "sesame-5678" >"$dir/key"
expect 0 cloud --check "$url" --cloud-key-file "$dir/key"
stop_server TERM 0

if certificate; then
    refused 3 cloud --port 0 --tls-cert "$dir/tls.crt"
    start_cloud --tls-cert "$dir/tls.pem"
    case $url in https://*) ;; *) fail "not https: $url" ;; esac
    refused 4 cloud --check "$url"
    echo nothing >"$dir/empty.crt"
    export SSL_CERT_FILE="$dir/empty.crt"
    fails 2 ": SSL_CERT_FILE: $dir/empty.crt: expected certificates" cloud --check "$url"
    expect 4 cloud --check "http${url#https}" # which needs none
    export SSL_CERT_FILE="$dir/tls.crt"
    expect 0 cloud --check "$url"
    unset SSL_CERT_FILE
    stop_server TERM 0
fi

echo "sesame-1234" >"$dir/key"
start_cloud --api-key-file "$dir/key" --latency 20 --seed 3
refused 4 cloud --check "$url"
expect 0 cloud --check "$url" --cloud-key-file "$dir/key"
if grep -q sesame "$dir/out" "$dir/cloud" "$dir/err"; then fail "the key is shown"; fi
stop_server INT 130
exit 0
