#!/bin/sh
# Split the training questions of CommonsenseQA that split.sh leaves over into the parts of the
# fourth plan (router/results/real/plan.md): no concept is in two parts.
#
# Usage: sh tools/results/real/parts.sh train_rand_split.jsonl dev_rand_split.jsonl touched.txt DIR
#
# Writes DIR/form.jsonl, the part for choosing, as split.sh makes it; DIR/train.jsonl, the 800
# questions of split.sh and behind them 1,100 more; DIR/calibration.jsonl, 400 questions; and
# DIR/measure.jsonl, the rest. A concept is question_concept in lower case, letters and digits alone.
# touched.txt names the concepts of trials, one a line: their questions train. Other concepts are
# drawn as a whole, in the order of a hash: first those that calibrate, then those that train.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -u
LC_ALL=C
export LC_ALL
[ $# -eq 4 ] || { sed -n '5s/^# //p' "$0" >&2 && exit 2; }
[ -r "$3" ] || { echo "parts: cannot read $3" >&2 && exit 1; }
old=$4/old
mkdir -p "$old" && sh "$(dirname "$0")/split.sh" csqa "$1" "$2" "$old" &&
    cp "$old/form.jsonl" "$old/train.jsonl" "$4" || exit 1

# Print the hash of each question's concept, the concept, and the question. The hash is the name as a
# number in base 1000003, modulo 2^31 - 1.
marked() {
    awk '
        BEGIN { for (i = 33; i < 127; i++) code[sprintf("%c", i)] = i }
        {
            match($0, /"question_concept": *"([^"\\]|\\.)*/)
            about = substr($0, RSTART, RLENGTH)
            sub(/^"question_concept": *"/, "", about)
            gsub(/\\u[0-9a-f][0-9a-f][0-9a-f][0-9a-f]|\\.|[^A-Za-z0-9]/, "", about)
            about = tolower(about)
            hash = 1
            for (i = 1; i <= length(about); i++)
                hash = (hash * 1000003 + code[substr(about, i, 1)]) % 2147483647
            printf "%010d\t%s\t%s\n", hash, about, $0
        }' "$@"
}

# The questions that nothing uses, and the part of each of their concepts.
marked "$2" "$old"/*.jsonl | cut -f 2 >"$old/used"
marked "$1" | awk -F '\t' 'FILENAME == ARGV[1] { used[$1]; next } !($2 in used)' "$old/used" - >"$old/left"
cut -f 1,2 "$old/left" | sort | uniq -c >"$old/concepts"
awk -v train=1100 -v calibration=400 '
    FILENAME == ARGV[1] { touched[$1]; next }
    $3 in touched { train -= $1; print $3 "\ttrain"; next }
    { size[++n] = $1; name[n] = $3 }
    END {
        for (i = 1; i <= n; i++) {
            part = size[i] <= calibration ? "calibration" : size[i] <= train ? "train" : "measure"
            calibration -= part == "calibration" ? size[i] : 0
            train -= part == "train" ? size[i] : 0
            print name[i] "\t" part
        }
    }' "$3" "$old/concepts" >"$old/drawn"
for part in train calibration measure; do
    [ $part = train ] || : >"$4/$part.jsonl"
    awk -F '\t' -v part=$part 'FILENAME == ARGV[1] { is[$1] = $2; next }
        is[$2] == part { sub(/^[^\t]*\t[^\t]*\t/, ""); print }' "$old/drawn" "$old/left" >>"$4/$part.jsonl"
    echo "parts: $part $(grep -c . "$4/$part.jsonl"), $(grep -c "$part$" "$old/drawn") concepts drawn" >&2
done
rm -r "$old"
