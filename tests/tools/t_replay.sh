#!/bin/sh
# Recordings with the demo pair on the command line: --record, and --replay without any network.
. tests/support/demo_pair.sh
ask="run --question 1 --policy always --json"

# Recorded with a server and replayed without one: the same tokens and calls.
echo sesame-1234 >"$dir/key"
start_cloud --api-key-file "$dir/key"
alike calls $ask --cloud-url "$url" --cloud-key-file "$dir/key" --record "$dir/rec"
[ "$(wc -l <"$dir/rec")" -eq $(($(field committed) + 1)) ] || fail "not a line a call"
grep -q sesame "$dir/rec" && fail "the key is in the recording"
grep -qv '^{"n":[0-9]*,"hash":"[0-9a-f]\{32\}","last":\[[0-9,]*\],"from":"call","id":[0-9]*,"crc":"[0-9a-f]\{8\}"}$' \
    "$dir/rec" && [ "$(grep -c '^{"mizzle_answers":2,"model":' "$dir/rec")" -eq 1 ] || fail "lines"
cp "$dir/rec" "$dir/whole"
expect 0 $ask --cloud-url "$url" --cloud-key-file "$dir/key" --record "$dir/rec"
same "$dir/rec" "$dir/whole" # no answer is recorded again
stop_cloud
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    before="strace -f -o $dir/calls -e trace=socket,connect -E ASAN_OPTIONS=detect_leaks=0" # (libcurl wakes its thread over a socketpair)
    $before "$MIZZLE" run --question 1 -n 1 --cloud-url http://127.0.0.1:9 >/dev/null 2>&1
    grep -q 'socket(' "$dir/calls" || fail "strace shows no network where there is one"
else
    echo "SKIP: no strace: that a replay uses no network is shown by a dead URL alone"
fi
for ahead in 0 1; do
    expect 0 $ask --ahead $ahead --replay "$dir/rec"
    calls | cmp -s - "$dir/first" || fail "--ahead $ahead replays otherwise"
    [ -z "$before" ] || ! grep -q '(' "$dir/calls" || fail "a replay uses the network"
    [ "$(field fallback)" -eq 0 ] || fail "a replay has fallback tokens"
    [ "$(field replayed)" = true ] || fail "a replay counts as the network"
done
before=
expect 0 run -v --question 1 --policy always --replay "$dir/rec"
says '^replay, without a network: [0-9]* calls: [0-9]* answered'
alike calls $ask --replay "$dir/rec" --cloud-url http://127.0.0.1:1 --cloud required

# A missing file is named, a torn end is cut off, damage is refused.
expect 0 run --question 2 --policy always -n 4 --replay "$dir/rec"
says 'no answer for a prefix of [0-9]* tokens, hash [0-9a-f]\{32\}, last ids \[[0-9]*,[0-9]*,'
expect 4 run --question 2 --policy always --cloud required --replay "$dir/rec" -q
one_line
head -c $(($(wc -c <"$dir/whole") - 5)) "$dir/whole" >"$dir/rec"
expect 0 $ask --replay "$dir/rec"
says 'torn line'
sed 's/"id":[0-9]/"id":77/' "$dir/whole" >"$dir/rec"
fails 3 'line 2: checksum' $ask --replay "$dir/rec"
one_line
expect 3 $ask --replay "$dir/none"
expect 3 $ask --record $edge
for kept in --record --cloud-store; do
    fails 2 ": $kept: expected none beside a replay" $ask $kept "$dir/x" --replay "$dir/whole"
done
(
    ulimit -f 1
    expect 3 $ask --record "$dir/full"
) || exit 1
says 'the recording is incomplete'
expect 0 $ask --replay "$dir/full"

# Faults, calls held by the breaker, and further tokens of a reply are replayed as recorded.
start_cloud --fault 500:0.6 --seed 2
faults() {
    sed 's/,"edge_id".*//; s/.*"committed"/"committed"/; s/"passes":.*"held"/"held"/' \
        "$dir/out"
}
for args in '-n 12 --ahead 0' '-n 12 --ahead 1' '-n 12 --cloud-tokens 4 --ahead 0'; do
    rm -f "$dir/rec"
    anew
    # shellcheck disable=SC2086
    alike faults $ask --cloud-url "$url" --record "$dir/rec" $args
    # shellcheck disable=SC2086
    alike faults $ask --replay "$dir/rec" $args
    grep -q '"held":{"' "$dir/first" || fail "faults, $args: none"
    grep -q '"from":"call","fault":"net","message":"cloud http://.*status 500' "$dir/rec" ||
        fail "faults, $args: not recorded"
done
grep -q '"from":"memo"' "$dir/rec" || fail "no further token of a reply was used"

# mizzle eval, with three policies on the same prefixes, but for the times.
timeless() { sed 's/"clock.*//' "$dir/out"; }
compared="eval --questions 5 --policy never,mlp,always --json -q"
anew
alike timeless $compared --record "$dir/eval"
alike timeless $compared --replay "$dir/eval"
expect 0 run --question 3 --policy always --json --replay "$dir/eval" -n 3
