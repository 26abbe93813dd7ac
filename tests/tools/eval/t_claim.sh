#!/bin/sh
# tools/lab/study/claim.py: its figures and intervals, the table from journals of eval, and what
# it refuses.
script=claim.py
. tests/tools/eval/study.sh

"$python" -B tests/tools/eval/claim_check.py "$dir" >"$dir/out" 2>"$dir/err" || fail "claim_check.py"
shows '^mlp=gain,,1,10,0.29999'

# Journals and items give the same table; never of two groups of one part is one row.
expect 0 -q --questions 12 --policy never,mlp,always --target-routed 0.05 --jsonl "$dir/j"
expect 0 -q --questions 12 --policy mlp --target-routed 0.1 --jsonl "$dir/j2"
sed 1d "$dir/j2" >>"$dir/j" # one file is easier to name below
"$python" -B tools/lab/study/answers.py items "$dir/j" >"$dir/items" || fail items
study 0 --of measure,demo "$dir/j" --csv "$dir/j.csv" --calibration "$dir/j"
study 0 --of measure,demo "$dir/items" --calibration "$dir/items" --of measure,demo "$dir/items" --calibration "$dir/j"
same "$dir/j.csv" "$dir/out"
[ "$(cut -d, -f3 "$dir/out" | tr '\n' ' ')" = 'policy always mlp mlp never ' ] || fail "$(cat "$dir/out")"
awk -F, 'NR > 1 { right = $7 - $6 - ($15 - $16) / 100; if (right > 1e-5 || right < -1e-5 || NF != 19) { print; bad = 1 } }
    END { exit bad || NR != 5 }' "$dir/out" || fail "right less never is not what was rescued less spoiled"
# What a router by gain is above: every other policy but never and always.
awk -F, -v OFS=, '$6 == "mlp" { $6 = "mlp=gain"; $10 = 1 } 1' "$dir/items" >"$dir/gain" # all are right
sed -n '1p; /,mlp,/p' "$dir/items" >"$dir/mlp"
study 0 --of measure,demo "$dir/gain" "$dir/mlp" --above "$dir/above"
[ "$(cut -d, -f3-5 "$dir/above" | tr '\n' ' ')" = 'policy,other,above gain,mlp,0.250000 gain,mlp,0.000000 ' ] || fail "$(cat "$dir/above")"
# A threshold from the scores, for the texts of one.
study 0 --threshold 0.05 "$dir/j"
threshold=$(sed -n 's/.*"calibrated":"mlp","share":0.05,.*"threshold":\([0-9.]*\).*/\1/p' "$dir/j")
awk -F, -v t="$threshold" '$1 == "mlp" && $2 == "0.05" { n++; off = $5 - t } END { exit !(n == 1 && off < 0.2 && off > -0.2) }' "$dir/out" ||
    fail "$threshold: $(cat "$dir/out")"

refused 2 'expected --of PART,FORM and files of answers, found none'
refused 2 'expected --of PART,FORM .*, found measure' --of measure "$dir/j"
refused 2 'expected --of PART,FORM .*, found a,b' --of a,b
refused 2 'expected --of PART,FORM .*, found .*/j' "$dir/j" --of a,b "$dir/j"
refused 2 'or --of PART,FORM, found --fast' --fast
refused 2 'expected answers of never, found none' --of a,b "$dir/scored"
refused 2 'expected one form and pair, csqa.*, found milli' --of a,b "$dir/never" "$dir/j"
refused 3 'expected a journal with scores, found none' --threshold 0.05 "$dir/items"
refused 2 'threshold: expected 0 to 1, found x' --threshold x "$dir/j"
refused 1 'nothing: No such file' --of a,b "$dir/nothing"
refused 1 'absent/csv: No such file' --csv "$dir/absent/csv" --of a,b "$dir/j"
exit 0
