# shellcheck shell=sh disable=SC2034,SC2154
# network - how long an answer takes on other networks, and what a deadline leaves of the accuracy.
#
# One factor changes at a time around a base: a round trip of 100 ms, 10 Mbit/s, 1 % of the packets
# lost. The device is the Raspberry Pi 5 of constants.csv. Without a deadline (empty) the answers
# are the same in all rows; with one, they do not depend on W.
HEADER=factor,latency_ms,kbit_s,loss,ahead,deadline_ms,questions,seed,tokens,cloud,fallback,accuracy,accuracy_low,accuracy_high,ms,ttft_ms,tbt_ms,tbt_p95_ms

network_rows() { # FACTOR LATENCY KBIT_S LOSS
    serve
    for case in 0: 1: 4: 1:150 1:300 1:1000; do
        ahead=${case%:*} deadline=${case#*:}
        evaluate "factor=$1,latency_ms=$2,kbit_s=$3,loss=$4,ahead=$ahead,deadline_ms=$deadline,${HEADER#*deadline_ms,}" \
            --questions "${QUESTIONS:-200}" --policy mlp --clock virtual --edge-ms "$(constant t_dotprod)" \
            --prefill-ms "$(constant prefill_dotprod)" --cloud-ms "$(constant cloud_ms)" \
            --latency "$2" --bandwidth $(($3 * 125)) --loss "$4" --ahead "$ahead" \
            ${deadline:+--cloud-timeout $deadline} --cloud-url "$url"
    done
}

# The edge alone, on no network.
network_alone() {
    evaluate "factor=alone,latency_ms=,kbit_s=,loss=,ahead=,deadline_ms=,${HEADER#*deadline_ms,}" \
        --questions "${QUESTIONS:-200}" --policy never --cloud off --clock virtual \
        --edge-ms "$(constant t_dotprod)" --prefill-ms "$(constant prefill_dotprod)"
}

jobs() {
    job network_alone
    for ms in 0 20 50 100 200 300 500; do job network_rows latency $ms 10000 0.01; done
    for kbit_s in 64 256 1000 10000 100000; do job network_rows rate 100 $kbit_s 0.01; done
    for loss in 0 0.005 0.01 0.02 0.05; do job network_rows loss 100 10000 $loss; done
}

network_plot() { # PICTURE FACTOR FILTER OPTIONS...: draw rows of a factor that the filter labels
    network_picture=$plots/network-$1.svg network_factor=$2 network_filter=$3
    shift 3
    awk -F, -v OFS=, -v factor="$network_factor" "
        NR == 1 { \$(NF + 1) = \"label\" }
        NR > 1 { if (\$1 != factor) next; $network_filter }
        { print }" "$results/network.csv" |
        mizzle plot "$@" -o "$network_picture" -
}

network_times() { # PICTURE FACTOR X OPTIONS...
    network_to=$1 network_of=$2 network_x=$3
    shift 3
    # shellcheck disable=SC2016
    network_plot "$network_to" "$network_of" 'if ($6 != "") next; $(NF + 1) = "W " $5' \
        --x "$network_x" --y ms --by label --y-label 'ms an answer' "$@"
}

network_deadlines() { # PICTURE FACTOR X OPTIONS...
    network_to=$1 network_of=$2 network_x=$3
    shift 3
    # shellcheck disable=SC2016
    network_plot "$network_to" "$network_of" \
        'if ($5 != 1) next; $(NF + 1) = $6 == "" ? "no deadline" : $6 " ms"' \
        --x "$network_x" --y accuracy --by label --band accuracy_low,accuracy_high --percent accuracy \
        --guide "edge alone=$(figure %.2f "100 * $(value network accuracy factor=alone)")" "$@"
}

draws() {
    for end in 0 500; do
        for w in 0 1 4; do
            eval "ms_${end}_$w=$(value network ms factor=latency latency_ms=$end ahead=$w deadline_ms=)"
        done
    done
    network_times latency latency latency_ms --x-label 'round trip, ms' \
        --title "A round trip of 500 ms makes an answer take $(figure %.1f "$ms_500_1 / $ms_0_1") times as long" \
        --note "10 Mbit/s; 1 % of the packets lost; W: requests in flight"
    slow=$(value network ms factor=rate kbit_s=64 ahead=1 deadline_ms=)
    fast=$(value network ms factor=rate kbit_s=100000 ahead=1 deadline_ms=)
    network_times rate rate kbit_s --log-x --x-label 'kbit/s' \
        --title "64 kbit/s costs $(figure %.0f "$slow - $fast") ms an answer against 100 Mbit/s" \
        --note "a round trip of 100 ms; 1 % of the packets lost"
    none=$(value network ms factor=loss loss=0 ahead=1 deadline_ms=)
    much=$(value network ms factor=loss loss=0.05 ahead=1 deadline_ms=)
    network_times loss loss loss --percent loss --x-label 'packets lost, %' \
        --title "5 % of the packets lost cost $(figure %.0f "$much - $none") ms an answer" \
        --note "a round trip of 100 ms; 10 Mbit/s"
    kept=$(value network accuracy factor=latency latency_ms=300 ahead=1 deadline_ms=1000)
    gone=$(value network accuracy factor=latency latency_ms=300 ahead=1 deadline_ms=150)
    network_deadlines deadline latency latency_ms --x-label 'round trip, ms' \
        --title "At 300 ms, a deadline of 1000 ms leaves $(figure %.0f "100 * $kept") % right, one of 150 ms $(figure %.0f "100 * $gone") %" \
        --note "deadline of a cloud token; bands: 95 %"
    kept=$(value network accuracy factor=loss loss=0.05 ahead=1 deadline_ms=1000)
    gone=$(value network accuracy factor=loss loss=0.05 ahead=1 deadline_ms=150)
    network_deadlines deadline-loss loss loss --percent accuracy,loss --x-label 'packets lost, %' \
        --title "With 5 % lost, a deadline of 150 ms leaves $(figure %.0f "100 * $gone") % right, one of 1000 ms $(figure %.0f "100 * $kept") %" \
        --note "deadline of a cloud token; a round trip of 100 ms; bands: 95 %"
}
