# shellcheck shell=sh disable=SC2034,SC2154
# span - names of several tokens at one call: calls for one token, for 64, and for 64 with --span 1.
# Three seeds, each with a router of its own training and questions of its own. A span mends errors
# that the threshold leaves, so its threshold is lower, for the same accuracy: by how much, and that
# 64 tokens are best, was found with seeds 11 to 13.
HEADER=kind,way,tokens,span,threshold,seed,questions,accuracy,accuracy_low,accuracy_high,routed,calls
HEADER=$HEADER,difference,difference_low,difference_high
HEADER=$HEADER,saved_one,saved_one_low,saved_one_high,saved_reply,saved_reply_low,saved_reply_high
CHECKED=2

# Print the difference in accuracy that question by question FILE makes against BASE, and the share
# of calls that it saves, each with a 95 % interval. Tokens from the memo are no calls.
span_pair() { # BASE FILE: two journals of eval
    awk '
        function number(key) {
            match($0, "\"" key "\":[0-9]+")
            return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
        }
        FNR == 1 { file++; n = 0 }
        !/"item":/ { next } # settings and thresholds
        { right[file, ++n] = /"right":true/; calls[file, n] = number("cloud") - number("memo") }
        END {
            for (i = 1; i <= n; i++) {
                d = right[2, i] - right[1, i]
                sum += d
                squares += d * d
                before += calls[1, i]
                after += calls[2, i]
            }
            mean = sum / n
            error = 1.96 * sqrt((squares / n - mean * mean) / n)
            rate = after / before # a ratio of sums: its error is that of the residuals
            for (i = 1; i <= n; i++) residues += (calls[2, i] - rate * calls[1, i]) ^ 2
            wide = 1.96 * sqrt(residues) / before
            printf "%.6f,%.6f,%.6f %.6f,%.6f,%.6f\n", mean, mean - error, mean + error,
                1 - rate, 1 - rate - wide, 1 - rate + wide
        }' "$1" "$2"
}

span_calls() { # FILE
    awk '
        /"item":/ {
            match($0, /"cloud":[0-9]+/)
            sum += substr($0, RSTART + 8, RLENGTH - 8)
            match($0, /"memo":[0-9]+/)
            sum -= substr($0, RSTART + 7, RLENGTH - 7)
        }
        END { print sum + 0 }' "$1"
}

span_row() { # KIND WAY SEED TOKENS SPAN THRESHOLD: the columns up to calls
    evaluate "kind=$1,way=$2,tokens=$4,span=$5,threshold=$6,seed,questions,accuracy,accuracy_low,accuracy_high,routed" \
        --cloud-url "$url" --kind "$1" --seed "$3" --questions "${QUESTIONS:-1000}" \
        --policy "mlp=$here/mlp" --cloud-tokens "$4" --span "$5" --threshold "$6" \
        --jsonl "$here/$2.$6" >"$here/row"
    echo "$(cat "$here/row"),$(span_calls "$here/$2.$6")"
}

span_rows() { # KIND LESS SEED
    # shellcheck disable=SC2086
    mizzle router collect -q -t 1 $patient --labels divergent --questions "${SAMPLES:-1000}" \
        -o "$here/samples" >/dev/null
    mizzle router train -q -t 1 --samples "$here/samples" --seed "$3" -o "$here/mlp" >/dev/null
    serve
    # A check makes the rows of one threshold, which stand together in the table.
    for threshold in 0.35 $([ -n "${checking:-}" ] || echo 0.4 0.45); do
        less=$(figure %.2f "$threshold - $2")
        one=$(span_row "$1" one "$3" 1 0 "$threshold")
        reply=$(span_row "$1" reply "$3" 64 0 "$threshold")
        span=$(span_row "$1" span "$3" 64 1 "$less")
        against_one=$(span_pair "$here/one.$threshold" "$here/span.$less")
        against_reply=$(span_pair "$here/reply.$threshold" "$here/span.$less")
        echo "$one,,,,,,,,,"
        echo "$reply,,,,,,,,,"
        echo "$span,${against_one% *},${against_one#* },${against_reply#* }"
    done
}

jobs() {
    for seed in 1 2 3; do
        job span_rows which 0.03 $seed
        job span_rows all 0.02 $seed
    done
}

span_saved() { # KIND COLUMN: mean over its rows, in percent
    awk -F, -v kind="$1" -v column="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["kind"] == kind && $at["way"] == "span" { sum += $at[column]; n++ }
        END { printf "%.0f", n ? 100 * sum / n : 0 }' "$results/span.csv"
}

draws() {
    calls="calls for 1000 answers" right="answers that are right (%)"
    shape span "way,threshold,$calls,$right" '
        of("kind") == "which" {
            way = of("tokens") == 1 ? "1 token" : of("span") == 1 ? "64 tokens and a span" : "64 tokens"
            print way, of("threshold"), 1000 * of("calls") / of("questions"), percent("accuracy")
        }' |
        means |
        plot span.svg --x "$calls" --y "$right" --by way --interval low,high \
            --title "Right answers over calls: at equal accuracy, a span saves\
 $(span_saved which saved_reply) % of the calls for 64 tokens, $(span_saved which saved_one) % of those for 1" \
            --note "Questions \"which\" at three thresholds; means of three seeds; bands: the lowest and the highest."
}
