# shellcheck shell=sh disable=SC2034,SC2154
# sizes - how many tokens three small models need from the same cloud.
#
# Column `needed`, in the last row of a sweep, is the share at which 90 % of the gap between edge and
# cloud is closed, interpolated between the points; empty if the sweep does not get there.
HEADER=edge,policy,target,seed,questions,routed,accuracy,accuracy_low,accuracy_high,pgr,pgr_low
HEADER=$HEADER,pgr_high,needed
CHECKED=2

sizes_rows() { # SIZE OPTIONS...
    size=$1
    shift
    columns=${HEADER#edge,}
    evaluate "edge=edge-$size,${columns%,needed}" -m "weights/milli/edge-$size.gguf" \
        --cloud-model weights/milli/cloud.gguf --questions "${QUESTIONS:-200}" "$@" >"$here/sweep"
    awk -F, '
        {
            if (NR > 1) print line ","
            line = $0
            if ($3 != "" && $10 != "" && $10 >= 0.9 && needed == "" && NR > 1)
                needed = sprintf("%.4f", share + ($6 - share) * (0.9 - gap) / ($10 - gap))
            share = $6
            gap = $10
        }
        END { print line "," needed }' "$here/sweep"
}

jobs() {
    for size in 0.1 0.5 1; do
        job sizes_rows $size --policy never,always
        job sizes_rows $size --policy mlp --target-routed 0:0.07:8
        job sizes_rows $size --policy entropy --target-routed 0:0.07:8
    done
}

sizes_needed() { # SIZE: the share in words, for titles
    share=$(value sizes needed "edge=edge-$1" policy=mlp target=0.070000)
    if [ -n "$share" ]; then
        figure '%.1f %%' "100 * $share"
    else
        printf 'more than 7 %%'
    fi
}

draws() {
    share="tokens from the cloud (%)" gap="gap between edge and cloud that is closed (%)"
    shape sizes "policy,$share,$gap,low,high" '
        of("policy") ~ /^(mlp|entropy)$/ && of("routed") <= 0.075 {
            print of("policy") " " of("edge"), percent("routed"), percent("pgr"), percent("pgr_low"), percent("pgr_high")
        }' |
        plot sizes.svg --x "$share" --y "$gap" --by policy --interval low,high --guide "90=90 % of the gap" \
            --title "For 90 % of the gap, the router needs $(sizes_needed 0.1) of the tokens with the\
 smallest edge, $(sizes_needed 0.5) with the next, and $(sizes_needed 1) with the largest" \
            --note "Bands: 95 % intervals (paired bootstrap over the questions)."
}
