# shellcheck shell=sh disable=SC2034,SC2154
# network - how long an answer takes on other networks, and what a deadline leaves of the accuracy.
#
# One factor changes at a time around a base: a round trip of 100 ms, 10 Mbit/s, 1 % of the packets
# lost. The device is the Raspberry Pi 5 of constants.csv. Without a deadline (empty) the answers
# are the same in all rows; with one, they are the same in step and ahead.
HEADER=factor,latency_ms,kbit_s,loss,ahead,deadline_ms,questions,seed,tokens,cloud,fallback,accuracy,accuracy_low,accuracy_high,ms,ttft_ms,tbt_ms,tbt_p95_ms

network_rows() { # FACTOR LATENCY KBIT_S LOSS
    serve
    for case in 0: 1: 1:150 1:300 1:1000; do
        ahead=${case%:*} deadline=${case#*:}
        evaluate "factor=$1,latency_ms=$2,kbit_s=$3,loss=$4,ahead=$ahead,deadline_ms=$deadline,${HEADER#*deadline_ms,}" \
            --questions "${QUESTIONS:-200}" --policy mlp --clock virtual  \
            --edge-ms "$(constant t_dotprod),$(constant prefill_dotprod)" --cloud-ms "$(constant cloud_ms)" \
            --latency "$2" --bandwidth $(($3 * 125)) --loss "$4" --ahead "$ahead" \
            ${deadline:+--cloud-timeout $deadline} --cloud-url "$url"
    done
}

# The edge alone, on no network.
network_alone() {
    evaluate "factor=alone,latency_ms=,kbit_s=,loss=,ahead=,deadline_ms=,${HEADER#*deadline_ms,}" \
        --questions "${QUESTIONS:-200}" --policy never --cloud off --clock virtual \
        --edge-ms "$(constant t_dotprod),$(constant prefill_dotprod)"
}

jobs() {
    job network_alone
    for ms in 0 20 50 100 200 300 500; do job network_rows latency $ms 10000 0.01; done
    for kbit_s in 64 256 1000 10000 100000; do job network_rows rate 100 $kbit_s 0.01; done
    for loss in 0 0.005 0.01 0.02 0.05; do job network_rows loss 100 10000 $loss; done
}

draws() {
    edge=$(value network ms factor=alone)
    slow=$(value network ms factor=latency latency_ms=500 ahead=1 deadline_ms=)
    fast=$(value network ms factor=latency latency_ms=0 ahead=1 deadline_ms=)
    shape network "way,round trip (ms),time of an answer (ms)" '
        of("factor") == "latency" && of("deadline_ms") == "" {
            w = of("ahead")
            print (w == 0 ? "in step" : "ahead"),
                of("latency_ms"), of("ms")
        }' |
        plot network-latency.svg --x "round trip (ms)" --y "time of an answer (ms)" --by way \
            --guide "$edge=edge alone" \
            --title "Time of an answer over the round trip: with 500 ms it takes\
 $(figure %.1f "$slow / $fast") times as long as with 0" \
            --note "10 Mbit/s, 1 % of the packets lost; in step: the text waits for each call."
    kept=$(value network accuracy factor=latency latency_ms=300 ahead=1 deadline_ms=1000)
    gone=$(value network accuracy factor=latency latency_ms=300 ahead=1 deadline_ms=150)
    shape network "deadline,round trip (ms),answers that are right (%),low,high" '
        of("factor") == "latency" && of("ahead") == 1 {
            print (of("deadline_ms") == "" ? "no deadline" : of("deadline_ms") " ms"), of("latency_ms"),
                percent("accuracy"), percent("accuracy_low"), percent("accuracy_high")
        }' |
        plot network-deadline.svg --x "round trip (ms)" --y "answers that are right (%)" --by deadline \
            --interval low,high --guide "$(figure %.1f "100 * $(value network accuracy factor=alone)")=edge alone" \
            --title "Right answers over the round trip, by deadline of a call: at 300 ms, 1000 ms leave\
 $(figure %.0f "100 * $kept") %, 150 ms $(figure %.0f "100 * $gone") %" \
            --note "10 Mbit/s, 1 % of the packets lost, decoding ahead; bands: 95 % intervals (Wilson)."
}
