#!/bin/sh
# mizzle eval --parallel N: answers that are written at once are those of one after the other, with
# every policy, with calls ahead, faults, and after an interrupt; so are thresholds.
. tests/tools/eval/eval.sh
subcommand="eval -q --json"

# answers FILE: print the answers of a journal without times, and without what calls that were not
# needed have moved.
answers() {
    sed '1d; /^{"on"/d; s/,"ms":[^,]*,"ttft_ms":[^,]*,"edge_ms":[^,]*//; s/,"bytes_up":.*"trace"/,"trace"/
        s/"us":\[[^]]*\]//' "$1"
}

# same N ARGS...: N answers at once are those of one after the other.
same() {
    at_once=$1
    shift
    rm -f "$dir/one" "$dir/many"
    run 0 "$@" --parallel 1 --jsonl "$dir/one"
    run 0 "$@" --parallel "$at_once" --jsonl "$dir/many"
    head -n 1 "$dir/many" | grep -q "\"parallel\":$at_once," || fail "$*: $(head -n 1 "$dir/many")"
    answers "$dir/one" >"$dir/one.txt"
    answers "$dir/many" >"$dir/many.txt"
    grep -q '"trace":"[^"]*[=?]' "$dir/one.txt" || fail "$*: nothing routed"
    cmp -s "$dir/one.txt" "$dir/many.txt" ||
        fail "--parallel $at_once $*: $(diff "$dir/one.txt" "$dir/many.txt" | head -n 4)"
}

all=never,always,mlp,mlp=weights/milli/edge-0.5.router.safetensors,context,entropy,max-prob,margin
same 7 --questions 8 --policy $all,random --threshold 0.4
same 16 --questions 18 --policy always,entropy --threshold 0.3 --ahead 0
same 64 --questions 4 --policy mlp,random,max-prob --target-routed 0.1 # thresholds, too

# A call that fails: the same tokens are the small model's, and are told. Each run has a server of
# its own, which draws the faults by what it is asked.
for n in 1 6; do
    start_cloud --fault empty-json:0.3 --latency 5
    run 0 -m $edge --cloud-url "$url" --cloud auto --questions 6 --policy always,random \
        --threshold 0.5 --parallel $n
    grep -v '"fallback":0,' "$dir/out" | sed 's/"[a-z_]*ms":[^,}]*//g' >"$dir/faults$n"
    stop_cloud
done
[ -s "$dir/faults1" ] && cmp "$dir/faults1" "$dir/faults6" || fail "faults: $(cat "$dir/faults1")"

# What an interrupt leaves continues.
run 0 --questions 12 --policy mlp --parallel 1 --jsonl "$dir/whole"
: >"$dir/part"
"$MIZZLE" eval -q --questions 12 --policy mlp --parallel 8 --jsonl "$dir/part" >/dev/null 2>"$dir/err" &
pid=$!
while kill -0 $pid 2>/dev/null && [ "$(wc -l <"$dir/part")" -lt 18 ]; do
    sleep 0.01
done
! kill -0 $pid 2>/dev/null || interrupt $pid 0
wait $pid
got=$?
[ $got -eq 130 ] || [ $got -eq 0 ] || fail "interrupted: status $got: $(cat "$dir/err")"
head -n 30 "$dir/part" >"$dir/rest" # if it was too fast
run 0 --questions 12 --policy mlp --parallel 8 --jsonl "$dir/rest"
answers "$dir/whole" | sort >"$dir/whole.txt"
answers "$dir/rest" | sort | cmp -s - "$dir/whole.txt" || fail "what an interrupt left goes on in another way"

run 2 --questions 2 --policy never --parallel 65
run 2 --questions 2 --policy never --parallel 0
run 2 --task ppl --questions 2 --parallel 2

for n in 1 5; do
    ${RUN:-} "$MIZZLE" router calibrate -q --router weights/milli/edge-0.5.router.safetensors \
        -o "$dir/router" --questions 24 --target-routed 0.05 --parallel $n |
        grep -v '^written' >"$dir/threshold$n"
done
grep -q '^threshold' "$dir/threshold1" && cmp "$dir/threshold1" "$dir/threshold5" ||
    fail "thresholds differ"
exit 0
