# shellcheck shell=sh disable=SC2034,SC2154
# pace - a cap of half of the calls that the answers want: first come, first served, or spread over
# them. Three seeds, each with a router of its own training and five runs of 200 questions. `wanted`
# is the same without a cap. Quarter 1 is the first quarter of each run.
HEADER=way,worth,seed,quarter,questions,accuracy,gain,routed,calls
HEADER=$HEADER,difference,difference_low,difference_high
CHECKED=5

pace_run() { # WAY SEED OPTIONS...: one run, whose answers are kept in $here/WAY.SEED
    pace_file=$here/$1.$2 pace_seed=$2
    shift 2
    # shellcheck disable=SC2086
    mizzle eval -q -t 1 $patient --cloud-url "$url" --router "$here/mlp" --seed "$pace_seed" \
        --questions 200 --cloud-price "$prices" --jsonl "$pace_file" "$@" >/dev/null
}

pace_rows() { # WORTH SEED
    # shellcheck disable=SC2086
    mizzle router collect -q -t 1 $patient --labels divergent --questions "${SAMPLES:-1000}" \
        -o "$here/samples" >/dev/null
    mizzle router train -q -t 1 --samples "$here/samples" --head mlp --seed "$2" \
        -o "$here/mlp" >/dev/null
    serve
    prices=$(constant price_up),$(constant price_cached),$(constant price_down)
    for run in 1 2 3 4 5; do
        asked=$2$(printf '%02d' $run)
        pace_run never "$asked" --policy never
        pace_run wanted "$asked" --policy price --worth "$1"
        half=$(sed -n 's/.*"calls":\([0-9]*\).*/\1/p' "$here/wanted.$asked" |
            awk '{ n += $1 } END { print int(n / 2) }')
        pace_run first "$asked" --policy price --worth "$1" --max-cloud-tokens "$half"
        pace_run pace "$asked" --policy price --worth "$1" --max-cloud-tokens "$half" --pace 200
    done
    for way in never wanted first pace; do
        cat "$here/$way".* | sed -n "s/.*\"item\":\([0-9]*\).*\"right\":\([a-z]*\).*\"tokens\":\([0-9]*\
\),\"cloud\":\([0-9]*\).*\"calls\":\([0-9]*\).*/$way \1 \2 \3 \4 \5/p"
    done | pace_table "$1" "$2"
}

pace_table() { # WORTH SEED: lines of way, item, right, tokens, cloud, calls become rows
    awk -v worth="$1" -v seed="$2" '
        $1 != way { way = $1; answer = 0 }
        {
            right = $3 == "true"
            know[way, ++answer] = right
            for (k = 0; k < 2; k++) {
                quarter = k ? int($2 / 50) + 1 : "all"
                at = way SUBSEP quarter
                n[at]++; sum[at] += right; tokens[at] += $4; cloud[at] += $5; calls[at] += $6
                if (way == "pace") {
                    d = right - know["first", answer]
                    mean[quarter] += d; square[quarter] += d * d
                }
            }
        }
        END {
            split("never wanted first pace", ways, " ")
            split("all 1 2 3 4", quarters, " ")
            for (w = 1; w <= 4; w++)
                for (k = 1; k <= 5; k++) {
                    q = quarters[k]; at = ways[w] SUBSEP q
                    if (n[at] != (k > 1 ? 250 : 1000)) exit 1
                    printf "%s,%s,%d,%s,%d,%.6f,%.6f,%.6f,%d", ways[w], worth, seed, q, n[at], \
                        sum[at] / n[at], (sum[at] - sum["never", q]) / n[at], \
                        cloud[at] / tokens[at], calls[at]
                    if (ways[w] != "pace") { print ",,,"; continue }
                    d = mean[q] / n[at]
                    half = 1.96 * sqrt((square[q] / n[at] - d * d) / n[at])
                    printf ",%.6f,%.6f,%.6f\n", d, d - half, d + half
                }
        }'
}

jobs() {
    for worth in 0.0002 0.0005 0.001; do
        for seed in 1 2 3; do job pace_rows $worth $seed; done
    done
}

pace_gain() { # WAY: mean gain over the seeds, in points
    figure %.0f "$(awk -F, -v way="$1" '
        $1 == way && $2 == 0.0005 && $4 == "all" { sum += $7; n++ }
        END { print n ? 100 * sum / n : 0 }' "$results/pace.csv")"
}

draws() {
    plot pace.svg pace.csv --x quarter --y accuracy --by way,seed --where way=first,pace \
        --where worth=0.0005 --where quarter=1,2,3,4 --percent accuracy --x-range 1,4 --y-range 30,100 \
        --x-label "quarter of a run" \
        --y-label "answers that are right, %" \
        --title "Half of the calls wanted gain $(pace_gain pace) points if spread, $(pace_gain first) first come first served" \
        --note "Three seeds with routers and questions of their own. Paired differences are in pace.csv."
}
