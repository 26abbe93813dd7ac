# shellcheck shell=sh disable=SC2034,SC2154
# real - what policies achieve with a real pair: every row of real/figures.csv, computed without a
# model from the answers that the steps (real/steps.sh) have kept. A row is a policy at its target in
# one form of a task, by one of both rules. Behind a policy with a router stand its comparisons with
# each other policy on the same questions: as they are, and at an equal share, between the other
# policy and a model alone.
TABLE=real/figures
HEADER=task,form,pair,policy,share,score,questions,runs,accuracy,accuracy_low,accuracy_high,routed,tokens,cloud,calls,read,pgr,pgr_low,pgr_high,gain,gain_low,gain_high,relative_gain,against,against_routed,difference,difference_low,difference_high,equal,equal_low,equal_high

real_rows() {
    set -- "$results"/real/items*.csv
    [ -e "$1" ] || { echo "no answers in $results/real" >&2 && exit 77; }
    mizzle eval --merge --against all --csv "$here/rows.csv" "$@"
    columns "$HEADER" <"$here/rows.csv"
}

jobs() { job real_rows; }
