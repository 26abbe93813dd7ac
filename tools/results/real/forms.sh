#!/bin/sh
# Choose the form of the fourth plan (router/results/real/plan.md) among the wordings in forms/: the
# small model alone and the large one alone answer the part for choosing.
#
# Usage: sh tools/results/real/forms.sh DIR [FORM...]    ask, or go on, and make the table
#        sh tools/results/real/forms.sh --table          make the table from the answers that are kept
#
# DIR is that of parts.sh, and keeps the journals, by which an interrupted run goes on. A form that
# is done goes to $RESULTS/real/forms-answers.csv, or .csv.gz, a line an answer: whether it is right by
# CITER's rule (citer) and as a reader takes it (read), its tokens, and whether it is cut at the limit.
# forms.csv beside it has the table. $MIZZLE, $EDGE, $CLOUD and $RESULTS are as for steps.sh.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -u
LC_ALL=C
export LC_ALL
unset MIZZLE_CLOUD_URL
cd "$(dirname "$0")/../../.." || exit 1
[ $# -gt 0 ] || { sed -n '5,6s/^# //p' tools/results/real/forms.sh >&2 && exit 2; }
edge=${EDGE:-Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF:Q4_K_M}
large=${CLOUD:-Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF:Q4_K_M}
case $large in http*) by=--cloud-url ;; *) by=--cloud-model ;; esac
kept=${RESULTS:-router/results}/real answers=${RESULTS:-router/results}/real/forms-answers.csv
questions=200 forms=tools/results/real/forms

ask() { # FORM POLICY: ask all questions, and keep the answers
    asked=$dir/$1-$2
    ! grep -qs "^$1,[0-9]*,$2," "$answers" || return 0
    "${MIZZLE:-build/mizzle}" eval -q -m "$edge" $by "$large" --task csqa -n 160 --policy "$2" \
        --prompt "plain@$forms/$1.txt" --data "$dir/form.jsonl" \
        --jsonl "$asked.jsonl" >"$asked.out" || return
    awk -v form="$1" -v policy="$2" '
        function field(name) {
            match($0, "\"" name "\":[^,}]*")
            return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
        }
        /^\{"policy"/ {
            sub(/"answer":.*"right":/, "\"right\":") # no text is taken for a field
            print form "," field("item") "," policy "," (field("citer") == "true") "," \
                (field("right") == "true") "," field("tokens") "," (field("truncated") == "true")
        }' "$asked.jsonl" | sort -t , -k 2,2n >"$asked.rows"
    [ "$(grep -c . "$asked.rows")" -eq $questions ] ||
        { echo "forms: $asked.jsonl: expected $questions answers" >&2 && return 1; }
    [ -e "$answers" ] || echo form,item,policy,citer,read,tokens,cut >"$answers"
    cat "$asked.rows" >>"$answers"
}

# Print the table by the rule of plan.md. A form is chosen when all of them are there, at least with
# the small model's answers where these do not pass.
table() {
    { cat "$answers" 2>/dev/null || gzip -cd "$answers.gz"; } | awk -F , -v all="$(find "$forms" -name '*.txt' | grep -c .)" '
        function low(p, n,    z) { # the lower end of Wilson
            z = 1.959963984540054
            return (p + z * z / (2 * n) - z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n)
        }
        FNR == 1 { next }
        !known[$1]++ { name[++rows] = $1 }
        {
            n[$1, $3]++
            right[$1, $3] += $4
            read[$1, $3] += $5
            tokens[$1, $3] += $6
            cut[$1, $3] += $7
        }
        function part(sum, f, policy) { return n[f, policy] ? sprintf("%.4f", sum[f, policy] / n[f, policy]) : "" }
        END {
            print "form,questions,never,never_low,always,never_read,always_read,tokens,cut,chosen"
            for (i = 1; i <= rows; i++) {
                f = name[i]
                never = part(right, f, "never")
                least = low(never, n[f, "never"])
                worst = part(cut, f, cut[f, "never"] >= cut[f, "always"] ? "never" : "always")
                long[f] = part(tokens, f, "never") + 0
                row[f] = f "," n[f, "never"] "," never "," sprintf("%.4f", least) "," part(right, f, "always") "," \
                    part(read, f, "never") "," part(read, f, "always") "," sprintf("%.2f", long[f]) "," worst ","
                if (least <= 0.2 || long[f] < 40 || long[f] > 100 || worst + 0 > 0.02)
                    continue
                missing += !n[f, "always"]
                better = right[f, "always"] - right[best, "always"]
                if (better > 0 || (better == 0 && long[f] > long[best]))
                    best = f
            }
            for (i = 1; i <= rows; i++)
                print row[name[i]] (name[i] == best && !missing && rows == all)
        }'
}

if [ "$1" != --table ]; then
    dir=$1
    shift
    [ $# -gt 0 ] || set -- "$forms"/*.txt
    mkdir -p "$kept" || exit 1
    [ ! -e "$answers.gz" ] || gunzip "$answers.gz" || exit 1
    for policy in never always; do
        for form; do
            ask "$(basename "$form" .txt)" $policy || exit 1
        done
    done
fi
table >"$kept/forms.csv.new" && mv "$kept/forms.csv.new" "$kept/forms.csv"
