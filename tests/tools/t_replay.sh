#!/bin/sh
# Saving calls and keeping text private, on the command line with the demo pair: --record and
# --replay (without any network), --cloud-store, limits, prices, private spans.
. tests/support/demo_pair.sh
# tokens FILE: write the tokens with their sources and the number of calls to the file.
tokens() {
    sed -n 's/,"edge_id".*//p' "$dir/out" >"$1"
    tail -n 1 "$dir/out" | grep -o '"calls":[0-9]*,"committed":[0-9]*,"failed":[0-9]*' >>"$1"
    [ "$(wc -l <"$1")" -gt 5 ] || fail "too few tokens"
}
ask="run --question 1 --policy always --json"

# Recorded with a server and replayed without one: the same tokens and calls.
echo sesame-1234 >"$dir/key"
start_cloud --api-key-file "$dir/key"
expect 0 $ask --cloud-url "$url" --cloud-key-file "$dir/key" --record "$dir/rec"
tokens "$dir/first"
[ "$(wc -l <"$dir/rec")" -eq $(($(field committed) + 1)) ] || fail "not a line a call"
grep -q sesame "$dir/rec" && fail "the key is in the recording"
grep -qv '^{"n":[0-9]*,"hash":"[0-9a-f]\{32\}","last":\[[0-9,]*\],"from":"call","id":[0-9]*,"crc":"[0-9a-f]\{8\}"}$' \
    "$dir/rec" && [ "$(grep -c '^{"mizzle_answers":2,"model":' "$dir/rec")" -eq 1 ] || fail "lines"
cp "$dir/rec" "$dir/whole"
expect 0 $ask --cloud-url "$url" --cloud-key-file "$dir/key" --record "$dir/rec"
cmp -s "$dir/rec" "$dir/whole" || fail "the same answers are recorded again"
stop_cloud
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    before="strace -f -o $dir/calls -e trace=socket,connect -E ASAN_OPTIONS=detect_leaks=0" # (libcurl wakes its thread over a socketpair)
    $before "$MIZZLE" run --question 1 -n 1 --cloud-url http://127.0.0.1:9 >/dev/null 2>&1
    grep -q 'socket(' "$dir/calls" || fail "strace shows no network where there is one"
else
    echo "SKIP: no strace: that a replay uses no network is shown by a dead URL alone"
fi
for ahead in 0 1 4; do
    expect 0 $ask --ahead $ahead --replay "$dir/rec"
    tokens "$dir/second"
    [ $ahead -eq 4 ] || cmp -s "$dir/first" "$dir/second" || fail "--ahead $ahead replays otherwise"
    [ -z "$before" ] || ! grep -q '(' "$dir/calls" || fail "a replay uses the network"
    [ "$(field fallback)" -eq 0 ] || fail "a replay has fallback tokens"
    [ "$(field replayed)" = true ] || fail "a replay counts as the network"
done
before=
expect 0 run --question 1 --policy always --replay "$dir/rec"
says '^replay, without a network: [0-9]* calls: [0-9]* answered'
expect 0 $ask --replay "$dir/rec" --cloud-url http://127.0.0.1:1 --cloud required
tokens "$dir/second"
cmp -s "$dir/first" "$dir/second" || fail "a URL changes the replay"

# A price: the same tokens for every W, from the network and from a recording.
worth="run --question 8 --worth 0.0004 --cloud-price 1,0.1,5 --json"
expect 0 $worth --ahead 0 --record "$dir/priced"
[ "$(field cloud)" -gt 0 ] && [ "$(field cloud)" -lt 20 ] || fail "a price asks for $(field cloud)"
tokens "$dir/all"
sed '$d' "$dir/all" >"$dir/first" # the last line counts calls, and W = 4 wastes some
for how in "0 off" "1 off" "4 off" "0 lookup" "1 lookup" "4 lookup"; do
    expect 0 $worth --ahead ${how% *} --draft ${how#* } --replay "$dir/priced"
    tokens "$dir/all"
    sed '$d' "$dir/all" | cmp -s - "$dir/first" || fail "price: --ahead ${how% *}, drafts ${how#* }"
done

# A span: the same tokens for every W, from the network and from a recording, with fewer calls.
span="run --question 8 --threshold 0.4 --cloud-tokens 64 --json"
expect 0 $span --ahead 0
plain=$(field cloud)
expect 0 $span --span 1 --ahead 0 --record "$dir/spanned"
[ "$(field cloud)" -gt $((2 * plain)) ] && [ "$(field calls)" -le "$plain" ] && [ "$plain" -gt 0 ] ||
    fail "a span takes $(field cloud) tokens of $(field calls) calls"
tokens "$dir/all"
sed '$d' "$dir/all" >"$dir/first"
for how in "0 off" "1 off" "4 off" "0 both" "1 both" "4 both"; do
    expect 0 $span --span 1 --ahead ${how% *} --draft ${how#* } --replay "$dir/spanned"
    tokens "$dir/all"
    sed '$d' "$dir/all" | cmp -s - "$dir/first" || fail "span: --ahead ${how% *}, drafts ${how#* }"
done
expect 2 run --question 8 --span 0.9
one_line
grep -q -e '--span: expected --cloud-tokens of 2 or more, found 1' "$dir/err" || fail "$(cat "$dir/err")"
for command in run explain; do # the threshold is in the router's file
    expect 2 $command --question 8 --cloud-tokens 4 --span 0.1
    one_line
    says "mizzle $command: --span: expected more than the threshold, which is 0.5.*, found 0.1"
done

# An audit: the text and its calls are those without it, from the network and from a recording,
# which keeps its answers apart; a cap ends it, and private text keeps it away.
rm -f "$dir/audited"
expect 0 run --question 8 --json --ahead 0
tokens "$dir/first"
audit="run --question 8 --audit 0.5 --json"
expect 0 $audit --ahead 0 --record "$dir/audited"
tokens "$dir/second"
cmp -s "$dir/first" "$dir/second" || fail "an audit changes the text or its calls"
found=$(grep -o '"audit":{.*}' "$dir/out")
[ "$(grep -c '"from":"audit","nth":1,"id":' "$dir/audited")" -eq "$(field drawn)" ] || fail "audit lines"
[ "$(field kept)" -gt 5 ] && [ "$(field again)" -gt 0 ] || fail "audit: $found"
for how in "0 off" "1 lookup" "4 lookup"; do
    expect 0 $audit --ahead ${how% *} --draft ${how#* } --replay "$dir/audited"
    [ "$(grep -o '"audit":{.*}' "$dir/out" | sed 's/"calls":.*//')" = "${found%%\"calls\":*}" ] ||
        fail "audit: --ahead ${how% *} replays otherwise"
done
expect 0 run --question 8 --replay "$dir/audited" --json --ahead 0
tokens "$dir/second"
cmp -s "$dir/first" "$dir/second" || fail "a recording with an audit replays otherwise"
expect 0 run --question 8 --audit 1 --max-cloud-tokens 9
says '^cloud: [0-9]* calls: [0-9]* answered.*, and [0-9]* of the audit$'
says '^audit: errors missed: [0-9]* of [0-9]* kept tokens.*; flips: .*[0-9]* of [0-9]* were not asked about$'
echo Question >"$dir/patterns"
expect 0 $audit --private-file "$dir/patterns"
[ "$(field drawn)" -gt 5 ] && [ "$(field kept)" -eq 0 ] || fail "a private text is audited"
expect 4 $audit --cloud off
says '^mizzle run: --audit: the cloud is off$'
expect 2 $audit --audit 1.5

# A missing file is named, a torn end is cut off, damage is refused.
expect 0 run --question 2 --policy always -n 4 --replay "$dir/rec"
says 'no answer for a prefix of [0-9]* tokens, hash [0-9a-f]\{32\}, last ids \[[0-9]*,[0-9]*,'
expect 4 run --question 2 --policy always --cloud required --replay "$dir/rec" -q
one_line
head -c $(($(wc -c <"$dir/whole") - 5)) "$dir/whole" >"$dir/rec"
expect 0 $ask --replay "$dir/rec"
says 'torn line'
sed 's/"id":[0-9]/"id":77/' "$dir/whole" >"$dir/rec"
expect 3 $ask --replay "$dir/rec"
says 'line 2: checksum'
one_line
expect 3 $ask --replay "$dir/none"
expect 3 $ask --record $edge
expect 2 $ask --record "$dir/x" --replay "$dir/whole"
expect 2 $ask --cloud-store "$dir/x" --replay "$dir/whole"
(
    ulimit -f 1
    expect 3 $ask --record "$dir/full"
) || exit 1
says 'the recording is incomplete'
expect 0 $ask --replay "$dir/full"

# Faults, calls held by the breaker, and further tokens of a reply are replayed as recorded.
start_cloud --fault 500:0.6 --seed 2
for args in '-n 12 --ahead 0' '-n 12 --ahead 4' '-n 12 --cloud-tokens 4 --ahead 0'; do
    rm -f "$dir/rec"
    # shellcheck disable=SC2086
    expect 0 $ask --cloud-url "$url" --record "$dir/rec" $args
    sed 's/,"edge_id".*//; s/.*"committed"/"committed"/; s/"wasted":[0-9]*,//; s/"passes":.*"cost"/"cost"/' \
        "$dir/out" >"$dir/first"
    # shellcheck disable=SC2086
    expect 0 $ask --replay "$dir/rec" $args
    sed 's/,"edge_id".*//; s/.*"committed"/"committed"/; s/"wasted":[0-9]*,//; s/"passes":.*"cost"/"cost"/' \
        "$dir/out" >"$dir/second"
    cmp -s "$dir/first" "$dir/second" || fail "faults, $args: the replay differs"
    grep -q '"held":{"' "$dir/first" || fail "faults, $args: none"
    grep -q '"from":"call","fault":"net","message":"cloud http://.*status 500' "$dir/rec" ||
        fail "faults, $args: not recorded"
done
grep -q '"from":"memo"' "$dir/rec" || fail "no further token of a reply was used"
stop_cloud

# mizzle eval, with three policies on the same prefixes, but for the times.
expect 0 eval --questions 5 --policy never,mlp,always --json -q --record "$dir/eval"
sed 's/"clock.*//' "$dir/out" >"$dir/first"
expect 0 eval --questions 5 --policy never,mlp,always --json -q --replay "$dir/eval"
sed 's/"clock.*//' "$dir/out" >"$dir/second"
cmp -s "$dir/first" "$dir/second" || fail "eval: the replay differs"
expect 0 run --question 3 --policy always --json --replay "$dir/eval" -n 3

# eval --audit: an interrupted run goes on, and a replay finds the same; the clock may be virtual.
audit="eval --questions 6 --policy never,mlp --json -q --audit 0.5"
expect 0 $audit --record "$dir/evalaudit"
grep -o '"drawn".*"audit_calls":[0-9]*' "$dir/out" >"$dir/first"
[ "$(field kept)" -gt 20 ] && [ "$(field missed)" -gt 0 ] && [ "$(field again)" -gt 2 ] || fail "eval --audit"
expect 0 $audit --replay "$dir/evalaudit" --jsonl "$dir/answers"
grep -o '"drawn".*"audit_calls":[0-9]*' "$dir/out" | cmp -s - "$dir/first" || fail "eval --audit: the replay differs"
sed -i '$d' "$dir/answers"
expect 0 $audit --replay "$dir/evalaudit" --jsonl "$dir/answers"
grep -o '"drawn".*"audit_calls":[0-9]*' "$dir/out" | cmp -s - "$dir/first" || fail "eval --audit: continued"
expect 0 $audit --clock virtual --edge-ms 10 --latency 50
grep -o '"drawn".*"audit_calls":[0-9]*' "$dir/out" | cmp -s - "$dir/first" || fail "eval --audit: virtual clock"

# The store: no calls the second time; two processes at once; an unknown file is not touched.
expect 0 $ask --cloud-store "$dir/store"
grep '"token"' "$dir/out" | sed 's/,"edge_id".*//' >"$dir/first"
[ "$(field calls)" -gt 0 ] && [ "$(field store)" -eq 0 ] || fail "store: first run"
expect 0 $ask --cloud-store "$dir/store"
grep '"token"' "$dir/out" | sed 's/,"edge_id".*//' >"$dir/second"
[ "$(field calls)" -eq 0 ] && [ "$(field store)" -eq "$(field tokens)" ] || fail "store: again"
cmp -s "$dir/first" "$dir/second" || fail "the store answers otherwise"
"$MIZZLE" run --question 4 --policy always -q --cloud-store "$dir/store" >/dev/null 2>&1 &
other=$!
expect 0 run --question 5 --policy always -q --cloud-store "$dir/store"
wait $other || fail "the other process"
for question in 1 4 5; do
    expect 0 run --question $question --policy always --json --cloud-store "$dir/store"
    [ "$(field calls)" -eq 0 ] || fail "question $question is asked again"
done
printf x >>"$dir/store"
expect 0 $ask --cloud-store "$dir/store"
says 'torn line'
cp $edge "$dir/strange"
expect 3 $ask --cloud-store "$dir/strange"
one_line
cmp -s $edge "$dir/strange" || fail "a strange file was changed"
expect 2 $ask --cloud-store "$dir/store" --store-limit 0

# Limits give the same tokens for any --ahead.
for cap in '--max-cloud-tokens 7' '--max-upload-bytes 2000' \
    '--cloud-price 1,0.5,4 --cloud-budget 0.0002'; do
    for ahead in 0 1 4; do
        # shellcheck disable=SC2086
        expect 0 $ask --ahead $ahead $cap
        sed -n 's/,"edge_id".*//p' "$dir/out" >"$dir/ahead$ahead"
        [ "$(field fallback)" -gt 0 ] && [ "$(field capped)" -eq "$(field fallback)" ] ||
            fail "$cap: no token is held back"
        [ "$(field cloud)" -gt 1 ] || fail "$cap: no token from the cloud"
    done
    cmp -s "$dir/ahead0" "$dir/ahead1" && cmp -s "$dir/ahead0" "$dir/ahead4" ||
        fail "$cap: ahead differs"
done
expect 0 $ask --max-cloud-tokens 7
[ "$(field cloud)" -eq 7 ] && [ "$(field cost)" = 0.0 ] || fail "--max-cloud-tokens 7"
expect 0 $ask --max-cloud-tokens 0
[ "$(field cloud)" -eq 0 ] && [ "$(field calls)" -eq 0 ] || fail "--max-cloud-tokens 0"
# With eight tokens per call a limit still holds, and no call is made while one is in flight.
for ahead in 0 1 4; do
    for cap in '--max-cloud-tokens 2' '--cloud-budget 2 --cloud-price 0,0,1000000'; do
        # shellcheck disable=SC2086
        expect 0 $ask -n 24 --cloud-tokens 8 --ahead $ahead $cap
        [ "$(field cloud)" -eq 2 ] && [ "$(field committed)" -eq 2 ] || fail "$cap, ahead $ahead"
    done
    expect 0 run --question 5 --policy always --json -n 24 --cloud-tokens 8 --ahead $ahead
    [ "$(field committed)" -eq 3 ] && [ "$(field calls)" -le 4 ] || fail "8 tokens: calls, $ahead"
done
expect 0 $ask --cloud-price 1,0.5,4 --cloud-budget 0.0002
awk "BEGIN { exit !($(field cost) > 0.0001 && $(field cost) <= 0.0002) }" || fail "cost $(field cost)"
expect 0 run --question 1 --policy always --cloud-price 1,1,1
says '; cost 0.00'
for args in '--cloud-budget 1' '--cloud-budget x --cloud-price 1,1,1' '--max-cloud-tokens x'; do
    # shellcheck disable=SC2086
    expect 2 $ask $args
    one_line
done
expect 2 $ask --cloud-price 2,5
says 'UP,CACHED,DOWN.*found 2,5'

# From a private span on, nothing is sent.
echo Question >"$dir/patterns"
expect 0 $ask --private-file "$dir/patterns"
[ "$(field calls)" -eq 0 ] && [ "$(field private)" -eq "$(field tokens)" ] || fail "a private prompt"
printf '# the answer\nanswer is\n' >"$dir/patterns"
for ahead in 0 4; do
    expect 0 $ask --private-file "$dir/patterns" --ahead $ahead --record "$dir/private$ahead"
    [ "$(field private)" -gt 0 ] && [ "$(field cloud)" -gt 0 ] || fail "--private-file"
    sed -n 's/,"edge_id".*//p' "$dir/out" >"$dir/ahead$ahead"
done
cmp -s "$dir/ahead0" "$dir/ahead4" || fail "private: ahead differs"
cmp -s "$dir/private0" "$dir/private4" || fail "private: other calls ahead"
expect 3 $ask --private-file "$dir/none"
printf '# nothing\n' >"$dir/patterns"
expect 3 $ask --private-file "$dir/patterns"
one_line
exit 0
