#!/bin/sh
# The forms that are chosen among (tools/results/real/forms.sh): their solved questions, the table of
# router/results and its rule.
. tests/support/shell.sh
forms=tools/results/real/forms kept=router/results/real

for form in "$forms"/*.txt; do
    letters=$(sed -n 's/.*Therefore, the answer is (\([A-E]\))[.]$/\1/p' "$form" | tr -d '\n')
    echo "$letters" >>"$dir/letters"
    [ "$(echo "$letters" | fold -w 1 | sort | tr -d '\n')" = ABCDE ] || fail "$form: answers $letters"
    [ "$(tail -n 4 "$form")" = "Question: {question}
Choices:
{choices}
Answer:" ] || fail "$form: ends with $(tail -n 4 "$form")"
done
[ "$(grep -c . "$dir/letters")" -ge 8 ] || fail "fewer than 8 forms"
[ "$(sort "$dir/letters" | uniq | grep -c .)" -ge 8 ] || fail "the answers come in one order"

# The table follows from the answers, and the row that is chosen from the table: the rule of plan.md.
mkdir -p "$dir/real"
if [ -e $kept/forms-answers.csv.gz ]; then
    cp $kept/forms-answers.csv.gz "$dir/real"
    RESULTS=$dir sh tools/results/real/forms.sh --table || fail "forms.sh --table"
    cmp $kept/forms.csv "$dir/real/forms.csv" || fail "forms.csv is not what the answers give"
    sort -t , -k 5,5r -k 8,8nr $kept/forms.csv | awk -F , -v all="$(ls "$forms" | grep -c .)" '
        $1 == "form" { next }
        { rows++; chosen += $10 }
        $4 > 0.2 && $8 >= 40 && $8 <= 100 && $9 <= 0.02 {
            missing += $5 == ""
            if (!found++)
                right = $10
        }
        END { exit rows < all || missing || !found ? chosen != 0 : chosen != 1 || !right }' ||
        fail "forms.csv: another row is chosen than by the rule"
fi

# A table of one's own: too short, cut, at chance, and two with the same accuracy of always.
names=$(ls "$forms" | sed 's/[.]txt$//')
set -- $names
{
    echo form,item,policy,citer,read,tokens,cut
    for form; do
        never=100 always=150 tokens=50 cut=0
        case $form in
        "$1") tokens=39 always=190 ;;
        "$2") cut=5 always=190 ;;
        "$3") never=51 always=190 ;;
        "$4") always=160 ;;
        "$5") always=160 tokens=60 ;;
        esac
        awk -v form="$form" -v never=$never -v always=$always -v tokens=$tokens -v cut=$cut 'BEGIN {
            for (i = 0; i < 200; i++) {
                print form "," i ",never," (i < never) ",0," tokens "," (i < cut)
                print form "," i ",always," (i < always) ",1,70,0"
            }
        }'
    done
} >"$dir/answers"
chosen() { # PATTERN: print the row that is chosen without these answers
    grep -v "$1" "$dir/answers" >"$dir/real/forms-answers.csv"
    RESULTS=$dir sh tools/results/real/forms.sh --table || fail "forms.sh --table"
    grep ',1$' "$dir/real/forms.csv"
}
best=$5,200,0.5000,0.4314,0.8000,0.0000,1.0000,60.00,0.0000,1
[ "$(chosen none)" = "$best" ] || fail "$(cat "$dir/real/forms.csv")"
[ "$(chosen "^$1,.*always")" = "$best" ] || fail "it waits for a form that does not pass: $(cat "$dir/real/forms.csv")"
[ "$(chosen "^$4,.*always")$(chosen "^$1,")" = "" ] || fail "a form is chosen before all are there"
exit 0
