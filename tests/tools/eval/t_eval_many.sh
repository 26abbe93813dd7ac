#!/bin/sh
# mizzle eval --parallel N: answers that are written at once are those of one after the other, with
# every policy, with calls ahead, spans, faults, and after an interrupt; so are thresholds.
set -u
mizzle=${MIZZLE:-build/mizzle}
tmp=$(mktemp -d) || exit 1
server=
trap '[ -z "$server" ] || kill $server; rm -rf "$tmp"' EXIT
edge=weights/milli/edge-0.5.gguf
if [ ! -f $edge ]; then
    echo "SKIP: no demo pair in weights/milli"
    exit 77
fi
unset MIZZLE_CLOUD_URL

fail() {
    echo "t_eval_many: $*" >&2
    exit 1
}

# run STATUS ARGS...: run eval, which must end with this status.
run() {
    want=$1
    shift
    ${RUN:-} "$mizzle" eval -q --json --cloud-timeout 600000 "$@" >"$tmp/out" 2>"$tmp/err"
    got=$?
    [ "$got" -eq "$want" ] || fail "eval $*: status $got, expected $want: $(cat "$tmp/err")"
}

# answers FILE: print the answers of a journal without times, and without what calls that were not
# needed have moved.
answers() {
    sed '1d; s/,"ms":[^,]*,"ttft_ms":[^,]*,"edge_ms":[^,]*//; s/,"bytes_up":.*"trace"/,"trace"/
        s/"us":\[[^]]*\]//' "$1"
}

# same N ARGS...: N answers at once are those of one after the other.
same() {
    at_once=$1
    shift
    rm -f "$tmp/one" "$tmp/many"
    run 0 "$@" --parallel 1 --jsonl "$tmp/one"
    run 0 "$@" --parallel "$at_once" --jsonl "$tmp/many"
    grep -q "\"parallel\":$at_once," "$tmp/out" || fail "$*: $(cat "$tmp/out")"
    answers "$tmp/one" >"$tmp/one.txt"
    answers "$tmp/many" >"$tmp/many.txt"
    grep -q '"trace":"[^"]*[=?]' "$tmp/one.txt" || fail "$*: nothing routed"
    cmp -s "$tmp/one.txt" "$tmp/many.txt" ||
        fail "--parallel $at_once $*: $(diff "$tmp/one.txt" "$tmp/many.txt" | head -n 4)"
}

all=never,always,mlp,mlp=weights/milli/edge-0.5.router.safetensors,context,entropy,max-prob,margin
same 7 --questions 8 --policy $all,random,oracle --threshold 0.4
same 2 --questions 4 --policy mlp,random --threshold 0.5 --ahead 0
same 16 --questions 18 --policy always,entropy --threshold 0.3 --ahead 4 --cloud-tokens 8
same 3 --questions 4 --policy mlp,random --threshold 0.3 --ahead 4 --cloud-tokens 8 --span 0.9
same 5 --questions 4 --policy price --worth 40 --draft off
same 64 --questions 4 --policy mlp,random,max-prob --target-routed 0.1 # thresholds, too

# A call that fails: the same tokens are the small model's. Each run has a server of its own, which
# draws the faults by what it is asked.
for n in 1 6; do
    "$mizzle" cloud --port 0 --fault empty-json:0.3 --jitter 5 >/dev/null 2>"$tmp/cloud" &
    server=$!
    url=
    while [ -z "$url" ]; do
        sleep 0.05
        kill -0 $server || fail "no server: $(cat "$tmp/cloud")"
        url=$(sed -n 's/^listening on \(http:.*\)$/\1/p' "$tmp/cloud")
    done
    run 4 -m $edge --cloud-url "$url" --cloud auto --questions 6 --policy always,random \
        --threshold 0.5 --parallel $n --jsonl "$tmp/faults$n"
    answers "$tmp/faults$n" >"$tmp/faults$n.txt"
    kill $server
    wait $server
    server=
done
grep -q '"trace":"[^"]*f' "$tmp/faults1.txt" || fail "no fault: $(cat "$tmp/faults1.txt")"
cmp -s "$tmp/faults1.txt" "$tmp/faults6.txt" ||
    fail "faults: $(diff "$tmp/faults1.txt" "$tmp/faults6.txt" | head -n 4)"

# What an interrupt leaves continues.
run 0 --questions 12 --policy mlp --parallel 1 --jsonl "$tmp/whole"
: >"$tmp/part"
"$mizzle" eval -q --questions 12 --policy mlp --parallel 8 --jsonl "$tmp/part" >/dev/null 2>"$tmp/err" &
pid=$!
while kill -0 $pid 2>/dev/null && [ "$(wc -l <"$tmp/part")" -lt 18 ]; do
    sleep 0.01
done
. tests/support/interrupt.sh
! kill -0 $pid 2>/dev/null || interrupt $pid 0
wait $pid
got=$?
[ $got -eq 130 ] || [ $got -eq 0 ] || fail "interrupted: status $got: $(cat "$tmp/err")"
head -n 30 "$tmp/part" >"$tmp/rest" # if it was too fast
run 0 --questions 12 --policy mlp --parallel 8 --jsonl "$tmp/rest"
answers "$tmp/whole" >"$tmp/whole.txt"
answers "$tmp/rest" | cmp -s - "$tmp/whole.txt" || fail "what an interrupt left goes on in another way"

# One after the other: what an answer teaches or uses up, and simulated times.
for with in '--audit 0.1' '--clock virtual --edge-ms 5' '--edge-ms 5' '--max-cloud-tokens 9' '--max-wasted-calls 3'; do
    # shellcheck disable=SC2086
    run 2 --questions 2 --policy mlp --parallel 2 $with
    grep -q -e '--parallel 2: expected 1 with ' "$tmp/err" || fail "$with: $(cat "$tmp/err")"
    # shellcheck disable=SC2086
    run 0 --questions 2 --policy mlp $with
    grep -q '"parallel":1,' "$tmp/out" || fail "$with: $(cat "$tmp/out")"
done
run 2 --questions 2 --policy never --parallel 65
run 2 --questions 2 --policy never --parallel 0
run 2 --task ppl --questions 2 --parallel 2

for n in 1 5; do
    ${RUN:-} "$mizzle" router calibrate -q --router weights/milli/edge-0.5.router.safetensors \
        -o "$tmp/router" --questions 24 --target-routed 0.05 --parallel $n |
        grep -v '^written' >"$tmp/threshold$n"
done
grep -q '^threshold' "$tmp/threshold1" && cmp "$tmp/threshold1" "$tmp/threshold5" ||
    fail "thresholds differ"
exit 0
