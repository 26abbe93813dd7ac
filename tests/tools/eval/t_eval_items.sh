#!/bin/sh
# mizzle eval --items: one line for each answer, the same however the answers are written, from the
# journal, too; and its figures are those of the run.
. tests/tools/eval/eval.sh

ask="-q --questions 12 --policy never,mlp,random,always --target-routed 0.1"
run 0 $ask --items "$dir/items" --jsonl "$dir/j" --csv "$dir/rows"
[ "$(wc -l <"$dir/items")" -eq 49 ] || fail "$(cat "$dir/items")"
grep -qE '^milli,[a-z]+,[0-9a-f]{16}\+[0-9a-f]{16},11,[0-9a-f]{16},mlp,0.1,1,0,[01]' "$dir/items" || fail "$(cat "$dir/items")"
run 0 $ask --items "$dir/other" --parallel 1 --ahead 0
cmp "$dir/items" "$dir/other" || fail "one after the other"
run 0 $ask --items "$dir/other" --parallel 7 --ahead 4
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

# Figures: what the run itself has found, but for intervals, which draw the questions in another
# order.
columns() { # FILE COL...: print these columns of each row
    file=$1
    shift
    awk -F, -v want="$*" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; n = split(want, name, " "); next }
        { for (k = 1; k <= n; k++) printf "%s ", $at[name[k]]; print "" }' "$file" | sort
}
run 0 --merge --against random --csv "$dir/figures" "$dir/items" "$dir/mlp"
columns "$dir/rows" policy questions accuracy accuracy_low routed cloud_answer calls_answer pgr >"$dir/want"
columns "$dir/figures" policy questions accuracy accuracy_low routed cloud calls pgr >"$dir/got"
cmp "$dir/want" "$dir/got" || fail "figures: $(diff "$dir/want" "$dir/got")"
run 0 --merge --against random "$dir/mlp" "$dir/items"
cmp "$dir/figures" "$dir/out" || fail "in another order: $(diff "$dir/figures" "$dir/out")"
[ "$(columns "$dir/figures" policy | wc -l)" -eq 4 ] || fail "rows: $(cat "$dir/figures")"

# Behind a policy with a router, each other one: at its share, to which a model alone brings this one.
# shellcheck disable=SC2016
levelled='NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["against"] == "" { right[$at["policy"]] = $at["accuracy"]; routed[$at["policy"]] = $at["routed"] }
    $at["against"] == "random" { n++; equal = $at["equal"]; low = $at["equal_low"]; high = $at["equal_high"] }
    END {
        own = right["mlp"]
        more = routed["mlp"] / routed["random"]
        if (more > 1) own = right["never"] + (own - right["never"]) / more
        else own += (right["always"] - own) * (routed["random"] - routed["mlp"]) / (1 - routed["mlp"])
        off = own - right["random"] - equal
        exit !(n == 1 && (more > 1) == lowers && equal != "" && off * off < 1e-10 && low <= equal && equal <= high)
    }'
run 0 -q --questions 12 --policy mlp --target-routed 0.3 --items "$dir/more"
sed 's/,mlp,0.3,/,mlp,0.1,/' "$dir/more" >"$dir/mlp" # as if it had been meant to be 0.1
grep -v ,mlp, "$dir/items" >"$dir/others"
run 0 --merge --against all --csv "$dir/figures" "$dir/items"
awk -F, -v lowers=0 "$levelled" "$dir/figures" || fail "lifted: $(cat "$dir/figures")"
run 0 --merge --against all --csv "$dir/figures" "$dir/others" "$dir/mlp"
awk -F, -v lowers=1 "$levelled" "$dir/figures" || fail "brought down: $(cat "$dir/figures")"

# Compared on the questions that both were asked.
awk -F, '$6 != "random" || k++ < 8' "$dir/items" >"$dir/part"
awk -F, 'NR == FNR { if ($6 == "random") asked[$4]; next } FNR == 1 || $4 in asked' \
    "$dir/part" "$dir/items" >"$dir/eight"
for of in part eight; do
    run 0 --merge --against all --csv "$dir/figures.$of" "$dir/$of"
    awk -F, '/,random,/ && $6 != "random" || /,against/ || $4 == "mlp" && /,random,[0-9]/' "$dir/figures.$of" >"$dir/versus.$of"
done
[ "$(grep -c ',8,1,.*,random,' "$dir/versus.part")" -eq 1 ] || fail "$(cat "$dir/figures.part")"
cmp "$dir/versus.part" "$dir/versus.eight" || fail "$(diff "$dir/versus.part" "$dir/versus.eight")"

# The lines of the README.
cp weights/milli/edge-0.5.router.safetensors "$dir/a.safetensors"
sed -n '/^    .* --items ends/,/^    .* --merge --against/p' tools/lab/eval/README.md |
    sed 's,^ *build/mizzle,"$MIZZLE",; s/ --data dev.jsonl//; s/ 400 / 4 /; s/--calibration .*jsonl //' >"$dir/lines"
(
    ln -s "$PWD/weights" "$dir/weights"
    case $MIZZLE in /*) ;; *) MIZZLE=$PWD/$MIZZLE ;; esac
    P='-q --questions 8'
    cd "$dir" && . ./lines
) >"$dir/out" 2>"$dir/err" || fail "the lines of the README: $(cat "$dir/out" "$dir/err" "$dir/lines")"
columns "$dir/figures.csv" policy share questions against | tr '\n' ';' >"$dir/got"
[ "$(cat "$dir/got")" = 'always  8  ;entropy 0.05 4  ;mlp=a 0.05 4 entropy ;never  8  ;' ] || fail "$(cat "$dir/got")"

run 3 --merge "$dir/j" "$dir/items"
fails 3 "/j: line 1: expected task,form" --merge "$dir/items" "$dir/j"
run 2 --table paper --policy mlp --clock virtual --questions 1 --items "$dir/none"
[ ! -e "$dir/none" ] || fail "items of rows that cannot be told apart"
exit 0
