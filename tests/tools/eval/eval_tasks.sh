#!/bin/sh
# mizzle eval on small files of csqa, arc and gsm8k: a cloud at $KNOWN_URL that knows the texts of
# $KNOWN (t_eval_tasks.c), shares found on a fifth of the items, a journal that survives any cut.
. tests/tools/eval/eval.sh

# 40 questions about 20 things; the text of the cloud is right except for every tenth.
i=0
while [ $i -lt 40 ]; do
    letter=A
    [ $((i % 2)) -eq 0 ] || letter=B
    said=$letter
    [ $((i % 10)) -ne 9 ] || said=A
    printf '%s ' '{"id":"q'$i'","question":"Where is '$i'?","question_concept":"thing '$((i / 2))'",' \
        '"choices":{"label":["A","B"],"text":["here","there"]},"answerKey":"'$letter'",' \
        '"prompt":"Where is '$i'?","cot":"It is the ('$said') one."}'
    echo
    i=$((i + 1))
done >"$dir/csqa"
i=0
while [ $i -lt 6 ]; do
    printf '%s ' '{"prompt":"What is '$i' + 1000?","cot":"It is \\boxed{1,00'$((i + (i == 5)))'}.",' \
        '"answerKey":"100'$i'"}'
    echo
    i=$((i + 1))
done >"$dir/gsm8k"
cat "$dir/csqa" "$dir/gsm8k" >"$KNOWN"
pair="-m $edge --cloud-url $KNOWN_URL --cloud-api llamacpp -q -n 24"

# The cloud alone says what the file says, the edge alone does not; without a stand-in of its own,
# eval asks neither on its own account.
run 0 $pair --task csqa --data "$dir/csqa" --policy never,always --json
is "$(field questions) == 40 && $(field right) == 36 && $(field routed) == 1 && $(field pgr) == 1"
is "$(field tokens) > 40 * 5 && $(field left_out) == 0 && $(field decoded) == $(field tokens)"
# CITER's rule finds the same letters; of the numbers, those that are written as in the key.
is "$(field citer) == 0.9 && $(field no_answer) == 0 && $(field truncated) == 0"
run 0 $pair --task csqa --data "$dir/csqa" --policy always --questions 4 -n 3
awk '$1 == "always" { fine = $3 $6 == "0.0000.000" && $7 == "-" } length > 110 { print; fine = 0; exit } END { exit !fine }' "$dir/out" || fail "$(cat "$dir/out")"
run 0 $pair --task gsm8k --data "$dir/gsm8k" --policy always --questions 6 --json
is "$(field right) == 5 && $(field questions) == 6"
is "$(field citer) > 0.8 && $(field citer) < 0.9 && $(field no_answer) == 0"
[ "$(field pgr)" = null ] && [ "$(field threshold)" = null ] || fail "no baseline: $last"

# The pair has no chat template, so it is asked in CITER's form, and one line says so. An answer ends
# where the model would go on with another question, with any number of calls in flight.
grep -q "^mizzle: prompts are in CITER's plain form: .*chat" "$dir/err" || fail "$(cat "$dir/err")"
[ "$(wc -l <"$dir/err")" -eq 1 ] || fail "more than one line: $(cat "$dir/err")"
head -n 4 "$dir/csqa" | sed 's/\(([AB])\) one\./\1, so.\\nQuestion: Where (B)?\\nAnd so on/' >"$dir/on"
grep -q 'And so on' "$dir/on" || fail "no run-on to say"
cp "$dir/on" "$KNOWN"
for form in '' '--prompt citer' '--prompt citer --ahead 0' '--prompt citer --ahead 1'; do
    rm -f "$dir/answers"
    run 0 -m $edge --cloud-url "$KNOWN_URL" --cloud-api llamacpp -q -n 60 --task csqa --data "$dir/on" --policy always --json \
        --jsonl "$dir/answers" $form
    is "$(field right) == 4 && $(field tokens) < 4 * 40"
    grep -q '"form":"citer"' "$dir/answers" || fail "$(head -n 1 "$dir/answers")"
    [ -n "$form" ] || continue
    [ ! -s "$dir/err" ] || fail "$(cat "$dir/err")"
    grep -o '"answer":.*"text":"[^"]*"' "$dir/answers" | sed 's/"ms.*"prompt/"prompt/' >"$dir/text"
    grep -c '"text":" It is the ([AB]), so."' "$dir/text" | grep -qx 4 || fail "$(cat "$dir/text")"
done
rm "$dir/answers"
cat "$dir/csqa" "$dir/gsm8k" >"$KNOWN"

# A row names its router.
run 0 -m weights/milli/edge-0.1.gguf --cloud-model weights/milli/cloud.gguf --questions 4 --policy mlp,always --json -q
sum=$(sha256sum weights/milli/edge-0.1.router.safetensors | cut -d ' ' -f 1)
head -n 1 "$dir/out" | grep -q "\"router\":\"edge-0.1.router.safetensors\",\"router_sha256\":\"$sum\",\"router_fingerprint\":\"[0-9a-f]\{16\}\"" ||
    fail "the router is not named: $(cat "$dir/out")"

# Subjects are not split: what is calibrated on is about other things than what is asked.
run 0 $pair --task csqa --data "$dir/csqa" --policy never,max-prob,random,always \
    --target-routed 0.3 --json --jsonl "$dir/answers"
is "$(wc -l <"$dir/out") == 4"
asked=$(field questions)
is "$asked >= 26 && $asked < 40 && $asked % 2 == 0"
last=$(sed -n 2p "$dir/out")
is "$(field target) == 0.3 && $(field routed) > 0.15 && $(field routed) < 0.45"
is "$(field calls) > 0 && $(field calls) < $(field tokens) && $(field work) > 0 && $(field work) < 1"
is "$(field prefilled) + $(field cached) > $(field prompt_tokens)"
is "$(wc -l <"$dir/answers") == 1 + 4 * $asked + 2" # the settings, two thresholds
grep -q '"id":"q1",.*"right":\(true\|false\)' "$dir/answers" || fail "no id in the journal"

# Cut anywhere, even in the middle of a line, the same run gives the same results, times aside; the
# replies of a server that has been running for longer have longer numbers.
plain() {
    sed 's/"\(ms\|edge_ms\|ttft_ms\|tbt_ms\|tbt_p95_ms\|tok_s\|bytes_down\)":[0-9.]*,//g; s/"date":"[^"]*",//' "$1"
}
swept="$pair --task csqa --data $dir/csqa --policy never,max-prob,random,always"
swept="$swept --target-routed 0.1 --json"
again() {
    run 0 $swept --jsonl "$dir/cut"
    plain "$dir/out" >"$dir/now"
    diff "$dir/plain" "$dir/now" || fail "cut at $1: other results"
    is "$(grep -vc '^{"on"' "$dir/cut") == $(wc -l <"$dir/answers")"
}
rm "$dir/answers"
run 0 $swept --jsonl "$dir/answers"
plain "$dir/out" >"$dir/plain"
is "$(wc -l <"$dir/answers") == 1 + 4 * $asked + 2"
bytes=$(wc -c <"$dir/answers")
for part in 0 1 3 37 55 99; do
    head -c $((bytes * part / 100)) "$dir/answers" >"$dir/cut"
    again $part
done
held=$(cat "$dir/cut")
again whole
[ "$held" = "$(cat "$dir/cut")" ] || fail "a finished run was continued"

# A full disk (here a limit on the size of files) ends the run after a whole line.
rm "$dir/cut"
(
    trap '' XFSZ
    ulimit -f 8
    "$MIZZLE" eval $swept --jsonl "$dir/cut" >"$dir/out" 2>"$dir/err"
)
[ $? -eq 3 ] && grep -q 'cut: File too large' "$dir/err" || fail "full disk: $(cat "$dir/err")"
[ "$(tail -c 1 "$dir/cut" | wc -l)" -eq 1 ] || fail "a full disk leaves half a line"
again "a full disk"

# Other settings, and files that are no journal.
data="--task csqa --data $dir/csqa"
fails 2 'other settings: seed: expected "2", found "1"' $swept --seed 2 --jsonl "$dir/cut"
run 2 $pair $data --policy never,max-prob,random,always --target-routed 0.2 --jsonl "$dir/cut"
grep -q 'other settings: targets' "$dir/err" || fail "$(cat "$dir/err")"
run 2 $pair $data --policy never --jsonl "$dir/cut"
for line in '{"policy":"never","share":null,"item":0}' '{"policy":"never","point":0,"item":0}' \
    '{"calibrated":"random","point":0,"threshold":"x"}' '{"point":0}'; do
    head -n 3 "$dir/answers" >"$dir/bad" && echo "$line" >>"$dir/bad"
    fails 3 "line 4: expected the fields of an answer or of a threshold" $swept --jsonl "$dir/bad"
done
echo 'no JSON' >"$dir/bad"
run 3 $pair $data --policy never --jsonl "$dir/bad"
run 3 $pair $data --policy never --jsonl "$dir/csqa"
printf 'precious notes' >"$dir/bad" # a text without a newline is not an unfinished journal
run 3 $pair $data --policy never --jsonl "$dir/bad"
[ "$(cat "$dir/bad")" = 'precious notes' ] || fail "a text was deleted"

# A form of one's own: the journal holds what it is, not how it is called.
printf '{question} {choices}\n' >"$dir/form"
form="-m $edge -q -n 4 $data --policy never --questions 2 --jsonl $dir/formed"
run 0 $form --prompt "@$dir/form"
grep -q 'in the form of --prompt as it stands' "$dir/err" || fail "$(cat "$dir/err")"
digest=$(sha256sum "$dir/form" | cut -d ' ' -f 1)
grep -q "\"form\":\"plain @$digest\"" "$dir/formed" || fail "$(head -n 1 "$dir/formed")"
printf '{question}: {choices}\n' >"$dir/form"
fails 2 'other settings: form: expected "plain @' $form --prompt "@$dir/form"
echo '{question}' >"$dir/form"
run 3 $form --prompt "@$dir/form"
run 2 $form --prompt citer

# What is longer than the context is left out and counted.
long=$(printf 'word %.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20)
long="$long$long$long$long$long$long$long$long$long$long"
long="$long$long$long$long$long$long$long$long"
sed "2s/\"prompt\":\"/&$long/" "$dir/csqa" >"$dir/long"
run 0 $pair --task csqa --data "$dir/long" --policy never --questions 5 --json
is "$(field questions) == 4 && $(field left_out) == 1"
run 0 $pair --task csqa --data "$dir/long" --policy never --questions 5
grep -q '^left out: 1 ' "$dir/out" || fail "$(cat "$dir/out")"
sed -n 2p "$dir/long" >"$dir/one"
run 2 $pair --task csqa --data "$dir/one" --policy never

# What eval refuses.
run 2 -m $edge $data --prompt none
run 2 -m $edge --task csqa
run 3 $pair $data --policy mlp="$dir/none" --target-routed 0.1
run 3 $pair $data --policy mlp="$dir/csqa" --target-routed 0.1
head -n 1 "$dir/csqa" >"$dir/one"
run 2 $pair --task csqa --data "$dir/one" --policy max-prob --target-routed 0.1
run 0 $pair --task csqa --data "$dir/one" --policy max-prob --target-routed 0.1 \
    --calibration "$dir/csqa" --json
head -n 30 "$dir/csqa" >"$dir/few"
run 0 $pair --task csqa --data "$dir/few" --policy max-prob --target-routed 0.1 -n 4
grep -q 'thresholds are found on [0-9]* questions only' "$dir/err" || fail "says nothing of few questions"
: >"$dir/empty"
run 3 -m $edge --task csqa --data "$dir/empty" --policy never
run 4 -m $edge --cloud-url http://127.0.0.1:9 -q $data --policy always --questions 2
exit 0
