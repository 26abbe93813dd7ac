#!/bin/sh
# Routers that read features: trained, said what they are, and used by run, explain and eval alike.
. tests/support/demo_pair.sh

says() { # WORDS: either output has them
    grep -q -e "$1" "$dir/out" "$dir/err" || fail "not printed: $1: $(cat "$dir/out" "$dir/err")"
}
combined=$dir/combined.safetensors mix=$dir/mix.safetensors
expect 0 router collect -q --labels divergent --kv f32 --questions 120 -o "$dir/learnt"
for head in combined mix; do
    expect 0 router train -q -t 1 --samples "$dir/learnt" --epochs 12 --head $head --width 16 \
        -o "$dir/$head.safetensors"
done
expect 0 info "$mix"
says '^router .*reads 128 values of tap final and 9 features'
expect 0 info "$combined"
says 'reads 0 values of tap final and 9 features'

# A router without a policy that is named decides on it; another one's is refused.
for router in "$combined" "$mix"; do
    expect 0 run --question 3 --router "$router" --threshold 0.95 --json
    says '"source":"cloud"'
    expect 0 explain --question 3 --router "$router" --json
done
fails 2 'expected a network, found a network without hidden states' run --question 3 --policy mlp --router "$combined"
fails 2 'expected a network without hidden states, found a network' run --question 3 --policy combined --router "$mix"
expect 0 router collect -q --questions 8 --labels citer --router "$mix" -o "$dir/samples"

# One answer at a time or many, any number of calls ahead: the same answers.
ask="-q -t 1 --questions 12 --threshold 0.6 --kv f32 --policy combined=$combined,mlp=$mix"
expect 0 eval $ask --parallel 6 --jsonl "$dir/many"
expect 0 eval $ask --ahead 0 --parallel 1 --jsonl "$dir/one"
for file in many one; do
    sed -n 's/^{"policy":"\([^"]*\)".*"tokens":\([0-9]*\),"cloud":\([0-9]*\),.*"hash":"\([^"]*\)".*/\1 \2 \3 \4/p' "$dir/$file" >"$dir/$file.txt"
done
cmp "$dir/many.txt" "$dir/one.txt" || fail "answers depend on how they are written"
awk '{ cloud[$1] += $3; all[$1] += $2 }
    END { for (p in all) if (cloud[p] > 5 && cloud[p] < all[p] / 2) n++; exit n != 2 }' \
    "$dir/many.txt" || fail "too few tokens are routed"
