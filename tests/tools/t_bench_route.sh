#!/bin/sh
# mizzle bench route: columns, the model beside the measurement, what habits of the paper's demo
# change, and what is refused. That every way writes the same text is checked by the program. Times
# are checked for what must take at least so long: t_virtual_clock.c tests the model.
set -eu
. tests/support/shell.sh

# In step and ahead have a row each. In step the calls are awaited: 6 of 60 tokens, 5 ms
# each, after the first token.
"$MIZZLE" bench route -p 12 -n 60 -R 0.1 -L 5 -W 0,1 -t 1 -r 1 -o csv >"$dir/csv"
awk -F, 'NR == 1 && $0 != "way,ahead,s,edge_s,cloud_s,rest_s,times,ms,model_ms,calls,up_bytes,down_bytes" { bad = 1 }
NR > 1 {
    if ($10 != 6) { print "calls: " $0; bad = 1 }
    if ($11 < 200 || $12 < 100) { print "bytes: " $0; bad = 1 }
    if ($2 == 0 && ($8 < 0.4 || $9 < 0.4 || $5 < 0.03)) { print "calls of 5 ms: " $0; bad = 1 }
    if ($2 == 0) step = $9
    if ($2 == 1 && $9 >= step) { print "ahead: " $0; bad = 1 }
}
END { exit bad || NR != 3 }' "$dir/csv" || fail "$(cat "$dir/csv")"

# Whether every guess is right or none is, each routed token takes one call.
"$MIZZLE" bench route -p 3 -n 20 -R 1 -L 2 -W 1 --agree 1 -t 1 -r 2 -o json | tr -d '\n' >"$dir/json"
grep -q '^\[{"way": "the loop", "ahead": 1, .*"calls": 20, .*}\]$' "$dir/json" || fail "json: $(cat "$dir/json")"
"$MIZZLE" bench route -p 3 -n 20 -R 1 -L 2 -W 1 --agree 0 -t 1 -r 2 -o jsonl >"$dir/jsonl"
grep -q '"calls": 20,' "$dir/jsonl" || fail "jsonl: $(cat "$dir/jsonl")"
"$MIZZLE" bench route -p 12 -n 60 -L 0 -R 0 -W 0,1 -t 1 >"$dir/md"
[ "$(grep -c '^| the loop | [01] |.* | 0 | 0 | 0 |$' "$dir/md")" -eq 2 ] || fail "table: $(cat "$dir/md")"

# A shape instead of a file.
"$MIZZLE" bench route --shape qwen2.5-0.5b --type q4_0 -p 2 -n 2 -R 0.5 -L 0 -W 0 -r 1 -o csv >"$dir/csv" || fail "--shape"
[ "$(wc -l <"$dir/csv")" -eq 2 ] || fail "--shape: $(cat "$dir/csv")"

# An answer that is shorter than what a habit requests.
"$MIZZLE" bench route -p 2 -n 4 -R 0.25 -L 0 -W 0 --as-paper -t 1 -r 1 >"$dir/out" || fail "-n 4 --as-paper"

# The paper's way: each call takes 20 ms a token, a new connection two round trips, and the reply is
# as long as was asked for. Edge, waiting and rest are those of one answer.
"$MIZZLE" bench route -p 12 -n 20 -R 0.2 -L 2 -W 0 --as-paper -t 1 -r 1 -o csv >"$dir/ways"
awk -F, 'function near(a, b) { return a - b < 3e-4 && b - a < 3e-4 }
NR > 1 { cloud[$1] = $5; down[$1] = $12; times[$1] = $7 }
NR > 1 && !near($3, $4 + $5 + $6) { print "parts: " $0; bad = 1 }
NR > 1 && $10 != 4 { print "calls: " $0; bad = 1 }
END {
    if (cloud["the loop"] < 0.088 || cloud["no KV cache"] < 0.088) bad = 1
    if (cloud["new connections"] < 0.104 || cloud["16 tokens"] < 1.288) bad = 1
    if (cloud["as the paper"] < 1.304 || times["the loop"] != 1) bad = 1
    exit bad || NR != 6 || down["16 tokens"] <= down["the loop"]
}' "$dir/ways" || fail "$(cat "$dir/ways")"

# On a terminal a line tells that it works; none before two seconds, and none below the table.
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1; then
    script -qec "$MIZZLE bench route -p 2 -n 48 -R 1 -L 60 -W 0 -r 1 -t 1" /dev/null >"$dir/out" 2>&1 </dev/null
    tr '\r' '\n' <"$dir/out" | sed 's/\x1b\[K//; s/ *$//; /^$/d' >"$dir/lines"
    [ "$(grep -m 1 '^measuring' "$dir/lines")" = 'measuring routing, 2 s' ] || fail "no progress: $(cat "$dir/lines")"
    [ "$(grep -n '^measuring' "$dir/lines" | tail -n 1 | cut -d: -f1)" -lt "$(grep -n '^| way |' "$dir/lines" | cut -d: -f1)" ] ||
        fail "progress below the table: $(cat "$dir/lines")"
else
    echo "SKIP: no script(1), the line on a terminal was not tested"
fi

each 'refused 2 bench route' '-R 1.5' '-R x' '-R 0.1,0.2' '-L 1.5' '-L -1' '-L 60001' '-W 2' '-W 0,' '--agree 2' '-n 1' '-p 0' '-t 1,2' '-r 0'
