# shellcheck shell=sh disable=SC2034,SC2154
# reach - what the demo's router reaches, and goals.csv: each goal of the demo world with its figure
# and interval, from this table, labels.csv and risk.csv, which is frozen.
HEADER=policy,target,seed,questions,routed,accuracy,accuracy_low,accuracy_high,gain_low,gain_high
HEADER=$HEADER,relative_gain,relative_gain_low,relative_gain_high
HEADER=$HEADER,pgr,pgr_low,pgr_high,apgr7,apgr7_low,apgr7_high
HEADER=$HEADER,apgr7_ratio,apgr7_ratio_low,apgr7_ratio_high
CHECKED=2 # half a minute, but it has figures of the router

reach_alone() {
    evaluate "$HEADER" --questions "${QUESTIONS:-1000}" --policy never,always
}

reach_share() { # the router against chance at the same share
    evaluate "$HEADER" --questions "${QUESTIONS:-1000}" --policy mlp,random --target-routed 0.06
}

reach_average() { # the mean PGR of the others over that of the router
    evaluate "$HEADER" --questions "${SWEEP:-400}" --policy mlp,context,max-prob,margin,entropy \
        --target-routed 0:0.07:5 --against mlp
}

jobs() {
    job reach_alone
    job reach_share
    job reach_average
}

# Print a row of goals.csv. LOW and HIGH may be empty. REACHED is a condition of figure and low,
# which are rounded only to be printed.
goal() { # NAME FIGURE LOW HIGH WANTED REACHED [FORMAT]
    [ -n "$2" ] || { echo "reach: no figure: $1" >&2 && fails; }
    goal_met=no
    awk -v figure="$2" -v low="$3" "BEGIN { exit !($6) }" && goal_met=yes
    awk -v figure="$2" -v low="$3" -v high="$4" -v name="$1" -v end="$5,$goal_met" \
        -v format="${7:-%.3f}" '
        function rounded(x) { return x == "" ? x : sprintf(format, x) }
        BEGIN { print name "," rounded(figure) "," rounded(low) "," rounded(high) "," end }'
}

number() { figure '%.17g' "$1"; }

reached() { value reach "$1" policy=mlp target=0.060000; }

goals_of_reach() {
    edge=$(value reach accuracy policy=never)
    got=$(reached accuracy)
    least=$(reached gain_low)
    most=$(reached gain_high)
    figure=$(number "$(reached relative_gain)")
    low=$(number "$(reached relative_gain_low)")
    high=$(number "$(reached relative_gain_high)")
    goal "relative gain over the edge alone at 6 % routed" "$figure" "$low" "$high" \
        "at least 0.6" "figure >= 0.6"
    figure=$(reached pgr)
    low=$(reached pgr_low)
    high=$(reached pgr_high)
    goal "gap closed at 6 % routed" "$figure" "$low" "$high" "at least 0.9" "figure >= 0.9"
    by_chance=$(value reach accuracy policy=random target=0.060000)
    chance_least=$(value reach gain_low policy=random target=0.060000)
    chance_most=$(value reach gain_high policy=random target=0.060000)
    figure=$(number "$got - $edge - 3 * ($by_chance - $edge)")
    low=$(number "$least - 3 * $chance_most")
    high=$(number "$most - 3 * $chance_least")
    goal "gain at 6 % routed less 3 times that of random" "$figure" "$low" "$high" "at least 0" \
        "figure >= 0"
    # The best of the others has the largest ratio over the router; ends swap when it is inverted.
    best=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["apgr7_ratio"] != "" && $at["apgr7_ratio"] > most {
            most = $at["apgr7_ratio"]
            row = $at["policy"] "," most "," $at["apgr7_ratio_low"] "," $at["apgr7_ratio_high"]
        }
        END { print row }' "$results/reach.csv")
    policy=${best%%,*}
    figure=$(number "1 / $(echo "$best" | cut -d, -f 2)")
    low=$(number "1 / $(echo "$best" | cut -d, -f 4)")
    high=$(number "1 / $(echo "$best" | cut -d, -f 3)")
    goal "mean PGR to 7 % over the best of the others ($policy)" "$figure" "$low" "$high" \
        "at least 1.25; interval above 1" "figure >= 1.25 && low > 1"
}

difference() { # NAME GOAL CONDITION JOB ROUTER: a row of labels.csv against that of its job
    figure=$(value labels difference "job=$4" "router=$5")
    low=$(value labels difference_low "job=$4" "router=$5")
    high=$(value labels difference_high "job=$4" "router=$5")
    goal "$1" "$figure" "$low" "$high" "$2" "$3"
}

goals_of_labels() {
    difference "labels divergent over match at 5 %" "interval above 0" "low > 0" labels divergent
    difference "labels citer over match at 5 %" "interval above 0" "low > 0" labels citer
    difference "round 2 over round 1" reported 1 rounds second
    difference "head citer over head mlp" reported 1 heads citer
    difference "shuffled labels over random" "interval not above 0" "low <= 0" control shuffled
}

goals_of_risk() { # a promise has a threshold; the table is frozen
    table=$results/risk.csv
    [ -f "$table" ] || table=router/results/risk.csv
    counts=$(awk -F, 'NR > 1 { n += $NF; promised += $2 != "" }
        END { print n + 0, promised + 0, NR - 1 }' "$table")
    seeds=${counts##* }
    promised=${counts#* } promised=${promised% *}
    goal "risk bound 2 % at 95 %: broken in $seeds seeds" "${counts%% *}" "" "" \
        "at most 3 of the $promised promised" "figure <= 3 && $promised > 0" %d
}

draws() {
    [ -f "$results/labels.csv" ] || {
        echo "goals.csv needs $results/labels.csv, too: make results ONLY='labels reach'"
        fails
    }
    {
        echo goal,figure,low,high,wanted,reached
        goals_of_reach
        goals_of_labels
        goals_of_risk
    } >"$plots/goals.csv.new"
    mv "$plots/goals.csv.new" "$plots/goals.csv"
}
