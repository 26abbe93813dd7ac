# shellcheck shell=sh disable=SC2034,SC2154
# unasked - the figures that the second plan for the real pair asks for (plan.md beside the answers):
# those of real.sh on the questions of the development set, in form `reason`, which no router for all
# tasks had been asked about when it was written.
. "$experiments/real.sh"
TABLE=real/unasked

unasked_rows() {
    items=$results/real/reason
    is_kept "$items/joints.csv" || { echo "no answers of joints in $results/real" >&2 && exit 77; }
    set --
    for name in ends position slot routers joints lower; do
        is_kept "$items/$name.csv" || continue
        unpacked "$items/$name.csv" >"$here/all"
        unpacked "$items/joint.csv" |
            awk -F, 'NR == FNR { asked[$4] } NR != FNR && (FNR == 1 || !($4 in asked))' - "$here/all" |
            real_named >"$here/$name.csv"
        set -- "$@" "$here/$name.csv"
    done
    study --against all --csv "$here/rows.csv" "$@"
    columns "$HEADER" <"$here/rows.csv"
}

jobs() { job unasked_rows; }
draws() { :; }
