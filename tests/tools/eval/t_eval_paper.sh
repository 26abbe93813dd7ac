#!/bin/sh
# mizzle eval --as-paper: the columns of the paper's Table 1 at its thresholds, by hand under the
# virtual clock; other shares on request; the same after an interruption; what is refused.
. tests/tools/eval/eval.sh
set -e
paper() {
    "$MIZZLE" eval --as-paper --questions 4 -q --policy mlp --ahead 0 "$@"
}
virtual() {
    paper --clock virtual --edge-ms 280 --latency 170 --cloud-ms 730 "$@"
}

# A token takes 0.28 s, a call 0.9 s: all columns follow from the routed tokens of 100.
virtual -o "$dir/csv" >"$dir/table"
awk 'BEGIN { split("0.4000 0.5000 0.6000 0.7000 0.7200 0.7600 0.8000 0.9000", want, " ") }
function near(a, b) { return a - b < 0.006 && b - a < 0.006 }
NR == 1 && $0 !~ /^policy +threshold +routed +SLM s +TTFT s +TBT s +comm \+ LLM s +overall s$/ { print; bad = 1 }
$1 == "mlp" {
    n++
    routed += $3
    if ($2 != want[n] || $4 != 28 || !near($5, 0.28) || !near($6, 28 / (100 - $3)) ||
        !near($7, 0.9 * $3) || !near($8, $4 + $7)) { print; bad = 1 }
}
END { exit bad || n != 8 || routed <= 0 }' "$dir/table" || fail "$(cat "$dir/table")"

# The table of values has a row for each, too, and the small model's time.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
NR > 1 { ms = $at["edge_ms"] * 4 - 280 * $at["tokens"] }
NR > 1 && (ms > 0.1 || ms < -0.1 || $at["ms"] < $at["edge_ms"]) { print; bad = 1 }
END { exit bad || NR != 9 }' "$dir/csv" || fail "$(cat "$dir/csv")"

# A prompt is read by the small model.
virtual --edge-ms 280,100 --threshold 0.5 >"$dir/slow"
awk '$1 == "mlp" { n++; fine = $4 > 28 && $5 > 0.5 } END { exit !(n == 1 && fine) }' "$dir/slow" || fail "$(cat "$dir/slow")"

# Shares in place of the paper's thresholds; a policy without scores of its own; each model alone.
virtual --target-routed 0:0.2:3 --policy never,max-prob,always >"$dir/sweep"
[ "$(grep -c '^max-prob' "$dir/sweep")" -eq 3 ] || fail "$(cat "$dir/sweep")"
grep -q '^never  *-  *0.00  *28.000  *0.280  *0.280  *0.000  *28.000$' "$dir/sweep" || fail "$(cat "$dir/sweep")"
grep -q '^always  *-  *100.00  *28.000  *1.180  *-  *90.000  *118.000$' "$dir/sweep" || fail "$(cat "$dir/sweep")"

# Compared with another policy at the same threshold, and at the same share, which the other has
# between two of its own.
against() {
    "$MIZZLE" eval --as-paper --questions 10 -q --clock virtual --edge-ms 280 --policy max-prob,mlp --against mlp "$@"
}
against -o "$dir/csv" >"$dir/table"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
{ right[$at["policy"] $at["threshold"]] = $at["accuracy"] }
$at["policy"] == "max-prob" { difference[$at["threshold"]] = $at["difference"] }
END {
    for (t in difference) {
        n++
        off = right["max-prob" t] - right["mlp" t] - difference[t]
        if (difference[t] == "" || off > 1e-5 || off < -1e-5) { print t, off; bad = 1 }
    }
    exit bad || n != 8
}' "$dir/csv" || fail "$(cat "$dir/csv")"
awk '/^max-prob +0/ { routed[++rows] = $3 }
/^max-prob, against mlp: accuracy/ { k++ }
/^    at an equal share, / {
    equal++
    if ($5 != routed[k] || $(NF - 3) > routed[k] || $(NF - 1) < routed[k]) { print; bad = 1 }
}
END { exit bad || k != 8 || equal != 8 }' "$dir/table" || fail "$(cat "$dir/table")"

# Measured times add up, and an interrupted run continues.
paper --jsonl "$dir/jsonl" -o "$dir/whole" >"$dir/real"
awk '$1 == "mlp" { n++; off = $8 - $4 - $7; if (off > 0.002 || off < -0.002 || $4 <= 0) bad = 1 }
END { exit bad || n != 8 }' "$dir/real" || fail "$(cat "$dir/real")"
head -n 20 "$dir/jsonl" >"$dir/torn"
paper --jsonl "$dir/torn" -o "$dir/again" >"$dir/out"
# Threshold, right, tokens, cloud, as times differ.
for f in whole again; do cut -d, -f4,9,20,21 "$dir/$f" >"$dir/$f.cut"; done
cmp "$dir/whole.cut" "$dir/again.cut" || fail "$(cat "$dir/whole.cut" "$dir/again.cut")"
fails 2 'threshold: expected' --as-paper --questions 4 -q --policy mlp --ahead 0 --threshold 0.5 --jsonl "$dir/torn"

for wrong in '--as-paper=prices' '--as-paper --task ppl' \
    '--as-paper --threshold 0.5 --target-routed 0:0.1:2'; do
    refused 2 --questions 1 $wrong
done
