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
    figure '%.1f' "100 * $(value tasks accuracy "kind=$1" "router=$2")"
}

tasks_change() { # KIND: what the router makes of the edge's accuracy
    echo "$1 from $(tasks_of "$1" never) to $(tasks_of "$1" mlp) %"
}

draws() {
    right="answers that are right (%)"
    shape tasks "kind,router,$right,low,high" '
        BEGIN {
            name["never"] = "edge alone"
            name["always"] = "cloud alone"
            name["mlp"] = "router"
            name["others"] = "router of the others"
        }
        {
            print of("kind"), name[of("router")], percent("accuracy"), percent("accuracy_low"), percent("accuracy_high")
        }' |
        plot tasks.svg --by kind --bars router --y "$right" --interval low,high \
            --title "Right answers by kind of question: the router lifts $(tasks_change where) and\
 $(tasks_change which), and lowers $(tasks_change notes)" \
            --note "Router of the others: trained on the other kinds only. Lines: 95 % intervals (Wilson)."
}
