#!/bin/sh
# mizzle eval --as-paper: the columns of the paper's Table 1 at its thresholds; a share on request; the
# same after an interruption; what is refused.
. tests/tools/eval/eval.sh
set -e
paper() {
    "$MIZZLE" eval --as-paper --questions 4 -q --policy mlp --ahead 0 "$@"
}

# Measured times add up, routed tokens grow with the threshold, and an interrupted run continues.
paper --jsonl "$dir/jsonl" >"$dir/real"
awk 'BEGIN { split("0.4000 0.5000 0.6000 0.7000 0.7200 0.7600 0.8000 0.9000", want, " ") }
NR == 1 && $0 !~ /^policy +threshold +routed +SLM s +TTFT s +TBT s +comm \+ LLM s +overall s$/ { print; bad = 1 }
$1 == "mlp" {
    n++
    off = $8 - $4 - $7
    tbt = $4 / (100 - $3) - $6 # SLM s by token of the small model
    if (off ^ 2 > 4e-6 || tbt ^ 2 > 1e-6 || $4 <= 0 || $2 != want[n] || $3 < before) { print; bad = 1 }
    before = $3
}
END { exit bad || n != 8 || before <= 0 }' "$dir/real" || fail "$(cat "$dir/real")"
head -n 20 "$dir/jsonl" >"$dir/torn"
paper --jsonl "$dir/torn" >"$dir/again"
for f in real again; do awk '$1 == "mlp" { print $2, $3 }' "$dir/$f" >"$dir/$f.cut"; done # times differ
cmp "$dir/real.cut" "$dir/again.cut" || fail "$(cat "$dir/real.cut" "$dir/again.cut")"
fails 2 'threshold: expected' --as-paper --questions 4 -q --policy mlp --ahead 0 --threshold 0.5 --jsonl "$dir/torn"

# The printed rows follow from routed, SLM and communication alone, as the table's do; the row of 0.60
# is the small model's time alone. 28.40 s / 99 is 0.287, printed 0.28.
awk -F, '$1 == "printed" {
    n++
    sum = $4 + ($2 < 0.59 || $2 > 0.61 ? $7 : 0)
    if ((sum - $8) ^ 2 > 0.09 || ($4 / (100 - $3) - $6) ^ 2 > 0.00005) { print; bad = 1 }
}
END { exit bad || n != 8 }' router/results/paper.csv || fail "the paper's own rows"

# A share in place of the paper's thresholds; a policy without scores of its own; each model alone.
paper --target-routed 0.1 --policy never,max-prob,always >"$dir/share"
[ "$(grep -c '^max-prob' "$dir/share")" -eq 1 ] || fail "$(cat "$dir/share")"
grep -q '^never  *-  *0.00 ' "$dir/share" || fail "$(cat "$dir/share")"
grep -q '^always  *-  *100.00 .* - ' "$dir/share" || fail "$(cat "$dir/share")"

# Compared with another policy at the same threshold.
"$MIZZLE" eval --as-paper --questions 10 -q --policy max-prob,mlp --against mlp --json >"$dir/rows"
"$MIZZLE" eval --as-paper --questions 10 -q --policy max-prob,mlp --against mlp >"$dir/table"
[ "$(grep -c '^max-prob, against mlp: accuracy' "$dir/table")" -eq 8 ] || fail "$(cat "$dir/table")"
sed 's/.*"policy":"\([a-z-]*\)".*"threshold":\([0-9.]*\).*"accuracy":\([0-9.]*\).*"difference":\([-0-9.nul]*\).*/\1 \2 \3 \4/' "$dir/rows" |
    awk '{ right[$1 $2] = $3 } $1 == "max-prob" { difference[$2] = $4 }
    END {
        for (t in difference) {
            n++
            off = right["max-prob" t] - right["mlp" t] - difference[t]
            if (off > 1e-5 || off < -1e-5) { print t, off; bad = 1 }
        }
        exit bad || n != 8
    }' || fail "$(cat "$dir/rows")"

for wrong in '--as-paper=prices' '--as-paper --task ppl' '--as-paper --threshold 0.5 --target-routed 0.1'; do
    refused 2 --questions 1 $wrong
done
