# shellcheck shell=sh disable=SC2034,SC2154
# real - what policies achieve with a real pair: every row of real/figures.csv, computed without a
# model from the answers that the steps (real/steps.sh) have kept. A row is a policy at its target in
# one form of a task, by one of both rules. Rows that compare follow: what routers, and the MLP that
# reads confidence alone, have over each other policy on the same questions.
TABLE=real/figures
HEADER=task,form,pair,policy,share,score,questions,runs,accuracy,accuracy_low,accuracy_high,routed,tokens,cloud,calls,pgr,pgr_low,pgr_high,gain,gain_low,gain_high,relative_gain,against,difference,difference_low,difference_high
CHECKED='1 2'

real_merge() { # OPTIONS...: the rows of all answers
    set -- "$@" "$results"/real/items*.csv
    for file; do :; done # the last one
    [ -e "$file" ] || { echo "no answers in $results/real" >&2 && exit 77; }
    mizzle eval --merge --csv "$here/rows.csv" "$@"
}

real_rows() {
    real_merge
    columns "$HEADER" <"$here/rows.csv"
}

real_differences() {
    real_merge
    awk -F, 'NR > 1 { print $4 }' "$here/rows.csv" | sort -u >"$here/policies"
    while read -r policy; do
        real_merge --against "$policy"
        columns "$HEADER" <"$here/rows.csv" |
            awk -F, -v policy="$policy" '$23 == policy && $4 ~ /^(mlp|combined)/'
    done <"$here/policies" >"$here/differences"
    [ -s "$here/differences" ] || { echo "no answers with a router yet" >&2 && exit 77; }
    cat "$here/differences"
}

jobs() {
    job real_rows
    job real_differences
}
