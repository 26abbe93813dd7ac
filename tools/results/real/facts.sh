#!/bin/sh
# The 100 open questions of facts.txt, whose answers a rule can check: capitals, years, authors, sums.
#
# Usage: sh tools/results/real/facts.sh items >facts.jsonl    write them as items of task gsm8k
#        sh tools/results/real/facts.sh judge JOURNAL         count the right answers of a journal
#
# Behind a question and a tab facts.txt has a regular expression in lower case. An answer is right if
# it holds the expression as a whole word, in capitals or not. The task's own verdict says nothing.
#
#     mizzle eval $PAIR --task gsm8k --data facts.jsonl --prompt @tools/results/real/open-form.txt \
#         -n 128 --policy never,mlp=ROUTER,always --jsonl facts.journal
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -u
LC_ALL=C
export LC_ALL
facts=$(dirname "$0")/facts.txt
case $#,${1:-} in
1,items) cut -f 1 "$facts" | sed 's/"/\\"/g; s/.*/{"question": "&", "answer": "#### 0"}/' ;;
2,judge)
    awk -F '\t' '
        function field(name) { # its value, as the journal has it
            match($0, "\"" name "\":(\"([^\"\\\\]|\\\\.)*\"|[^,}]*)")
            return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
        }
        FILENAME == ARGV[1] { right[FNR - 1] = $2; next }
        !(text = tolower(field("text"))) { next }
        {
            row = field("policy") "," field("share")
            if (!asked[row]++)
                order[++rows] = row
            gsub(/\\./, " ", text)
            hits[row] += text ~ ("[^a-z0-9.,](" right[field("item")] ")[^a-z0-9]")
            tokens[row] += field("tokens")
            cloud[row] += field("cloud")
        }
        END {
            print "policy,share,questions,right,tokens,cloud,routed"
            for (i = 1; i <= rows; i++)
                printf "%s,%d,%d,%d,%d,%.4f\n", order[i], asked[order[i]], hits[order[i]],
                    tokens[order[i]], cloud[order[i]], cloud[order[i]] / (tokens[order[i]] + !tokens[order[i]])
        }' "$facts" "$2"
    ;;
*) sed -n '4,5s/^# //p' "$0" >&2 && exit 2 ;;
esac
