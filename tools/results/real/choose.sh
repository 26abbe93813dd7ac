# shellcheck shell=sh disable=SC2034,SC2154
# choose.sh - steps of the real pair: which head in which width, on questions that measure nothing.
# Heads and widths that are tried on the held-out questions of the samples: choice.csv.
choice_columns=score,policy,questions,runs,accuracy,accuracy_low,accuracy_high,routed,pgr,pgr_low
choice_columns=$choice_columns,pgr_high,difference,difference_low,difference_high
choices=${CHOICES:-mlp-16 mlp-32 mlp-64 mlp-128 mix-16 mix-32 mix-64 mix-128 mix-256
    combined-16 combined-32 combined-64 combined-128}

# Train each head with each width five times, and say what they find in their held-out questions.
choose() {
    kept_choice=$kept/choice.csv
    [ -e "$kept_choice" ] || echo form,head,width,trainings,auc,caught,context_auc >"$kept_choice"
    for choice in $choices; do
        head=${choice%-*} width=${choice#*-}
        run router train -q --json --samples "$work/$set/samples" --head "$head" --width "$width" \
            --repeats 5 -o "$work/$set/choice" >"$work/$set/choice.json" || return
        tr , '\n' <"$work/$set/choice.json" | awk -F: -v row="$set,$head,$width" '
            { gsub(/[{}"]/, "", $1); sum[$1] += $2; n += $1 == "auc" }
            END {
                printf "%s,%d,%.4f,%.4f,%.4f\n", row, n, sum["auc"] / n, sum["caught"] / n,
                    sum["context_auc"] / n
            }' >>"$kept_choice"
    done
}

# Let the heads route the part for choosing, at the thresholds of their training.
loop() {
    tried='' first=0
    mkdir -p "$work/$set/loop" || return
    while [ $first -lt 200 ]; do
        journal=$work/$set/loop/$first.jsonl tried="$tried $work/$set/loop/$first.jsonl"
        # shellcheck disable=SC2086
        run eval -q -m "$edge" $by "$large" --task $task $form -n $max --data "$split/form.jsonl" \
            --first $first:40 --jsonl "$journal" \
            --policy "never,$(trainings_of $trainings "$(policies combined mlp primary)"),always" || return
        first=$((first + 40))
    done
    # shellcheck disable=SC2086
    study --against combined --csv "$work/$set/loop.csv" $tried || return
    columns "$choice_columns" <"$work/$set/loop.csv" | awk -F, '$1 == "citer"' >"$work/$set/loop.rows"
    { echo "$choice_columns" && cat "$work/$set/loop.rows"; } >"$kept/choice-loop.csv"
}
