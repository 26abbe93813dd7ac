#!/bin/sh
# mizzle eval --items: one line for each answer, the same however the answers are written, from the
# journal, too. tools/lab/study/figures.py reads them (t_study.sh).
. tests/tools/eval/eval.sh

ask="-q --questions 12 --policy never,mlp,random,always --target-routed 0.1"
run 0 $ask --items "$dir/items" --jsonl "$dir/j" -o "$dir/rows"
[ "$(wc -l <"$dir/items")" -eq 49 ] || fail "$(cat "$dir/items")"
grep -qE '^milli,[a-z]+,[0-9a-f]{16}\+[0-9a-f]{16},11,[0-9a-f]{16},mlp,0.1,1,0,[01]' "$dir/items" || fail "$(cat "$dir/items")"
run 0 $ask --items "$dir/other" --parallel 1 --ahead 0
cmp "$dir/items" "$dir/other" || fail "one after the other"
run 0 $ask --items "$dir/other" --parallel 7 --ahead 1
cmp "$dir/items" "$dir/other" || fail "seven at once"
run 0 $ask --items "$dir/other" --jsonl "$dir/j"
cmp "$dir/items" "$dir/other" || fail "from the journal"
run 0 --merge "$dir/j" --items "$dir/other"
cmp "$dir/items" "$dir/other" || fail "merged"

# Without never and always in the list, neither is asked.
run 0 -q --questions 12 --policy mlp --target-routed 0.1 --items "$dir/mlp"
grep -e ,run, -e ,mlp, "$dir/items" | cmp - "$dir/mlp" || fail "mlp alone: $(cat "$dir/mlp")"

# A journal that says nothing of hashes is read; one that says another hash is of another answer.
sed 's/,"hash":"[0-9a-f]*"//' "$dir/j" >"$dir/older"
run 0 --merge "$dir/older" --items "$dir/other"
sed '1!s/,[0-9a-f]*,\([0-9a-f]*\)$/,,\1/' "$dir/items" | cmp - "$dir/other" || fail "without hashes"
run 0 --merge "$dir/j" "$dir/older"
sed '3s/"hash":"[0-9a-f]*"/"hash":"0000000000000001"/' "$dir/j" >"$dir/changed"
fails 2 'changed: line 3: .*expected the answer of .*/j: line 3' --merge "$dir/j" "$dir/changed"

# The lines of the README.
cp weights/milli/edge-0.5.router.safetensors "$dir/a.safetensors"
sed -n '/^    .* --items ends/,/^    .*figures[.]py --against/p' tools/lab/eval/README.md |
    sed 's,^ *build/mizzle,"$MIZZLE",; s/ --data dev.jsonl//; s/ 400 / 4 /; s/--calibration .*jsonl //' >"$dir/lines"
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import numpy' 2>"$dir/err" || { echo "SKIP the figures: no numpy for $python" && sed -i '/figures[.]py/d' "$dir/lines"; }
(
    ln -s "$PWD/weights" "$PWD/tools" "$dir"
    case $MIZZLE in /*) ;; *) MIZZLE=$PWD/$MIZZLE ;; esac
    P='-q --questions 8'
    cd "$dir" && . ./lines
) >"$dir/out" 2>"$dir/err" || fail "the lines of the README: $(cat "$dir/out" "$dir/err" "$dir/lines")"
if grep -q figures "$dir/lines"; then
    awk -F, 'NR > 1 { print $4, $5, $7, $24 }' "$dir/figures.csv" | tr '\n' ';' >"$dir/got"
    [ "$(cat "$dir/got")" = 'always  8 ;entropy 0.05 4 ;mlp=a 0.05 4 entropy;never  8 ;' ] || fail "$(cat "$dir/got")"
fi

fails 3 "items: line 1: " --merge "$dir/items"
run 2 --as-paper --policy mlp --clock virtual --questions 1 --items "$dir/none"
[ ! -e "$dir/none" ] || fail "items of rows that cannot be told apart"
exit 0
