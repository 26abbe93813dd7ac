# shellcheck shell=sh disable=SC2034,SC2154
# claim - what policies gain over the small model alone: every row of real/claim.csv, computed without
# a model from the answers that the steps of the fourth plan have kept (real/claim.sh). Form `long` is
# the chosen wording. tools/lab/study/claim.py says what the columns are.
TABLE=real/claim
HEADER=part,form,policy,trainings,questions,never,right,always,routed,routed_low,routed_high,gain,gain_low,gain_high,rescued,spoiled,wasted,above_none,above_none_low

claim_items() { unpacked "$1/$2.csv" >"$here/$(basename "$1")-$2.csv" && echo "$here/$(basename "$1")-$2.csv"; } # FOLDER NAME

claim_rows() { # NAME: claim, or above, whose intervals need no questions that calibrate
    set -- "--$1"
    for asked in measure,long dev,long measure,reason measure,gsm8k; do
        folder=$results/real/claim/${asked#*,} loops=$results/real/claim/${asked#*,}
        [ $asked != dev,long ] || folder=$results/real/claim/dev
        is_kept "$folder/ends.csv" || continue
        set -- "$@" --of $asked
        for name in $(names_in "$folder" | grep -v ^loop-); do set -- "$@" "$(claim_items "$folder" "$name")"; done
        [ "$1" = --claim ] && names_in "$loops" | grep -q ^loop- || continue
        set -- "$@" --calibration
        for name in $(names_in "$loops" | grep ^loop-); do set -- "$@" "$(claim_items "$loops" "$name")"; done
    done
    [ $# -gt 1 ] || { echo "no answers in $results/real/claim" >&2 && exit 77; }
    numpy || { echo "no numpy for $python" >&2 && exit 77; }
    rows=$here/$1.csv && shift
    "$python" -B tools/lab/study/claim.py --csv "$here/--claim.csv" --above "$here/--above.csv" "$@"
    columns "$HEADER" <"$rows"
}

jobs() { job claim_rows claim; }

# Draw whatever rows there are.
draws() {
    share="tokens from the large model (%)" more="more right answers than the small model alone (%)"
    named='name = of("policy") (of("trainings") > 1 ? " (" of("trainings") " trainings)" : "")'
    only='if (of("part") != "measure" || of("form") != "long" || of("routed") + 0 == 0 || of("routed") + 0 == 1) next'
    shape real/claim "policy,$share,$more,low,high" "{ $only; if (of(\"gain\") == \"\") next; $named"'
        print name, percent("routed"), percent("gain"), percent("gain_low"), percent("gain_high") }' >"$dir/dots"
    [ "$(wc -l <"$dir/dots")" -gt 1 ] || return 0
    plot claim.svg --x "$share" --y "$more" --by policy --interval low,high --dots --guide "60=the claim, below 7 % of the tokens" \
        --title "A real pair in the chosen form: what is gained, over the tokens from the large model" \
        --note "Bars: 95 % intervals over concepts and trainings." <"$dir/dots"
    shape real/claim "policy,change,answers of a hundred" "{ $only"'
        if (percent("routed") < 5 && of("policy") != "position" || percent("routed") > 7.5) next # near 6 %
        '"$named"'
        print "rescued", name, of("rescued")
        print "spoiled", name, of("spoiled")
        print "wasted", name, of("wasted") }' | sed '1s/.*/change,policy,answers of a hundred/' >"$dir/changes"
    [ "$(wc -l <"$dir/changes")" -gt 1 ] || return 0
    plot claim-changes.svg --by policy --bars change --y "answers of a hundred" \
        --title "A real pair in the chosen form: what becomes of the answers in which the large model wrote" \
        --note "Rescued: wrong without it. Spoiled: right without it. Wasted: no other verdict." <"$dir/changes"
}
