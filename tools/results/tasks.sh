# shellcheck shell=sh disable=SC2034,SC2154
# tasks - accuracy by kind of question: each model alone, the demo's router, and a router that was
# trained on the other kinds only. Both routers have the threshold that training sets.
HEADER=kind,router,seed,questions,routed,accuracy,accuracy_low,accuracy_high,gain_low,gain_high
CHECKED=5

# Numbers of questions of each kind, as all kinds are mixed.
tasks_mixture='where 250
which 200
sums 10
sort 20
notes 20'

tasks_kind() { # KIND
    without=$(echo "$tasks_mixture" | while read -r kind n; do
        [ "$kind" != "$1" ] || continue
        # shellcheck disable=SC2086
        mizzle router collect -q -t 1 $patient --labels divergent --kind "$kind" --questions "$n" \
            -o "$here/$kind" >/dev/null || exit
        echo "--samples $here/$kind"
    done)
    # shellcheck disable=SC2086
    mizzle router train -q -t 1 $without -o "$here/others" >/dev/null
    evaluate "kind=$1,${HEADER#kind,}" --kind "$1" --questions "${QUESTIONS:-300}" \
        --policy "never,always,mlp,mlp=$here/others"
}

jobs() {
    for kind in where which sums sort notes; do job tasks_kind $kind; done
}

tasks_of() { # KIND ROUTER: its accuracy in percent
    figure '%.0f' "100 * $(value tasks accuracy "kind=$1" "router=$2")"
}

draws() {
    plot tasks.svg tasks.csv --bars accuracy --by kind,router --percent accuracy --x-label "%" \
        --title "Where: $(tasks_of where never) % right alone, $(tasks_of where mlp) % with the\
 router, $(tasks_of where others) % with one that never saw such questions" \
        --note "Answers that are right: each model alone (never, always), the router, and others: one trained on the other kinds."
}
