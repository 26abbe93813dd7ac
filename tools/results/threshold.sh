# shellcheck shell=sh disable=SC2034,SC2154
# threshold - what a share of tokens from the cloud is worth: accuracy of every policy at shares
# from 0 to 7 %, in the three wordings of the questions.
HEADER=wording,policy,threshold,target,seed,questions,routed,right,accuracy,accuracy_low
HEADER=$HEADER,accuracy_high,pgr,pgr_low,pgr_high,apgr7

threshold_rows() { # WORDING OPTIONS...: apgr7 is in the last row of a sweep
    wording=$1
    shift
    evaluate "wording=$wording,${HEADER#wording,}" --wording "$wording" \
        --questions "${QUESTIONS:-400}" "$@"
}

jobs() {
    for wording in plain chatty story; do
        job threshold_rows $wording --policy never,always
        for policy in mlp context max-prob margin entropy random oracle; do
            job threshold_rows $wording --policy $policy --sweep 0:0.07:8
        done
    done
}

threshold_of() { # WORDING COLUMN CONDITION...: a value of the table, in percent
    wording=$1 column=$2
    shift 2
    figure '%.0f' "100 * $(value threshold "$column" "wording=$wording" "$@")"
}

draws() {
    for wording in plain chatty story; do
        edge=$(threshold_of $wording accuracy policy=never)
        cloud=$(threshold_of $wording accuracy policy=always)
        at="target=0.050000"
        plot threshold-$wording.svg threshold.csv --x routed --y accuracy --by policy \
            --band accuracy_low,accuracy_high --percent routed,accuracy --x-range 0,7.5 \
            --where wording=$wording --where policy=mlp,context,max-prob,margin,entropy,random \
            --guide "edge alone=$edge" --guide "cloud alone=$cloud" \
            --x-label "tokens from the cloud, %" --y-label "answers that are right, %" \
            --title "Questions in $wording words, 5 % of the tokens from the cloud:\
 $(threshold_of $wording accuracy policy=mlp $at) % right with the router,\
 $(threshold_of $wording accuracy policy=entropy $at) % with entropy,\
 $(threshold_of $wording accuracy policy=random $at) % by chance" \
            --note "Bands: 95 % intervals (Wilson). Each point has a threshold of its own, found on other questions."
    done
}
