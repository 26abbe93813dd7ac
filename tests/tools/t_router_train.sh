#!/bin/sh
# mizzle router train --samples: reports, the file and whose it is, refusals.
. tests/support/demo_pair.sh

# has FILE PATTERN: info on the file shows it.
has() {
    "$MIZZLE" info "$1" | tr -s ' ' >"$dir/info" || fail "info $1"
    grep -q -e "$2" "$dir/info" || fail "$1: expected '$2' in: $(cat "$dir/info")"
}

# number KEY: print a number of the last JSON report.
number() {
    sed -n "s/.*\"$1\":\([-0-9.e]*\).*/\1/p" "$dir/out"
}

# holds EXPRESSION: a comparison of numbers.
holds() {
    awk "BEGIN { exit !($1) }" || fail "not true: $1: $(cat "$dir/out")"
}

ends 0 router collect -q -o "$dir/s" --questions 110 --labels match
ends 0 router collect -q -o "$dir/more" --questions 40 --labels match --seed 2
r=$dir/r.safetensors

# The same bytes with one thread and with two; the report for people and the one for programs.
ends 0 router train -q --samples "$dir/s" --samples "$dir/more" -o "$r" --json -t 1 --width 64 --epochs 12
holds "$(number auc) >= 0.95 && $(number held) > 500 && $(number routed) <= 0.05"
holds "$(number context_auc) > 0.4 && $(number context_pairs) > 50 && $(number ece) < 0.1"
shows '"head":"mlp","task":"milli","labels":"match","tap":"final","model":"[0-9a-f]\{16\}"'
shows '"histogram_wrong":\[[0-9]*,[0-9,]*\],"histogram_right":\[[0-9,]*\]'
ends 0 router train -q --samples "$dir/s" --samples "$dir/more" -o "$dir/two" -t 2 --width 64 --epochs 12
same "$r" "$dir/two" # with one thread
for line in samples 'trained on' loss 'held-out AUC' '  equal context' 'held-out ECE' '  0.9 to 1.0' threshold; do
    shows "^$line"
done
has "$r" 'model Mizzle milli edge-0.5'
has "$r" 'weights Q8_0'
has "$r" 'learnt milli'
has "$r" 'fingerprint '

# Samples of two tasks: no task to calibrate it on, so the file says what its threshold routes.
echo '{"question": "Where is the hirukudi?", "answer": "#### 5"}' >"$dir/problems"
ends 0 router collect -q -o "$dir/other" --task gsm8k --data "$dir/problems" --labels match
ends 0 router train -q --samples "$dir/s" --samples "$dir/other" -o "$dir/x" --width 64 --epochs 2
shows '^samples .* of milli+gsm8k'
has "$dir/x" 'share *0.0[345]'
has "$dir/x" 'learnt milli+gsm8k'

# The other heads, and a control.
ends 0 router train -q --samples "$dir/s" -o "$dir/x" --epochs 2 --width 64 --json
holds "$(number auc) > 0.9 && $(number epochs) == 2"
ends 0 router train -q --samples "$dir/s" --samples "$dir/more" -o "$dir/x" --labels shuffled --json --epochs 2 --width 32
holds "$(number auc) > 0.2 && $(number auc) < 0.8" # few tokens are wrong; t_fit_heads has more
# Several trainings, each with a seed and a resample of the subjects; the second is the first of the
# next seed.
ends 0 router train -q --samples "$dir/s" -o "$dir/x" --head context --json --repeats 2
[ "$(wc -l <"$dir/out")" -eq 2 ] && ! cmp -s "$dir/x.1" "$dir/x.2" || fail "repeats: $(cat "$dir/out")"
mv "$dir/x.2" "$dir/second"
ends 0 router train -q --samples "$dir/s" -o "$dir/x" --head context --json --repeats 2 --seed 2
same "$dir/second" "$dir/x.1"
ends 0 router train -q --samples "$dir/s" -o "$dir/table.safetensors" --head context --json
holds "$(number auc) > 0.9 && $(number context_auc) == 0.5"
has "$dir/table.safetensors" 'a table of '

# Several members: the same bytes with one thread and three, one file, which runs and is calibrated;
# explain says what its units add to.
ends 0 router train -q --samples "$dir/s" -o "$dir/m.safetensors" --head mix --members 3 --width 16 --epochs 4 -t 1
shows '; best of 4 epochs: [0-9]*, of the last of 3 members$'
ends 0 router train -q --samples "$dir/s" -o "$dir/two" --head mix --members 3 --width 16 --epochs 4 -t 3
same "$dir/m.safetensors" "$dir/two"
has "$dir/m.safetensors" 'mix, 16 wide, mean of 3 members, reads 128 values'
ends 0 info --json "$dir/m.safetensors"
shows '"width":16,"members":3,'
ends 0 router calibrate -q --router "$dir/m.safetensors" --target-routed 0.05 --questions 20
ends 0 eval -q --questions 4 --policy "mlp=$dir/m.safetensors"
ends 0 explain --question 1 --router "$dir/m.safetensors"
shows 'these add to the mean of the sums of all members:'
ends 0 explain --question 1 --router "$dir/m.safetensors" --json
shows '"sums":"the mean of the sums of all members"'
# One text with any threads and kernels, in step and ahead, and explain finds the same scores.
line="--question 4 -n 30 --json --router $dir/m.safetensors --threshold 0.7"
anew
each 'alike tokens run $line' '--ahead 0' '-t 2' '--isa scalar -t 1'
grep -q cloud "$dir/first" && grep -q edge "$dir/first" || fail "members: $(cat "$dir/first")"
sed -n 's/.*"token".*"score":\([0-9.e-]*\),.*/\1/p' "$dir/first" >"$dir/scores"
ends 0 explain $line
sed -n 's/^{"pos":.*"score":\([0-9.e-]*\),"verdict".*/\1/p' "$dir/out" | tail -n "$(wc -l <"$dir/scores")" |
    paste "$dir/scores" - | awk '!NF || ($1 - $2) ^ 2 > 1e-14 { exit 1 }' || fail "members: explain"
train="router train -q --samples $dir/s -o $dir/never --head"
refuses 2 'width: expected at most 4096, found 1152921504606846977' $train mix --members 16 --width 1152921504606846977
refuses 2 'expected at most 4000000 bytes in a file of several members, found ' $train mix --members 16 --width 1000
refuses 2 'expected samples of labels gain, found match in ' $train gain

# Labels gain: the report says how well what mends is known, and the score is no probability. Old
# heads learn from these labels, too.
ends 0 router collect -q -o "$dir/gain" --questions 100 --labels gain --cloud-model weights/milli/edge-1.gguf
gain="train -q --samples $dir/gain -o $dir/x --width 12 --epochs 4"
ends 0 router $gain --head gain-none --members 5
for line in ', of the last of 5 members' 'head            gain-none' ' % of what mends, at 6.5 % of the tokens' \
    'of what mends   AUC 0[.][0-9]* where the models differ, 0[.][0-9]* against what spoils (12 tokens'; do
    shows "$line"
done
! grep -q ECE "$dir/out" || fail "a gain is no probability: $(cat "$dir/out")"
has "$dir/x" 'gain-none, 12 wide, mean of 5 members, '
ends 0 router $gain --head gain-none --members 5 --json
shows '"members":5,"trained_spoils":[1-9].*"ece":null,"differ_auc":0[.].*"spoils_auc":0[.].*"recall":[01][.]'
ends 0 router $gain --head mix --json
shows '"labels":"gain".*"recall":null'
# Two members of two outputs run, are explained and scored, and do not become RMLP.
ends 0 router $gain --head gain --members 2
has "$dir/x" 'gain, 12 wide, mean of 2 members, reads 128 values of tap final'
ends 0 run -p 'What is' -n 8 --router "$dir/x" --cloud off --json
shows '"score":0\.[0-9]'
ends 0 explain --question 1 --router "$dir/x" --threshold 0.5
shows 'these add to the sum under P(spoils) less the one under P(mends), the mean of all members:'
head -c 1096 /dev/zero >"$dir/zero.x" # 2 rows of the state and 9 features
ends 0 router score --router "$dir/x" --hidden "$dir/zero.x"
cp "$dir/out" "$dir/score"
ends 0 router score --router "$dir/x" --hidden "$dir/zero.x" --raw
paste "$dir/score" "$dir/out" | awk '{ d = $2 - 1 + 2 * $1; bad += d * d > 1e-11 } END { exit bad || NR != 2 }' ||
    fail "raw: $(paste "$dir/score" "$dir/out")"
if "${PYTHON:-/usr/bin/python3}" -c 'import numpy' 2>/dev/null; then
    "${PYTHON:-/usr/bin/python3}" -B tools/lab/import_router.py "$dir/x" "$dir/m.rmlp" 2>"$dir/err" &&
        fail "two members of two outputs became RMLP"
    says 'expected one network of head mlp that reads the final state alone'
fi

# What router/learn/README.md trains in numpy is a router.
if "${PYTHON:-/usr/bin/python3}" -c 'import numpy' 2>/dev/null; then
    sed -n '/^```python/,/^```$/p' router/learn/README.md | sed '1d;$d' >"$dir/own.py"
    "${PYTHON:-/usr/bin/python3}" "$dir/own.py" "$dir/s" "$dir/own.safetensors" || fail "own.py"
    has "$dir/own.safetensors" 'model Mizzle milli edge-0.5'
    ends 0 eval -q --questions 40 --policy never,"mlp=$dir/own.safetensors" --target-routed 0.1 --json
    sed 's/.*"accuracy":\([0-9.]*\).*/\1/' "$dir/out" | awk '{ right[NR] = $1 } END { exit !(right[2] > right[1] + 0.2) }' ||
        fail "own router: $(cat "$dir/out")"
else
    echo "SKIP the router in numpy: no numpy for ${PYTHON:-/usr/bin/python3}"
fi

# The file runs with its model; the table is found beside the model.
cp "$edge" "$dir/m.gguf"
cp "$dir/table.safetensors" "$dir/m.context.safetensors"
ends 0 run -m "$dir/m.gguf" -p x -n 3 --router "$r" --cloud off
ends 0 run -m "$dir/m.gguf" -p 'What is' -n 8 --policy context --cloud off --json
shows '"score":0\.[0-9]'
ends 0 run -m "$dir/m.gguf" -p x -n 3 --router "$dir/table.safetensors" --cloud off
refuses 2 'expected a network, found a table' run -m "$dir/m.gguf" -p x --policy mlp \
    --router "$dir/table.safetensors" --cloud off
refuses 2 'expected a table, found a network' run -m "$dir/m.gguf" -p x --policy context --router "$r" --cloud off
rm "$dir/m.context.safetensors"
refuses 2 'no router beside' run -m "$dir/m.gguf" -p x -n 3 --policy context --cloud off

head -c 512 /dev/zero >"$dir/x.f32"
refuses 2 'expected a network, found a table' router score --router "$dir/table.safetensors" --hidden "$dir/x.f32"
ends 0 router score --router "$r" --hidden "$dir/x.f32" -o "$dir/y.f32"

# Another type of weights gives a note, another model is refused by both names.
ends 0 convert "$edge" "$dir/q4.gguf" --type q4_0 -q
ends 0 run -m "$dir/q4.gguf" -p x -n 3 --router "$r" --cloud off
says 'calibrated with weights of type Q8_0, and the model has Q4_0'
refuses 3 'expected Mizzle milli edge-0.1 (' run -m weights/milli/edge-0.1.gguf -p x -n 3 --router "$r" --cloud off
says 'found Mizzle milli edge-0.5 ('

# Options that do not go together, or contradict the samples.
for bad in '--head mpl' '--head linear' '--head citer' \
    '--share 2' extra '--width 65537' \
    '--head context --width 8' '--members 17' '--head context --members 2' \
    '--head context --epochs 2' '--epochs 0'; do
    ends 2 router train --samples "$dir/s" -o "$dir/never" $bad
    [ ! -e "$dir/never" ] || fail "$bad: something was written"
done
refuses 2 'expected -o FILE and --samples DIR' router train -o "$dir/never"
ends 0 router collect -q -o "$dir/citer" --questions 2 --labels citer
refuses 2 "$dir/citer: labels: expected match, as in $dir/s, found citer" router train \
    --samples "$dir/s" --samples "$dir/citer" -o "$dir/never"

# A router of another hidden state, as 0.5.1 had them, and one of another model's size.
LC_ALL=C sed 's/"tap":"final"/"tap":"2,1,5"/' "$r" >"$dir/x"
refuses 3 'metadata tap: expected final, found "2,1,5"' run -p x -n 3 --router "$dir/x" --cloud off
LC_ALL=C sed 's/"model":/"modex":/' weights/milli/edge-0.1.router.safetensors >"$dir/x"
refuses 3 'hidden size: expected 128, as the model has, found 64' run -p x -n 3 --router "$dir/x" --cloud off

# Bad samples: nothing held out, no collection, one that is cut (all ways: tests/router/t_sample_files.c).
ends 0 router collect -q -o "$dir/one" --questions 1 --labels match
refuses 2 'expected right and wrong tokens in both parts' router train --samples "$dir/one" -o "$dir/never"
refuses 3 "$dir/00000.safetensors: expected a finished collection" router train --samples "$dir" -o "$dir/never"
shard=$dir/one/00000.safetensors
head -c 1000 "$shard" >"$dir/cut" && mv "$dir/cut" "$shard"
refuses 3 "$shard" router train --samples "$dir/one" -o "$dir/never"
refuses 3 "$dir/none" router train --samples "$dir/more" -o "$dir/none/never"
[ ! -e "$dir/never" ] || fail "a refused training wrote a file"
