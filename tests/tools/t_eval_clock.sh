#!/bin/sh
# mizzle eval --clock virtual: the same times again and again, what latency, bandwidth and losses add
# to them, deadlines, the same answers as with a real clock, and what is refused; --svg. The event model is
# tested in t_ahead_model.c and t_virtual_clock.c.
set -eu
MIZZLE=${MIZZLE:-build/mizzle}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() {
    echo "t_eval_clock: $*" >&2
    exit 1
}
virtual() {
    "$MIZZLE" eval --questions 6 -q --json --policy mlp --clock virtual --edge-ms 10 "$@"
}
# field NAME FILE: a number of the last object.
field() {
    tail -n 1 "$2" | grep -o "\"$1\":[^,}]*" | cut -d: -f2
}

virtual --latency 100 --bandwidth 9000 --loss 0.1 --ahead 4 >"$tmp/a"
virtual --latency 100 --bandwidth 9000 --loss 0.1 --ahead 4 >"$tmp/b"
cmp "$tmp/a" "$tmp/b" || fail "other times: $(cat "$tmp/a" "$tmp/b")"
grep -q '"clock":"virtual"' "$tmp/a" || fail "$(cat "$tmp/a")"

# Whatever was asked before, the same times: no memo is left, and losses are drawn anew.
virtual --latency 100 --loss 0.3 --ahead 4 >"$tmp/a"
virtual --latency 100 --loss 0.3 --ahead 4 --policy always,random,mlp --share 0.3 >"$tmp/b"
[ "$(field ms "$tmp/a")" = "$(field ms "$tmp/b")" ] || fail "order: $(cat "$tmp/a" "$tmp/b")"

# In step, each token takes a step, and each cloud token waits for the latency and what a call takes.
virtual --ahead 0 >"$tmp/none"
virtual --ahead 0 --latency 100 >"$tmp/latency"
virtual --ahead 0 --latency 100 --cloud-ms 20 --prefill-ms 2 >"$tmp/slow"
virtual --ahead 0 --latency 100 --bandwidth 9000 >"$tmp/thin"
virtual --ahead 0 --latency 100 --loss 0.5 >"$tmp/loss"
virtual --ahead 1 --latency 100 >"$tmp/ahead"
for f in none latency slow thin loss ahead; do
    echo "$f $(field ms "$tmp/$f") $(field ttft_ms "$tmp/$f") $(field tokens "$tmp/$f")" \
        "$(field cloud "$tmp/$f") $(field right "$tmp/$f") $(field prompt_tokens "$tmp/$f")"
done >"$tmp/times"
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
}' "$tmp/times" >"$tmp/wrong"
[ ! -s "$tmp/wrong" ] || fail "$(cat "$tmp/wrong" "$tmp/times")"

# A real clock with the same network gives the same answers and, in step, no less time.
"$MIZZLE" eval --questions 2 -q --json --policy mlp --edge-ms 2 --latency 10 --ahead 0 >"$tmp/real"
"$MIZZLE" eval --questions 2 -q --json --policy mlp --edge-ms 2 --latency 10 --ahead 0 --clock virtual >"$tmp/virtual"
grep -q '"clock":"real"' "$tmp/real" || fail "$(cat "$tmp/real")"
[ "$(field cloud "$tmp/real")" = "$(field cloud "$tmp/virtual")" ] || fail "$(cat "$tmp/real" "$tmp/virtual")"
awk -v real="$(field ms "$tmp/real")" -v virtual="$(field ms "$tmp/virtual")" \
    'BEGIN { exit !(real >= virtual) }' || fail "less than the network takes: $(cat "$tmp/real" "$tmp/virtual")"

# The deadline of a call. One that no call reaches changes nothing. Beyond the latency every routed
# token is the small model's, after that time unless the breaker holds it. With losses in between,
# some are late: always the same ones, whatever W is and whatever was asked before.
virtual --ahead 0 --latency 100 --cloud-timeout 101 >"$tmp/a"
cmp "$tmp/a" "$tmp/latency" || fail "a deadline that is met: $(cat "$tmp/a" "$tmp/latency")"
virtual --ahead 0 --latency 100 --cloud-timeout 60 --policy random --threshold 1 --jsonl "$tmp/late.jsonl" >"$tmp/a"
virtual --ahead 0 --policy never >"$tmp/b"
[ "$(field right "$tmp/a") $(field fallback "$tmp/a")" = \
    "$(field right "$tmp/b") $(field tokens "$tmp/b")" ] || fail "late: $(cat "$tmp/a" "$tmp/b")"
for policy in never random; do
    sed -n '/"policy":"'$policy'","share/s/.*"text":\("[^"]*"\).*/\1/p' "$tmp/late.jsonl" >"$tmp/$policy"
done
[ "$(grep -c '" .* ' "$tmp/never")" -eq 6 ] && cmp "$tmp/never" "$tmp/random" ||
    fail "texts: $(cat "$tmp/never" "$tmp/random")"
sed -n '/"policy":"random","share/s/.*"us":\[\([^]]*\).*/\1/p' "$tmp/late.jsonl" | head -n 1 | tr -cd '0-9,' | tr , '\n' >"$tmp/us"
# Three faults in a row open the breaker for four tokens; then each probe waits again.
head -n 9 "$tmp/us" | tr '\n' ' ' | grep -q '^\(70000 \)\{3\}\(10000 \)\{4\}70000 10000 $' ||
    fail "times: $(cat "$tmp/us")"
virtual --latency 100 --loss 0.2 --cloud-timeout 150 --threshold 0.9 --ahead 0 >"$tmp/a"
virtual --latency 100 --loss 0.2 --cloud-timeout 150 --ahead 0 --policy always,random,mlp --threshold 0.9 >"$tmp/b"
tail -n 1 "$tmp/b" | cmp - "$tmp/a" || fail "order: $(cat "$tmp/a" "$tmp/b")"
[ "$(field cloud "$tmp/a")" -gt 0 ] && [ "$(field fallback "$tmp/a")" -gt 0 ] || fail "$(cat "$tmp/a")"
virtual --latency 100 --loss 0.2 --cloud-timeout 150 --threshold 0.9 --ahead 4 >"$tmp/b"
for f in right tokens cloud fallback; do
    [ "$(field $f "$tmp/a")" = "$(field $f "$tmp/b")" ] || fail "W: $(cat "$tmp/a" "$tmp/b")"
done
awk -v step="$(field ms "$tmp/a")" -v ahead="$(field ms "$tmp/b")" 'BEGIN { exit !(ahead < step) }' ||
    fail "ahead takes as long: $(cat "$tmp/a" "$tmp/b")"
# Where all calls are late, a real clock gives the same text.
for clock in real virtual; do
    "$MIZZLE" eval --questions 1 -q --json --policy random --threshold 1 --edge-ms 1 --latency 300 \
        --cloud-timeout 100 --ahead 0 -n 9 --clock $clock >"$tmp/$clock" 2>/dev/null
done
for f in right tokens cloud fallback; do
    [ "$(field $f "$tmp/real")" = "$(field $f "$tmp/virtual")" ] || fail "$(cat "$tmp/real" "$tmp/virtual")"
done

"$MIZZLE" eval --questions 4 -q --policy mlp,random --sweep 0:0.1:3 --svg "$tmp/a.svg" >"$tmp/out"
grep -q '^<svg' "$tmp/a.svg" && grep -q '^</svg>' "$tmp/a.svg" || fail "no picture"
for label in mlp random 'small model alone' 'large model alone'; do
    grep -q ">$label</text>" "$tmp/a.svg" || fail "no line for $label"
done

for wrong in '--clock sundial' '--clock virtual' '--clock virtual --edge-ms 10 --cloud-tokens 2' \
    '--cloud-ms 5' '--prefill-ms 5' '--edge-ms -1' '--edge-ms nan' '--loss 1' '--latency 600001' \
    '--bandwidth 1,' '--latency 5 --cloud-url http://127.0.0.1:1'; do
    status=0
    # shellcheck disable=SC2086
    "$MIZZLE" eval --questions 1 --policy mlp $wrong >"$tmp/out" 2>"$tmp/err" || status=$?
    [ "$status" -eq 2 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] ||
        fail "$wrong: status $status, $(cat "$tmp/err")"
done
