# shellcheck shell=sh disable=SC2034,SC2154
# audit - `--audit 0.01` asks the cloud about one token in a hundred that the answers hold. Each of
# 20 seeds has questions of its own; asking about all of their tokens says what is true.
HEADER=seed,questions,tokens,routed,drawn,kept,missed,miss_rate,miss_low,miss_high
HEADER=$HEADER,again,flipped,flip_low,flip_high,true_kept,true_missed,true_miss
HEADER=$HEADER,true_again,true_flipped,inside
CHECKED='1'

audit_found() { # SHARE: what it finds, after what the answers are
    evaluate "$columns" --cloud-url "$url" --policy mlp --seed "$seed" --audit "$1" \
        --questions "${QUESTIONS:-500}"
}

audit_seed() { # SEED
    seed=$1
    serve
    columns=seed,questions,tokens,routed,right,drawn,kept,missed,miss_rate,miss_low,miss_high
    columns=$columns,again,flipped,flip_low,flip_high
    audit_found 0.01 >"$here/some"
    columns=seed,questions,tokens,routed,right,kept,missed,miss_rate,again,flipped
    audit_found 1 >"$here/all"
    [ "$(cut -d, -f1-5 "$here/some")" = "$(cut -d, -f1-5 "$here/all")" ] # the answers are the same
    paste -d, "$here/some" "$here/all" | awk -F, -v OFS=, '{
        flips = $24 ? $25 / $24 : 0
        inside = $10 <= $23 && $23 <= $11 && $14 <= flips && flips <= $15
        print $1, $2, $3, $4, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, \
            $21, $22, $23, $24, $25, inside
    }'
}

jobs() {
    seed=1
    while [ $seed -le 20 ]; do
        job audit_seed $seed
        seed=$((seed + 1))
    done
}

audit_inside() { # how many seeds have the truth in their intervals
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { n += $at["inside"] }
        END { print n + 0 }' "$results/audit.csv"
}

draws() {
    shape audit "seed of the questions,kept tokens that the cloud would change (%),asked,low,high" '
        {
            print of("seed"), percent("miss_rate"), "a hundredth", percent("miss_low"), percent("miss_high")
            print of("seed"), percent("true_miss"), "all tokens", "", ""
        }' |
        plot audit.svg --x "seed of the questions" --y "kept tokens that the cloud would change (%)" \
            --by asked --interval low,high --dots \
            --title "Errors of the edge as a hundredth of the tokens tells them, and as they are: the\
 truth is in $(audit_inside) of 20 intervals" \
            --note "Bars: exact 95 % intervals from the tokens that were asked about."
}
