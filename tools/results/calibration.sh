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
    shape calibration "score of the router,tokens that are acceptable (%),tokens,low,high" '
        of("labels") == "divergent" && of("head") == "mlp" {
            print of("score"), percent("acceptable"), "acceptable", percent("low"), percent("high")
            print of("score"), percent("score"), "as the score says", "", ""
        }' |
        plot calibration.svg --x "score of the router" --y "tokens that are acceptable (%)" --by tokens \
            --interval low,high --dots \
            --title "Tokens that are acceptable, by score of the mlp: $(calibration_of acceptable 0.9) %\
 of those from 0.9 to 1, which are $(calibration_of share 0.9) % of all" \
            --note "One point for each tenth of the scale; bars: 95 % intervals (Wilson). Subjects that training has not seen."
}

calibration_of() { # COLUMN BIN: of the mlp, in percent
    figure '%.1f' "100 * $(value calibration "$1" labels=divergent head=mlp "score_low=$2")"
}
