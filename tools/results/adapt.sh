# shellcheck shell=sh disable=SC2034,SC2154
# adapt - what a router learns from 300 answers about a kind of questions that it was not trained
# on. Three seeds for training, for the questions that it learns from and for those of the test.
# `before` was trained on the four other kinds, `after` is that with --adapt, `retrained` has seen
# all five. All have two outputs and are compared with `before`, question by question: at 5 % of the
# tokens (column `at`: share), and each at its own threshold (own), which calibration had set to 5 %
# of all questions of `before`.
HEADER=learnt,kind,at,router,seed,questions,accuracy,accuracy_low,accuracy_high,routed
HEADER=$HEADER,difference,difference_low,difference_high
CHECKED=7
adapt_share=0.05

adapt_compare() { # LEARNT KIND SEED QUESTIONS ROUTER...
    adapt_columns=learnt=$1,kind=$2
    adapt_options="--kind $2 --seed $3 --questions $4"
    shift 4
    adapt_policies=mlp=$here/before
    for router in "$@"; do adapt_policies=$adapt_policies,mlp=$here/$router; done
    for at in share own; do
        adapt_target="--target-routed $adapt_share"
        [ $at = share ] || adapt_target=
        # shellcheck disable=SC2086
        evaluate "$(echo "$HEADER" | sed "s/^learnt,kind,at/$adapt_columns,at=$at/")" \
            --cloud-url "$url" $adapt_options $adapt_target --against mlp=before \
            --policy "$adapt_policies"
    done
}

adapt_train() { # ROUTER SEED KIND...
    adapt_router=$1 adapt_seed=$2 adapt_samples=
    shift 2
    for kind in "$@"; do adapt_samples="$adapt_samples --samples $here/samples-$kind"; done
    # shellcheck disable=SC2086
    mizzle router train -q -t 1 --head hurdle $adapt_samples --seed "$adapt_seed" \
        -o "$here/$adapt_router" >/dev/null
}

adapt_rows() { # LEARNT KIND SEED
    others=
    for kind in where which sums sort notes; do
        [ $kind = "$1" ] || others="$others $kind"
    done
    for kind in $others $([ "$1" != "$2" ] || echo "$1"); do
        # shellcheck disable=SC2086
        mizzle router collect -q -t 1 $patient --labels divergent --kind $kind --questions 200 \
            -o "$here/samples-$kind" >/dev/null
    done
    # shellcheck disable=SC2086
    adapt_train before "$3" $others
    serve
    # shellcheck disable=SC2086
    mizzle router calibrate -q -t 1 $patient --kv f16 --cloud-url "$url" --router "$here/before" \
        --questions 300 --target-routed $adapt_share >/dev/null
    # shellcheck disable=SC2086
    mizzle eval -q -t 1 $patient --cloud-url "$url" --policy mlp --router "$here/before" \
        --adapt "$here/after" --kind "$1" --questions 300 --seed $((100 + $3)) >/dev/null
    if [ "$1" = "$2" ]; then
        # shellcheck disable=SC2086
        adapt_train retrained "$3" $others "$1"
        adapt_compare "$1" "$2" "$3" "${QUESTIONS:-600}" after retrained
    else
        adapt_compare "$1" "$2" "$3" "${QUESTIONS:-300}" after
    fi
}

jobs() {
    for learnt in which where; do
        for tested in where which sums sort notes; do
            for seed in 1 2 3; do job adapt_rows $learnt $tested $seed; done
        done
    done
}
