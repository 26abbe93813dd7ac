# shellcheck shell=sh disable=SC2034,SC2154
# calibration - scores on subjects that training has not seen: how many tokens have which score, and
# how many of these are acceptable? One row for each tenth of the scale.
HEADER=labels,head,samples,score_low,score_high,score,tokens,share,acceptable,low,high,auc,ece
CHECKED=1

calibration_rows() { # LABELS HEAD...
    labels=$1
    shift
    # shellcheck disable=SC2086
    mizzle router collect -q -t 1 $patient --labels "$labels" --questions "${QUESTIONS:-300}" \
        -o "$here/samples" >/dev/null
    for head; do
        mizzle router train -q -t 1 --samples "$here/samples" --head "$head" --json \
            -o "$here/$head.safetensors" >"$here/$head.json"
        calibration_bins "$labels,$head" <"$here/$head.json"
    done
}

calibration_bins() { # PREFIX: read the report of `router train`; intervals are Wilson's
    awk -v prefix="$1" '
        function number(name) {
            if (!match($0, "\"" name "\":[-0-9.e]+")) return ""
            return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
        }
        function list(name, out) {
            match($0, "\"" name "\":\\[[0-9,]*")
            return split(substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 4), out,
                ",")
        }
        {
            bins = list("histogram_right", right)
            list("histogram_wrong", wrong)
            for (i = 1; i <= bins; i++) {
                n = right[i] + wrong[i]
                p = low = high = ""
                if (n) {
                    z = 1.959963985
                    middle = (right[i] + z * z / 2) / (n + z * z)
                    half = z * sqrt(right[i] * wrong[i] / n + z * z / 4) / (n + z * z)
                    p = sprintf("%.6f", right[i] / n)
                    low = sprintf("%.6f", middle - half)
                    high = sprintf("%.6f", middle + half)
                }
                printf "%s,%d,%.1f,%.1f,%.2f,%d,%.6f,%s,%s,%s,%.6f,%.6f\n", prefix,
                    number("samples"), (i - 1) / bins, i / bins, (i - 0.5) / bins, n,
                    n / number("held"), p, low, high, number("auc"), number("ece")
            }
        }'
}

jobs() {
    job calibration_rows match mlp
    job calibration_rows divergent mlp context
}

draws() {
    plot calibration.svg calibration.csv --x score --y acceptable --by head --band low,high \
        --percent acceptable --where labels=divergent --x-range 0,1 --y-range 0,100 \
        --guide "score = share=0,100" \
        --x-label "score of the router" --y-label "tokens that are acceptable, %" \
        --title "Of the tokens that the mlp scores 0.9 to 1,\
 $(calibration_of acceptable 0.9) % are acceptable; of those from 0 to 0.1,\
 $(calibration_of acceptable 0.0) %" \
        --note "Bands: 95 % intervals (Wilson). Subjects that training has not seen; one point for each tenth of the scale."
    plot calibration-scores.svg calibration.csv --x score --y share --by head --log-y \
        --percent share --where labels=divergent --x-range 0,1 \
        --x-label "score of the router" --y-label "tokens with such a score, %" \
        --title "$(calibration_of share 0.9) % of the tokens score 0.9 to 1 with the mlp,\
 and $(calibration_of share 0.0) % score 0 to 0.1" \
        --note "Histogram with one point for each tenth of the scale."
    plot calibration-share.svg threshold.csv --x target --y routed --by policy \
        --percent target,routed --where policy=mlp,context,max-prob,margin,entropy,random \
        --where wording=story --guide "as aimed at=0,7" --x-range 0,7 \
        --x-label "share aimed at, %" --y-label "share on other questions, %" \
        --title "A threshold for 5 % of the tokens, found on other questions, routes\
 $(calibration_routed mlp) % with the mlp and $(calibration_routed entropy) % with entropy" \
        --note "Questions in story words, from the table of the experiment threshold."
}

calibration_of() { # COLUMN BIN: of the mlp, in percent
    figure '%.1f' "100 * $(value calibration "$1" labels=divergent head=mlp "score_low=$2")"
}

calibration_routed() { # POLICY
    figure '%.1f' "100 * $(value threshold routed wording=story "policy=$1" target=0.050000)"
}
