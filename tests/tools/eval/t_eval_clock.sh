#!/bin/sh
# mizzle eval --clock virtual: the same times again and again, what latency, bandwidth and losses add
# to them, deadlines, the same answers as with a real clock, and what is refused. The event model is
# tested in t_virtual_clock.c.
. tests/tools/eval/eval.sh
set -e
# What is measured depends on the options alone, but not on the date.
virtual() {
    "$MIZZLE" eval --questions 6 -q --json --policy mlp --clock virtual --edge-ms 10 "$@" >"$dir/rows" ||
        return
    sed 's/"date":"[^"]*",//' "$dir/rows"
}
# field NAME FILE: a number of the last object.
field() {
    tail -n 1 "$2" | grep -o "\"$1\":[^,}]*" | cut -d: -f2
}

virtual --latency 100 --bandwidth 9000 --loss 0.1 --ahead 1 >"$dir/a"
virtual --latency 100 --bandwidth 9000 --loss 0.1 --ahead 1 >"$dir/b"
cmp "$dir/a" "$dir/b" || fail "other times: $(cat "$dir/a" "$dir/b")"
grep -q '"clock":"virtual"' "$dir/a" || fail "$(cat "$dir/a")"

# Whatever was asked before, the same times: no memo is left, and losses are drawn anew.
virtual --latency 100 --loss 0.3 --ahead 1 >"$dir/a"
virtual --latency 100 --loss 0.3 --ahead 1 --policy always,random,mlp --share 0.3 >"$dir/b"
[ "$(field ms "$dir/a")" = "$(field ms "$dir/b")" ] || fail "order: $(cat "$dir/a" "$dir/b")"

# In step, each token takes a step, and each cloud token waits for the latency and what a call takes.
virtual --ahead 0 >"$dir/none"
virtual --ahead 0 --latency 100 >"$dir/latency"
virtual --ahead 0 --latency 100 --cloud-ms 20 --edge-ms 10,2 >"$dir/slow"
virtual --ahead 0 --latency 100 --bandwidth 9000 >"$dir/thin"
virtual --ahead 0 --latency 100 --loss 0.5 >"$dir/loss"
virtual --ahead 1 --latency 100 >"$dir/ahead"
for f in none latency slow thin loss ahead; do
    echo "$f $(field ms "$dir/$f") $(field ttft_ms "$dir/$f") $(field tokens "$dir/$f")" \
        "$(field cloud "$dir/$f") $(field right "$dir/$f") $(field prompt_tokens "$dir/$f")"
done >"$dir/times"
awk '{ ms[$1] = 6 * $2; ttft[$1] = $3; tokens = $4; cloud = $5; prompt = $7; right[$1] = $6 }
function near(a, b) { return a - b < 0.1 && b - a < 0.1 }
END {
    if (!cloud || !near(ms["none"], 10 * tokens)) print "without a network"
    if (!near(ms["latency"], ms["none"] + 100 * cloud)) print "latency"
    if (!near(ms["slow"], ms["latency"] + 20 * cloud + 2 * prompt - 60)) print "computing"
    if (ms["thin"] < ms["latency"] + 20 * cloud) print "bandwidth"
    if (ms["loss"] < ms["latency"] + 300 * cloud / 2) print "loss"
    if (ms["ahead"] >= ms["latency"] || ms["ahead"] < ms["none"]) print "ahead"
    if (ttft["none"] != 10 || ttft["slow"] < 20) print "first token"
    for (f in right) if (right[f] != right["none"]) print "another text with " f
}' "$dir/times" >"$dir/wrong"
[ ! -s "$dir/wrong" ] || fail "$(cat "$dir/wrong" "$dir/times")"

# A real clock with the same network gives the same answers and, in step, no less time.
"$MIZZLE" eval --questions 2 -q --json --policy mlp --edge-ms 2 --latency 10 --ahead 0 >"$dir/real"
"$MIZZLE" eval --questions 2 -q --json --policy mlp --edge-ms 2 --latency 10 --ahead 0 --clock virtual >"$dir/virtual"
grep -q '"clock":"real"' "$dir/real" || fail "$(cat "$dir/real")"
[ "$(field cloud "$dir/real")" = "$(field cloud "$dir/virtual")" ] || fail "$(cat "$dir/real" "$dir/virtual")"
awk -v real="$(field ms "$dir/real")" -v virtual="$(field ms "$dir/virtual")" \
    'BEGIN { exit !(real >= virtual) }' || fail "less than the network takes: $(cat "$dir/real" "$dir/virtual")"

# The deadline of a call. One that no call reaches changes nothing. Beyond the latency every routed
# token is the small model's, after that time unless the breaker holds it. With losses in between,
# some are late: always the same ones, whatever W is and whatever was asked before.
virtual --ahead 0 --latency 100 --cloud-timeout 101 >"$dir/a"
cmp "$dir/a" "$dir/latency" || fail "a deadline that is met: $(cat "$dir/a" "$dir/latency")"
virtual --ahead 0 --latency 100 --cloud-timeout 60 --policy random --threshold 1 --jsonl "$dir/late.jsonl" >"$dir/a"
virtual --ahead 0 --policy never >"$dir/b"
[ "$(field right "$dir/a") $(field fallback "$dir/a")" = \
    "$(field right "$dir/b") $(field tokens "$dir/b")" ] || fail "late: $(cat "$dir/a" "$dir/b")"
for policy in never random; do
    sed -n '/"policy":"'$policy'","share/s/.*"text":\("[^"]*"\).*/\1/p' "$dir/late.jsonl" >"$dir/$policy"
done
[ "$(grep -c '" .* ' "$dir/never")" -eq 6 ] && cmp "$dir/never" "$dir/random" ||
    fail "texts: $(cat "$dir/never" "$dir/random")"
sed -n '/"policy":"random","share/s/.*"us":\[\([^]]*\).*/\1/p' "$dir/late.jsonl" | head -n 1 | tr -cd '0-9,' | tr , '\n' >"$dir/us"
# Three faults in a row open the breaker for four tokens; then each probe waits again.
head -n 9 "$dir/us" | tr '\n' ' ' | grep -q '^\(70000 \)\{3\}\(10000 \)\{4\}70000 10000 $' ||
    fail "times: $(cat "$dir/us")"
virtual --latency 100 --loss 0.2 --cloud-timeout 150 --threshold 0.9 --ahead 0 >"$dir/a"
virtual --latency 100 --loss 0.2 --cloud-timeout 150 --ahead 0 --policy always,random,mlp --threshold 0.9 >"$dir/b"
tail -n 1 "$dir/b" | cmp - "$dir/a" || fail "order: $(cat "$dir/a" "$dir/b")"
[ "$(field cloud "$dir/a")" -gt 0 ] && [ "$(field fallback "$dir/a")" -gt 0 ] || fail "$(cat "$dir/a")"
virtual --latency 100 --loss 0.2 --cloud-timeout 150 --threshold 0.9 --ahead 1 >"$dir/b"
for f in right tokens cloud fallback; do
    [ "$(field $f "$dir/a")" = "$(field $f "$dir/b")" ] || fail "W: $(cat "$dir/a" "$dir/b")"
done
awk -v step="$(field ms "$dir/a")" -v ahead="$(field ms "$dir/b")" 'BEGIN { exit !(ahead < step) }' ||
    fail "ahead takes as long: $(cat "$dir/a" "$dir/b")"
# With --cloud required a late call is no error, but one that fails is.
virtual --latency 100 --loss 0.2 --cloud-timeout 150 --threshold 0.9 --ahead 0 --cloud required >"$dir/b"
cmp "$dir/a" "$dir/b" || fail "required: $(cat "$dir/a" "$dir/b")"
start_cloud --fault 500:1
status=0
virtual --cloud required --cloud-url "$url" >"$dir/out" 2>"$dir/err" || status=$?
[ $status -eq 4 ] && grep -q 'status 500' "$dir/err" || fail "status $status: $(cat "$dir/err")"
stop_cloud || true
# Where all calls are late, a real clock gives the same text.
for clock in real virtual; do # it is a fault of the real one alone
    want=$([ $clock = real ] && echo 4 || echo 0) status=0
    "$MIZZLE" eval --questions 1 -q --json --policy random --threshold 1 --edge-ms 1 --latency 300 \
        --cloud-timeout 100 --ahead 0 -n 9 --cloud auto --clock $clock >"$dir/$clock" 2>/dev/null || status=$?
    [ $status -eq "$want" ] || fail "$clock: status $status"
done
for f in right tokens cloud fallback; do
    [ "$(field $f "$dir/real")" = "$(field $f "$dir/virtual")" ] || fail "$(cat "$dir/real" "$dir/virtual")"
done

for wrong in '--clock sundial' '--clock virtual' '--clock virtual --edge-ms 10 --cloud-tokens 2' \
    '--cloud-ms 5' '--edge-ms 5,5' '--edge-ms 5,x' '--edge-ms -1' '--edge-ms nan' '--loss 1' '--latency 600001' \
    '--bandwidth 1,' '--latency 5 --cloud-url http://127.0.0.1:1'; do
    refused 2 --questions 1 --policy mlp $wrong
done
