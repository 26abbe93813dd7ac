# shellcheck shell=sh disable=SC2034,SC2154
# risk - `router calibrate --risk 0.02` promises with confidence 95 % that at most 2 % of what the
# cloud gets right is lost. Each of 20 seeds calibrates on questions of its own and is then tested
# on others. Without a threshold, nothing could be promised.
HEADER=seed,threshold,routed,cloud_right,lost,share_lost,broken
CHECKED='1'

risk_seed() { # SEED
    status=0
    serve
    # shellcheck disable=SC2086
    mizzle router calibrate -q -t 1 $patient --kv f16 --cloud-url "$url" \
        --router weights/milli/edge-0.5.router.safetensors --risk 0.02 --seed "$1" --questions "${CALIBRATION:-300}" -o "$here/router" >/dev/null \
        2>"$here/why" || status=$?
    # With these questions nothing can be promised, then: all else with status 1 is a failure.
    if [ $status -eq 1 ] && grep -q ' --risk 0.02: .* which proves at most ' "$here/why"; then
        echo "$1,,,,,,0"
        return
    fi
    cat "$here/why" >&2
    [ $status -eq 0 ]
    evaluate "seed=$1,threshold,routed" --kv f16 --cloud-url "$url" --seed "$1" --questions "${QUESTIONS:-250}" \
        --policy "always,mlp=$here/router" >"$here/shares"
    lost=$(awk -v always='"policy":"always"' -v ours='"policy":"mlp=' '
        { match($0, /"item":[0-9]+/); item = substr($0, RSTART, RLENGTH) }
        index($0, always) { cloud[item] = /"right":true/ }
        index($0, ours) { right[item] = /"right":true/ }
        END {
            for (item in right) { n += cloud[item]; lost += cloud[item] && !right[item] }
            printf "%d,%d,%.6f,%d", n, lost, lost / n, (lost > 0.02 * n)
        }' "$here/answers.1")
    tail -n 1 "$here/shares" | sed "s/\$/,$lost/"
}

jobs() {
    seed=1
    while [ $seed -le 20 ]; do
        job risk_seed $seed
        seed=$((seed + 1))
    done
}
