#!/bin/sh
# mizzle eval with policies that do not choose token by token: position, at a place that is fixed
# beforehand, by its number or after a text; query, once for the whole answer.
. tests/tools/eval/eval.sh
always="-q --questions 12"

# routed: print who wrote the tokens of each answer: =, # and ? are from the cloud.
routed() {
    sed -n 's/.*"policy":"position".*"trace":"\([^"]*\)".*/\1/p' "$dir/journal"
}

# field NAME: the value of NAME in the last line.
field() { printf '%s' "$last" | sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p"; }

# By number: one token of each answer, the third; no threshold, no share to aim at.
for more in '' '--target-routed 0.2' '--sweep 0:0.2:2' '--parallel 1 --ahead 0' '--ahead 4 --draft off'; do
    rm -f "$dir/journal"
    # shellcheck disable=SC2086
    run 0 --policy never,position --place 2 --json --jsonl "$dir/journal" $more
    [ "$(field threshold)" = null ] && [ "$(field target)" = null ] || fail "$more: $last"
    [ "$(routed | grep -c '^[^=#?][^=#?][=#?][^=#?]*$')" -eq 12 ] || fail "$more: $(routed)"
    [ "$(grep -c '"policy":"position"' "$dir/out")" -eq 1 ] || fail "$more: $(cat "$dir/out")"
    sed -n 's/.*"policy":"position".*"text":\("[^"]*"\).*/\1/p' "$dir/journal" >"$dir/now"
    [ -s "$dir/now" ] || fail "$more: no answers"
    [ ! -f "$dir/first" ] || cmp -s "$dir/first" "$dir/now" || fail "$more: another text"
    cp "$dir/now" "$dir/first"
done
run 2 --policy never,position --place 3 --jsonl "$dir/journal"
grep -q 'other settings: ' "$dir/err" || fail "$(cat "$dir/err")"

# After a text.
rm -f "$dir/journal"
run 0 --policy position --place 'The answer is (' --json --jsonl "$dir/journal"
[ "$(routed | grep -c '^[^=#?]*[=#?][^=#?]*$')" -eq 12 ] || fail "after a text: $(routed)"
run 0 --policy position,random --place 4 --share 0.1 --against position
grep -q '^random, against position' "$dir/out" || fail "$(cat "$dir/out")"

# query: the score of the first token decides for the whole answer; thresholds are found as usual.
"$MIZZLE" router collect -q -o "$dir/samples" --questions 100 --labels match >/dev/null &&
    "$MIZZLE" router train -q --samples "$dir/samples" --head query --width 16 -o "$dir/q" >"$dir/out" ||
    fail "no router: $(cat "$dir/out")"
grep -q '^head  *query' "$dir/out" || fail "$(cat "$dir/out")"
rm -f "$dir/first"
for more in '' '--parallel 1 --ahead 0' '--ahead 4 --draft off'; do
    rm -f "$dir/journal"
    # shellcheck disable=SC2086
    run 0 --questions 40 --policy "query=$dir/q" --target-routed 0.3 --json --jsonl "$dir/journal" $more
    sed -n 's/.*"policy":"query=q".*"trace":"\([^"]*\)".*/\1/p' "$dir/journal" >"$dir/traces"
    [ "$(grep -c '^\.*$' "$dir/traces")" -gt 9 ] && [ "$(grep -c '^[=#?]*$' "$dir/traces")" -gt 4 ] &&
        [ "$(grep -c '^\.*$\|^[=#?]*$' "$dir/traces")" -eq 40 ] || fail "$more: $(cat "$dir/traces")"
    sed -n 's/.*"policy":"query=q".*"text":\("[^"]*"\).*/\1/p' "$dir/journal" >"$dir/now"
    [ ! -f "$dir/first" ] || cmp -s "$dir/first" "$dir/now" || fail "query $more: another text"
    cp "$dir/now" "$dir/first"
done

# What is refused.
refuse() {
    says=$1
    shift
    run 2 "$@"
    grep -q -e "$says" "$dir/err" || fail "$*: $(cat "$dir/err")"
    [ "$(wc -l <"$dir/err")" -eq 1 ] || fail "$*: $(cat "$dir/err")"
}
refuse 'place: expected a number or a text' --policy never,position
refuse 'place: expected a number or a text' --policy position --place ''
refuse 'place: expected --policy position' --policy never,mlp --place 3
refuse '--place: expected without' --task ppl --place 3
exit 0
