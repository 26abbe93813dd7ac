#!/bin/sh
# mizzle fleet: the same bytes everywhere, what cache and whole answers change, real clients on the
# stand-in server, an interrupt, and what is refused. t_fleet_model.c tests the model.
set -eu
. tests/support/shell.sh
fleet() { "$MIZZLE" fleet --cloud-ms 20 --kv 3000 -p 50 -n 20 --idle 5 -R 0.2 "$@"; }

# One row to the last digit, whatever the processor and the compiler.
fleet -N 7 --cloud-timeout 100 -o csv >"$dir/csv"
[ "$(cat "$dir/csv")" = "devices,routed,cache,load,busy,calls_per_s,calls_per_pass,read_per_call,p50_ms,p95_ms,answer_s,answers_per_s,carries
7,0.200,1,0.0069,0.0946,4.74,1.00,16.1,70.0,77.3,0.923,1.186,376" ] || fail "$(cat "$dir/csv")"

# What is carried keeps the promise, and a few more do not.
fleet -N 376,395 --cloud-timeout 100 -o csv >"$dir/csv"
awk -F, 'NR == 2 { kept = $10 <= 100 } NR == 3 { broken = $10 > 100 } END { exit !kept || !broken }' "$dir/csv" ||
    fail "$(cat "$dir/csv")"
fleet -N 1 --cloud-timeout 50 -o jsonl | grep -q '"carries": 0}$' || fail "one is too many"

# Each size has a row; load grows with the devices; the cache saves reading.
fleet -N 1,10,100 -o csv >"$dir/with"
fleet -N 1,10,100 --no-cache -o csv >"$dir/without"
fleet -N 1,10,100 -R 1 -o csv >"$dir/whole"
awk -F, 'FNR == 1 { next }
    FILENAME ~ /with$/ { with[$1] = $8; if ($3 != 1 || $4 <= load) exit bad = 1; load = $4 }
    FILENAME ~ /without$/ { if ($3 != 0 || $8 < 1.5 * with[$1]) exit bad = 1; n++ }
    FILENAME ~ /whole$/ { if ($2 != 1 || $8 < 50) exit bad = 1; n++ }
    END { exit bad || n != 6 }' "$dir/with" "$dir/without" "$dir/whole" ||
    fail "$(cat "$dir/with" "$dir/without" "$dir/whole")"

# An interrupt ends a fleet that would take half a minute.
behind fleet -N 1000000 --cloud-timeout 1e-6
interrupt $pid
left 130
[ ! -s "$dir/out" ] || fail "interrupted: $(cat "$dir/out")"

# Real clients: they make calls, and each takes at least network and pass. Answers are so short that
# some end within the second even if each call takes a tenth of it; there is no upper bound.
"$MIZZLE" fleet -N 4 --real 1 --idle 1e-6 --edge-ms 1 -L 10 -p 10 -n 4 -R 0.3 --parallel 2 --cloud-ms 5 -o csv >"$dir/real"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { good += $at["source"] == (NR == 2 ? "model" : "real") && $at["calls_per_s"] > 0 && $at["p50_ms"] >= 15 &&
          $at["p95_ms"] >= $at["p50_ms"] && $at["answer_s"] >= 0.004 && $at["busy"] > 0 && $at["read_per_call"] > 0 }
    END { exit good != 2 || NR != 3 }' "$dir/real" || fail "$(cat "$dir/real")"
expect 2 fleet -N 1 --real 1 --parallel 1 --idle 1000
says 'expected time for at least one call'
# A terminal is told that it runs.
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1; then
    script -qec "$MIZZLE fleet -N 2 --real 2 --idle 1e-6 --edge-ms 1 -p 9 -n 9 --parallel 8" /dev/null >"$dir/out" </dev/null
    grep -q 'measuring the real fleet, [23] s' "$dir/out" || fail "no progress: $(cat "$dir/out")"
fi
# Calls whose text is one token.
"$MIZZLE" fleet -N 2 --real 1 --idle 1e-6 --edge-ms 1 -L 1 -p 1 -n 1 -R 0.9 --parallel 8 --cloud-ms 5 -o csv >"$dir/real"
[ "$(wc -l <"$dir/real")" -eq 3 ] || fail "$(cat "$dir/real")"

each 'refused 2 fleet' '-N 0' '-N 1,' '-N x' '-N 2000000' '-R 0' '-R 1.5' '--agree 2' '-p 0' '-n 0' '--prefill 0' \
    '--edge-ms -1' '--kv 10' '-o xml' 'x' '--cloud-timeout 0' '--idle inf' '--real 1 --parallel 9' '--real 1 -N 65 --parallel 1' '--real 1' \
    '-L 1.5' '-L 60001' '--real 1 -N 1 --parallel 1 -R 1'
