# shellcheck shell=sh disable=SC2034,SC2154
# adapt - what a router learns from 300 answers about a kind of questions that it was not trained
# on. Three seeds for training, for the questions that it learns from and for those of the test.
# `before` was trained on the four other kinds, `after` is that with --adapt, `retrained` has seen
# all five. All are compared with `before`, question by question, at an equal share of tokens.
HEADER=learnt,kind,router,seed,questions,accuracy,accuracy_low,accuracy_high,routed
HEADER=$HEADER,difference,difference_low,difference_high
CHECKED=2

adapt_compare() { # LEARNT KIND SEED SHARE QUESTIONS ROUTER...
    adapt_columns=$(echo "$HEADER" | sed "s/^learnt,kind/learnt=$1,kind=$2/")
    adapt_kind=$2 adapt_seed=$3 adapt_share=$4 adapt_questions=$5
    shift 5
    adapt_policies=mlp=$here/before
    for router in "$@"; do adapt_policies=$adapt_policies,mlp=$here/$router; done
    evaluate "$adapt_columns" --cloud-url "$url" --kind "$adapt_kind" --seed "$adapt_seed" \
        --questions "$adapt_questions" --target-routed "$adapt_share" --against mlp=before \
        --policy "$adapt_policies"
}

adapt_rows() { # KIND SEED
    rest=
    for kind in where which sums sort notes; do
        # shellcheck disable=SC2086
        mizzle router collect -q -t 1 $patient --labels divergent --kind $kind --questions 200 \
            -o "$here/samples-$kind" >/dev/null
        [ $kind = "$1" ] || rest="$rest --samples $here/samples-$kind"
    done
    # shellcheck disable=SC2086
    mizzle router train -q -t 1 $rest --seed "$2" -o "$here/before" >/dev/null
    # shellcheck disable=SC2086
    mizzle router train -q -t 1 $rest --samples "$here/samples-$1" --seed "$2" \
        -o "$here/retrained" >/dev/null
    serve
    # shellcheck disable=SC2086
    mizzle router calibrate -q -t 1 $patient --cloud-url "$url" --router "$here/before" \
        --questions 500 --target-routed 0.05 >/dev/null
    # shellcheck disable=SC2086
    mizzle eval -q -t 1 $patient --cloud-url "$url" --policy mlp --router "$here/before" \
        --adapt "$here/after" --kind "$1" --questions 300 --seed $((100 + $2)) >/dev/null
    adapt_compare "$1" "$1" "$2" 0.04 "${QUESTIONS:-600}" after retrained
    for kind in where which sums sort notes; do
        [ $kind = "$1" ] || adapt_compare "$1" $kind "$2" 0.05 "${QUESTIONS:-300}" after
    done
}

jobs() {
    for seed in 1 2 3; do job adapt_rows which $seed; done
}
