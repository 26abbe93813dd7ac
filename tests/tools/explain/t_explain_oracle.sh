#!/bin/sh
# What mizzle explain shows of random models is what a float64 reference in numpy computes.
set -eu
. tests/support/shell.sh
oracle
text='Seventy bytes and a few more, so that keys lie in more than one block of 64: 0123'

check() { # name, layers, options of the generator: explain the text with this model
    name=$1 layers=$2
    shift 2
    "$PYTHON" "$ORACLE/make_random_qwen2.py" "$dir/$name" --vocab 272 "$@"
    "$PYTHON" tests/support/explain_oracle.py "$ORACLE" vocabulary "$dir/$name"
    "$MIZZLE" explain -m "$dir/$name" -p "$text" -n 5 --kv f32 --layers "$layers" --span-of 'a few' --json -t 2 \
        >"$dir/json" 2>"$dir/err"
    ids=$("$PYTHON" -c 'import json, sys
d = json.load(open(sys.argv[1]))
print(",".join(str(t["id"]) for t in d["tokens"][: len(d["positions"])]))' "$dir/json")
    "$MIZZLE" logits -m "$dir/$name" --ids "$ids" -o "$dir/logits" 2>"$dir/err"
    printf '%s: ' "$name"
    "$PYTHON" tests/support/explain_oracle.py "$ORACLE" check "$dir/$name" "$dir/json" "$dir/logits"
}

check plain 2 --dtype F32 --seed 3
check odd 1:2 --dtype F16 --hidden 40 --layers 4 --heads 5 --kv 1 --ffn 100 --untied
check three 0 --qwen3 --dtype F32 --hidden 50 --heads 4 --kv 2 --head-dim 34 --ffn 77

# A text of which too much would be kept is refused before anything is written.
long=$(awk 'BEGIN { for (i = 0; i < 6000; i++) printf "a" }')
refuses 2 'at most 256 MiB' explain -m "$dir/plain" -p "$long" --layers 0:2 --json
