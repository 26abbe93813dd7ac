#!/bin/sh
# mizzle bench: rows like llama-bench's with every sample, without a file; kernels, limits.
set -eu
. tests/support/shell.sh
data=$data/weights/stories260K_qwen2
old=$dir/old.json
"$MIZZLE" bench kernels add_f32 -r 4 -o json >"$old"
[ "$(grep -c '"op": "add_f32".*"times_scalar"' "$old")" -ge 1 ]
"$MIZZLE" bench kernels add_f32 -r 1 -o csv >"$dir/out"
[ "$(sed 's/"[^"]*"//g' "$dir/out" | awk -F, '{ print NF }' | sort -u | wc -l)" -eq 1 ]
cut -d, -f1-3 "$dir/out" >"$dir/sets"
"$MIZZLE" bench kernels attn_f16 -r 1 >"$dir/out"
sed -n 1p "$dir/out" | grep -q '^| attn_f16 | shape | us |' && sed -n 3p "$dir/out" | grep -q '^| scalar | 7 rows'
"$MIZZLE" bench kernels add_f32 --isa scalar -r 1 -o csv >"$dir/out"
[ "$(wc -l <"$dir/out")" -eq 2 ]
# Without a name, --isa fixes how products walk, and all sets are timed.
"$MIZZLE" bench kernels add_f32 --isa ,ahead=0 -r 1 -o csv | cut -d, -f1-3 | cmp - "$dir/sets"
MIZZLE_ISA=scalar "$MIZZLE" bench kernels add_f32 -r 1 -o jsonl >"$dir/out"
[ "$(grep -c '^{.*"times_scalar".*}$' "$dir/out")" -eq 1 ] && [ "$(wc -l <"$dir/out")" -eq 1 ]
# Two measurements compared: the same file, then what is none.
cat "$old" "$old" "$old" "$old" "$old" "$old" >"$dir/six"
"$MIZZLE" bench kernels --compare "$dir/six" "$dir/six" >"$dir/out"
grep -q ', one thread, us a call: ' "$dir/out" && grep -q 'no difference seen (' "$dir/out"
refused 2 bench kernels --compare "$old"
refused 2 bench kernels --compare "$old" "$old:scalar"
refused 3 bench kernels --compare "$old" "$dir/out"
refused 3 bench kernels --compare "$old" "$dir/none"
for option in -o=csv --isa=scalar --repeats=3; do
    refused 2 bench kernels --compare "$old" "$old" "${option%%=*}" "${option#*=}"
    says ': --compare: expected no other option, found -'
done
"$MIZZLE" bench kernels --compare "$old:scalar" "$old:scalar" >"$dir/out"
grep -q '^add_f32  *scalar  *scalar$' "$dir/out"
# A product has rows for one token, for few and for many; each names the level that its data are in.
"$MIZZLE" bench kernels matmul_q4 -r 1 -o csv >"$dir/out"
grep -q '^op,isa,shape,ns,gb_s,read_gb_s,gop_s,peak_gop_s,times_scalar,level,doubtful' "$dir/out"
for n in '1 token' '2 tokens' '4 tokens' '8 tokens' '12 tokens' '192 tokens'; do
    [ "$n" != '1 token' ] && [ "$(wc -l <"$dir/out")" -eq 5 ] && continue # scalar alone
    grep -q "^matmul_q4,.*,\"gate 4864x896, $n\"," "$dir/out" || { echo "no row for $n"; exit 1; }
done
# What a cache may hold is timed cold, too, as in a model: from a level that is farther away. A row of
# scalar is not. L3 ends where the machine's was measured to end.
awk -F'"' 'NR == 1 { rank["L1"] = 1; rank["L2"] = 2; rank["L3"] = 3; rank["memory"] = 4 }
NR > 1 { split($3, v, ","); split($1, w, ","); name = w[2] " " $2; level[name] = v[8] }
END {
    for (name in level) {
        hot = name
        if (!sub(/, cold$/, "", hot)) continue
        cold++; set = hot; sub(/ .*/, "", set)
        if (set == "scalar" || !(hot in level) || rank[level[name]] <= rank[level[hot]]) { print name; bad = 1 }
    }
    for (name in level) if (name !~ /^scalar/) others = 1
    exit bad || others && !cold
}' "$dir/out"
# limits: memory first, then the levels of cache with their sizes.
"$MIZZLE" bench limits -t 1 -o csv >"$dir/out"
[ "$(head -n 1 "$dir/out")" = limit,unit,n_threads,one_thread,all_threads,bytes,doubtful,cpu ]
# One thread is all: measured once, so both columns are the same.
awk -F, 'NR > 1 { at = $0 ~ /^"/ ? 1 : 0; if ($(4 + at) <= 0 || $(4 + at) != $(5 + at)) { print; exit 1 } }' "$dir/out"
sed 's/"*others kept [0-9.]* processors busy"*//' "$dir/out" >"$dir/idle"
grep -q '^read from memory,GB/s,1,[0-9.]*,[0-9.]*,,,.' "$dir/idle"
[ "$(grep -c '^"read from L[123], [0-9]* KiB",GB/s,1,[0-9.]*,[0-9.]*,[0-9]*,,.' "$dir/idle")" -eq 3 ]
grep -q '^read 64 MiB again and again,GB/s,1,[0-9.]*,[0-9.]*,67108864,,.' "$dir/idle"
"$MIZZLE" bench limits -t 1 >"$dir/out"
[ "$(head -n 1 "$dir/out")" = '| limit | unit | 1 thread | doubtful |' ] && [ "$(awk -F'|' '{ print NF }' "$dir/out" | sort -u)" -eq 6 ]
each 'expect 2 bench' 'kernels nothing' 'kernels add_f32 add_f32' 'kernels --isa z80' nothing
# An option of another subject is refused, not ignored.
each "refuses 2 'unknown option -' bench" 'model --only add_f32' 'model --compare' '-r 1 limits' 'limits --shape qwen2.5-0.5b' \
    'limits -p 8' 'kernels --parallel 2' 'kernels -d 5' 'kernels -t 1' 'kernels --shape qwen2.5-0.5b' \
    'kernels -p 8'
fails 2 "^mizzle bench limits: --threads: expected a whole number, found 1,2;" bench limits -t 1,2
fails 2 "^mizzle bench model: --shape: expected no -m, found x$" bench model --shape qwen2.5-0.5b -m x
# model: llama-bench's columns, lists, every sample in all formats but md.
"$MIZZLE" bench model -p 8,16 -n 2,3 -d 0,70 -t 2 -r 3 -o jsonl >"$dir/jsonl"
for form in json csv md; do
    "$MIZZLE" bench model -p 8 -n 3 -d 70 -t 1,2 -r 2 -o $form >"$dir/$form"
done
for key in cpu_info model_filename model_type model_size model_n_params n_products backends isa n_threads type_k \
    type_v n_prompt n_gen n_depth n_texts test_time avg_ns stddev_ns avg_ts stddev_ts text_ts \
    samples_ns samples_ts read_gb_s probe_gb_s probe_before_gb_s probe_after_gb_s of_probe on_cpu others best_ts cpu_ts times_one waiting doubtful peak_bytes; do
    [ "$(grep -c "\"$key\": " "$dir/jsonl")" -eq 8 ] || { echo "no $key"; exit 1; }
    [ "$(grep -c "\"$key\": " "$dir/json")" -eq 4 ]
    head -n 1 "$dir/csv" | tr , '\n' | grep -qx "$key"
done
[ "$(grep -c '"samples_ts": \[[0-9.]*, [0-9.]*, [0-9.]*\], ' "$dir/jsonl")" -eq 8 ]
[ "$(head -n 1 "$dir/json")" = '[' ] && [ "$(tail -n 1 "$dir/json")" = ']' ]
[ "$(wc -l <"$dir/jsonl")" -eq 8 ] && [ "$(wc -l <"$dir/csv")" -eq 5 ]
[ "$(sed 's/"[^"]*"//g' "$dir/csv" | awk -F, '{ print NF }' | sort -u | wc -l)" -eq 1 ]
[ "$(grep -c '^| [12] | [pt][pg][0-9]* @ d70 | [0-9.]* +- .*|$' "$dir/md")" -eq 4 ]
sed -n 1p "$dir/md" | grep -q '^demo .*: [0-9.]* MiB, [0-9.]* M parameters; kernels: [a-z0-9]*; keys and values: f16$'
# A prompt has one probe, tokens have one before and one after (the figures: t_bench_figures.c).
[ "$(grep -c '"n_gen": 0, .*"read_gb_s": null, "probe_gb_s": [0-9.]*, .*"probe_after_gb_s": null, "of_probe": null' "$dir/jsonl")" -eq 4 ]
[ "$(grep -c '"n_prompt": 0, .*"probe_before_gb_s": [0-9.]*, "probe_after_gb_s": [0-9.]*, "of_probe": [0-9]' "$dir/jsonl")" -eq 4 ]
# By threads: the speed beside one thread, and who waited; one thread waits for none.
for threads in '1, .*"times_one": null, "waiting": null' '2, .*"times_one": [0-9.]*, "waiting": 0.[0-9]*'; do
    [ "$(grep -c "\"n_threads\": $threads, " "$dir/json")" -eq 2 ] || fail "by threads: $threads"
done
grep -q ' | of probe | x 1 thread | waiting | doubtful |$' "$dir/md"
# The walk of each type and of the head is chosen among seven, unless it is given.
grep -q '^Walks of one token: ' "$dir/md" && grep -q '^head  *[12]/[0-9]*  *of [12]/' "$dir/md"
[ "$(grep -c '"tuning": \[{"slot": .*{"slot": "head", "panels": [12], .*"ns": [1-9]' "$dir/jsonl")" -ge 4 ]
MIZZLE_ISA=,ahead=64 "$MIZZLE" bench model -p 0 -n 3 -r 1 -o json | grep -q '"tuning": \[\]'
# Several texts at once: one row for each number; the total is as many times that of each.
"$MIZZLE" bench model -p 8 -n 3,4 --parallel 1,2,5 -d 0,3 -t 2 -r 1 -o csv | tr -d '"' >"$dir/texts"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
{ prompt = $at["n_prompt"]; n = $at["n_texts"]; rows[prompt " " $at["n_gen"] " " n]++
  apart = $at["avg_ts"] / n - $at["text_ts"]
  spent = $at["avg_ts"] * $at["avg_ns"] / 1e9 - (prompt + $at["n_gen"] * n)
  if (apart > 0.01 || apart < -0.01 || spent > 0.01 || spent < -0.01 || prompt && n != 1) { print; bad = 1 } }
END { for (i in rows) if (rows[i] != 2) bad = 1; exit bad || NR != 15 || !rows["0 4 5"] || !rows["8 0 1"] }' "$dir/texts"
"$MIZZLE" bench model -p 0 -n 2 --parallel 3 -t 1 -r 1 >"$dir/out"
grep -q '^| 1 | tg2 x 3 | [0-9.]* +- 0.00 | [0-9.]* | ' "$dir/out"
[ "$(grep -c '^| 1 | ' "$dir/out")" -eq 1 ] && [ "$(grep -c '^| threads | test | t/s | each | read' "$dir/out")" -eq 1 ]
# --by-op: all kinds of operation (their figures: t_bench_figures.c).
"$MIZZLE" bench model -p 8 -n 6 -r 1 -t 1 --by-op -o jsonl >"$dir/out"
[ "$(grep -c '"by_op_sum_ns": ' "$dir/out")" -eq 2 ]
for op in embed norm qkv attention o ffn down head; do
    [ "$(grep -c "{\"op\": \"$op\", \"calls\": [0-9]" "$dir/out")" -eq 2 ] || { echo "no $op"; exit 1; }
done
"$MIZZLE" bench model -p 8 -n 2 -r 1 -t 1 --by-op >"$dir/out"
grep -q '^pp8, the prompt by operation; ' "$dir/out" && grep -q '^tg2, a token by operation; ' "$dir/out"
[ "$(grep -c '^| sum | [0-9]* | [0-9.]* | 100.0 % | ' "$dir/out")" -eq 2 ]
[ "$(grep -c '^Not watched, .* takes [0-9.]* ms; watched, [0-9.]*\.$' "$dir/out")" -eq 2 ]
grep -q '^Peak memory of the process: [0-9.]* MiB\.$' "$dir/md"
"$MIZZLE" bench model -p 0 -n 3 -d 5 -r 1 -o csv | grep -q ',0,3,5,'
"$MIZZLE" bench model -p 8 -n 0 -r 1 --kv f32 >"$dir/out"
grep -q '; keys and values: f32$' "$dir/out" && grep -q '| pp8 |' "$dir/out"
each 'refused 2 bench model' '--parallel 0' '--parallel 65' '--parallel 1,x' '-p x' '-p 1,,2' '-p 8,' '-n -1' '-d 99999999' '-d 1024 -n 1' '-t 1;2' '-p 0 -n 0' '-r 0' '-o xml' '--kv q3' \
    '-p 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1' '--by-op --parallel 2' '--by-op -o csv' '--shape nothing' '--shape qwen2.5-0.5b --type q9'
# memory: weights as in the file's type, keys and values of 24 layers and 2 heads of 64, linear in
# the context; the shape of 7B although it may not fit.
"$MIZZLE" bench memory --type q4_0 -c 64,4096 -o csv >"$dir/out"
awk -F, 'NR == 1 { bad = $0 != "shape,type,kv,context,weights,kv_cache,work,router,sum" }
NR > 1 && ($5 != '"$("$MIZZLE" bench model --shape qwen2.5-0.5b --type q4_0 -p 0 -n 1 -r 1 -o jsonl |
    tee "$dir/q4" | grep -o '"model_size": [0-9]*' | grep -o '[0-9]*')"') { bad = 1 }
NR > 1 && ($6 != 24 * 2 * 64 * 2 * 2 * $4 || $8 < 4 * 2 * 896 * 896 || $9 != $5 + $6 + $7 + $8) { print; bad = 1 }
END { exit bad || NR != 3 }' "$dir/out"
"$MIZZLE" bench memory --shape qwen3-0.6b -c 1000,40960 -o csv | awk -F, 'NR > 1 { # 28 layers, 8 heads of 128
    if ($6 != 28 * 8 * 128 * 2 * 2 * ($4 + (16 - $4 % 16) % 16)) { print; bad = 1 } }
END { exit bad || NR != 3 }'
"$MIZZLE" bench memory --shape qwen2.5-7b --type f32 --kv q8 -o jsonl >"$dir/out"
[ "$(grep -c '"shape": "qwen2.5-7b", "type": "f32", "kv": "q8", "context": [0-9]*, "weights": 3046[0-9]*, ' "$dir/out")" -eq 3 ]
[ "$("$MIZZLE" bench memory -c 1,2 -o json | tr -d '\n' | sed 's/[^][{},]//g' | sed 's/{,*}/x/g')" = '[x,x]' ]
"$MIZZLE" bench memory -c 4096 | grep -q '^| qwen2.5-0.5b | q8_0 | f16 | 4096 | 500.8 | 48.0 | [0-9.]* | 6.2 | [0-9.]* |$'
each 'refused 2 bench memory' '--shape x' '--type q9' '--kv q3' '-c x' '-c 0' '-p 8' '-t 1' '-m x'
# Without a file: all matrices in 4 bits, the head included, take 18 bytes for 32 weights.
grep -q '"model_type": "q4_0", "model_size": 278[0-9]*, "model_n_params": 494032768, ' "$dir/q4"
[ -d "$data" ] || { echo "SKIP: no $data"; exit 77; }
"$MIZZLE" bench model -m "$data" -p 8 -n 4 -r 2 -t 1 -o json | grep -q '"n_prompt": 8'
