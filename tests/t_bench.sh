#!/bin/sh
# bench: llama-bench-like rows with every sample, no file needed; kernels, limits, the picture.
set -eu
MIZZLE=${MIZZLE:-build/mizzle}
data=${MIZZLE_TESTDATA:-../shared/data}/weights/stories260K_qwen2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$MIZZLE" bench kernels --only add_f32 -r 1 -o jsonl --plot "$tmp/roof.svg" >"$tmp/out"
[ "$(grep -c '"op": "add_f32".*"times_scalar"' "$tmp/out")" -ge 1 ]
# Columns of counters where the machine has them, one line on stderr where it has not; never an error.
"$MIZZLE" bench kernels --only add_f32 -r 1 -o csv >"$tmp/out" 2>"$tmp/err"
if [ -s "$tmp/err" ]; then
    grep -q 'no hardware counters: ' "$tmp/err" && [ "$(wc -l <"$tmp/err")" -eq 1 ]
    if grep -q cycles "$tmp/out"; then exit 1; fi
else
    grep -q ',cycles,' "$tmp/out"
fi
[ "$(awk -F, '{ print NF }' "$tmp/out" | sort -u | wc -l)" -eq 1 ]
grep -q '^<svg' "$tmp/roof.svg" && grep -q '</svg>' "$tmp/roof.svg"
"$MIZZLE" bench kernels --only attn_f16 -r 1 | grep -q '^| attn_f16 | scalar | 7 rows'
"$MIZZLE" bench limits -t 1 -o csv | grep -q '^"read from memory",GB/s,1,'
for wrong in 'kernels --only nothing' 'nothing' 'kernels --plot /nonexistent/roof.svg --only add_f32'; do
    status=0
    # shellcheck disable=SC2086
    "$MIZZLE" bench $wrong >"$tmp/out" 2>&1 || status=$?
    [ "$status" -eq 2 ] || [ "$status" -eq 3 ]
done
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
