# shellcheck shell=sh disable=SC2034,SC2154
# price - a threshold against a price, at equal cost of the calls. Three seeds, each with a router of
# its own training and with questions of its own. Each price is compared, question by question, with
# the threshold of the same router.
HEADER=router,policy,target,seed,questions,accuracy,accuracy_low,accuracy_high,routed,calls
HEADER=$HEADER,prefilled,cached,cost,difference,difference_low,difference_high
CHECKED=2

price_rows() { # SEED COST
    # shellcheck disable=SC2086
    mizzle router collect -q -t 1 $patient --labels divergent --questions "${SAMPLES:-1000}" \
        -o "$here/samples" >/dev/null
    mizzle router train -q -t 1 --samples "$here/samples" --head mlp --seed "$1" -o "$here/mlp" \
        >/dev/null
    serve
    prices=$(constant price_up),$(constant price_cached),$(constant price_down)
    evaluate "$HEADER" --cloud-url "$url" --seed "$1" --questions "${QUESTIONS:-1000}" \
        --cloud-price "$prices" --worth 1 --target-cost "$2" --against "mlp=mlp" \
        --policy "mlp=$here/mlp,price=$here/mlp"
}

jobs() {
    for seed in 1 2 3; do
        for cost in 3e-5 6e-5 9e-5; do job price_rows $seed $cost; done
    done
}

price_mean() { # POLICY TARGET: mean accuracy over the seeds, in percent
    awk -F, -v policy="$1" -v target="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["policy"] == policy && $at["target"] == target {
            sum += $at["accuracy"]; n++
        }
        END { printf "%.1f", n ? 100 * sum / n : 0 }' "$results/price.csv"
}

draws() {
    cost="cost of the calls for 1000 answers (USD)" right="answers that are right (%)"
    shape price "policy,target,$cost,$right" '
        {
            print of("policy") == "mlp" ? "threshold" : "price", of("target"), 1000 * of("cost"), percent("accuracy")
        }' |
        means |
        plot price.svg --x "$cost" --y "$right" --by policy --interval low,high \
            --title "Right answers for the same money: for 6 cents a thousand, a price gets\
 $(price_mean price 0.000060000) %, a threshold $(price_mean mlp 0.000060000) %" \
            --note "Means of three seeds with routers and questions of their own; bands: the lowest and the highest."
}
