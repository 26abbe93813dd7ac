# shellcheck shell=sh disable=SC2034,SC2154
# paper - Table 1 of the paper (She et al., arXiv 2504.07878): its printed rows; the demo pair with
# the times of the paper's devices, at its thresholds and at its shares.
HEADER=way,threshold,routed,edge_s,ttft_s,tbt_s,cloud_s,overall_s

paper_printed() {
    cat <<'END'
printed,0.40,0,28.19,0.67,0.28,0.00,28.14
printed,0.50,0,28.10,0.50,0.28,0.00,28.15
printed,0.60,1,28.40,0.45,0.28,0.94,28.40
printed,0.70,14,28.04,0.34,0.33,11.97,40.06
printed,0.72,17,27.58,0.46,0.33,13.43,41.30
printed,0.76,38,27.59,0.41,0.45,34.00,61.65
printed,0.80,65,28.02,0.47,0.80,58.23,86.32
printed,0.90,76,28.20,0.49,1.18,72.76,101.05
END
}

paper_rows() { # WAY OPTIONS...: the rows of eval's table, between its head and its notes
    way=$1
    shift
    # shellcheck disable=SC2086
    mizzle eval --as-paper -q -t 1 $patient_virtual --policy mlp --clock virtual \
        --edge-ms "$(constant paper_edge_ms)" --latency "$(constant paper_latency_ms)" \
        --cloud-ms "$(constant paper_cloud_ms)" "$@" >"$here/table"
    awk -v OFS=, -v way="$way" '$1 == "mlp" { print way, $2, $3, $4, $5, $6, $7, $8 }' \
        "$here/table"
}

jobs() {
    job paper_printed
    job paper_rows "at its thresholds" --ahead 0 --questions 100
    job paper_rows "in step" --ahead 0 --target-routed 0:0.76:5 --questions 24
    job paper_rows ahead --ahead 1 --target-routed 0:0.76:5 --questions 24
}
CHECKED='1 2'

paper_last() { # WAY COLUMN-NUMBER: from the last row of a way, rounded
    awk -F, -v way="$1" -v column="$2" '
        $1 == way { found = $column }
        END { printf "%.0f", found }' "$results/paper.csv"
}

draws() {
    cloud="tokens from the cloud of 100" seconds="time for 100 tokens (s)"
    shape paper "way,$cloud,$seconds" '
        of("way") != "at its thresholds" {
            way = of("way")
            print way, of("routed"), of("overall_s")
        }' |
        plot paper.svg --x "$cloud" --y "$seconds" --by way \
            --title "On the paper's devices, 100 tokens with $(paper_last printed 3) from the cloud\
 take $(paper_last printed 8) s in its system; with $(paper_last ahead 3) from the cloud and\
 decoding ahead, $(paper_last ahead 8) s" \
            --note "Printed: She et al., Table 1. Others: the demo pair, 280 ms a token, 900 ms a call."
}
