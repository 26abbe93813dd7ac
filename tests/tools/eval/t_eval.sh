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

MIZZLE_ISA=scalar run 0 --questions 12 --policy never --json -q -t 1
[ "$(field right)/$(field tokens)" = "$edge" ] || fail "threads or instruction set change answers"

run 0 --questions 8 --policy always --json -q
is "$(field routed) == 1 && $(field fallback) == 0"

run 0 --questions 12 --policy never,mlp,entropy,margin,random --json -q --seed 9
[ "$(wc -l <"$dir/out")" -eq 5 ] || fail "expected five lines"
is "$(field seed) == 9"
first=$(sed -n 2p "$dir/out")
share=$(printf '%s\n' "$first" | sed -n 's/.*"routed":\([0-9.]*\).*/\1/p')
for line in 3 4 5; do # about the share that mlp routed
    last=$(sed -n ${line}p "$dir/out")
    is "$(field threshold) > 0 && $(field routed) > $share / 3 && $(field routed) < $share * 3"
done
run 0 --questions 12 --policy max-prob --target-routed 0.3 --json -q
is "$(field routed) > 0.15 && $(field routed) < 0.45 && $(field threshold) > 0"
fails 2 'give --threshold, --target-routed' --policy never,entropy,mlp # no share is known yet
run 0 --questions 3 --policy max-prob --threshold 0.9
grep -q '^policy  *threshold  *right  *from  *to ' "$dir/out" && grep -q '^max-prob  *0.9000  *[01][.]' "$dir/out" ||
    fail "no table: $(cat "$dir/out")"
# A share for every policy, found on other questions.
run 0 --task milli --questions 12 --seed 3 --json --policy never,always,mlp --target-routed 0.05 -q
[ "$(wc -l <"$dir/out")" -eq 3 ] || fail "more than three lines"
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
run 2 --questions 12 --policy mlp,entropy --target-routed 0.04 --against random
run 0 --questions 12 --policy mlp,entropy --target-routed 0.04 --against entropy --json -q
[ "$(wc -l <"$dir/out")" -eq 2 ] || fail "two policies: $(wc -l <"$dir/out")"
last=$(sed -n 1p "$dir/out")
is "$(field difference_low) <= $(field difference) && $(field difference) <= $(field difference_high)"
case $last in *'"against":"entropy"'*) ;; *) fail "not compared: $last" ;; esac
run 0 --questions 12 --policy mlp,entropy --target-routed 0.04 --against entropy -q
grep -q '^mlp, against entropy: accuracy [-+][0-9.]* points (95 %: ' "$dir/out" || fail "$(cat "$dir/out")"
# Routers by file: one trained here beside the one of the model, each with its own threshold.
"$MIZZLE" router collect --task milli --questions 60 --labels match -o "$dir/samples" -q \
    >/dev/null 2>&1 || fail "collect"
"$MIZZLE" router train --samples "$dir/samples" -o "$dir/table.safetensors" --head context \
    >/dev/null 2>&1 || fail "train"
run 0 --questions 8 --policy mlp,context="$dir/table.safetensors" --json -q
is "$(wc -l <"$dir/out") == 2 && $(field routed) > 0 && $(field threshold) > 0"
grep -q '"policy":"context","router":"table.safetensors"' "$dir/out" || fail "$last"
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
run 2 --policy mlp --target-routed 0.1 --calibration "$dir/none"
run 2 --policy mlp --target-routed 2
run 2 --policy mlp --cloud off
fails 2 '--cloud auto: expected without --jsonl' --policy mlp --cloud auto --jsonl "$dir/none"
run 2 --data "$dir/none"
run 3 --policy never --questions 2 --jsonl "$dir/no/folder" -q

run 0 --task ppl --questions 10 --json -q
is "$(field ppl) >= 1 && $(field tokens) > 100 && $(field accuracy) > 0.5 && $(field accuracy) < 1"
run 2 --policy mlp --target-routed 0:0.1
run 2 --policy ''
run 0 --task ppl --questions 2 -q
grep -q '^| ppl | bits/byte | foreseen | tokens ' "$dir/out" && [ "$(wc -l <"$dir/out")" -eq 3 ] || fail "no table: $(cat "$dir/out")"
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
for unread in '--target-routed 0.1' '--calibration f' '--jsonl f' '--prompt chat' '-n 5' \
    '--policy mlp' '--threshold 0.5' '--cloud-url http://127.0.0.1:9' '--cloud-model f' '--kind sums' '--wording plain'; do
    fails 2 "^mizzle eval: --.*: expected without --task ppl" --task ppl --data "$dir/text" $unread
done
for unread in '--ahead 0' '--think off' '--parallel 2'; do # whatever group an option is of
    fails 2 "^mizzle eval: ${unread%% *}: expected without --task extract" --task extract $unread
done
run 2 --policy never --questions 1 --context 64

run 2 --task chess
run 2 --policy mlp,nobody
run 2 --policy random
run 2 --questions 0
run 2 extra
run 4 -m weights/milli/edge-0.5.gguf --policy always --questions 2

"$MIZZLE" eval --questions 1000000 --policy never -q -t 1 >"$dir/out" 2>"$dir/err" &
pid=$!
interrupt $pid
wait $pid
[ $? -eq 130 ] || fail "interrupted: status not 130: $(cat "$dir/err")"
exit 0
