# shellcheck shell=sh disable=SC2034,SC2154
# labels - what a router is trained on, and which head it has: accuracy at 5 % from the cloud. Each
# job compares its rows, question by question, with the row that `against` names. Routers are trained
# three times, so the intervals of the first three jobs are over trainings, too.
HEADER=job,router,target,seed,questions,trainings,routed,accuracy,accuracy_low,accuracy_high
HEADER=$HEADER,gain_low,gain_high,pgr,pgr_low,pgr_high,difference,difference_low,difference_high
CHECKED=4

labels_trainings=3

labels_collect() { # NAME OPTIONS...: samples of the demo pair
    labels_to=$here/samples-$1
    shift
    # shellcheck disable=SC2086
    mizzle router collect -q -t 1 $patient --questions "${SAMPLES:-1000}" -o "$labels_to" "$@" >/dev/null
}

labels_train() { # NAME SAMPLES OPTIONS...: write the routers $here/NAME.1 to .3
    labels_router=$here/$1 labels_samples=$here/samples-$2
    shift 2
    mizzle router train -q -t 1 --samples "$labels_samples" -o "$labels_router" \
        --repeats "$labels_trainings" "$@" >/dev/null
}

labels_rows() { # JOB POLICIES AGAINST
    evaluate "job=$1,${HEADER#job,}" --questions "${QUESTIONS:-400}" --target-routed 0.05 \
        --repeats "$labels_trainings" --policy "$2" --against "$3"
}

labels_kinds() {
    for labels in match citer divergent; do
        labels_collect $labels --labels $labels
        labels_train $labels $labels
    done
    labels_rows labels "mlp=$here/match,mlp=$here/citer,mlp=$here/divergent" mlp=match
}

labels_heads() {
    labels_collect divergent --labels divergent
    for head in mlp context; do labels_train $head divergent --head $head; done
    labels_rows heads "mlp=$here/mlp,context=$here/context" mlp=mlp
    grep -E '^heads,(citer|linear),' "$results/labels.csv" # 0.5.1 had these heads
}

labels_rounds() {
    labels_collect first --labels citer
    labels_train first first
    labels_collect second --labels citer --router "$here/first.1"
    labels_train second second
    labels_rows rounds "mlp=$here/first,mlp=$here/second" mlp=first
}

labels_control() {
    labels_trainings=1
    labels_collect citer --labels citer
    labels_train shuffled citer --labels shuffled
    labels_rows control "mlp=$here/shuffled,random" random
}

jobs() {
    job labels_kinds
    job labels_heads
    job labels_rounds
    job labels_control
}

labels_of() { # COLUMN CONDITION...: a value of the table, in percent
    column=$1
    shift
    figure '%.0f' "100 * $(value labels "$column" "$@")"
}

draws() {
    right="answers that are right (%)"
    shape labels "job,router,$right,low,high" '
        {
            print of("job"), of("router"), percent("accuracy"), percent("accuracy_low"), percent("accuracy_high")
        }' |
        plot labels.svg --by job --bars router --y "$right" --interval low,high \
            --title "Right answers at 5 % from the cloud: $(labels_of accuracy router=match) % with a\
 router that learns from labels match, $(labels_of accuracy job=labels router=citer) % from citer,\
 $(labels_of accuracy router=divergent) % from divergent" \
            --note "Lines: 95 % intervals, but for control over three trainings. Paired differences are in labels.csv."
}
