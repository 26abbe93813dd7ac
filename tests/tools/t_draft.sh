#!/bin/sh
# Drafts on the command line, with the demo pair and a server: --draft changes no token, source, score
# or edge_id, and the summary tells how many were accepted. $DRAFT_QUESTIONS questions are asked
# (default: 4); .ci/run asks 200. (Many texts, and what a draft costs: tests/router/t_draft.c.)
. tests/support/demo_pair.sh
text() { sed -n '/"event":"token"/s/,"ms":[0-9.]*}$//p' "$dir/out"; }
# drafted N ARGS: at least N are drafted and accepted; 0: none.
drafted() {
    least=$1
    shift
    expect 0 run --json "$@"
    [ "$(field accepted)" -ge "$least" ] && [ "$least" -gt 0 -o "$(field drafted)" -eq 0 ] ||
        fail "$*: drafted $(field drafted), accepted $(field accepted)"
}

start_cloud --latency 1
accepted=0 n=0
while [ $n -lt "${DRAFT_QUESTIONS:-4}" ]; do
    n=$((n + 1))
    for how in '--policy random --threshold 0.3 --temp 0.7 --ahead 0' '--ahead 1'; do
        anew
        for draft in off both lookup; do
            alike text run --json --question $n --cloud-tokens 8 --cloud-url "$url" $how --draft $draft
            accepted=$((accepted + $(field accepted)))
            [ $draft != off ] || [ "$(field drafted)" -eq 0 ] || fail "off: drafts"
        done
    done
done
[ $accepted -gt $n ] || fail "in $n questions: $accepted accepted"
grep -q '"source":"cloud".*"edge_id":[0-9]' "$dir/first" || fail "no edge_id of a cloud's token"
# Kept answers are there at once: few passes are left.
how="--question 3 --policy max-prob --threshold 1 --ahead 0 --cloud-url $url --answers $dir/kept"
expect 0 run --json $how --draft off
drafted 26 $how --draft cloud
[ "$(field passes)" -lt 10 ] || fail "kept: $(field passes) passes"
# Lookup is the default; the cloud is a source only with several tokens a call.
drafted 1 --question 3 --policy never -n 60
drafted 0 --question 3 --policy never -n 60 --draft off
expect 0 run --question 1 --json --policy always --cloud-url "$url" --ahead 0
[ "$(field drafted)" -lt 20 ] || fail "one token a call: $(field drafted) drafted"
expect 2 run --question 1 --draft most
fails 2 '^mizzle eval: --ahead: expected without --task ppl$' eval --task ppl --ahead 0 --data "$edge"
