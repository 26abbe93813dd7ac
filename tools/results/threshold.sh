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
            job threshold_rows $wording --policy $policy --target-routed 0:0.07:8
        done
    done
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
    share="tokens from the cloud (%)" right="answers that are right (%)"
    for wording in plain chatty story; do
        edge=$(threshold_of $wording accuracy policy=never)
        cloud=$(threshold_of $wording accuracy policy=always)
        at="target=0.050000"
        shape threshold "policy,$share,$right,low,high" '
            of("wording") == "'$wording'" && of("target") != "" && of("routed") <= 0.075 {
                print of("policy"), percent("routed"), percent("accuracy"), percent("accuracy_low"), percent("accuracy_high")
            }' |
            plot threshold-$wording.svg --x "$share" --y "$right" --by policy --interval low,high \
                --guide "$edge=edge alone" --guide "$cloud=cloud alone" \
                --title "Questions in $wording words, 5 % of the tokens from the cloud:\
 $(threshold_of $wording accuracy policy=mlp $at) % right with the router,\
 $(threshold_of $wording accuracy policy=entropy $at) % with entropy,\
 $(threshold_of $wording accuracy policy=random $at) % by chance" \
                --note "Bands: 95 % intervals (Wilson). Each point has a threshold of its own, found on other questions."
    done
    free="tokens that no model can foresee (%)" gap="gap closed (%): mean from 0 to 7 % routed"
    shape threshold "policy,$free,$gap,low,high" '
        of("apgr7") != "" {
            print of("policy"), percent("free"), percent("apgr7"), percent("apgr7_low"), percent("apgr7_high")
        }' |
        plot threshold.svg --x "$free" --y "$gap" --by policy --interval low,high \
            --title "Without free choices entropy closes $(threshold_gain plain entropy) % of the gap, in\
 stories $(threshold_gain story entropy) %; the router $(threshold_gain plain mlp) % and\
 $(threshold_gain story mlp) %" \
            --note "Questions in plain, chatty and story words. Bands: 95 % intervals (paired bootstrap)."
}
