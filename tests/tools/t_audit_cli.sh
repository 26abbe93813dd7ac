#!/bin/sh
# --audit with the demo pair: the text and its calls are those without it, from the network and from
# a recording, which keeps its answers apart; a cap ends it, and private text keeps it away.
. tests/support/demo_pair.sh
run="run --question 8 --json"
alike calls $run --ahead 0
alike calls $run --audit 0.5 --ahead 0 --record "$dir/audited"
found() { grep -o '"audit":{.*}' "$dir/out" | sed 's/"calls":.*//'; }
[ "$(grep -c '"from":"audit","nth":1,"id":' "$dir/audited")" -eq "$(field drawn)" ] || fail "audit lines"
[ "$(field kept)" -gt 5 ] && [ "$(field again)" -gt 0 ] || fail "$(found)"
found >"$dir/found"
alike calls $run --ahead 0 --replay "$dir/audited"
mv "$dir/found" "$dir/first"
for how in "0 --draft off" "1 --draft lookup" "4 --draft lookup"; do
    alike found $run --audit 0.5 --ahead $how --replay "$dir/audited"
done
expect 0 run -v --question 8 --audit 1 --max-cloud-tokens 9
says '^cloud: [0-9]* calls: [0-9]* answered.*, and [0-9]* of the audit$'
says '^audit: errors missed: [0-9]* of [0-9]* kept tokens.*; flips: .*[0-9]* of [0-9]* were not asked about$'
echo Question >"$dir/patterns"
expect 0 $run --audit 0.5 --private-file "$dir/patterns"
[ "$(field drawn)" -gt 5 ] && [ "$(field kept)" -eq 0 ] || fail "a private text is audited"
fails 4 '^mizzle run: --audit: the cloud is off$' $run --audit 0.5 --cloud off
expect 2 $run --audit 1.5

# eval --audit: an interrupted run goes on, and a replay finds the same; the clock may be virtual.
audit="eval --questions 6 --policy never,mlp --json -q --audit 0.5"
drawn() { grep -o '"drawn".*"audit_calls":[0-9]*' "$dir/out"; }
anew
alike drawn $audit --record "$dir/evalaudit"
[ "$(field kept)" -gt 20 ] && [ "$(field missed)" -gt 0 ] && [ "$(field again)" -gt 2 ] || fail "eval --audit"
alike drawn $audit --replay "$dir/evalaudit" --jsonl "$dir/answers"
sed -i '$d' "$dir/answers"
alike drawn $audit --replay "$dir/evalaudit" --jsonl "$dir/answers"
alike drawn $audit --clock virtual --edge-ms 10 --latency 50
