#!/bin/sh
# bench model: llama-bench-like rows, every sample kept, no file needed.
set -eu
MIZZLE=${MIZZLE:-build/mizzle}
data=${MIZZLE_TESTDATA:-../shared/data}/weights/stories260K_qwen2
[ -d "$data" ] || { echo "SKIP: no $data"; exit 77; }
out=$("$MIZZLE" bench model -m "$data" -p 8 -n 4 -r 2 -t 1 -o json)
for key in n_prompt n_gen n_threads type isa avg_ts samples_ts model_n_params; do
    echo "$out" | grep -q "\"$key\":" || { echo "no $key in $out"; exit 1; }
done
[ "$(echo "$out" | grep -c '"n_prompt"')" -eq 2 ]
"$MIZZLE" bench model -m "$data" -p 8 -n 0 -r 1 -o md | grep -q '| pp8 |'
"$MIZZLE" bench model -m "$data" -p 0 -n 3 -d 5 -r 1 -o csv | grep -q ',3,5,'
status=0
"$MIZZLE" bench model --shape nothing 2>/dev/null || status=$?
[ "$status" -eq 2 ]
status=0
"$MIZZLE" bench kernels 2>/dev/null || status=$?
[ "$status" -eq 2 ]
