# shellcheck shell=sh disable=SC2034
# fleet - one server for many devices: its load, and the wait for a token
HEADER=mode,devices,routed,load,busy,calls_per_s,calls_per_pass,read_per_call,p50_ms,p95_ms,answer_s,answers_per_s,carries

fleet_sizes() { # MODE OPTIONS...: the devices and the server of constants.csv
    fleet_mode=$1
    shift
    "$python" -B tools/lab/study/fleet.py --prefill "$(constant fleet_prefill)" --decode "$(constant fleet_decode)" \
        --cloud-ms "$(constant fleet_step_ms)" --kv "$(constant fleet_kv_tokens)" \
        --cloud-timeout "$(constant fleet_p95_ms)" --idle "$(constant fleet_idle_s)" \
        --edge-ms "$(constant fleet_edge_ms)" \
        --latency "$(constant fleet_latency_ms)" --n-prompt "$(constant fleet_prompt)" \
        --n-predict "$(constant fleet_answer)" --agree "$(constant fleet_agree)" "$@" >"$here/table.csv" &&
        columns "mode=$fleet_mode,${HEADER#*,}" <"$here/table.csv"
}

fleet_mode() { # MODE OPTIONS...: the large ones take minutes
    for fleet_devices in 1,10,100 300,1000,2000,3000,5000 10000,30000,100000; do
        job fleet_sizes "$@" --devices $fleet_devices
    done
}

jobs() {
    share=$(constant fleet_routed)
    fleet_mode cache --share "$share"
    fleet_mode no-cache --share "$share" --no-cache
    fleet_mode cloud-alone --share 1
}
CHECKED=4

draws() {
    share=$(figure %.0f "100 * $(constant fleet_routed)") limit=$(constant fleet_p95_ms)
    with=$(value fleet carries mode=cache devices=1)
    without=$(value fleet carries mode=no-cache devices=1)
    alone=$(value fleet carries mode=cloud-alone devices=1)
    shape fleet "mode,devices,answers per second" '
        BEGIN {
            name["cache"] = "prefix cache"
            name["no-cache"] = "no cache"
            name["cloud-alone"] = "cloud alone"
        }
        of("devices") <= 10000 { print name[of("mode")], of("devices"), of("answers_per_s") }' |
        plot fleet.svg --x devices --y "answers per second" --by mode \
            --title "Answers of many devices on one server, which carries $with with a prefix cache,\
 $without without, and $alone if it writes all answers" \
            --note "Qwen3.5-27B on one H200; $share % of the tokens routed, or whole answers (cloud alone).\
 Carried: 95 % of the cloud tokens arrive within $limit ms. Beyond, the cache overflows."
}
