#!/bin/sh
# mizzle eval with policies that do not choose token by token: position, at a place that is fixed
# beforehand, by its number or after a text; query, once for the whole answer; slot, one token after
# a fixed text.
. tests/tools/eval/eval.sh
subcommand="eval -q --questions 12"

# routed: print who wrote the tokens of each answer: =, # and ? are from the cloud.
routed() {
    sed -n 's/.*"policy":"'"${1:-position}"'".*"trace":"\([^"]*\)".*/\1/p' "$dir/journal"
}

# By number: one token of each answer, the third; no threshold, no share to aim at.
for more in '' '--target-routed 0.2' '--parallel 1 --ahead 0'; do
    rm -f "$dir/journal"
    run 0 --policy never,position=2 --json --jsonl "$dir/journal" $more
    [ "$(field threshold)" = null ] && [ "$(field target)" = null ] || fail "$more: $last"
    [ "$(routed | grep -c '^[^=#?][^=#?][=#?][^=#?]*$')" -eq 12 ] || fail "$more: $(routed)"
    [ "$(grep -c '"policy":"position"' "$dir/out")" -eq 1 ] || fail "$more: $(cat "$dir/out")"
    sed -n 's/.*"policy":"position".*"text":\("[^"]*"\).*/\1/p' "$dir/journal" >"$dir/now"
    [ -s "$dir/now" ] || fail "$more: no answers"
    [ ! -f "$dir/first" ] || cmp -s "$dir/first" "$dir/now" || fail "$more: another text"
    cp "$dir/now" "$dir/first"
done
fails 2 'other settings: ' --policy never,position=3 --jsonl "$dir/journal"
# A range: the first four.
rm -f "$dir/journal"
run 0 --policy position=0-3 --jsonl "$dir/journal"
[ "$(routed | grep -c '^[=#?]\{4\}[^=#?]*$')" -eq 12 ] || fail "a range: $(routed)"

# After a text.
rm -f "$dir/journal"
run 0 --policy position='The answer is (' --json --jsonl "$dir/journal"
[ "$(routed | grep -c '^[^=#?]*[=#?][^=#?]*$')" -eq 12 ] || fail "after a text: $(routed)"
run 0 --policy random,position=4 --target-routed 0.1 --against position
grep -q '^random, against position' "$dir/out" || fail "$(cat "$dir/out")"

# query: the score of the first token decides for the whole answer; thresholds are found as usual.
"$MIZZLE" router collect -q -o "$dir/samples" --questions 100 --labels match >/dev/null &&
    "$MIZZLE" router train -q --samples "$dir/samples" --head query --width 16 -o "$dir/q" >"$dir/out" ||
    fail "no router: $(cat "$dir/out")"
grep -q '^head  *query' "$dir/out" || fail "$(cat "$dir/out")"
run 0 --questions 1 --policy "query=$dir/q" --threshold 0.5
grep -q '^query=q ' "$dir/out" || fail "query: $(cat "$dir/out")"
rm -f "$dir/first"
for more in '' '--parallel 1 --ahead 0'; do
    rm -f "$dir/journal"
    run 0 --questions 40 --policy "query=$dir/q" --target-routed 0.3 --json --jsonl "$dir/journal" $more
    sed -n 's/.*"policy":"query=q".*"trace":"\([^"]*\)".*/\1/p' "$dir/journal" >"$dir/traces"
    [ "$(grep -c '^\.*$' "$dir/traces")" -gt 9 ] && [ "$(grep -c '^[=#?]*$' "$dir/traces")" -gt 4 ] &&
        [ "$(grep -c '^\.*$\|^[=#?]*$' "$dir/traces")" -eq 40 ] || fail "$more: $(cat "$dir/traces")"
    sed -n 's/.*"policy":"query=q".*"text":\("[^"]*"\).*/\1/p' "$dir/journal" >"$dir/now"
    [ ! -f "$dir/first" ] || cmp -s "$dir/first" "$dir/now" || fail "query $more: another text"
    cp "$dir/now" "$dir/first"
done

# slot: the text, and one token of the cloud after it, which reads what always reads; no small model.
rm -f "$dir/journal"
run 0 --policy slot,always,position=' The answer is (' --json --jsonl "$dir/journal"
grep '"policy":"slot"' "$dir/out" >"$dir/row"
last=$(cat "$dir/row")
[ "$(field tokens)" -eq 12 ] && [ "$(field cloud)" -eq 12 ] && [ "$(field calls)" -eq 12 ] &&
    [ "$(field decoded)" -eq 12 ] && [ "$(field threshold)" = null ] || fail "$last"
[ "$(field routed)" = 1.0 ] && [ "$(field truncated)" -eq 0 ] || fail "$last"
cost=$(field prefilled)
last=$(grep '"policy":"always"' "$dir/out" | tail -n 1)
[ "$(field tokens)" -gt 200 ] && [ "$cost" -lt "$(field prefilled)" ] || fail "$last"
[ "$(grep '"policy":"slot"' "$dir/journal" | grep -c '"text":" The answer is ([A-Za-z]*",.*"calls":1,')" -eq 12 ] ||
    fail "slot: $(tail -n 1 "$dir/journal")"
cp "$dir/journal" "$dir/whole"
rm -f "$dir/journal"
run 0 --policy slot=' The answer is (' --parallel 1 --ahead 0 --jsonl "$dir/journal" -n 1
slots() { sed -n 's/.*"policy":"slot".*"text":\("[^"]*"\).*"trace":\("[^"]*"\).*/\1\2/p' "$1"; }
slots "$dir/whole" >"$dir/first"
slots "$dir/journal" | cmp -s - "$dir/first" || fail "slot: another text with --parallel 1"
# What is refused.
subcommand="eval -q --questions 12"
for wrong in never,position position= slot slot= position,never position=0,never position=0-3,never; do
    refuses 2 'policy: expected position=N, position=N-M, position=TEXT or slot=TEXT at the end' --policy $wrong
done
refuses 2 'place: expected N-M with N at most M, found 4-1' --policy position=4-1
refuses 2 'policy slot: expected a text, found 0-3' --policy slot=0-3
refuses 2 'policy slot: expected a text, found 3' --policy slot,position=3
refuses 2 'policy: expected never without a file, found .never=3.' --policy never=3
exit 0
