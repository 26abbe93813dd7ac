#!/bin/sh
# The official Q4_K_M file of Qwen2.5-Coder-0.5B-Instruct beside a float64 reference in numpy, on its
# dequantised weights: the logits of a text differ by what rounding activations to int8 costs, and
# no more, and so does the perplexity of 2,000 tokens. The reference's perplexity is written down
# here, since it takes numpy minutes (gguf_oracle.py ... ppl computes it again).
. tests/support/shell.sh
set -eu
model=$(real_model 0.5B)
problems=$data/gsm8k/test.json
case $MIZZLE in
*asan* | *tsan*) skip "sanitizers slow a real model down by ten" ;;
esac
[ -r "$model" ] || skip "no $model"
[ -r "$problems" ] || skip "no $problems"

"$MIZZLE" tokenize -m "$model" <"$problems" >"$dir/all"
cut -d' ' -f1-2000 "$dir/all" >"$dir/ids"
"$MIZZLE" tokenize -m "$model" --decode <"$dir/ids" >"$dir/text"
for kv in f32 f16; do
    "$MIZZLE" eval --task ppl -m "$model" --data "$dir/text" -c 2048 --kv $kv --json -q >"$dir/json"
    sed 's/.*"ppl":\([0-9.]*\).*"tokens":\([0-9]*\).*/\1 \2/' "$dir/json" |
        awk -v kv=$kv -v want=3.591503 '
            { off = ($1 / want - 1); printf "perplexity %s (%s), float64 %s: %+.2f %%\n", $1, kv, want, 100 * off }
            $2 != 1999 || off > 0.01 || off < -0.01 { print "expected 1,999 tokens, and at most 1 % beside it"; exit 1 }'
done

oracle
ids=$(cut -d' ' -f1-48 "$dir/ids" | tr ' ' ,)
"$MIZZLE" logits -m "$model" --ids "$ids" -o "$dir/logits" 2>/dev/null
"$PYTHON" tests/model/gguf_oracle.py "$ORACLE" "$model" logits "$ids" "$dir/logits" >"$dir/said"
cat "$dir/said"
awk '{ sub(",", "", $3); if ($3 > 0.03 || $NF < 0.95) exit 1 }' "$dir/said" ||
    { echo "expected an error of at most 0.03, and the same token first in 95 of 100 places"; exit 1; }
