#!/bin/sh
# mizzle eval --table paper: the columns of the paper's Table 1 at its thresholds, by hand under the
# virtual clock; other shares on request; the same after an interruption; what is refused.
set -eu
MIZZLE=${MIZZLE:-build/mizzle}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() {
    echo "t_eval_paper: $*" >&2
    exit 1
}
paper() {
    "$MIZZLE" eval --table paper --questions 4 -q --policy mlp --ahead 0 "$@"
}
virtual() {
    paper --clock virtual --edge-ms 280 --latency 170 --cloud-ms 730 "$@"
}

# A token takes 0.28 s, a call 0.9 s: all columns follow from the routed tokens of 100.
virtual --csv "$tmp/csv" >"$tmp/table"
awk 'BEGIN { split("0.4000 0.5000 0.6000 0.7000 0.7200 0.7600 0.8000 0.9000", want, " ") }
function near(a, b) { return a - b < 0.006 && b - a < 0.006 }
NR == 1 && $0 !~ /^policy +threshold +routed +SLM s +TTFT s +TBT s +comm \+ LLM s +overall s$/ { print; bad = 1 }
$1 == "mlp" {
    n++
    routed += $3
    if ($2 != want[n] || $4 != 28 || !near($5, 0.28) || !near($6, 28 / (100 - $3)) ||
        !near($7, 0.9 * $3) || !near($8, $4 + $7)) { print; bad = 1 }
}
END { exit bad || n != 8 || routed <= 0 }' "$tmp/table" || fail "$(cat "$tmp/table")"

# The table of values has a row for each, too, and the small model's time.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
NR > 1 { ms = $at["edge_ms"] * 4 - 280 * $at["tokens"] }
NR > 1 && (ms > 0.1 || ms < -0.1 || $at["ms"] < $at["edge_ms"]) { print; bad = 1 }
END { exit bad || NR != 9 }' "$tmp/csv" || fail "$(cat "$tmp/csv")"

# A prompt is read by the small model.
virtual --prefill-ms 100 --threshold 0.5 >"$tmp/slow"
awk '$1 == "mlp" { n++; fine = $4 > 28 && $5 > 0.5 } END { exit !(n == 1 && fine) }' "$tmp/slow" || fail "$(cat "$tmp/slow")"

# Shares in place of the paper's thresholds; a policy without scores of its own; each model alone.
virtual --sweep 0:0.2:3 --policy never,max-prob,always >"$tmp/sweep"
[ "$(grep -c '^max-prob' "$tmp/sweep")" -eq 3 ] || fail "$(cat "$tmp/sweep")"
grep -q '^never  *-  *0.00  *28.000  *0.280  *0.280  *0.000  *28.000$' "$tmp/sweep" || fail "$(cat "$tmp/sweep")"
grep -q '^always  *-  *100.00  *28.000  *1.180  *-  *90.000  *118.000$' "$tmp/sweep" || fail "$(cat "$tmp/sweep")"

# Compared with another policy at the same threshold, and at the same share, which the other has
# between two of its own.
against() {
    "$MIZZLE" eval --table paper --questions 10 -q --clock virtual --edge-ms 280 --policy max-prob,mlp --against mlp "$@"
}
against --csv "$tmp/csv" >"$tmp/table"
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
}' "$tmp/csv" || fail "$(cat "$tmp/csv")"
awk '/^max-prob +0/ { routed[++rows] = $3 }
/^max-prob, against mlp: accuracy/ { k++ }
/^    at an equal share, / {
    equal++
    if ($5 != routed[k] || $(NF - 3) > routed[k] || $(NF - 1) < routed[k]) { print; bad = 1 }
}
END { exit bad || k != 8 || equal != 8 }' "$tmp/table" || fail "$(cat "$tmp/table")"

# Measured times add up, and an interrupted run continues.
paper --jsonl "$tmp/jsonl" --csv "$tmp/whole" >"$tmp/real"
awk '$1 == "mlp" { n++; off = $8 - $4 - $7; if (off > 0.002 || off < -0.002 || $4 <= 0) bad = 1 }
END { exit bad || n != 8 }' "$tmp/real" || fail "$(cat "$tmp/real")"
head -n 20 "$tmp/jsonl" >"$tmp/torn"
paper --jsonl "$tmp/torn" --csv "$tmp/again" >"$tmp/out"
# Threshold, right, tokens, cloud, as times differ.
for f in whole again; do cut -d, -f4,9,20,21 "$tmp/$f" >"$tmp/$f.cut"; done
cmp "$tmp/whole.cut" "$tmp/again.cut" || fail "$(cat "$tmp/whole.cut" "$tmp/again.cut")"
status=0
paper --threshold 0.5 --jsonl "$tmp/torn" >"$tmp/out" 2>"$tmp/err" || status=$?
[ "$status" -eq 2 ] && grep -q 'threshold: expected' "$tmp/err" || fail "status $status: $(cat "$tmp/err")"

for wrong in '--table prices' '--table paper --task ppl' \
    '--table paper --threshold 0.5 --sweep 0:0.1:2'; do
    status=0
    # shellcheck disable=SC2086
    "$MIZZLE" eval --questions 1 $wrong >"$tmp/out" 2>"$tmp/err" || status=$?
    [ "$status" -eq 2 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] ||
        fail "$wrong: status $status, $(cat "$tmp/err")"
done
