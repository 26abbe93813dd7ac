#!/bin/sh
# Routers that read features: trained, said what they are, and used by run, explain and eval alike.
set -u
mizzle=${MIZZLE:-build/mizzle}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "t_eval_features: $*" >&2
    exit 1
}
for head in combined mix; do
    "$mizzle" router train -q -t 1 --questions 120 --epochs 12 --head $head --width 16 -o "$dir/$head.safetensors" \
        >"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
done
"$mizzle" info "$dir/mix.safetensors" | grep -q '^router .*reads 128 values of tap final and 9 features' ||
    fail "$("$mizzle" info "$dir/mix.safetensors")"
"$mizzle" info "$dir/combined.safetensors" | grep -q 'reads 0 values of tap final and 9 features' ||
    fail "$("$mizzle" info "$dir/combined.safetensors")"

# A router without a policy that is named decides on it; another one's is refused.
for head in combined mix; do
    "$mizzle" run --question 3 --router "$dir/$head.safetensors" --threshold 0.95 --json >"$dir/$head.json" 2>"$dir/err" ||
        fail "$(cat "$dir/err")"
    grep -q '"cloud"' "$dir/$head.json" || fail "$head asks for no token: $(cat "$dir/$head.json")"
    "$mizzle" explain --question 3 --router "$dir/$head.safetensors" --json >"$dir/explained" 2>"$dir/err" ||
        fail "$(cat "$dir/err")"
done
"$mizzle" run --question 3 --policy mlp --router "$dir/combined.safetensors" >/dev/null 2>"$dir/err" &&
    fail "mlp takes a router without hidden states"
grep -q 'expected a network, found a network without hidden states' "$dir/err" || fail "$(cat "$dir/err")"
"$mizzle" run --question 3 --policy combined --router "$dir/mix.safetensors" >/dev/null 2>"$dir/err" &&
    fail "combined takes a router of hidden states"

"$mizzle" router collect -q --questions 8 --labels citer --round 2 --router "$dir/mix.safetensors" \
    -o "$dir/samples" >/dev/null 2>"$dir/err" && fail "round 2 takes a router with features"
grep -q 'reads hidden states alone with --round 2' "$dir/err" || fail "$(cat "$dir/err")"
"$mizzle" eval --merge --max-routed 0.1 "$dir/none" >/dev/null 2>"$dir/err" && fail "a cap of no use"
grep -q 'max-routed' "$dir/err" || fail "$(cat "$dir/err")"

# One answer at a time or many, drafts or none, any number of calls ahead: the same answers.
ask() {
    "$mizzle" eval -q -t 1 --questions 12 --threshold 0.6 --kv f32 \
        --policy "combined=$dir/combined.safetensors,mlp=$dir/mix.safetensors" --items "$dir/$1.csv" "$@" >/dev/null ||
        fail "eval"
}
ask --parallel 6
ask --ahead 0 --parallel 1 --draft off
cut -d, -f1-12,15-16 "$dir/--parallel.csv" >"$dir/many"
cut -d, -f1-12,15-16 "$dir/--ahead.csv" >"$dir/one"
cmp "$dir/many" "$dir/one" || fail "answers depend on how they are written"
awk -F, 'NR > 1 { cloud[$6] += $12; all[$6] += $11 }
    END { for (p in all) if (cloud[p] > 5 && cloud[p] < all[p] / 2) n++; exit n != 2 }' \
    "$dir/many" || fail "too few tokens are routed"
