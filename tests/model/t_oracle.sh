#!/bin/sh
# Random models of odd shapes match a float64 reference in numpy: logits and both taps.
set -eu
MIZZLE=${MIZZLE:-build/mizzle}
ORACLE=${MIZZLE_ORACLE:-../shared/oracle}
PYTHON=${PYTHON:-/usr/bin/python3}
[ -e "$ORACLE/qwen2_np.py" ] || { echo "SKIP: no oracle at $ORACLE"; exit 77; }
"$PYTHON" -c 'import numpy' 2>/dev/null || { echo "SKIP: no numpy for $PYTHON"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ids=$(awk 'BEGIN { for (i = 0; i < 90; i++) printf "%s%d", i ? "," : "", (i * 37 + 5) % 199 }')

check() { # name, tap, options of the generator
    name=$1 tap=$2
    shift 2
    "$PYTHON" "$ORACLE/make_random_qwen2.py" "$dir/$name" "$@"
    "$MIZZLE" logits -m "$dir/$name" --ids "$ids" -o "$dir/l" --hidden "$dir/h" --tap "$tap" -t 2
    printf '%s: ' "$name"
    "$PYTHON" tests/support/oracle_check.py "$ORACLE" "$dir/$name" "$ids" "$dir/l" "$dir/h" "$tap"
    cp "$dir/l" "$dir/first"
    for threads in 1 3 8; do
        "$MIZZLE" logits -m "$dir/$name" --ids "$ids" -o "$dir/l" -t $threads
        cmp "$dir/first" "$dir/l"
    done
    for isa in $("$MIZZLE" info --json | sed 's/.*"sets": *\[//; s/\].*//; s/[",]/ /g'); do
        case $isa in blas | avx512bf16) continue ;; esac
        "$MIZZLE" logits -m "$dir/$name" --ids "$ids" -o "$dir/l" --isa "$isa"
        cmp "$dir/first" "$dir/l"
    done
}

check plain final --dtype F32 --seed 3
check odd post_attn --dtype F32 --hidden 40 --layers 2 --heads 5 --kv 1 --ffn 100 --vocab 333
check untied final --dtype BF16 --hidden 48 --layers 4 --heads 6 --kv 3 --ffn 70 --vocab 201 --untied
check half post_attn --dtype F16 --hidden 96 --layers 2 --heads 2 --kv 2 --ffn 33 --vocab 200
