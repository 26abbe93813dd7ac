# shellcheck shell=sh disable=SC2034,SC2154
# paper - Table 1 of the paper (She et al., arXiv 2504.07878): its printed rows; the demo pair with
# the times of the paper's devices, at its thresholds and at its shares; the shape of Qwen2.5-0.5B
# on this machine.
PAPER_COLUMNS=threshold,routed,edge_s,ttft_s,tbt_s,cloud_s,overall_s
HEADER=way,$PAPER_COLUMNS
MEASURED=way,$PAPER_COLUMNS,paper_routed,paper_overall_s,date,processor

paper_printed() { # measures next to nothing: the printed rows stand beside it
    printed=threshold,paper_routed,paper_edge_s,paper_ttft_s,paper_tbt_s,paper_cloud_s
    tabulate "way=printed,$printed,paper_overall_s" \
        bench route --table paper -p 1 -n 2 -L 0 --cloud-ms 0 --trips 0 -t 1 -o csv
}

paper_rows() { # WAY OPTIONS...: the rows of eval's table, between its head and its notes
    way=$1
    shift
    # shellcheck disable=SC2086
    mizzle eval --table paper -q -t 1 $patient_virtual --policy mlp --clock virtual \
        --edge-ms "$(constant paper_edge_ms)" --latency "$(constant paper_latency_ms)" \
        --cloud-ms "$(constant paper_cloud_ms)" "$@" >"$here/table"
    awk -v OFS=, -v way="$way" '$1 == "mlp" { print way, $2, $3, $4, $5, $6, $7, $8 }' \
        "$here/table"
}

jobs() {
    job paper_printed
    job paper_rows "at its thresholds" --ahead 0 --questions 100
    job paper_rows "in step" --ahead 0 --sweep 0:0.76:5 --questions 24
    job paper_rows "ahead 1" --ahead 1 --sweep 0:0.76:5 --questions 24
    job paper_rows "ahead 4" --ahead 4 --sweep 0:0.76:5 --questions 24
}
CHECKED='1 2'

paper_measured() { # WAY OPTIONS...: 50 tokens, half as many as the paper's, to save time
    way=$1
    shift
    about="date=$(today),processor=$(processor)"
    tabulate "way=$way,$PAPER_COLUMNS,paper_routed,paper_overall_s,$about" \
        bench route --table paper --shape qwen2.5-0.5b -L 170 -n 50 -o csv "$@"
}

measures() {
    job paper_measured "in step" --ahead 0
}

paper_last() { # WAY COLUMN-NUMBER: from the last row of a way, rounded
    awk -F, -v way="$1" -v column="$2" '
        $1 == way { found = $column }
        END { printf "%.0f", found }' "$results/paper.csv"
}

draws() {
    plot paper.svg paper.csv --x routed --y overall_s --by way \
        --where "way=printed,in step,ahead 1,ahead 4" \
        --x-label "tokens from the cloud, of 100" --y-label "seconds for 100 tokens" \
        --title "On the paper's devices, 100 tokens with $(paper_last printed 3) from the cloud\
 take $(paper_last printed 8) s in its system; with $(paper_last 'ahead 4' 3) from the cloud and\
 four requests in flight, $(paper_last 'ahead 4' 8) s" \
        --note "Printed: She et al., Table 1. Others: the demo pair, 280 ms a token, 900 ms a call."
}
