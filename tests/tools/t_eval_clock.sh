#!/bin/sh
# mizzle eval --clock virtual: the same times again and again, what latency, bandwidth and losses add
# to them, the same answers as with a real clock, and what is refused; --svg. The event model is
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
