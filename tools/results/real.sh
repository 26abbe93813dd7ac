# shellcheck shell=sh disable=SC2034,SC2154
# real - what policies achieve with a real pair: every row of real/figures.csv, computed without a
# model from the answers that the steps (real/steps.sh) have kept. A row is a policy at its target in
# one form of a task, by one of both rules. Behind a policy with a router stand its comparisons with
# each other policy on the questions that both were asked: as they are, and at the other's share, to
# which the first is brought by answers of a model alone. The policies at 4.5 % of the third plan
# (plan.md beside the answers) stand as `mix-lower` and `joints-lower` among those at 5 %.
TABLE=real/figures
HEADER=task,form,pair,policy,share,score,questions,runs,accuracy,accuracy_low,accuracy_high,routed,tokens,cloud,calls,read,pgr,pgr_low,pgr_high,gain,gain_low,gain_high,relative_gain,against,against_routed,difference,difference_low,difference_high,equal,equal_low,equal_high

real_named() { sed 's/,mlp=\([a-z]*\),0[.]045,/,mlp=\1-lower,0.05,/'; } # lines of answers

real_rows() {
    for set_of in "$results"/real/*/; do
        { in_pack "$set_of" | cut -d , -f 2- && find "$set_of" -maxdepth 1 -name '*.csv' -exec cat {} +; } |
            awk '!known[$0]++' | real_named >"$here/items"
        [ ! -s "$here/items" ] || mv "$here/items" "$here/items-$(basename "$set_of").csv"
    done
    set -- "$here"/items-*.csv
    [ -e "$1" ] || { echo "no answers in $results/real" >&2 && exit 77; }
    study --against all --csv "$here/rows.csv" "$here"/items-*.csv
    columns "$HEADER" <"$here/rows.csv"
}

jobs() { job real_rows; }

real_forms='csqa-reason:CommonsenseQA in form reason
csqa-chat:CommonsenseQA in form chat
arc-chat:ARC-Challenge in form chat
gsm8k-chat:GSM8K in form chat'

# Print a table of the rows of one form, by the rule that decides (citer). The program finds the name
# of the policy in `name`, and in `part` what is said where not all questions have been asked.
real_form() { # TASK-FORM HEADER PROGRAM
    shape real/figures "$2" '
        function policy(name) {
            sub(/^(mlp|combined)=/, "", name)
            sub(/^without-.*/, "unseen", name)
            sub(/^[0-9a-f]*[.]router$/, "joint", name)
            return name
        }
        of("score") == "citer" {
            form = of("form") == "plain @'"$(sha256sum tools/results/real/reason.txt | cut -c 1-17)"'" ? "reason" : of("form")
            if (of("task") "-" form != "'"$1"'") next
            if (of("questions") > all) all = of("questions")
            row[++rows] = $0
        }
        END {
            for (i = 1; i <= rows; i++) {
                $0 = row[i]
                name = policy(of("policy"))
                part = of("questions") < all ? " (" of("questions") " of " all ")" : ""
                '"$3"'
            }
        }'
}

# Draw accuracy over the routed share in one form, if there is more than never.
real_shares() { # TASK-FORM TITLE
    share="tokens from the large model (%)" right="answers that are right (%)"
    real_form "$1" "policy,$share,$right,low,high" '
        if (of("against") == "" && of("routed") < 1 && name ~ /^(never|mlp|mix|joints?|unseen|combined|max-prob|position)$/)
            print name part, percent("routed"), percent("accuracy"), percent("accuracy_low"), percent("accuracy_high")
        ' >"$dir/dots"
    [ "$(wc -l <"$dir/dots")" -gt 2 ] || return 0
    real_form "$1" guides '
        if (of("against") == "" && of("routed") == 1)
            print percent("accuracy") "=" name (of("tokens") == 1 ? " (1 token)" : "") part' >"$dir/guides"
    real_name=$1 real_title=$2
    set --
    while read -r guide; do
        [ "$guide" = guides ] || set -- "$@" --guide "$guide"
    done <"$dir/guides"
    plot "real-$real_name.svg" --x "$share" --y "$right" --by policy --interval low,high --dots "$@" \
        --title "A real pair, $real_title: answers that are right, over the tokens from the large model" \
        --note "Eight policies; figures.csv has all. Bars: 95 % intervals, over trainings, too. Dashed: always, and a token behind a fixed text (slot)." \
        <"$dir/dots"
}

# Draw whatever rows there are: the measurement takes days.
draws() {
    points="more right answers (points)"
    echo "$real_forms" | while IFS=: read -r name title; do
        real_shares "$name" "$title"
        real_form "$name" "form,policy,$points,low,high" '
            if (name == "mix" && of("equal") != "" && of("against") !~ /[.]1$|^(step|verify|call)$/)
                print "'"$title"'" part, sprintf("%s (%.1f %%)", policy(of("against")), percent("against_routed")),
                    percent("equal"), percent("equal_low"), percent("equal_high")' >"$dir/mix"
        cat "$dir/mix"
    done | awk 'NR == 1 || !/^form,/' >"$dir/mixes"
    [ "$(wc -l <"$dir/mixes")" -eq 1 ] ||
        plot real-mix.svg --by form --bars policy --y "$points" --interval low,high \
            --title "Real pair: right answers of mix less those of each other policy at an equal share of the tokens" \
            --note "In brackets: the share of the other policy. Lines: 95 % intervals (concepts and trainings)." \
            <"$dir/mixes"
}
