#!/bin/sh
# tools/results/real/split.sh: the parts hold what they should, stay what they are, and share no
# concept with each other or with the questions of the measurement; and the solved
# questions of the forms are in neither of the authors' files.
. tests/support/shell.sh
split() { sh tools/results/real/split.sh "$@" 2>"$dir/err"; }

# Too few questions, and a line without a concept.
for concept in a b b c d; do
    echo "{\"question\": {\"question_concept\": \"$concept\"}}"
done >"$dir/few"
echo '{"question":{"stem":"?","question_concept":"C"}}' >"$dir/dev"
split csqa "$dir/few" "$dir/dev" "$dir/csqa" && fail "four of five questions are enough"
[ "$(cat "$dir/csqa/train.jsonl" "$dir/csqa/form.jsonl" "$dir/csqa/calibration.jsonl" | wc -l)" \
    -eq 4 ] || fail "a concept is not measured because of its capitals"
grep -q '"c"' "$dir"/csqa/*.jsonl && fail "a concept that is measured is in a part"
split arc "$dir/few" "$dir/dev" "$dir/arc" && fail "a line without a question is read"
says 'few:1: expected "stem"'
[ -e "$data/csqa" ] || skip "no test data in $data"

check() { # TASK TRAIN MEASURED FIELD SIZES: of calibration, form and train
    split "$1" "$data/$2" "$data/$3" "$dir/$1" || fail "$1"
    sizes=
    for part in "$dir/$1"/*.jsonl "$data/$3"; do
        [ "$part" = "$data/$3" ] || sizes="$sizes $(wc -l <"$part" | tr -d ' ')"
        grep -o "\"$4\": *\"[^\"]*" "$part" | sort -u
    done >"$dir/shared"
    [ "$sizes" = " $5" ] || fail "$1: expected $5 questions, found$sizes"
    [ "$(sort "$dir/shared" | uniq | wc -l)" -eq "$(wc -l <"$dir/shared")" ] ||
        fail "$1: parts share $(sort "$dir/shared" | uniq -d | head -n 1)"
    [ "$1" = gsm8k ] || [ "$(sort "$data/$2" "$dir/$1"/*.jsonl | uniq -d | wc -l)" -eq \
        "$(cat "$dir/$1"/*.jsonl | wc -l)" ] || fail "$1: a part has other lines than $2"
}
rm -r "$dir/csqa" "$dir/arc"
check csqa csqa/train_rand_split.jsonl csqa/dev_rand_split.jsonl question_concept '200 200 800'
check arc arc/ARC-Challenge-Dev.jsonl arc/ARC-Challenge-Test.jsonl stem '99 193'
check gsm8k gsm8k/train_mlp.json gsm8k/test.json problem '100 60 300'
grep -hvE '^\{"problem": "([^"\\]|\\.)*", "answerKey": "[^"]*"\}$' "$dir"/gsm8k/*.jsonl &&
    fail "gsm8k: a line has more than a problem and its answer"

# The parts of the fourth plan: no concept is in two, and none of the trials in one that measures.
parts() { sh tools/results/real/parts.sh "$data/csqa/train_rand_split.jsonl" "$data/csqa/dev_rand_split.jsonl" "$@" 2>"$dir/err"; }
concepts() { sed 's/.*"question_concept": *"\([^"]*\).*/\1/' "$@" | tr A-Z a-z | tr -cd 'a-z0-9\n' | sort -u; }
echo aisle >"$dir/touched"
parts "$dir/none" "$dir/parts" && fail "parts without a list of concepts"
[ ! -e "$data/csqa/touched.txt" ] || cp "$data/csqa/touched.txt" "$dir/touched"
parts "$dir/touched" "$dir/parts" || fail "parts"
says 'parts: measure 1802, 626 concepts drawn'
[ "$(cat "$dir/parts"/*.jsonl | wc -l | tr -d ' ')" = 4302 ] || fail "parts: $(wc -l "$dir/parts"/*.jsonl)"
cat "$dir/csqa"/*.jsonl "$dir/parts"/*.jsonl | sort -u >"$dir/all" # train and form are in both
[ "$(wc -l <"$dir/all" | tr -d ' ')" = 4502 ] && [ "$(sort "$dir/all" "$data/csqa/train_rand_split.jsonl" | uniq -d | wc -l)" -eq 4502 ] ||
    fail "parts: other lines than the authors'"
cp "$data/csqa/dev_rand_split.jsonl" "$dir/csqa/calibration.jsonl" "$dir"
for part in "$dir/parts"/*.jsonl "$dir/dev_rand_split.jsonl" "$dir/calibration.jsonl"; do
    concepts "$part"
done | sort | uniq -d >"$dir/shared"
[ ! -s "$dir/shared" ] || fail "parts share $(head -n 1 "$dir/shared")"
concepts "$dir/parts/train.jsonl" >"$dir/trained"
[ "$(sort -u "$dir/touched" | comm -23 - "$dir/trained")" = "" ] || fail "a concept of the trials does not train"

sed -n 's/^Question: //p' tools/results/real/reason.txt tools/results/real/forms/*.txt | grep -v '^{question}$' >"$dir/solved"
[ "$(wc -l <"$dir/solved")" -eq $((5 + 5 * $(ls tools/results/real/forms/*.txt | wc -l))) ] ||
    fail "the forms: expected 5 solved questions each"
[ "$(sort -u "$dir/solved" | wc -l)" -eq "$(wc -l <"$dir/solved")" ] || fail "two forms ask the same"
cat "$data"/csqa/*.jsonl | grep -Ff "$dir/solved" && fail "a form: this question is the authors'"
exit 0
