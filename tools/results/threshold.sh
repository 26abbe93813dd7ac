# shellcheck shell=sh disable=SC2034,SC2154
# threshold - what a share of tokens from the cloud is worth: accuracy of every policy at shares
# from 0 to 7 %, in the three wordings of the questions.
#
# Column `free` is the share of an answer's tokens that no model can foresee. apgr7, the mean gap
# recovered from 0 to 7 %, is in the last row of a sweep.
HEADER=wording,free,policy,threshold,target,seed,questions,routed,right,accuracy,accuracy_low
HEADER=$HEADER,accuracy_high,pgr,pgr_low,pgr_high,apgr7,apgr7_low,apgr7_high
CHECKED='7 16' # random in plain words, mlp in a story

threshold_rows() { # WORDING OPTIONS...
    wording=$1
    shift
    evaluate "wording=$wording,free=$(constant "free_$wording"),${HEADER#wording,free,}" --wording "$wording" \
        --questions "${QUESTIONS:-200}" "$@"
}

jobs() {
    for wording in plain chatty story; do
        job threshold_rows $wording --policy never,always
        for policy in mlp context max-prob margin entropy random; do
            job threshold_rows $wording --policy $policy --sweep 0:0.07:8
        done
    done
    job threshold_rows story --policy oracle --target-routed 0.05
}

threshold_of() { # WORDING COLUMN CONDITION...: a value of the table, in percent
    wording=$1 column=$2
    shift 2
    figure '%.0f' "100 * $(value threshold "$column" "wording=$wording" "$@")"
}

threshold_gain() { # WORDING POLICY: its apgr7, in percent
    figure '%.0f' "100 * $(value threshold apgr7 "wording=$1" "policy=$2" target=0.070000)"
}

draws() {
    for wording in plain chatty story; do
        edge=$(threshold_of $wording accuracy policy=never)
        cloud=$(threshold_of $wording accuracy policy=always)
        at="target=0.050000"
        plot threshold-$wording.svg threshold.csv --x routed --y accuracy --by policy \
            --band accuracy_low,accuracy_high --percent routed,accuracy --x-range 0,7.5 \
            --where wording=$wording --where policy=mlp,context,max-prob,margin,entropy,random,oracle \
            --guide "edge alone=$edge" --guide "cloud alone=$cloud" \
            --x-label "tokens from the cloud, %" --y-label "answers that are right, %" \
            --title "Questions in $wording words, 5 % of the tokens from the cloud:\
 $(threshold_of $wording accuracy policy=mlp $at) % right with the router,\
 $(threshold_of $wording accuracy policy=entropy $at) % with entropy,\
 $(threshold_of $wording accuracy policy=random $at) % by chance" \
            --note "Bands: 95 % intervals (Wilson). Each point has a threshold of its own, found on other questions."
    done
    plot threshold.svg threshold.csv --x free --y apgr7 --by policy --band apgr7_low,apgr7_high \
        --percent free,apgr7 --where target=0.070000 \
        --x-label "tokens that no model can foresee, %" \
        --y-label "gap closed, mean from 0 to 7 % routed, %" \
        --title "Without free choices entropy closes $(threshold_gain plain entropy) % of the gap, in\
 stories $(threshold_gain story entropy) %; the router $(threshold_gain plain mlp) % and\
 $(threshold_gain story mlp) %" \
        --note "Questions in plain, chatty and story words. Bands: 95 % intervals (paired bootstrap)."
}
