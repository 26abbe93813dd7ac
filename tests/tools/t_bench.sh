#!/bin/sh
# mizzle bench: rows like llama-bench's with every sample, without a file; kernels, limits,
# pictures.
set -eu
MIZZLE=${MIZZLE:-build/mizzle}
data=${MIZZLE_TESTDATA:-../shared/data}/weights/stories260K_qwen2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$MIZZLE" bench kernels --only add_f32 -r 1 -o jsonl --plot "$tmp/roof.svg" >"$tmp/out"
[ "$(grep -c '"op": "add_f32".*"times_scalar"' "$tmp/out")" -ge 1 ]
# Counters have columns if the machine has them; otherwise one line on stderr says so.
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
"$MIZZLE" bench kernels --only add_f32 --isa scalar -r 1 -o csv 2>"$tmp/err" >"$tmp/out"
[ "$(wc -l <"$tmp/out")" -eq 2 ]
"$MIZZLE" bench limits -t 1 -o csv | grep -q '^"read from memory",GB/s,1,'
for wrong in 'kernels --only nothing' 'kernels --isa z80' 'nothing' 'kernels --plot /nonexistent/roof.svg --only add_f32'; do
    status=0
    # shellcheck disable=SC2086
    "$MIZZLE" bench $wrong >"$tmp/out" 2>&1 || status=$?
    [ "$status" -eq 2 ] || [ "$status" -eq 3 ]
done
# An option of another subject is refused, not ignored.
for wrong in 'model --plot x.svg' 'model --only add_f32' 'model --routed 0.1' '-r 1 limits' 'limits --only add_f32' \
    'limits --plot x.svg' 'limits -p 8' 'kernels -d 5' 'kernels -t 1' 'kernels --shape qwen2.5-0.5b' \
    'route --only add_f32' 'route -d 5'; do
    status=0
    # shellcheck disable=SC2086
    "$MIZZLE" bench $wrong >"$tmp/out" 2>"$tmp/err" || status=$?
    [ "$status" -eq 2 ] && grep -q 'unknown option -' "$tmp/err" && [ ! -s "$tmp/out" ] || { echo "bench $wrong"; exit 1; }
done
# model: llama-bench's columns, lists, every sample in all formats but md, cost and saving of a
# router.
"$MIZZLE" bench --help >"$tmp/out"
for option in -p -n -d -r -t -o --shape --type --plot; do
    grep -q -e "$option" "$tmp/out"
done
"$MIZZLE" bench model -p 8,16 -n 2,3 -d 0,70 -t 2 -r 3 -o jsonl >"$tmp/jsonl"
for form in json csv md; do
    "$MIZZLE" bench model -p 8 -n 3 -d 70 -t 1,2 -r 2 -o $form >"$tmp/$form"
done
for key in cpu_info model_filename model_type model_size model_n_params backends isa n_threads type_k \
    type_v n_prompt n_gen n_depth test_time avg_ns stddev_ns avg_ts stddev_ts samples_ns samples_ts \
    probe_gb_s joules_per_token peak_bytes router_score_ns router_share edge_token_ns routed_token_ns routed_saves \
    samples_score_ns samples_edge_ns samples_routed_ns; do
    [ "$(grep -c "\"$key\": " "$tmp/jsonl")" -eq 8 ] || { echo "no $key"; exit 1; }
    [ "$(grep -c "\"$key\": " "$tmp/json")" -eq 4 ]
    head -n 1 "$tmp/csv" | tr , '\n' | grep -qx "$key"
done
[ "$(grep -c '"samples_ts": \[[0-9.]*, [0-9.]*, [0-9.]*\], ' "$tmp/jsonl")" -eq 8 ]
[ "$(grep -c '"n_gen": 3, .*"router_score_ns": [0-9]' "$tmp/jsonl")" -eq 2 ]
[ "$(grep -c '"n_prompt": 16, .*"n_depth": 70, .*"router_share": null' "$tmp/jsonl")" -eq 1 ]
[ "$(head -n 1 "$tmp/json")" = '[' ] && [ "$(tail -n 1 "$tmp/json")" = ']' ]
[ "$(wc -l <"$tmp/jsonl")" -eq 8 ] && [ "$(wc -l <"$tmp/csv")" -eq 5 ]
[ "$(awk -F'","' 'NR > 1 { print NF }' "$tmp/csv" | sort -u)" -eq "$(awk -F, 'NR == 1 { print NF }' "$tmp/csv")" ]
[ "$(grep -c '^| .* | [12] | f16 | [pt][pg][0-9]* @ d70 | .*|$' "$tmp/md")" -eq 4 ]
[ "$(grep -c '^Router .*threads: [12], depth: 70): a score takes .* % of a decode step of .* less.$' "$tmp/md")" -eq 2 ]
# Memory and energy: a number, or why there is none.
grep -q '^Peak memory of the process: [0-9.]* MiB\.$' "$tmp/md"
if grep -q '"joules_per_token": null' "$tmp/jsonl"; then
    [ "$(grep -c '^Joules per token are not known: .*/sys/class/powercap.*\.$' "$tmp/md")" -eq 1 ]
else
    ! grep -q '^Joules' "$tmp/md"
fi
"$MIZZLE" bench model -p 0 -n 3 -d 5 -r 1 -o csv | grep -q '"0","3","5",'
"$MIZZLE" bench model -p 8 -n 0 -r 1 --kv f32 >"$tmp/out"
grep -q '| f32 | pp8 |' "$tmp/out"
for wrong in '-p x' '-p 1,,2' '-p 8,' '-n -1' '-d 99999999' '-t 1;2' '-p 0 -n 0' '-r 0' '-o xml' '--kv q3' \
    '-p 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1' '--shape nothing' '--shape qwen2.5-0.5b --type q9'; do
    status=0
    # shellcheck disable=SC2086
    "$MIZZLE" bench model $wrong >"$tmp/out" 2>"$tmp/err" || status=$?
    [ "$status" -eq 2 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && [ ! -s "$tmp/out" ]
done
# memory: weights as in the file's type, keys and values of 24 layers and 2 heads of 64, linear in
# the context; the shape of 7B although it may not fit.
"$MIZZLE" bench memory --type q4_0 -c 64,4096 -o csv >"$tmp/out"
awk -F, 'NR == 1 { bad = $0 != "shape,type,kv,context,weights,kv_cache,work,router,sum" }
NR > 1 && ($5 != '"$("$MIZZLE" bench model --shape qwen2.5-0.5b --type q4_0 -p 0 -n 1 -r 1 -o jsonl |
    tee "$tmp/q4" | grep -o '"model_size": [0-9]*' | grep -o '[0-9]*')"') { bad = 1 }
NR > 1 && ($6 != 24 * 2 * 64 * 2 * 2 * $4 || $8 < 4 * 2 * 896 * 896 || $9 != $5 + $6 + $7 + $8) { print; bad = 1 }
END { exit bad || NR != 3 }' "$tmp/out"
"$MIZZLE" bench memory --shape qwen2.5-7b --type f32 --kv q8 -o jsonl >"$tmp/out"
[ "$(grep -c '"shape": "qwen2.5-7b", "type": "f32", "kv": "q8", "context": [0-9]*, "weights": 3046[0-9]*, ' "$tmp/out")" -eq 3 ]
[ "$("$MIZZLE" bench memory -c 1,2 -o json | tr -d '\n' | sed 's/[^][{},]//g' | sed 's/{,*}/x/g')" = '[x,x]' ]
"$MIZZLE" bench memory -c 4096 | grep -q '^| qwen2.5-0.5b | q8_0 | f16 | 4096 | 500.8 | 48.0 | [0-9.]* | 6.2 | [0-9.]* |$'
for wrong in '--shape x' '--type q9' '--kv q3' '-c x' '-c 0' '-p 8' '-t 1' '-m x'; do
    status=0
    # shellcheck disable=SC2086
    "$MIZZLE" bench memory $wrong >"$tmp/out" 2>"$tmp/err" || status=$?
    [ "$status" -eq 2 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && [ ! -s "$tmp/out" ] || { echo "memory $wrong"; exit 1; }
done
# Without a file: all matrices in 4 bits, the head included, take 18 bytes for 32 weights.
grep -q '"model_type": "q4_0", "model_size": 278[0-9]*, "model_n_params": 494032768, ' "$tmp/q4"
[ -d "$data" ] || { echo "SKIP: no $data"; exit 77; }
"$MIZZLE" bench model -m "$data" -p 8 -n 4 -r 2 -t 1 -o json | grep -q '"n_prompt": 8'
