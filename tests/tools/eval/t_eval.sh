#!/bin/sh
# mizzle eval on the demo pair, end to end with few questions: both tasks, faults, interrupts.
. tests/tools/eval/eval.sh

run 0 --task milli --questions 12 --policy never --json -q
case $last in
'{'*'"accuracy":'*'}') ;;
*) fail "no object: $last" ;;
esac
[ "$(wc -l <"$dir/out")" -eq 1 ] || fail "more than one line"
is "$(field questions) == 12 && $(field routed) == 0 && $(field cloud) == 0 && $(field fallback) == 0"
is "$(field tokens) >= 12 * 10 && $(field seed) == 1"
is "$(field accuracy_low) <= $(field accuracy) && $(field accuracy) <= $(field accuracy_high)"
is "$(field right) / 12 - $(field accuracy) < 0.0001"
edge=$(field right)/$(field tokens)

run 0 --questions 12 --policy never --json -q -t 1 --isa scalar
[ "$(field right)/$(field tokens)" = "$edge" ] || fail "threads or instruction set change answers"

run 0 --questions 8 --policy always --json -q
is "$(field routed) == 1 && $(field fallback) == 0 && $(field bytes_up) == 0"

# What is amiss is told of tokens that were judged, not of those that follow one of these.
run 0 --questions 10 --policy query,mlp --threshold 1 -q
grep -q '^mlp: threshold too high: ' "$dir/out" || fail "no sign: $(cat "$dir/out")"
! grep '^query: threshold' "$dir/out" "$dir/err" || fail "a sign of a policy that hands over"

run 0 --questions 12 --policy never,mlp,random --share 0.5 --json -q --seed 9
[ "$(wc -l <"$dir/out")" -eq 3 ] || fail "expected three lines"
is "$(field routed) > 0.2 && $(field routed) < 0.8 && $(field seed) == 9"
last=$(sed -n 2p "$dir/out")
is "$(field routed) > 0 && $(field routed) < 0.2 && $(field threshold) > 0"
run 0 --questions 12 --policy never,mlp,entropy,margin,random --json -q
first=$(sed -n 2p "$dir/out")
share=$(printf '%s\n' "$first" | sed -n 's/.*"routed":\([0-9.]*\).*/\1/p')
for line in 3 4; do # about the share that mlp routed
    last=$(sed -n ${line}p "$dir/out")
    is "$(field threshold) > 0 && $(field routed) > $share / 2 && $(field routed) < $share * 2"
done
run 0 --questions 12 --policy max-prob --share 0.3 --json -q
is "$(field routed) > 0.15 && $(field routed) < 0.45 && $(field threshold) > 0"
fails 2 'give --threshold, --share' --policy never,entropy,mlp # no share is known yet
run 0 --questions 3 --policy max-prob --threshold 0.9
grep -q '^max-prob' "$dir/out" || fail "no table"
# The cloud reads the tokens of its replies again: it computes more than there is.
run 0 --questions 3 --policy always --cloud-tokens 8
grep -q '^always .* 1[0-9][0-9]\.[0-9] % .*' "$dir/out" && grep -q '^work: .* per id .* over 100 %' "$dir/out" ||
    fail "work: $(cat "$dir/out")"

# A share for every policy, found on other questions; both models alone are asked by themselves.
run 0 --task milli --questions 12 --seed 3 --json --policy mlp --target-routed 0.05 -q
[ "$(wc -l <"$dir/out")" -eq 1 ] || fail "more than one line"
is "$(field routed) > 0.02 && $(field routed) < 0.09 && $(field target) == 0.05"
is "$(field pgr) > 0.5 && $(field pgr) <= 1 && $(field threshold) > 0 && $(field tokens) > 120"
is "$(field memo) == 0 && $(field calls) == $(field cloud)" # its calls are its own
# Many tokens have one score of a table; a part of them is routed, the same with calls in flight.
for ahead in 0 1; do
    run 0 --questions 12 --policy context --target-routed 0.04 --ahead $ahead --json -q
    is "$(field tie) > 0 && $(field tie) < 1 && $(field routed) > 0.03 && $(field routed) < 0.05"
    same=${same:-$(field cloud) $(field right) $(field tokens)}
    [ "$same" = "$(field cloud) $(field right) $(field tokens)" ] || fail "ahead $ahead: not $same"
done
run 2 --questions 12 --policy mlp,entropy --target-routed 0:0.08:3 --against random
run 0 --questions 12 --policy mlp,entropy --target-routed 0:0.08:3 --against entropy --json -q
[ "$(wc -l <"$dir/out")" -eq 6 ] || fail "a sweep of 2 policies over 3 shares: $(wc -l <"$dir/out")"
other=$(field apgr7)
is "$(field pgr) > 0.3 && $(field work) > 0.3 && $(field routed) < 0.1"
last=$(sed -n 1p "$dir/out")
is "$(field routed) == 0 && $(field pgr) == 0 && $(field bytes_up) == 0"
last=$(sed -n 3p "$dir/out")
is "$(field apgr7) > 0.3 && $(field apgr7) <= 1.1 && $other > 0"
is "$(field apgr7_low) <= $(field apgr7) && $(field apgr7) <= $(field apgr7_high)"
is "$(field apgr7_ratio) > 0 && $(field apgr7_ratio_low) <= $(field apgr7_ratio)"
case $last in *'"against":"entropy"'*) ;; *) fail "not compared: $last" ;; esac
run 0 --questions 12 --policy mlp --clock virtual --edge-ms 40 --latency 200 --json -q
is "$(field ms) > 40 * 10 && $(field tbt_ms) == 40 && $(field ttft_ms) >= 40"
# Routers by file: one trained here beside the one of the model, each with its own threshold.
"$MIZZLE" router collect --task milli --questions 60 --labels match -o "$dir/samples" -q \
    >/dev/null 2>&1 || fail "collect"
"$MIZZLE" router train --samples "$dir/samples" -o "$dir/table.safetensors" --head context \
    >/dev/null 2>&1 || fail "train"
run 0 --questions 8 --policy mlp,context="$dir/table.safetensors" --json -q
is "$(wc -l <"$dir/out") == 2 && $(field routed) > 0 && $(field threshold) > 0"
grep -q '"policy":"context","router":"table.safetensors"' "$dir/out" || fail "$last"
# Several trainings of a router. If they are the same, so is every figure; the journal continues.
for i in 1 2 3; do cp "$dir/table.safetensors" "$dir/table.$i"; done
run 0 --questions 8 --policy context="$dir/table.safetensors" --json -q
once="$(field accuracy) $(field gain_low) $(field gain_high) $(field pgr) $(field pgr_low) $(field routed)"
run 0 --questions 8 --policy context="$dir/table" --repeats 3 --json -q --jsonl "$dir/repeats"
is "$(field trainings) == 3 && $(field questions) == 8"
[ "$once" = "$(field accuracy) $(field gain_low) $(field gain_high) $(field pgr) $(field pgr_low) $(field routed)" ] ||
    fail "three equal trainings: $last, one: $once"
figures="$(field right) $(field tokens) $(field cloud) $(field ttft_ms)"
head -n 30 "$dir/repeats" >"$dir/torn" # within the second training
run 0 --questions 8 --policy context="$dir/table" --repeats 3 --json -q --jsonl "$dir/repeats"
[ "$figures" = "$(field right) $(field tokens) $(field cloud) $(field ttft_ms)" ] || fail "read again: $last"
run 0 --questions 8 --policy context="$dir/table" --repeats 3 --json -q --jsonl "$dir/torn"
cmp -s "$dir/torn" "$dir/repeats" || [ "$(wc -l <"$dir/torn")" -eq "$(wc -l <"$dir/repeats")" ] ||
    fail "an interrupted run: $last"
run 3 --questions 2 --policy context="$dir/table" --repeats 4 # there is no fourth
fails 2 '--repeats: expected a policy with a router' --questions 2 --policy never,random --share 0.1 --repeats 2
mkdir "$dir/other" && cp "$dir/table.safetensors" "$dir/other"
run 0 --questions 2 --policy context="$dir/table.safetensors",context="$dir/other/table.safetensors" \
    --json -q
case $last in *'"router":"table.safetensors#2"'*) ;; *) fail "two routers, one name: $last" ;; esac
fails 2 'expected a network, found a table' --policy mlp="$dir/table.safetensors"
run 0 --questions 8 --policy mlp,context --json -q # both are beside the model
is "$(wc -l <"$dir/out") == 2 && $(field threshold) > 0"
cp weights/milli/edge-0.5.gguf "$dir/alone.gguf"
fails 2 'no router beside' -m "$dir/alone.gguf" --policy context --questions 2
run 2 --policy mlp --target-routed 0.1 --threshold 0.5
# A limit over all answers: an interrupted run goes on with what is left of it.
capped="--questions 40 --policy mlp --cloud required --json -q"
# without FILE: print its lines without times
without() {
    sed 's/,"ms":[^,]*,"ttft_ms":[^,]*,"edge_ms":[^,]*//; s/,"bytes_up":.*"trace"/,"trace"/
        s/"us":\[[^]]*\]//' "$1"
}
run 0 $capped --max-cloud-tokens 40 --jsonl "$dir/capped"
is "$(field calls) == 40 && $(field fallback) > 0"
head -n 4 "$dir/capped" >"$dir/capped2"
run 0 $capped --max-cloud-tokens 40 --jsonl "$dir/capped2"
without "$dir/capped" >"$dir/whole"
without "$dir/capped2" | cmp -s - "$dir/whole" || fail "a limited run goes on in another way"
fails 2 'other settings: limits' $capped --max-cloud-tokens 41 --jsonl "$dir/capped2"
fails 2 'settings: limits: expected "none", found "tokens 40' $capped --jsonl "$dir/capped2"
# A share is read as it was written.
for share in 0.01 0.07; do
    run 0 --questions 4 --policy mlp -q --max-routed $share --jsonl "$dir/share$share"
    head -n 3 "$dir/share$share" >"$dir/share"
    run 0 --questions 4 --policy mlp -q --max-routed $share --jsonl "$dir/share"
    without "$dir/share$share" >"$dir/whole"
    without "$dir/share" | cmp -s - "$dir/whole" || fail "--max-routed $share goes on in another way"
done
sed 's/,"counts".*/}/' "$dir/capped2" >"$dir/capped"
fails 3 'counts of the limits, found none' $capped --max-cloud-tokens 40 --jsonl "$dir/capped"
sed 's/"counts":\[[0-9]*/"counts":[0.5/' "$dir/capped2" >"$dir/capped"
run 3 $capped --max-cloud-tokens 40 --jsonl "$dir/capped"
run 2 --policy mlp --target-routed 0.1 --calibration "$dir/none"
run 2 --policy mlp --target-routed 0:0.1
run 2 --policy mlp --target-routed 2
run 2 --data "$dir/none"
run 3 --policy never --questions 2 -o "$dir/no/folder" -q

run 0 --task ppl --questions 10 --json -q
is "$(field ppl) >= 1 && $(field tokens) > 100 && $(field questions) == 10"
is "$(field accuracy) > 0.5 && $(field accuracy) < 1 && $(field routed) == 0"
case $last in *'"threshold":null,"pgr":null,'*) ;; *) fail "ppl: threshold or pgr: $last" ;; esac
printf 'Every flower is found in the garden. Every fish is found in the lake.\n%.0s' 1 2 3 4 5 6 7 8 >"$dir/text"
run 0 --task ppl --data "$dir/text" --json -q -c 64
is "$(field ppl) >= 1 && $(field context) == 64"
all=$(field tokens)
[ $((all + 1)) -eq "$("$MIZZLE" tokenize <"$dir/text" | wc -w)" ] || fail "ppl: $all tokens of the text"
for size in 8 9 32 33 63; do
    run 0 --task ppl --data "$dir/text" --json -q -c $size
    is "$(field tokens) == $all" # windows score every token once, whatever their size
done
: >"$dir/empty"
run 3 --task ppl --data "$dir/empty"
run 2 --task ppl -c 1

# What a task does not read is refused, not ignored.
for unread in '--target-routed 0.1' '--target-routed 0:1:3' '--share 0.1' '--calibration f' '-o f' \
    '--jsonl f' '--prompt chat' '-n 5' '--clock sundial' '--edge-ms 3' \
    '--latency 5' '--bandwidth 9' '--loss 0.1' '--policy mlp' '--router f' '--threshold 0.5' \
    '--cloud-url http://127.0.0.1:9' '--cloud-model f' '--answers f' '--offline'; do
    fails 2 "^mizzle eval: --.*: expected without --task ppl" --task ppl --questions 1 $unread
done
for unread in '--kind sums' '--wording plain'; do
    fails 2 "^mizzle eval: ${unread%% *}: expected without --task ppl" --task ppl $unread
done
for with in '--task ppl' '--task extract' '--merge f'; do # whatever group an option is of
    for unread in '--chat-template qwq' '--private-file f' '--cloud off' '--answers-limit 5'; do
        fails 2 "^mizzle eval: ${unread%% *}: expected without ${with%% f}" $with $unread
    done
done
run 2 --policy never --questions 1 --context 64

run 2 --task chess
run 2 --policy mlp,nobody
run 2 --policy ''
run 2 --policy random
run 2 --share 1.5
run 2 --questions 0
run 2 extra
run 4 -m weights/milli/edge-0.5.gguf --policy always --questions 2

"$MIZZLE" eval --questions 1000000 --policy never -q -t 1 >"$dir/out" 2>"$dir/err" &
pid=$!
interrupt $pid
wait $pid
[ $? -eq 130 ] || fail "interrupted: status not 130: $(cat "$dir/err")"
exit 0
