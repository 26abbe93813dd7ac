# shellcheck shell=sh disable=SC2034,SC2154
# ways - ways to divide an answer between the models, at the same share of its tokens and on the same
# clock: token by token (mlp), the answer as a whole (query), behind its first routed token
# (takeover), sentence by sentence (step), in drafts that the cloud checks (verify). The device is
# the Raspberry Pi 5 of constants.csv. Times are those of one round trip; nothing else depends on it.
HEADER=policy,target,latency_ms,questions,routed,accuracy,accuracy_low,accuracy_high,pgr,calls_answer,up,work,ms,active
CHECKED=1

ways_eval() { # LATENCY OPTIONS...
    latency=$1
    shift
    set -- "policy,target,latency_ms=$latency,$(echo "$HEADER" | sed 's/^policy,target,latency_ms,//; s/,up,/,prefilled,cached,/; s/,active$//')" \
        --questions "${QUESTIONS:-600}" --clock virtual --edge-ms "$(constant t_dotprod)" \
        --prefill-ms "$(constant prefill_dotprod)" --cloud-ms "$(constant cloud_ms)" --latency "$latency" "$@"
    evaluate "$@" >"$here/rows.csv" && ways_active <"$here/rows.csv"
}

# Make the ids that go up for an answer of those that the cloud reads anew and finds in its cache, and
# add the parameters that compute a token, in millions: those of the small model and, for the share of
# the tokens that it writes or checks, of the large one.
ways_active() {
    edge=$(ways_parameters edge-0.5) large=$(ways_parameters cloud)
    awk -F, -v OFS=, -v edge="$edge" -v large="$large" '
        {
            print $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, sprintf("%.1f", ($11 + $12) / $4), $13, $14,
                sprintf("%.3f", (($1 == "always" ? 0 : edge) + ($1 == "verify" ? 1 : $5) * large) / 1e6)
        }'
}

ways_parameters() { mizzle info "weights/milli/$1.gguf" | awk '$1 == "parameters" { print $2 }'; } # MODEL

ways_ends() { ways_eval "$1" --policy never,verify,always; } # LATENCY

ways_rows() { # LATENCY
    # shellcheck disable=SC2086
    mizzle router collect -q -t 1 $patient --questions "${SAMPLES:-1000}" --labels divergent \
        -o "$here/samples" >/dev/null
    mizzle router train -q -t 1 --samples "$here/samples" --head query -o "$here/query" >/dev/null
    for share in 0.02 0.05 0.1; do
        ways_eval "$1" --target-routed $share --policy "mlp,query=$here/query,takeover,step"
    done
}

jobs() {
    for latency in 0 50 170; do job ways_ends $latency; done
    for latency in 0 50 170; do job ways_rows $latency; done
}

ways_of() { # POLICY TARGET COLUMN
    value ways "$3" "policy=$1" "target=$2" latency_ms=170
}

draws() {
    right="answers that are right (%)"
    shape ways "policy,tokens from the cloud (%),$right,low,high" '
        of("latency_ms") == 0 && of("target") != "" {
            print of("policy"), percent("routed"), percent("accuracy"), percent("accuracy_low"), percent("accuracy_high")
        }' |
        plot ways-share.svg --x "tokens from the cloud (%)" --y "$right" --by policy --interval low,high \
            --guide "$(figure %.1f "100 * $(value ways accuracy policy=never latency_ms=0)")=the small model alone" \
            --guide "$(figure %.1f "100 * $(value ways accuracy policy=always latency_ms=0)")=the large model alone" \
            --title "Token by token, 5 % of the tokens make $(figure %.0f "100 * $(ways_of mlp 0.050000 accuracy)") % right;\
 the best of the other ways, with 10 %, $(figure %.0f "100 * $(ways_best)") %" \
            --note "query: whole answers; takeover: what follows the first routed token; step: sentences; bands: 95 %"
    shape ways "policy,ids that the large model computes (%),$right" '
        of("latency_ms") == 0 { print of("policy"), percent("work"), percent("accuracy") }' |
        plot ways-work.svg --x "ids that the large model computes (%)" --y "$right" --by policy \
            --title "Right answers over what the large model computes, in % of the ids of prompt and answer" \
            --note "Shares of 2, 5 and 10 %; never, always: each model alone; verify: drafts of 7, over 100 % for rejected ids"
    shape ways "policy,time of an answer (ms),$right" '
        of("latency_ms") == 170 { print of("policy"), of("ms"), percent("accuracy") }' |
        plot ways-ms.svg --x "time of an answer (ms)" --y "$right" --by policy \
            --title "Right answers over the time of an answer, with a round trip of 170 ms" \
            --note "Shares of 2, 5 and 10 %; never, always: each model alone; verify: drafts of 7; 50 ms a token, one call in flight"
}

ways_best() {
    for policy in query takeover step; do ways_of $policy 0.100000 accuracy; done | sort -n | tail -n 1
}
