#!/bin/sh
# Random models of odd shapes match a float64 reference in numpy: logits and hidden states. A trained one
# matches the logits of another engine at 220 positions.
. tests/support/shell.sh
oracle
set -eu
ids=$(awk 'BEGIN { for (i = 0; i < 90; i++) printf "%s%d", i ? "," : "", (i * 37 + 5) % 199 }')

check_folder() { # name: compare the folder with the reference
    "$MIZZLE" logits -m "$dir/$1" --ids "$ids" -o "$dir/first" --hidden "$dir/h" -t 2
    printf '%s: ' "$1"
    "$PYTHON" tests/support/oracle_check.py "$ORACLE" "$dir/$1" "$ids" "$dir/first" "$dir/h"
}

check() { # name, options of the generator
    name=$1
    shift
    "$PYTHON" "$ORACLE/make_random_qwen2.py" "$dir/$name" "$@"
    check_folder "$name"
}

scale() { # name, new name, value of rope_scaling: stretch RoPE; the GGUF file gives the same bits
    mkdir "$dir/$2"
    ln -s "../$1/model.safetensors" "$dir/$2"
    sed "s/^{/{ \"rope_scaling\": $3,/" "$dir/$1/config.json" >"$dir/$2/config.json"
    cp "$dir/first" "$dir/before"
    check_folder "$2"
    cmp -s "$dir/before" "$dir/first" && { echo "$2: the scaling changes nothing"; exit 1; }
    "$MIZZLE" convert "$dir/$2" "$dir/scaled.gguf" --type f32 -q
    "$MIZZLE" logits -m "$dir/scaled.gguf" --ids "$ids" -o "$dir/l"
    cmp "$dir/first" "$dir/l"
}

check plain --dtype F32 --seed 3
scale plain linear '{"type": "linear", "factor": 2.5}'
scale plain yarn2 '{"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}'
check odd --dtype F32 --hidden 40 --layers 2 --heads 5 --kv 1 --ffn 100 --vocab 333
check untied --dtype BF16 --hidden 48 --layers 4 --heads 6 --kv 3 --ffn 70 --vocab 201 --untied
check half --dtype F16 --hidden 96 --layers 2 --heads 2 --kv 2 --ffn 33 --vocab 200

check narrow --qwen3 --hidden 72 --heads 3 --kv 3 --head-dim 2 --layers 4 --ffn 50 --untied
check uneven --qwen3 --dtype F32 --hidden 50 --heads 4 --kv 2 --head-dim 34 --ffn 77
check wide --qwen3 --dtype F32 --hidden 64 --heads 4 --kv 2 --head-dim 128 --layers 2
scale wide yarn '{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}'
scale wide short '{"type": "yarn", "factor": 8, "original_max_position_embeddings": 100, "attention_factor": 1.3, "beta_fast": 9, "beta_slow": 0.5}'

stories=$data/weights/stories260K
[ -r "$stories/golden_ids.txt" ] || skip "no stories260K data"
ids=$(tr -s ' \n' ',' <"$stories/golden_ids.txt" | sed 's/,$//')
"$MIZZLE" logits -m "${stories}_qwen2" --ids "$ids" -o "$dir/l" --kv f32 -t 2
"$PYTHON" - "$dir/l" "$stories/golden_logits_f32.bin" "$ids" <<'END'
import sys, numpy as np
got, want = (np.fromfile(path, "<f4").reshape(220, 512) for path in sys.argv[1:3])
ids, worst = [int(i) for i in sys.argv[3].split(",")], abs(got - want).max()
print("stories260K: worst logit difference %.2g" % worst)
assert worst < 1e-3 and (got.argmax(1) == want.argmax(1)).all() and list(got[:-1].argmax(1)) == ids[1:]
END
