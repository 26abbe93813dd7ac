#!/bin/sh
# mizzle bench route: columns of each format, the model beside the measurement, the same text for
# every W, the paper's way, and what is refused. Times are not checked: t_ahead_model.c tests the
# model.
set -eu
MIZZLE=${MIZZLE:-build/mizzle}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() {
    echo "t_bench_route: $*" >&2
    exit 1
}

"$MIZZLE" bench route --help >"$tmp/help"
for option in --routed --latency --ahead --agree --agree-next --cloud-tokens --edge-ms --cloud-ms --bandwidth --loss --trips --as-paper --table; do
    grep -q -e "$option" "$tmp/help" || fail "--help does not name $option"
done

# Each combination has a row; for each share the text is the same, whatever L and W are.
"$MIZZLE" bench route -p 12 -n 60 -R 0.1,0.3 -L 0,5 -W 0,1,4 -t 1 -o csv --plot "$tmp/a.svg" >"$tmp/csv"
head -n 1 "$tmp/csv" | grep -q '^routed,latency_ms,ahead,cloud_tokens,edge_ms,ms,formula_ms,model_ms,here_ms,hidden,cloud,fallback,calls,wasted,up_bytes,down_bytes,text,passes,drafted,accepted$' ||
    fail "columns: $(head -n 1 "$tmp/csv")"
[ "$(wc -l <"$tmp/csv")" -eq 13 ] || fail "12 rows: $(cat "$tmp/csv")"
awk -F, 'NR > 1 {
    if (!($1 in text)) { text[$1] = $17; n++ }
    if (text[$1] != $17) { print "W changes the text: " $0; bad = 1 }
    if ($11 != 60 * $1 || $12 != 0) { print "cloud tokens: " $0; bad = 1 }
    if ($13 != $11 + $14 || ($3 < 2 && $14)) { print "wasted calls: " $0; bad = 1 }
    if ($15 < 200 || $16 < 100) { print "bytes: " $0; bad = 1 }
    if ($2 && ($3 ? $10 == "" || $10 < 0 : $10 != "")) { print "hidden: " $0; bad = 1 }
    if ($2 == 0 && ($7 != $5 || $10 != "")) { print "nothing to wait for: " $0; bad = 1 }
    want = $3 ? $5 + $1 * 0.3 * $2 : $5 + $1 * $2
    if ($7 - want > 0.002 || want - $7 > 0.002) { print "formula: " $0; bad = 1 }
}
END { exit bad || n != 2 }' "$tmp/csv" || fail "see above"
grep -q '^<svg' "$tmp/a.svg" && grep -q '</svg>' "$tmp/a.svg" || fail "no picture"
grep -q 'N 1' "$tmp/a.svg" && fail "one token a call needs no name in the picture"

# With more tokens in a reply the text is the same. Routed tokens next to each other then take one
# call, if the cloud knows how the text goes on. How many of a reply's tokens are there in time to be
# drafts depends on the machine: t_draft.sh has them all.
"$MIZZLE" bench route -p 12 -n 60 -R 0.3 -L 0 -W 0,4 --cloud-tokens 1,8 --agree-next 1 -t 1 -o csv \
    --plot "$tmp/more.svg" >"$tmp/more"
awk -F, 'NR == 2 { text = $17; calls = $13 }
NR > 1 && ($17 != text || $11 != 18) { print "another text: " $0; bad = 1 }
NR == 3 && ($4 != 8 || $13 >= calls) { print "no fewer calls: " $0; bad = 1 }
NR > 1 && $4 == 1 && ($7 == "" || $8 == "" || $9 == "" || $19 || $20) { print; bad = 1 }
NR > 1 && $4 == 8 && ($7 $8 $9 $10 != "" || $19 < $20) { print; bad = 1 }
NR > 1 && $3 == 0 && ($18 + $20 != 59 || $20 > $19) { print "passes: " $0; bad = 1 }
END { exit bad || NR != 5 }' "$tmp/more" || fail "see above"
[ "$(grep -c '>L 0 ms, r 30 %\(, N 8\)*</text>' "$tmp/more.svg")" -eq 2 ] || fail "picture: N"
# Nothing is expected of calls for several tokens, and a step of a given time verifies no drafts.
"$MIZZLE" bench route -p 12 -n 60 -R 0.3 -L 5 -W 0 --cloud-tokens 32 --agree-next 1 -t 1 -o jsonl >"$tmp/json"
grep -q '"formula_ms": null, "model_ms": null, "here_ms": null, "hidden": null, ' "$tmp/json" || fail "$(cat "$tmp/json")"
"$MIZZLE" bench route -p 12 -n 60 -R 0.3 -L 0 -W 0 --cloud-tokens 8 --edge-ms 1 -t 1 -o jsonl >"$tmp/json"
grep -q '"passes": 59, "drafted": 0, "accepted": 0' "$tmp/json" || fail "drafts at --edge-ms: $(cat "$tmp/json")"

# With a given speed of the edge the event model is exact: steps of 10 ms, every token from a cloud
# 20 ms away that always agrees. In step a token takes 30 ms, with one request in flight 20 ms.
"$MIZZLE" bench route -p 3 -n 6 -R 1 -L 20 -W 0,1 --agree 1 --edge-ms 10 -t 1 -o jsonl >"$tmp/jsonl"
sed -n 1p "$tmp/jsonl" | grep -q '"formula_ms": 30.0,.*"here_ms": 30.0,.*"cloud": 6, "agreed": 6' || fail "in step: $(cat "$tmp/jsonl")"
sed -n 2p "$tmp/jsonl" | grep -q '"formula_ms": 10.0,.*"here_ms": 20.0,' || fail "ahead: $(cat "$tmp/jsonl")"
"$MIZZLE" bench route -p 3 -n 6 -R 1 -L 20 -W 0 --agree 0 --edge-ms 1 --cloud-ms 2 --bandwidth 100000 --loss 0.1 -t 1 -r 2 -o json >"$tmp/json"
for key in model n_prompt agree cloud_ms bandwidth loss samples_ms hidden header_up_bytes text; do
    grep -q "\"$key\":" "$tmp/json" || fail "no $key: $(cat "$tmp/json")"
done
"$MIZZLE" bench route -p 12 -n 60 -L 0 -R 0.1,0.3 -W 0,4 --cloud-tokens 1,8 -t 1 >"$tmp/md"
[ "$(grep -c '^| [13]0 | 0 | [04] | [18] |' "$tmp/md")" -eq 8 ] && [ "$(grep -c '^Text with r = ' "$tmp/md")" -eq 2 ] ||
    fail "table: $(cat "$tmp/md")"
head -n 1 "$tmp/md" | grep -q ' | hidden | passes | accepted | calls | ' || fail "columns: $(cat "$tmp/md")"
awk -F' [|] ' 'length > 100 { print length " columns: " $0; bad = 1 }
/^[|] [13]0/ && ($4 == 1 && $10 != 0 || $3 == 0 && $9 + $10 != 59 || $9 < 1) { print; bad = 1 }
END { exit bad }' "$tmp/md" || fail "see above"
grep -q '^No drafts' "$tmp/md" && fail "drafts were made: $(cat "$tmp/md")"
"$MIZZLE" bench route -p 12 -n 20 -L 0 -W 0 --cloud-tokens 8 --edge-ms 1 -t 1 >"$tmp/md"
tail -n 1 "$tmp/md" | grep -q '^No drafts: .*--edge-ms' || fail "no drafts: $(cat "$tmp/md")"

# A shape instead of a file.
"$MIZZLE" bench route --shape qwen2.5-0.5b --type q4_0 -p 2 -n 2 -R 0.5 -L 0 -W 0 -o csv >"$tmp/csv" || fail "--shape"
[ "$(wc -l <"$tmp/csv")" -eq 2 ] || fail "--shape: $(cat "$tmp/csv")"

# The paper's way: the same text unless it is tokenized again, and more bytes if more is requested.
"$MIZZLE" bench route -p 12 -n 20 -R 0.2 -L 2 --cloud-ms 0 --as-paper -t 1 -o csv --plot "$tmp/b.svg" >"$tmp/ways"
awk -F, 'NR == 1 && $0 != "way,s,edge_s,cloud_s,more_s,times,calls,up_bytes,down_bytes,text" { bad = 1 }
NR > 1 { calls[$1] = $7; down[$1] = $9; text[$1] = $10 }
END {
    split("default,in step,no KV cache,new connections,16 tokens", same, ",")
    for (i in same) if (text[same[i]] != text["default"]) { print same[i] ": another text"; bad = 1 }
    for (w in calls) if (calls[w] != 4) { print w ": " calls[w] " calls"; bad = 1 }
    exit bad || NR != 8 || !("as the paper" in text) || down["16 tokens"] <= down["in step"]
}' "$tmp/ways" || fail "$(cat "$tmp/ways")"
grep -q '^<svg' "$tmp/b.svg" || fail "no picture of the ways"
"$MIZZLE" bench route -p 4 -n 8 -L 0 --as-paper -t 1 >"$tmp/ways"
grep -q '^| as the paper |' "$tmp/ways" || fail "no row"
grep -q 'the median of samples (-r): 3\. ' "$tmp/ways" &&
    grep -q '^The parts sum to [-+].* s of the paper.s [-+].* s; they miss [-+].* s of it' "$tmp/ways" || fail "$(cat "$tmp/ways")"
awk 'length > 100 { print length " columns: " $0; bad = 1 } END { exit bad }' "$tmp/ways" || fail "see above"
# Edge, waiting and rest are those of one answer; the whole less its parts is what they miss.
"$MIZZLE" bench route -p 4 -n 8 -R 0.2 -L 0 --cloud-ms 0 --trips 0 --as-paper -t 1 -r 2 -o jsonl >"$tmp/ways"
awk -F'[:,] ' 'function near(a, b) { return a - b < 1e-6 && b - a < 1e-6 }
{ for (i = 1; i < NF; i++) { key = $i; gsub(/[{"]/, "", key); v[key] = $(i + 1) } }
{ if (!near(v["s"], v["edge_s"] + v["cloud_s"] + v["rest_s"])) { print; bad = 1 } }
NR > 1 && NR < 7 { sum += v["more_s"] }
NR < 7 && v["parts_s"] != "null" { bad = 1 }
END { exit bad || NR != 7 || !near(v["parts_s"], sum) || !near(v["missed_s"], v["more_s"] - sum) }' "$tmp/ways" ||
    fail "$(cat "$tmp/ways")"

# The paper's Table 1: its rows as printed beside as many routed tokens; columns add up as there.
"$MIZZLE" bench route -p 4 -n 100 -L 1 --cloud-ms 0 --trips 0 --table paper -t 1 -o csv >"$tmp/table"
[ "$(head -n 1 "$tmp/table")" = "threshold,routed,edge_s,ttft_s,tbt_s,cloud_s,overall_s,paper_routed,paper_edge_s,paper_ttft_s,paper_tbt_s,paper_cloud_s,paper_overall_s" ] ||
    fail "columns: $(head -n 1 "$tmp/table")"
[ "$(cut -d, -f1,8- "$tmp/table" | sed -n '5p;9p' | tr '\n' ' ')" = \
    "0.70,14,28.04,0.34,0.33,11.97,40.06 0.90,76,28.20,0.49,1.18,72.76,101.05 " ] || fail "$(cat "$tmp/table")"
awk -F, 'function near(a, b) { return a - b < 0.0002 && b - a < 0.0002 }
NR > 1 && ($2 != $8 || !near($7, $3 + $6) || !near($5, $3 / (100 - $2)) || $6 < 0.0009 * $2 || $4 <= 0) { print; bad = 1 }
END { exit bad || NR != 9 }' "$tmp/table" || fail "see above"
"$MIZZLE" bench route -p 4 -n 20 -L 0 --cloud-ms 0 --trips 0 --table paper --as-paper -t 1 >"$tmp/table"
[ "$(grep -c '^| 0\.[4-9]' "$tmp/table")" -eq 8 ] && grep -q 'arXiv 2504.07878, Table 1' "$tmp/table" || fail "$(cat "$tmp/table")"

# On a terminal a line tells that it works; none before two seconds, and none below the table.
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1; then
    script -qec "$MIZZLE bench route -p 2 -n 24 -R 0 -L 0 -W 0 --edge-ms 60 -t 1" /dev/null >"$tmp/out" 2>&1 </dev/null
    tr '\r' '\n' <"$tmp/out" | sed 's/ *$//; /^$/d' >"$tmp/lines"
    [ "$(grep -m 1 '^measuring' "$tmp/lines")" = 'measuring routing, 2 s' ] || fail "no progress: $(cat "$tmp/lines")"
    [ "$(grep -n '^measuring' "$tmp/lines" | tail -n 1 | cut -d: -f1)" -lt "$(grep -n '^| r %' "$tmp/lines" | cut -d: -f1)" ] ||
        fail "progress below the table: $(cat "$tmp/lines")"
else
    echo "SKIP: no script(1), the line on a terminal was not tested"
fi

for wrong in '-R 1.5' '-R x' '-R 0.1,' '-L 1.5' '-L -1' '-W 65' '--agree 2' '--loss 1' '--edge-ms -1' '-n 1' '-p 0' \
    '--trips 11' '--cloud-tokens 0' '--cloud-tokens 65' '--agree-next 1.1' '--edge-ms 1 --as-paper' '--cloud-tokens 8 --as-paper' '--cloud-tokens 1,2 --table paper' '--table prices' '--table paper --plot x.svg'; do
    status=0
    # shellcheck disable=SC2086
    "$MIZZLE" bench route $wrong >"$tmp/out" 2>"$tmp/err" || status=$?
    [ "$status" -eq 2 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "$wrong: status $status"
done
status=0
"$MIZZLE" bench route -n 4 -L 0 -t 1 --plot /nonexistent/a.svg >/dev/null 2>"$tmp/err" || status=$?
[ "$status" -eq 3 ] || fail "a picture that cannot be written: status $status"
