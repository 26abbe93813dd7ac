#!/bin/sh
# Models whose configuration and tensors do not match, or of other architectures, are refused with
# status 3 and one line that names the folder and what is wrong.
set -u
mizzle=${MIZZLE:-build/mizzle}
data=${MIZZLE_TESTDATA:-../shared/data}/weights
src=$data/stories260K_qwen2
if [ ! -r "$src/config.json" ]; then
    echo "SKIP: no $src"
    exit 77
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/m"
cp "$src/model.safetensors" "$tmp/m"
fail() {
    echo "t_shapes: $*" >&2
    exit 1
}
evaluate() {
    ${RUN:-} "$mizzle" logits -m "$tmp/m" --ids 1,2,3 -o "$tmp/l" >"$tmp/out" 2>"$tmp/err"
}

cp "$src/config.json" "$tmp/m/config.json"
evaluate || fail "the model itself: $(cat "$tmp/err")"

# bad WORD SED-EXPRESSION: the changed config.json is refused with a line that matches WORD.
bad() {
    rm -f "$tmp/l"
    sed "$2" "$src/config.json" >"$tmp/m/config.json"
    cmp -s "$src/config.json" "$tmp/m/config.json" && fail "$2 changes nothing"
    evaluate
    status=$?
    [ $status -eq 3 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && [ ! -e "$tmp/l" ] ||
        fail "$2: status $status: $(head -c 300 "$tmp/err")"
    grep -q "$tmp/m" "$tmp/err" && grep -Eq -e "$1" "$tmp/err" || fail "$2: says $(cat "$tmp/err")"
}
# value KEY: a sed expression that gives the key of config.json another value.
value() {
    printf 's/"%s": *[^,}]*/"%s": %s/' "$1" "$1" "$2"
}
bad 'head_count|attention_heads' "$(value num_attention_heads 3)"
bad 'head_count|attention_heads' "$(value num_attention_heads 0)"
bad 'head_count|attention_heads' "$(value num_attention_heads -8)"
bad 'head_count|attention_heads' "$(value num_attention_heads '"8"')"
bad 'key_value_heads|head_count_kv' "$(value num_key_value_heads 3)"
bad 'expected \[' "$(value num_key_value_heads 8)"
bad 'expected \[' "$(value hidden_size 128)"
bad 'embedding_length|hidden_size' "$(value hidden_size 1e9)"
bad 'too big' "$(value hidden_size 99999999999999999999)"
bad 'expected \[' "$(value intermediate_size 171)"
bad 'feed_forward|intermediate_size' "$(value intermediate_size null)"
bad 'tensor' "$(value num_hidden_layers 4)"
bad tensor "$(value num_hidden_layers 6)"
bad 'block_count|hidden_layers' "$(value num_hidden_layers 0)"
bad 'block_count|hidden_layers' "$(value num_hidden_layers 4000000000)"
bad 'context_length|max_position' "$(value max_position_embeddings 0)"
bad eps "$(value rms_norm_eps -1)"
bad eps "$(value rms_norm_eps '"x"')"
bad 'freq_base|rope_theta' "$(value rope_theta 0)"
bad qwen2 "$(value model_type '"llama"')"
bad qwen2 "$(value model_type 7)"
bad line "$(value hidden_act '"silu')"
bad hidden_act "$(value hidden_act '"gelu"')"
bad vocab "$(value vocab_size 9)"
bad 'type: expected default, linear or yarn, found "dynamic"' \
    's/^{/{"rope_scaling": {"type": "dynamic", "factor": 4},/'
bad 'yarn_beta_fast: expected 40 to' \
    's/^{/{"rope_scaling": {"type": "yarn", "factor": 4, "beta_slow": 40},/'
bad 'scaling.factor: expected 1 to 1024' 's/^{/{"rope_scaling": {"type": "yarn", "factor": 1e9},/'
bad sliding_window "$(value use_sliding_window true);$(value sliding_window 8);$(value max_window_layers 0)"

# Tensors are cut off, renamed, or have another type.
cp "$src/config.json" "$tmp/m/config.json"
size=$(wc -c <"$src/model.safetensors")
for bytes in 0 7 8 1000 $((size - 1)); do
    head -c $bytes "$src/model.safetensors" >"$tmp/m/model.safetensors"
    evaluate && fail "cut to $bytes bytes: accepted"
    [ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "cut to $bytes bytes: not one line"
done
for change in 's/layers.0.self_attn.q_proj.weight/layers.0.self_attn.x_proj.weight/' \
    's/model.norm.weight/model.morn.weight/' 's/"dtype":"F32"/"dtype":"I32"/' \
    's/"dtype": "F32"/"dtype": "I32"/g'; do
    LC_ALL=C sed "$change" "$src/model.safetensors" >"$tmp/m/model.safetensors"
    cmp -s "$src/model.safetensors" "$tmp/m/model.safetensors" && continue
    evaluate
    status=$?
    [ $status -eq 3 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "$change: status $status"
done

# Qwen3.
src=$data/qwen3/random
[ -r "$src/config.json" ] || { echo "SKIP: no $src"; exit 0; }
cp "$src/model.safetensors" "$tmp/m"
cp "$src/config.json" "$tmp/m/config.json"
evaluate || fail "Qwen3: $(cat "$tmp/err")"
bad 'head_dim: expected a positive' "$(value head_dim 0)"
bad 'head_dim: expected a positive' "$(value head_dim -64)"
bad 'key_length: expected an even number, found 63' "$(value head_dim 63)"
bad 'key_length: expected an integer from 1 to 16384' "$(value head_dim 16386)"
bad 'attn_q.weight: expected \[512,128\], found \[256,128\]' "$(value head_dim 128)"
bad 'attn_q.weight: expected \[512,128\], found \[256,128\]' '/head_dim/d' # 128 by default
bad 'attention_bias: expected false, found true' "$(value attention_bias true)"
bad 'architectures: expected' "$(value model_type '"qwen2"')"
bad 'model_type: expected qwen2 or qwen3, found "qwen3_moe"' "$(value model_type '"qwen3_moe"')"
bad 'not part of a qwen2 model' 's/Qwen3ForCausalLM/Qwen2ForCausalLM/; s/"qwen3"/"qwen2"/'
exit 0
