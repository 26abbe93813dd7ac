#!/bin/sh
# Drafts on the command line, with the demo pair: --draft changes no token, source,
# score or edge_id and no call, and the summary tells how many were accepted. $DRAFT_QUESTIONS
# questions (default: 5) are asked ahead; .ci/run asks 200.
. tests/support/demo_pair.sh
# tokens: print the tokens without their times, and the calls.
tokens() {
    sed -n 's/,"ms":[0-9.]*}$//; /"event":"token"/p' "$dir/out"
    tail -n 1 "$dir/out" | grep -o '"calls":[0-9]*,"committed":[0-9]*,"failed":[0-9]*'
}

start_cloud --latency 1
accepted=0
for how in '--policy random --threshold 0.3 --temp 0.7' '--policy always' '--policy never'; do
    line="run --question 3 --json --cloud-tokens 8 --ahead 0 --cloud-url $url $how"
    expect 0 $line --draft off
    tokens >"$dir/off"
    [ "$(field drafted)" -eq 0 ] && [ "$(field accepted)" -eq 0 ] || fail "off: drafts"
    passes=$(field passes)
    for draft in both lookup; do
        expect 0 $line --draft $draft
        tokens | cmp -s - "$dir/off" || fail "$how: --draft $draft differs"
        [ $(($(field passes) + $(field accepted))) -eq "$passes" ] || fail "$draft: passes"
        accepted=$((accepted + $(field accepted)))
    done
done
[ $accepted -gt 0 ] || fail "no drafted token was accepted"
# ask ARGS: answer with these, without drafts and with them.
ask() {
    for draft in off both; do
        echo "asked: $*" >>"$dir/all.$draft"
        "$MIZZLE" run --json --cloud-tokens 8 --cloud-url "$url" "$@" --draft $draft \
            >>"$dir/all.$draft" 2>"$dir/err" </dev/null || fail "$* --draft $draft: status $?"
    done
}
n=0
while [ $n -lt "${DRAFT_QUESTIONS:-5}" ]; do
    n=$((n + 1))
    ask --question $n
    [ $n -gt 12 ] || ask --question $n --ahead 1 --policy random --threshold 0.5 --temp 0.7
done
# Ahead, drafts change no token, source, score or edge_id either. How many calls there are is a
# matter of time there.
for draft in off both; do
    sed -n '/^asked/p; /"event":"token"/s/,"ms":[0-9.]*}$//p' "$dir/all.$draft" >"$dir/$draft"
done
diff "$dir/off" "$dir/both" >"$dir/out" || fail "ahead: drafts change an answer"
awk -F'[:,]' '/"event":"done"/ { n++; for (i = 1; i < NF; i++) if ($i == "\"accepted\"") sum += $(i + 1) }
END { print n + 0, sum + 0 }' "$dir/all.both" >"$dir/out"
read -r runs accepted <"$dir/out"
[ "$runs" -ge $n ] && [ "$accepted" -gt "$runs" ] || fail "ahead: accepted in $runs answers: $accepted"
grep -q '"source":"cloud".*"edge_id":[0-9]' "$dir/both" || fail "no edge_id of a cloud's token"
# Kept answers are there at once: few passes are left.
line="run --question 3 --json --policy always --ahead 0 --cloud-url $url --answers $dir/kept"
for draft in off off cloud; do
    expect 0 $line --draft $draft
    tokens | sed 's/"calls".*//' >"$dir/$draft"
done
cmp -s "$dir/off" "$dir/cloud" || fail "drafts from kept answers differ"
[ "$(field accepted)" -gt 25 ] && [ "$(field passes)" -lt 10 ] || fail "kept: $(field passes)"
# Lookup is the default, and with several tokens a call the cloud is a source, too.
expect 0 run --question 3 --policy never -n 60 --json
[ "$(field drafted)" -gt 0 ] && [ "$(field accepted)" -gt 0 ] || fail "lookup is not the default"
expect 0 run --question 3 --policy never -n 60 --draft off --json
[ "$(field drafted)" -eq 0 ] || fail "off: drafted"
expect 0 run --question 1 --json --policy always --cloud-url "$url" --ahead 0
[ "$(field drafted)" -lt 20 ] || fail "one token a call: $(field drafted) drafted"
expect 2 run --question 1 --draft most
for wrong in '--draft off' '--ahead 0'; do
    fails 2 "^mizzle eval: ${wrong% *}: expected without --task ppl$" eval --task ppl $wrong --data "$edge"
done
stop_cloud

# eval writes the same table.
for draft in off both; do
    expect 0 eval --questions 6 --policy never,random --threshold 0.5 --cloud-tokens 8 --ahead 0 \
        --draft $draft -o "$dir/$draft.csv"
    cut -d, -f1-6 "$dir/$draft.csv" >"$dir/$draft"
done
cmp -s "$dir/off" "$dir/both" || fail "eval: drafts change the results"
rm -rf "$dir"
