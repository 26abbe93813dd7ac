#!/bin/sh
# mizzle router train --samples: reports, the file and whose it is, refusals.
set -u
mizzle=${MIZZLE:-build/mizzle}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
edge=weights/milli/edge-0.5.gguf
[ -f "$edge" ] || {
    echo "SKIP: no demo pair in weights/milli"
    exit 77
}

fail() {
    echo "t_router_train: $*" >&2
    exit 1
}

# run STATUS ARGS...: run mizzle, which must end with this status; if it fails, with one line.
run() {
    want=$1
    shift
    ${RUN:-} "$mizzle" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$?
    [ "$got" -eq "$want" ] || fail "$*: status $got, expected $want: $(cat "$tmp/err")"
    [ "$want" -eq 0 ] || [ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "$*: not one line: $(cat "$tmp/err")"
    [ "$want" -eq 0 ] || [ ! -s "$tmp/out" ] || fail "$*: wrote to stdout"
}

# said WORDS: the last error holds these words.
said() {
    grep -qF -- "$1" "$tmp/err" || fail "expected '$1' in: $(cat "$tmp/err")"
}

# has FILE WORDS: info on the file shows these words.
has() {
    ${RUN:-} "$mizzle" info "$1" | tr -s ' ' >"$tmp/info" || fail "info $1"
    grep -qF -- "$2" "$tmp/info" || fail "$1: expected '$2' in: $(cat "$tmp/info")"
}

# number KEY: print a number of the last JSON report.
number() {
    sed -n "s/.*\"$1\":\([-0-9.e]*\).*/\1/p" "$tmp/out"
}

# holds EXPRESSION: a comparison of numbers.
holds() {
    awk "BEGIN { exit !($1) }" || fail "not true: $1: $(cat "$tmp/out")"
}

run 0 router collect -q -o "$tmp/s" --questions 110 --labels match
run 0 router collect -q -o "$tmp/more" --questions 40 --labels match --seed 2
r=$tmp/r.safetensors

# The same bytes with one thread and with two; the report for people and the one for programs.
run 0 router train -q --samples "$tmp/s" --samples "$tmp/more" -o "$r" --json -t 1 --width 64 --epochs 12
holds "$(number auc) >= 0.95 && $(number held) > 500 && $(number routed) <= 0.05"
holds "$(number context_auc) > 0.4 && $(number context_pairs) > 50 && $(number ece) < 0.1"
grep -q '"head":"mlp","task":"milli","labels":"match","tap":"final","model":"[0-9a-f]\{16\}"' "$tmp/out" ||
    fail "$(cat "$tmp/out")"
grep -q '"histogram_wrong":\[[0-9]*,[0-9,]*\],"histogram_right":\[[0-9,]*\]' "$tmp/out" || fail "$(cat "$tmp/out")"
run 0 router train -q --samples "$tmp/s" --samples "$tmp/more" -o "$tmp/two" -t 2 --width 64 --epochs 12
cmp -s "$r" "$tmp/two" || fail "threads change the bits"
for line in samples 'trained on' loss 'held-out AUC' '  equal context' 'held-out ECE' '  0.9 to 1.0' threshold; do
    grep -q "^$line" "$tmp/out" || fail "no line '$line': $(cat "$tmp/out")"
done
has "$r" 'model Mizzle milli edge-0.5'
has "$r" 'weights Q8_0'
has "$r" 'task milli'
has "$r" 'fingerprint '

# The other heads, a control, and CITER's recipe.
run 0 router train -q --samples "$tmp/s" -o "$tmp/x" --head citer --epochs 2 --width 64 --json
holds "$(number auc) > 0.9 && $(number epochs) == 2"
run 0 router train -q --samples "$tmp/s" -o "$tmp/x" --head linear --epochs 10 --json
holds "$(number auc) > 0.9"
has "$tmp/x" '2 wide'
run 0 router train -q --samples "$tmp/s" -o "$tmp/x" --recipe citer --epochs 1 --width 32 --json
holds "$(number epochs) == 1"
has "$tmp/x" '32 wide'
run 0 router train -q --samples "$tmp/s" --samples "$tmp/more" -o "$tmp/x" --shuffle-labels --json --epochs 2 --width 32
holds "$(number auc) > 0.2 && $(number auc) < 0.8" # few tokens are wrong; t_fit_heads has more
# Several trainings, each with a seed and a resample of the subjects; the second is the first of the
# next seed.
run 0 router train -q --samples "$tmp/s" -o "$tmp/x" --head context --json --repeats 2
[ "$(wc -l <"$tmp/out")" -eq 2 ] && ! cmp -s "$tmp/x.1" "$tmp/x.2" || fail "repeats: $(cat "$tmp/out")"
mv "$tmp/x.2" "$tmp/second"
run 0 router train -q --samples "$tmp/s" -o "$tmp/x" --head context --json --repeats 2 --seed 2
cmp "$tmp/second" "$tmp/x.1" || fail "repeats: another router with the same seed"
run 0 router train -q --samples "$tmp/s" -o "$tmp/table.safetensors" --head context --json
holds "$(number auc) > 0.9 && $(number context_auc) == 0.5"
has "$tmp/table.safetensors" 'a table of '

# The file runs with its model; the table is found beside the model.
cp "$edge" "$tmp/m.gguf"
cp "$tmp/table.safetensors" "$tmp/m.context.safetensors"
run 0 run -m "$tmp/m.gguf" -p x -n 3 --router "$r" --cloud off
run 0 run -m "$tmp/m.gguf" -p 'What is' -n 8 --policy context --cloud off --json
grep -q '"score":0\.[0-9]' "$tmp/out" || fail "no scores: $(cat "$tmp/out")"
run 0 run -m "$tmp/m.gguf" -p x -n 3 --router "$tmp/table.safetensors" --cloud off
run 2 run -m "$tmp/m.gguf" -p x -n 3 --policy mlp --router "$tmp/table.safetensors" --cloud off
said 'expected a network, found a table'
run 2 run -m "$tmp/m.gguf" -p x -n 3 --policy context --router "$r" --cloud off
said 'expected a table, found a network'
rm "$tmp/m.context.safetensors"
run 2 run -m "$tmp/m.gguf" -p x -n 3 --policy context --cloud off
said 'no router beside'

head -c 512 /dev/zero >"$tmp/x.f32"
run 2 router score --router "$tmp/table.safetensors" --hidden "$tmp/x.f32" -o "$tmp/y.f32"
said 'expected a network, found a table'
run 0 router score --router "$r" --hidden "$tmp/x.f32" -o "$tmp/y.f32"

# Another type of weights gives a note, another model is refused by both names.
run 0 convert "$edge" "$tmp/q4.gguf" --type q4_0 -q
run 0 run -m "$tmp/q4.gguf" -p x -n 3 --router "$r" --cloud off
said 'calibrated with weights of type Q8_0, and the model has Q4_0'
run 3 run -m weights/milli/edge-0.1.gguf -p x -n 3 --router "$r" --cloud off
said 'expected Mizzle milli edge-0.1 ('
said 'found Mizzle milli edge-0.5 ('

# Options that do not go together, or contradict the samples.
for bad in '--head mpl' '--recipe paper' '--recipe citer --head mlp' '--tap middle' '--tap post_attn' \
    '--questions 5' '--cloud-model x.gguf' "-m $edge" '--share 2' extra '--width 65537' \
    '--head linear --width 8' \
    '--head context --epochs 2' '--epochs 0'; do
    # shellcheck disable=SC2086
    run 2 router train --samples "$tmp/s" -o "$tmp/never" $bad
    [ ! -e "$tmp/never" ] || fail "$bad: something was written"
done
run 2 router train -o "$tmp/never" -m "$edge"
said '--cloud-model together'
run 0 router collect -q -o "$tmp/tap" --questions 2 --labels match --tap post_attn
run 2 router train --samples "$tmp/s" --samples "$tmp/tap" -o "$tmp/never"
said "$tmp/tap"
said "$tmp/s"

# Bad samples: nothing held out, one label, no collection, one that is cut or not finished.
run 0 router collect -q -o "$tmp/one" --questions 1 --labels match
run 2 router train --samples "$tmp/one" -o "$tmp/never"
said 'expected right and wrong tokens in both parts'
run 3 router train --samples "$tmp" -o "$tmp/never"
said "$tmp/00000.safetensors: expected a finished collection"
shard=$tmp/one/00000.safetensors
cp "$shard" "$tmp/whole"
size=$(od -An -tu8 -N8 "$shard")
at=$(head -c $((8 + size)) "$shard" | tail -c "$size" | tr -d ' ' |
    sed -n 's/.*"hidden":{[^}]*"data_offsets":\[\([0-9]*\),.*/\1/p')
at=$((at + 8 + size))
printf '\377\377\377\177' | dd of="$shard" bs=1 seek="$at" conv=notrunc 2>/dev/null
run 3 router train --samples "$tmp/one" -o "$tmp/never"
said "$shard: tensor hidden: row 0: expected finite values, found nan"
cp "$tmp/whole" "$shard"
run 2 router train --samples "$tmp/one" -o "$tmp/never"
head -c 1000 "$shard" >"$tmp/cut"
mv "$tmp/cut" "$shard"
run 3 router train --samples "$tmp/one" -o "$tmp/never"
said "$shard"
echo '{}' >"$tmp/one/meta.json"
run 3 router train --samples "$tmp/one" -o "$tmp/never"
said "$tmp/one/meta.json: expected no such file, found a collection of an older version"
run 3 router train --samples "$tmp/more" -o "$tmp/none/never"
said "$tmp/none"
[ ! -e "$tmp/never" ] || fail "a refused training wrote a file"
