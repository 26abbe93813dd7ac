#!/bin/sh
# Choose the form of the fourth plan (router/results/real/plan.md) among the wordings in forms/: the
# small model alone and the large one alone answer the part for choosing.
#
# Usage: sh tools/results/real/forms.sh DIR [FORM...]    ask, or go on, and make the table
#        sh tools/results/real/forms.sh --table          make the table from the answers that are kept
#
# DIR is that of parts.sh, and keeps the journals, by which an interrupted run goes on. A form that
# is done goes to $RESULTS/real/forms-answers.csv, a line an answer: whether it is right by CITER's
# rule (citer) and as a reader takes it (read), its tokens, and whether it is cut at the limit.
# forms.csv beside it has the table. $MIZZLE, $EDGE, $CLOUD and $RESULTS are as for steps.sh.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -u
LC_ALL=C
export LC_ALL
unset MIZZLE_CLOUD_URL
cd "$(dirname "$0")/../../.." || exit 1
[ $# -gt 0 ] || { sed -n '5,6s/^# //p' tools/results/real/forms.sh >&2 && exit 2; }
large=${CLOUD:-Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF:Q4_K_M}
case $large in http*) by=--cloud-url ;; *) by=--cloud-model ;; esac
kept=${RESULTS:-router/results}/real
answers=$kept/forms-answers.csv
questions=200
forms=tools/results/real/forms

ask() { # FORM: ask all questions in it, and keep the answers
    ! grep -qs "^$1," "$answers" || return 0
    "${MIZZLE:-build/mizzle}" eval -q -m "${EDGE:-Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF:Q4_K_M}" $by "$large" \
        --task csqa -n 160 --prompt "plain@$forms/$1.txt" --data "$dir/form.jsonl" \
        --policy never,always --jsonl "$dir/$1.jsonl" >"$dir/$1.out" || return
    awk -v form="$1" '
        function field(name) {
            match($0, "\"" name "\":[^,}]*")
            return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
        }
        /^\{"policy"/ {
            sub(/"answer":.*"right":/, "\"right\":") # no text is taken for a field
            policy = field("policy")
            gsub(/"/, "", policy)
            print form "," field("item") "," policy "," (field("citer") == "true") "," \
                (field("right") == "true") "," field("tokens") "," (field("truncated") == "true")
        }' "$dir/$1.jsonl" | sort -t , -k 3,3r -k 2,2n >"$dir/$1.rows"
    [ "$(grep -c . "$dir/$1.rows")" -eq $((2 * questions)) ] ||
        { echo "forms: $dir/$1.jsonl: expected $((2 * questions)) answers" >&2 && return 1; }
    [ -e "$answers" ] || echo form,item,policy,citer,read,tokens,cut >"$answers"
    cat "$dir/$1.rows" >>"$answers"
}

# Print the table by the rule of plan.md; a form is chosen when all of them are there.
table() {
    awk -F , -v all="$(find "$forms" -name '*.txt' | grep -c .)" -v n=$questions '
        function low(p,    z) { # the lower end of Wilson
            z = 1.959963984540054
            return (p + z * z / (2 * n) - z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n)
        }
        FNR == 1 { next }
        !known[$1]++ { name[++rows] = $1 }
        {
            right[$1, $3] += $4 / n
            read[$1, $3] += $5 / n
            tokens[$1, $3] += $6 / n
            cut[$1, $3] += $7 / n
        }
        END {
            for (i = 1; i <= rows; i++) {
                f = name[i]
                worst[f] = cut[f, "never"] > cut[f, "always"] ? cut[f, "never"] : cut[f, "always"]
                long = tokens[f, "never"]
                better = right[f, "always"] - right[best, "always"]
                if (better < -1e-9 || (better < 1e-9 && long <= tokens[best, "never"]) || rows < all)
                    continue
                if (low(right[f, "never"]) > 0.2 && long >= 40 && long <= 100 && worst[f] < 0.02 + 1e-9)
                    best = f
            }
            print "form,questions,never,never_low,always,never_read,always_read,tokens,cut,chosen"
            for (i = 1; i <= rows; i++) {
                f = name[i]
                printf "%s,%d,%.4f,%.4f,%.4f,%.4f,%.4f,%.2f,%.4f,%d\n", f, n, right[f, "never"],
                    low(right[f, "never"]), right[f, "always"], read[f, "never"], read[f, "always"],
                    tokens[f, "never"], worst[f], f == best
            }
        }' "$answers"
}

if [ "$1" != --table ]; then
    dir=$1
    shift
    [ $# -gt 0 ] || set -- $(ls "$forms" | sed 's/[.]txt$//')
    mkdir -p "$kept" || exit 1
    for form; do
        ask "$form" || exit 1
    done
fi
table >"$kept/forms.csv.new" && mv "$kept/forms.csv.new" "$kept/forms.csv"
