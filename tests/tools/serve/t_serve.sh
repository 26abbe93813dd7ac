#!/bin/sh
# mizzle serve on the command line: the ready line, options that are refused, keys, one Mizzle as
# the cloud of another, the curl lines of the README, and how it stops.
. tests/support/demo_pair.sh
command -v curl >/dev/null || skip "no curl"

expect 0 serve --help all
shows --cors-origin
refused 2 serve --port 65536
refuses 2 "0.0.0.0.*--api-key-file" serve --host 0.0.0.0 --port 0
each 'refused 2 serve --port 0' "--parallel 0" "--parallel 65" "--max-queue 1000000" extra "--api-key sesame" \
    "--host example.org" "--grace 100000" "-c 5000" "--threshold 2" "--kv f64"
for bad in null '*' friend.example http:// http://friend.example/page 'http://*.example' http://a@b http://a:80 https://a:443/; do
    refuses 2 "--cors-origin: expected a site without a path and its usual port" serve --port 0 --cors-origin "$bad"
done
refused 3 serve --port 0 -m "$dir/none.gguf"
refuses 3 none serve --port 0 --api-key-file "$dir/none"

# The demo pair, with what the README shows.
start
refused 1 serve --port "${url##*:}"
if [ -r "/proc/$server/status" ]; then
    grep -q '^NoNewPrivs:.*1' "/proc/$server/status" || fail "it can get more rights"
fi
sed -n 's/^    \(curl .*\)$/\1/p' tools/serve/README.md >"$dir/lines"
[ "$(wc -l <"$dir/lines")" -ge 4 ] || fail "no curl lines in the README"
while read -r line; do
    U=$url sh -c "$line" >"$dir/out" 2>"$dir/err" </dev/null || fail "$line"
    grep -q '"choices"\|"data"\|data: ' "$dir/out" || fail "$line"
    if grep -q '"error":' "$dir/out"; then fail "$line"; fi
done <"$dir/lines"
curl -s "$url/page.js" >"$dir/out"
cat tools/serve/page/*.js | cmp -s - "$dir/out" || fail "page.js is not the scripts in order"
curl -s "$url/" | cmp -s - tools/serve/page/page.html || fail "/ is not page.html"
curl -s "$url/page.css" | cmp -s - tools/serve/page/page.css || fail "page.css differs"
stop_server INT 130

start -m $edge --cloud off --threshold 0.9
# fingerprint: what the server says of itself.
fingerprint() {
    curl -s "$url/mizzle/info" -H 'Authorization: Bearer sesame' |
        sed -n 's/.*"fingerprint":"\([^"]*\)".*/\1/p'
}
strict=$(fingerprint)
stop_server TERM 0

# Texts in progress and in the queue have two seconds; then they get status 503, and a stream an
# error.
start_cloud --latency 1500
start --parallel 2 --cloud-url "$url"
clients=
for name in whole streamed queued; do
    stream=false count=queue\ 1
    [ $name = queued ] || count=slots_busy\ 1
    if [ $name = streamed ]; then stream=true count=slots_busy\ 2; fi
    curl -sN -D "$dir/head.$name" -o "$dir/reply.$name" "$url/v1/completions" --json \
        '{"prompt":"Once","max_tokens":200,"ignore_eos":true,"stream":'"$stream"',
        "mizzle":{"policy":"always"}}' &
    clients="$clients $!"
    wait_for 'curl -s "$url/metrics" | grep -q "^mizzle_$count"'
done
stop_server TERM 0
for client in $clients; do
    wait "$client" || fail "a client ends with status $? when the server stops"
done
for name in whole queued; do
    grep -q '^HTTP/1.1 503' "$dir/head.$name" || fail "$name: $(cat "$dir/head.$name")"
    grep -qi '^Retry-After: [1-9]' "$dir/head.$name" || fail "$name: $(cat "$dir/head.$name")"
    grep -q '"code":"stopping"' "$dir/reply.$name" || fail "$name: $(cat "$dir/reply.$name")"
done
grep -q '^HTTP/1.1 200' "$dir/head.streamed" || fail "$(cat "$dir/head.streamed")"
tail -n 2 "$dir/reply.streamed" | grep -q '^data: {"error":{.*"code":"stopping"' ||
    fail "a stream when it stops: $(cat "$dir/reply.streamed")"

# The unit lets the server do little more than it does. @system-service has not the calls of Landlock.
unit=tools/serve/mizzle.service
for call in create_ruleset add_rule restrict_self; do
    grep -q "^SystemCallFilter=@system-service .*landlock_$call" $unit || fail "the unit forbids landlock_$call"
done
if systemd-analyze security --offline=true $unit >"$dir/log" 2>&1; then
    systemd-analyze security --offline=true --threshold=20 $unit >"$dir/log" || fail "the unit allows too much"
fi

# With a longer grace, as in the unit of systemd, a text that takes longer is finished. A line of the
# log has no text. A long name of the cloud's model is cut.
unit=$(sed -n 's/^ExecStart=.* serve \(--log --grace [0-9]*\) $ARGS$/\1/p' $unit)
start_cloud --latency 700
e=$(printf '\303\251')
start ${unit:?} --cloud-url "$url" --cloud-model "$(printf "$e%.0s" $(seq 150))"
curl -s "$url/mizzle/info" | grep -q '"model":"[^"]*'"$e"'\.\.\.","state":"working"' || fail "a long name of the cloud's model"
curl -s "$url/v1/completions" --json '{"prompt":"Once","max_tokens":4,"ignore_eos":true,"mizzle":{"policy":"always"}}' >"$dir/reply" &
client=$!
wait_for 'curl -s "$url/metrics" | grep -q "^mizzle_slots_busy 1"'
stop_server TERM 0
wait "$client" && grep -q '"choices"' "$dir/reply" || fail "--grace: $(cat "$dir/reply")"
grep -qE '^method=POST status=200 ms=[0-9]+\.[0-9] tokens=4 cloud=4 client=127.0.0.1 path=/v1/completions$' "$dir/serve" ||
    fail "--log: $(cat "$dir/serve")"
if grep -q Once "$dir/serve"; then fail "--log has the prompt"; fi
stop_cloud

# A cloud that does not answer at the start is not called well; it is asked when it is wanted. The
# server says once that the cloud is lost, and once that it is back.
start_cloud
place=$url
stop_cloud
start --cloud-url "$place"
at=$url by=$server
ask() { # N: write N tokens of the cloud
    curl -s "$at/v1/completions" --json '{"prompt":"N '"$1"'","max_tokens":'"$1"',"ignore_eos":true,"mizzle":{"policy":"always"}}' >"$dir/out"
}
is() { # HEALTH STATE: what it says of the cloud
    curl -s "$at/mizzle/info" >"$dir/out"
    curl -s "$at/health" | grep -q "^{\"status\":\"$1\"}$" && shows '"state":"'"$2"'","why":'
}
back() { # N TOKENS: it is, for the Nth time
    start_cloud --port "${place##*:}"
    ask "$2"
    wait_for '[ "$(grep -c "^mizzle: the cloud is back$" "$dir/serve")" = '"$1 ]"
    is ok working
}
grep -q '^mizzle: no answer from the cloud yet: ' "$dir/serve" || fail "$(cat "$dir/serve")"
is degraded off
back 1 4
stop_cloud
ask 9
ask 8
wait_for 'grep -q "^mizzle: the cloud is lost: cloud $place" "$dir/serve"'
is degraded paused
curl -s "$at/metrics" | grep -q '^mizzle_cloud_lost 1$' || fail "metrics without a cloud"
back 2 100
[ "$(grep -c 'the cloud is' "$dir/serve")" = 3 ] || fail "$(cat "$dir/serve")"
stop_cloud
server=$by
stop_server TERM 0

# A threshold stands where there is a score.
ask() { # WISHES: ask with them in the object "mizzle"
    curl -s "$url/v1/completions" --json '{"prompt":"Once","max_tokens":4,"mizzle":{"trace":{},'"$1"'}}' \
        >"$dir/out"
}
start --cloud-tokens 4
curl -s "$url/mizzle/info" | grep -q '"threshold":0.5[0-9]*,"cloud_tokens":4,' || fail "info"
ask '"policy":"random","threshold":0.6'
shows '"score":[0-9.]*,"edge_id"'
shows '"policy":"random","threshold":0.6'
for policy in always never; do
    ask '"policy":"'$policy'"'
    [ "$(grep -o '"threshold":[^,}]*' "$dir/out")" = '"threshold":null' ] || fail "$policy: $(cat "$dir/out")"
done
stop_server TERM 0

# The page spends nothing of a limit on a text of its own. SIGHUP ends the server, unless it was
# ignored at the start.
hup=HUP
[ -z "$(sh -c 'kill -HUP $$; echo ignored' 2>/dev/null)" ] || hup=TERM
start --max-cloud-tokens 9
curl -s "$url/mizzle/info" | grep -q '"local":true,"limited":true' || fail "a limit is not told"
stop_server $hup 0
trap '' HUP
start --cors-origin http://Localhost:3000/
[ $hup = TERM ] || trap - HUP
kill -HUP "$server"
curl -s -D "$dir/out" -o /dev/null "$url/health" -H 'Origin: http://localhost:3000'
shows 'Access-Control-Allow-Origin: http://localhost:3000'
stop_server TERM 0

# A cap of the router goes with its own threshold; one that was named holds every request.
expect 0 router calibrate -q --router weights/milli/edge-0.5.router.safetensors --questions 40 --target-routed 0.02 -o "$dir/r.safetensors"
for named in '' '--max-routed 0.05'; do
    start --router "$dir/r.safetensors" $named
    curl -s "$url/mizzle/info" | grep -qE "\"max_routed\":0.0${named:+5}[0-9]*" || fail "info $named"
    curl -s "$url/v1/completions" --json \
        '{"prompt":"Question: Where is the bell?\nAnswer:","max_tokens":16,"mizzle":{"trace":{},"threshold":1}}' \
        >"$dir/out"
    grep -q '"source":"fallback"' "$dir/out" && held=held || held=
    [ "$held" = "${named:+held}" ] || fail "$named: $(cat "$dir/out")"
    stop_server TERM 0
done

# TLS, from a certificate and its key.
refused 3 serve --port 0 --tls-cert "$dir/none"
if certificate; then
    start -m $edge --cloud off --tls-cert "$dir/tls.pem"
    case $url in https://*) ;; *) fail "not https: $url" ;; esac
    curl -s --cacert "$dir/tls.crt" "$url/v1/completions" --json '{"prompt":"Once","max_tokens":1}' |
        grep -q '"text_completion"' || fail "no answer with TLS"
    stop_server TERM 0
else
    echo "SKIP: no openssl, TLS was not tested"
fi

# One Mizzle is the cloud of another: the text is the one of the model alone.
start -m $edge --cloud off
[ -n "$strict" ] && [ "$strict" != "$(fingerprint)" ] || fail "the threshold is not in $strict"
for way in "--cloud-tokens 1" "--cloud-tokens 8" "--ahead 1 --cloud-api openai"; do
    for prompt in "Once upon" "Question: Which of these should be a train?"; do
        expect 0 run -m $edge --policy never -p "$prompt" -n 40 --plain -q
        cp "$dir/out" "$dir/alone"
        expect 0 run -m $edge --policy always --cloud-url "$url" -p "$prompt" -n 40 --plain -q $way
        cmp -s "$dir/out" "$dir/alone" || fail "$way: $prompt: $(cat "$dir/out")"
        expect 0 run -m $edge --policy always --cloud-url "$url" -p "$prompt" -n 40 --json $way
        [ "$(field cloud)" -gt 3 ] || fail "$way: the cloud wrote $(field cloud) tokens"
    done
done
stop_server TERM 0

# A key, from a file or from the environment.
echo sesame >"$dir/key"
for from in file environment; do
    if [ $from = file ]; then
        start -m $edge --cloud off --host 127.0.0.1 --api-key-file "$dir/key"
    else
        export MIZZLE_SERVE_KEY=sesame
        entry=$(sed -n 's/^ENTRYPOINT .*"serve", \(.*\)\]$/\1/p' tools/serve/Dockerfile | tr -d '",')
        start ${entry:?} -m $edge --cloud off
        unset MIZZLE_SERVE_KEY
    fi
    for row in "401 sesam" "200 sesame"; do # t_serve_refusals.c knows what needs the key
        got=$(curl -s -o "$dir/out" -w '%{http_code}' -H "Authorization: Bearer ${row#* }" "$url/v1/models")
        [ "$got" = "${row% *}" ] || fail "$from: status $got, not $row"
    done
    if grep -q sesame "$dir/serve"; then fail "it prints the key"; fi
    # A cloud that refuses from the beginning is one that may be asked again, not none.
    MIZZLE_API_KEY=wrong expect 0 run -m $edge --cloud-url "$url" --threshold 1 -p Once -n 2 --json
    shows '"held":{"refused":2}'
    stop_server TERM 0
done
exit 0
