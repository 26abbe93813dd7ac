# shellcheck shell=sh disable=SC2034,SC2154
# realways - ways to divide an answer between the models of the real pair, on the questions that all
# of them were asked, by the rule that decides (citer), computed without a model from the kept answers,
# which commit 610d3ebb (0.5.1) makes again. Columns:
#   trips       runs of the large model's tokens in an answer, each of which takes a round trip: calls,
#               but one at most where all tokens behind a point are its (query, takeover, always)
#   active      millions of parameters that compute a token
#   ms, ms_50, ms_170
#               time of an answer behind its prompt, if nothing is guessed ahead, on the device and
#               with the cloud of constants.csv, and round trips of 0, 50, 170 ms
#   above       right answers of the router (mix) less those of this way at an equal share, both as shares
TABLE=real/ways
HEADER=task,policy,share,questions,accuracy,accuracy_low,accuracy_high,routed,pgr,tokens,calls,trips,read,active,ms,ms_50,ms_170,above,above_low,above_high
realways_edge=494032768 realways_large=1543714304 # parameters (mizzle info)
realways_draft=7 # tokens of a draft for verify

realways_rows() { # TASK ITEMS
    items=$results/real/$2
    is_kept "$items/ways-05.csv" || { echo "no answers of other ways in $items" >&2 && exit 77; }
    is_kept "$items/ends.csv" || { echo "no answers of never and always in $items" >&2 && exit 77; }
    set -- "$1"
    for name in ends verify call ways-02 ways-05 ways-10; do
        is_kept "$items/$name.csv" || continue
        unpacked "$items/$name.csv" >"$here/all"
        unpacked "$items/ways-05.csv" |
            awk -F, 'NR == FNR { asked[$4] } NR != FNR && (FNR == 1 || $4 in asked)' - "$here/all" >"$here/$name.csv"
        set -- "$@" "$here/$name.csv"
    done
    task=$1
    shift
    study --against all --csv "$here/rows.csv" "$@"
    columns policy,share,score,questions,accuracy,accuracy_low,accuracy_high,routed,pgr,tokens,cloud,calls,read,against,equal,equal_low,equal_high \
        <"$here/rows.csv" >"$here/picked.csv"
    awk -F, -v OFS=, -v task="$task" -v k=$realways_draft -v edge=$realways_edge -v large=$realways_large \
        -v edge_ms="$(constant t_dotprod)" -v cloud_ms="$(constant cloud_ms)" '
        FILENAME !~ /picked/ { if (FNR > 1 && $12 > 0) begun[$6 "," $7]++; next }
        $3 != "citer" { next }
        $1 ~ /^mlp=/ && $14 != "" { above[$2 "," $14] = $15 "," $16 "," $17; next }
        $14 == "" { row[++rows] = $0 }
        function ms(latency) {
            return sprintf("%.0f", written * edge_ms + $11 * cloud_ms + trips * latency)
        }
        END {
            for (i = 1; i <= rows; i++) {
                $0 = row[i]
                name = $1
                sub(/^mlp=/, "", name)
                sub(/=.*|[.]1$/, "", name)
                trips = $12
                if (name ~ /^(query|takeover|always)$/) trips = begun[$1 "," $2] / $4
                written = name == "verify" ? k * $12 : $10 - $11
                more = above[$2 "," $1]
                print task, name, $2, $4, $5, $6, $7, $8, $9, $10, $12, sprintf("%.3f", trips), $13,
                    sprintf("%.0f", ((name == "always" ? 0 : edge) + (name == "verify" ? 1 : $8) * large) / 1e6),
                    ms(0), ms(50), ms(170), more == "" ? ",," : more
            }
        }' "$@" "$here/picked.csv"
}

CHECKED="1 2"

jobs() {
    job realways_rows csqa reason
    job realways_rows gsm8k gsm8k
}

realways_shape() { # TASK COLUMNS PROGRAM
    shape real/ways "$2" 'of("task") == "'"$1"'" { '"$3"' }'
}

realways_alone() { percent=$(value real/ways accuracy "task=$1" "policy=$2") && figure %.1f "100 * $percent"; } # TASK POLICY

draws() {
    right="answers that are right (%)"
    for task in csqa gsm8k; do
        grep -q "^$task,mix," "$results/$TABLE.csv" || continue
        case $task in csqa) title="CommonsenseQA in form reason" ;; *) title=GSM8K ;; esac
        realways_shape $task "policy,tokens from the large model (%),$right,low,high" '
            if (of("share") != "")
                print of("policy"), percent("routed"), percent("accuracy"), percent("accuracy_low"), percent("accuracy_high")' |
            plot realways-$task-share.svg --x "tokens from the large model (%)" --y "$right" --by policy --interval low,high \
                --guide "$(realways_alone $task never)=the small model alone" \
                --guide "$(realways_alone $task always)=the large model alone" \
                --title "A real pair, $title: ways to divide an answer" \
                --note "query: whole answers; takeover: what follows the first routed token; step: sentences; bands: 95 %"
        realways_shape $task "policy,ids that the large model reads for an answer,$right" '
            print of("policy"), of("read"), percent("accuracy")' |
            plot realways-$task-read.svg --x "ids that the large model reads for an answer" --y "$right" --by policy \
                --title "A real pair, $title: right answers over what the large model reads" \
                --note "Shares of 2, 5 and 10 %; never, always: each model alone; verify: drafts of 7"
        realways_shape $task "policy,time of an answer (ms),$right" '
            print of("policy"), of("ms_170"), percent("accuracy")' |
            plot realways-$task-ms.svg --x "time of an answer (ms)" --y "$right" --by policy \
                --title "A real pair, $title: right answers over the time of an answer, with a round trip of 170 ms" \
                --note "Behind its prompt, each call awaited; 50 ms a token of the small model, 20 ms one of the large"
    done
}
