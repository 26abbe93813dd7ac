# shellcheck shell=sh disable=SC2034,SC2154
# risk - `router calibrate --risk 0.02` promises with confidence 95 % that at most 2 % of what the
# cloud gets right is lost. Each of 20 seeds calibrates on questions of its own and is then tested
# on others.
HEADER=seed,threshold,routed,cloud_right,lost,share_lost,broken
CHECKED='1'

risk_seed() { # SEED
    # Exit status 1: nothing can be promised with these questions. Then nothing is promised.
    status=0
    # shellcheck disable=SC2086
    mizzle router calibrate -q -t 1 $patient --router weights/milli/edge-0.5.router.safetensors \
        --risk 0.02 --seed "$1" --questions "${CALIBRATION:-300}" -o "$here/router" >/dev/null ||
        status=$?
    if [ $status -eq 1 ]; then
        echo "$1,,,,,,0"
        return
    fi
    [ $status -eq 0 ]
    # shellcheck disable=SC2086
    mizzle eval -q -t 1 $patient --kv f16 --seed "$1" --questions "${QUESTIONS:-400}" \
        --policy "always,mlp=$here/router" --jsonl "$here/answers" --csv "$here/eval.csv" >/dev/null
    lost=$(awk -v always='"policy":"always"' -v ours='"policy":"mlp=' '
        { match($0, /"item":[0-9]+/); item = substr($0, RSTART, RLENGTH) }
        index($0, always) { cloud[item] = /"right":true/ }
        index($0, ours) { right[item] = /"right":true/ }
        END {
            for (item in right) { n += cloud[item]; lost += cloud[item] && !right[item] }
            printf "%d,%d,%.6f,%d", n, lost, lost / n, (lost > 0.02 * n)
        }' "$here/answers")
    columns "seed=$1,threshold,routed" <"$here/eval.csv" | tail -n 1 | sed "s/\$/,$lost/"
}

jobs() {
    seed=1
    while [ $seed -le 20 ]; do
        job risk_seed $seed
        seed=$((seed + 1))
    done
}
