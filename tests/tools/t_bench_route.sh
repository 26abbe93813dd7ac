#!/bin/sh
# mizzle bench route: columns of each format, the model beside the measurement, the same text for
# every W, the paper's way, and what is refused. Times are not checked: t_ahead_model.c tests the
# model.
set -eu
. tests/support/shell.sh

"$MIZZLE" bench route --help >"$dir/help"
for option in --routed --latency --ahead --agree --edge-ms --as-paper; do
    grep -q -e "$option" "$dir/help" || fail "--help does not name $option"
done

# Each combination has a row; for each share the text is the same, whatever L and W are.
"$MIZZLE" bench route -p 12 -n 60 -R 0.1,0.3 -L 0,5 -W 0,1,4 -t 1 -o csv >"$dir/csv"
head -n 1 "$dir/csv" | grep -q '^model,n_prompt,n_gen,agree,routed,latency_ms,ahead,edge_ms,ms,formula_ms,model_ms,cloud,agreed,fallback,calls,wasted,up_bytes,down_bytes,text$' ||
    fail "columns: $(head -n 1 "$dir/csv")"
[ "$(wc -l <"$dir/csv")" -eq 13 ] || fail "12 rows: $(cat "$dir/csv")"
awk -F, 'NR > 1 {
    if (!($5 in text)) { text[$5] = $19; n++ }
    if (text[$5] != $19) { print "W changes the text: " $0; bad = 1 }
    if ($12 != 60 * $5 || $14 != 0) { print "cloud tokens: " $0; bad = 1 }
    if ($15 != $12 + $16 || ($7 < 2 && $16)) { print "wasted calls: " $0; bad = 1 }
    if ($17 < 200 || $18 < 100) { print "bytes: " $0; bad = 1 }
    if ($6 == 0 && $10 != $8) { print "nothing to wait for: " $0; bad = 1 }
    want = $7 ? $8 + $5 * 0.3 * $6 : $8 + $5 * $6
    if ($10 - want > 0.002 || want - $10 > 0.002) { print "formula: " $0; bad = 1 }
}
END { exit bad || n != 2 }' "$dir/csv" || fail "see above"

# With a given speed of the edge the event model is exact: steps of 10 ms, every token from a cloud
# 20 ms away that always agrees. In step a token takes 30 ms, with one request in flight 20 ms.
"$MIZZLE" bench route -p 3 -n 6 -R 1 -L 20 -W 0,1 --agree 1 --edge-ms 10 -t 1 -o jsonl >"$dir/jsonl"
sed -n 1p "$dir/jsonl" | grep -q '"formula_ms": 30.0, "model_ms": 30.0, "cloud": 6, "agreed": 6' || fail "in step: $(cat "$dir/jsonl")"
sed -n 2p "$dir/jsonl" | grep -q '"formula_ms": 10.0, "model_ms": 20.0,' || fail "ahead: $(cat "$dir/jsonl")"
"$MIZZLE" bench route -p 3 -n 6 -R 1 -L 20 -W 0,1 --agree 0 --edge-ms 1 -t 1 -r 2 -o json | tr -d '\n' >"$dir/json"
grep -q '^\[{"model": "demo", "n_prompt": 3, "n_gen": 6, "agree": 0.0, "routed": 1.0, .*},{.*"text": "[0-9a-f]*"}\]$' "$dir/json" ||
    fail "json: $(cat "$dir/json")"
"$MIZZLE" bench route -p 12 -n 60 -L 0 -R 0.1,0.3 -W 0,4 -t 1 >"$dir/md"
[ "$(grep -c '^| 0\.[13]000 | 0 | [04] |' "$dir/md")" -eq 4 ] || fail "table: $(cat "$dir/md")"
awk 'length > 100 { print length " columns: " $0; bad = 1 } END { exit bad }' "$dir/md" || fail "see above"

# A shape instead of a file.
"$MIZZLE" bench route --shape qwen2.5-0.5b --type q4_0 -p 2 -n 2 -R 0.5 -L 0 -W 0 -o csv >"$dir/csv" || fail "--shape"
[ "$(wc -l <"$dir/csv")" -eq 2 ] || fail "--shape: $(cat "$dir/csv")"

# The paper's way: the same text unless it is tokenized again, and more bytes if more is requested.
# Edge, waiting and rest are those of one answer; the parts are the sum of the habits' extra times.
"$MIZZLE" bench route -p 12 -n 20 -R 0.2 -L 2 --as-paper -t 1 -r 1 -o csv >"$dir/ways"
awk -F, 'function near(a, b) { return a - b < 3e-4 && b - a < 3e-4 }
NR == 1 && $0 != "model,n_prompt,n_gen,agree,way,s,edge_s,cloud_s,rest_s,more_s,times,calls,up_bytes,down_bytes,text" { bad = 1 }
NR > 1 { s[$5] = $6; more[$5] = $10; calls[$5] = $12; down[$5] = $14; text[$5] = $15 }
NR > 1 && !near($6, $7 + $8 + $9) { print "parts: " $0; bad = 1 }
END {
    split("default,in step,no KV cache,new connections,16 tokens", same, ",")
    for (i in same) if (text[same[i]] != text["default"]) { print same[i] ": another text"; bad = 1 }
    for (w in calls) if (calls[w] != 4) { print w ": " calls[w] " calls"; bad = 1 }
    if (!near(more["as the paper"], s["as the paper"] - s["default"])) bad = 1
    if (!near(more["text"], s["text"] - s["in step"])) bad = 1
    exit bad || NR != 8 || down["16 tokens"] <= down["in step"]
}' "$dir/ways" || fail "$(cat "$dir/ways")"
"$MIZZLE" bench route -p 4 -n 8 -L 0 --as-paper -t 1 >"$dir/ways"
grep -q '^| as the paper |' "$dir/ways" || fail "no row"
grep -q 'the median of samples (-r): 3\. ' "$dir/ways" &&
    grep -q '^The parts sum to [-+].* s of the paper.s [-+].* s; they miss [-+].* s of it' "$dir/ways" || fail "$(cat "$dir/ways")"
awk 'length > 100 { print length " columns: " $0; bad = 1 } END { exit bad }' "$dir/ways" || fail "see above"

# On a terminal a line tells that it works; none before two seconds, and none below the table.
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1; then
    script -qec "$MIZZLE bench route -p 2 -n 48 -R 0 -L 0 -W 0 --edge-ms 60 -t 1" /dev/null >"$dir/out" 2>&1 </dev/null
    tr '\r' '\n' <"$dir/out" | sed 's/ *$//; /^$/d' >"$dir/lines"
    [ "$(grep -m 1 '^measuring' "$dir/lines")" = 'measuring routing, 2 s' ] || fail "no progress: $(cat "$dir/lines")"
    [ "$(grep -n '^measuring' "$dir/lines" | tail -n 1 | cut -d: -f1)" -lt "$(grep -n '^| r |' "$dir/lines" | cut -d: -f1)" ] ||
        fail "progress below the table: $(cat "$dir/lines")"
else
    echo "SKIP: no script(1), the line on a terminal was not tested"
fi

for wrong in '-R 1.5' '-R x' '-R 0.1,' '-L 1.5' '-L -1' '-W 65' '--agree 2' '--edge-ms -1' '-n 1' '-p 0' '-t 1,2' '--edge-ms 1 --as-paper'; do
    # shellcheck disable=SC2086
    refused 2 bench route $wrong
done
