#!/bin/sh
# Split a task's file of questions into parts that share no concept with each other or with the
# questions of the measurement.
#
# Usage: sh tools/results/real/split.sh csqa train_rand_split.jsonl dev_rand_split.jsonl DIR
#        sh tools/results/real/split.sh arc ARC-Challenge-Dev.jsonl ARC-Challenge-Test.jsonl DIR
#        sh tools/results/real/split.sh gsm8k train_mlp.json test.json DIR
#
# Writes DIR/train.jsonl, DIR/calibration.jsonl and, where questions are left for choosing a form,
# DIR/form.jsonl, and prints how many questions each has. Lines stay as they are, in the file's
# order; but of the prompts of gsm8k the problems are left, as the test file has them, and the large
# model writes its own answers, not the authors'. A concept is question_concept in csqa; arc and
# gsm8k name none, so each question is its own: two of the 294 questions of ARC-Challenge-Dev are in
# ARC-Challenge-Test as well.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -u
LC_ALL=C
export LC_ALL
case $#,${1:-} in
4,csqa) parts="train=800 form=200 calibration=200" ;;
4,arc) parts="train=193 calibration=99" ;;
4,gsm8k) parts="train=300 form=60 calibration=100" ;;
*)
    sed -n '5,7s/^#//p' "$0" >&2
    exit 2
    ;;
esac
for file in "$2" "$3"; do
    [ -r "$file" ] || { echo "split: cannot read $file" >&2 && exit 1; }
done
mkdir -p "$4" || exit 1

# The file of questions is read twice: a concept goes to one part as a whole, so its size has to be
# known when its first question comes. It goes to the part that is the emptiest for its size, so
# that all of them hold the same mixture, and is left out if no part has the room.
TASK=$1 DIR=$4 PARTS=$parts awk '
    BEGIN {
        task = ENVIRON["TASK"]
        dir = ENVIRON["DIR"]
        n = split(ENVIRON["PARTS"], part, " ")
        for (i = 1; i <= n; i++) {
            split(part[i], pair, "=")
            name[i] = pair[1]
            size[i] = pair[2]
            file[i] = dir "/" name[i] ".jsonl"
            printf "" >file[i]
        }
        field["csqa"] = "\"question_concept\": *\""
        field["arc"] = "\"stem\": *\""
        field["gsm8k"] = "\"problem\": *\"|\"prompt\": *\"[^\"]*nQuestion: "
    }

    # Return what the question is about: letters and digits, as files differ in spaces and marks.
    function concept(line) {
        if (!match(line, field[task])) {
            printf "split: %s:%d: expected %s\n", FILENAME, FNR, field[task] >"/dev/stderr"
            exit failed = 1
        }
        line = substr(line, RSTART + RLENGTH)
        match(line, /([^"\\]|\\.)*/)
        line = substr(line, 1, RLENGTH)
        sub(/\\nSolution: *$/, "", line)
        gsub(/\\u[0-9a-f][0-9a-f][0-9a-f][0-9a-f]|\\.|[^A-Za-z0-9]/, "", line)
        return tolower(line)
    }

    function question(line) { # gsm8k as it is measured: a problem, without an answer in prose
        if (task == "gsm8k") {
            sub(/"prompt": "[^"]*nQuestion: /, "\"problem\": \"", line)
            sub(/\\nSolution: *", "cot": "([^"\\]|\\.)*"/, "\"", line)
        }
        return line
    }

    function choose(group,    i, best) { # the part for a concept, or 0
        for (i = 1; i <= n; i++)
            if (held[i] + count[group] <= size[i] && (!best || held[i] / size[i] < least)) {
                best = i
                least = held[i] / size[i]
            }
        best += 0
        held[best] += count[group]
        return best
    }

    FNR == 1 { pass++ }
    { about = concept($0) }
    pass == 1 { measured[about] = 1; next }
    about in measured { next }
    pass == 2 { count[about]++; free++; next }
    !(about in at) { at[about] = choose(about) }
    at[about] { print question($0) >file[at[about]] }

    END {
        if (failed)
            exit 1
        printf "split: %d questions share nothing with the measured:", free >"/dev/stderr"
        for (i = 1; i <= n; i++) {
            printf " %s %d,", name[i], held[i] >"/dev/stderr"
            short = short || held[i] < size[i]
        }
        printf " left %d\n", held[0] >"/dev/stderr"
        if (short)
            print "split: too few questions" >"/dev/stderr"
        exit short
    }' "$3" "$2" "$2"
