#!/bin/sh
# tools/lab/paper.sh with the demo pair and two questions: its steps, page and claims, the same bytes
# after an interruption, a server as the large model, the split of a file of one's own, and what is
# refused.
case ${BUILD:-build/x-release} in *-release) ;; *) echo "SKIP: the commands of the script are tested in every build, it in one" && exit 77 ;; esac
. tests/support/demo_pair.sh
"${PYTHON:-/usr/bin/python3}" -c "import numpy, matplotlib" 2>/dev/null || skip "no numpy or matplotlib"
export MIZZLE TRAIN=
demo="weights/milli/edge-0.1.gguf weights/milli/cloud.gguf weights/milli/questions.jsonl"

# paper STATUS ARGS...: run the script, which must end with this status; what it prints is kept.
paper() {
    want=$1 status=0
    shift
    sh tools/lab/paper.sh "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
    [ $status -eq "$want" ] || fail "paper $*: status $status, expected $want"
}

# A dry run says what there is to do, and leaves nothing behind.
{
    paper 0 --dry-run --questions 2 $demo "$dir/out.d"
    for step in collect-1 train-1 table ways speed report; do shows "^$step  *[0-9.]* min  ready$"; done
    shows '^[0-9.]* minutes in all'
    [ ! -e "$dir/out.d" ] || fail "a dry run leaves a folder"
    paper 0 --questions 2 $demo "$dir/whole"
    shows '^paper: ways$'
}

# The page needs no network; each claim has a command, a figure and an interval.
page=$dir/whole/report.html claims=$dir/whole/claims.csv
kept=router/results/report
real=router/results/real
for file in "$page" $kept/report.html $real/report.html; do
    ! grep -qE 'https?:|src=|<link|<script|@import|url\([^#]' "$file" || fail "$file needs more than itself"
done
[ "$(cat $kept/* | wc -c)" -lt 300000 ] || fail "$kept is too large"
for made in $kept $real; do
    sed 1d $made/claims.csv | while IFS=, read -r claim paper _ figures; do
        grep -qF "<td>$claim</td><td>$paper</td><td>$(echo "$figures" | sed 's,\,,</td><td>,g')</td>" $made/report.html ||
            fail "$made: the page has another figure: $claim"
    done || exit 1
done
[ "$(grep -c '<svg ' "$page")" -eq 5 ] && [ "$(grep -c '</svg>' "$page")" -eq 5 ] || fail "not five pictures"
grep -q 'One pair is one size' "$page" || fail "no word of sizes"
grep -q '<td>0.70</td><td>14</td>' "$page" || fail "no printed Table 1"
for way in never always mlp mix combined context query entropy random; do
    grep -q "^<tr><td>$way</td>" "$page" || fail "no $way"
done
[ "$(head -n 1 "$claims")" = claim,paper,command,figure,low,high,holds ] || fail "$(head -n 1 "$claims")"
awk -F, 'NR > 1 && !/,,,,speed.csv$/ && (NF != 7 || $3 !~ /^mizzle / || $4 == "" || $5 == "" || $6 < $5 || $7 !~ /^(yes|no|open)$/) { print; bad = 1 }
    END { exit bad || NR != 15 }' "$claims" || fail "$(cat "$claims")"
grep -q '^the small model alone .*,open$' "$claims" || fail "two questions tell a share"

# Nothing of it is done again, but the page, with the same bytes.
{
    cp "$page" "$dir/first"
    paper 0 --questions 2 $demo "$dir/whole"
    [ "$(grep -c '^paper: ' "$dir/out")" -eq 2 ] || fail "again: $(cat "$dir/out")"
    same "$dir/first" "$page"
    paper 0 --dry-run --questions 2 $demo "$dir/whole"
    shows '^ways  *0.0 min  done$'
}

# Two do not write to one folder.
if command -v flock >/dev/null; then
    echo 123 >"$dir/whole/running"
    flock "$dir/whole/settings" sh tools/lab/paper.sh --questions 2 $demo "$dir/whole" 2>"$dir/err" &&
        fail "two in one folder"
    grep -q "OUT: another paper.sh writes to $dir/whole, as process 123" "$dir/err" || fail "$(cat "$dir/err")"
    rm "$dir/whole/running"
fi

# A command of the claims gives its figure.
sed -n 3p "$claims" >"$dir/claim"
command=$(cut -d , -f 3 "$dir/claim")
"$MIZZLE" ${command#mizzle } -q --json >"$dir/rows" || fail "$command"
routed() { # CLAIM ROWS: its figure is the share of mlp
    sed 's/.*"tokens":\([0-9]*\),"cloud":\([0-9]*\),.*/\1 \2/' "$2" | awk -v want="$(cut -d , -f 4 "$1")" '
        { tokens += $1; cloud += $2 } END { exit sprintf("%.4f", cloud / tokens) != want }'
}
routed "$dir/claim" "$dir/rows" || fail "another figure: $(cat "$dir/claim" "$dir/csv")"

# Interrupted among the ways, it ends what it has started, and goes on with the same command. Speed
# is measured again, and in one line.
cp -r "$dir/whole" "$dir/part"
(cd "$dir/part" && rm speed.csv ways.csv ways-*.jsonl thresholds.csv table.* claims.csv report.html 1/mlp)
sh tools/lab/paper.sh --questions 2 $demo "$dir/part" >"$dir/out" 2>"$dir/err" </dev/null &
script=$!
wait_for '[ "$(cat "$dir/part/ways-0.02.jsonl" 2>/dev/null | wc -l)" -ge 12 ]'
kill $script
wait $script
[ $? -eq 130 ] || fail "interrupted: another status"
[ ! -e "$dir/part/ways.csv" ] && [ ! -e "$dir/part/report.html" ] || fail "it had ended before"
paper 0 --questions 2 $demo "$dir/part"
[ "$(grep -c '^paper: ' "$dir/out")" -eq 4 ] || fail "not only the rest: $(cat "$dir/out")"
for file in report.html claims.csv; do
    sed "s,$dir/part,$dir/whole,g; /^<p>Of this machine alone:/d" "$dir/part/$file" >"$dir/moved"
    sed '/^<p>Of this machine alone:/d' "$dir/whole/$file" >"$dir/stayed"
    same "$dir/moved" "$dir/stayed"
done

# A server is known by what it serves.
start_cloud
paper 0 --questions 2 ${demo% * *} "$url" ${demo##* } "$dir/by-server"
stop_cloud
start_cloud --port "${url##*:}" -m weights/milli/edge-1.gguf
paper 2 --questions 2 ${demo% * *} "$url" ${demo##* } "$dir/by-server"
says 'other settings: expected CLOUD .*, found CLOUD '
stop_cloud

# Several trainings of each router: their means, and the commands of the claims name all.
paper 0 --questions 2 --repeats 2 $demo "$dir/twice"
[ -e "$dir/twice/1/mlp.2" ] && [ ! -e "$dir/twice/1/mlp" ] || fail "$(ls "$dir/twice/1")"
for router in mlp mix combined context; do
    [ "$(grep -c "\"policy\":\"[a-z]*=$router[.][12]\",\"share\":0.06,.*\"item\":0," "$dir/twice/ways-0.06.jsonl")" -eq 2 ] || fail "$router: not two trainings"
done
grep -q 'Each router is 2 trainings' "$dir/twice/report.html" || fail "no word of two trainings"
for words in '--policy mlp=.*/1/mix.1 --json (mean with .2 to .2),' '--as-paper --policy mlp=.*/1/mlp.1,'; do
    grep -q -e "$words" "$dir/twice/claims.csv" || fail "$(cat "$dir/twice/claims.csv")"
done
sed -n 3p "$dir/twice/claims.csv" >"$dir/claim"
command=$(cut -d , -f 3 "$dir/claim" | sed 's/ (mean .*//')
for k in 1 2; do "$MIZZLE" $(echo "${command#mizzle }" | sed "s/mlp[.]1 /mlp.$k /") -q --json || fail "$command"; done >"$dir/rows"
routed "$dir/claim" "$dir/rows" || fail "another figure: $(cat "$dir/claim" "$dir/rows")"

# A file of questions is split by concept; a step that fails ends the whole with its status.
for i in $(seq 1 40); do
    echo '{"answerKey": "B", "id": "id'"$i"'", "question": {"question_concept": "thing '$((i / 2))'", "choices": [{"label": "A", "text": "pond"}, {"label": "B", "text": "school"}], "stem": "Where is thing '"$i"'?"}}'
done >"$dir/one.jsonl"
start_cloud -c 16
paper 4 --questions 3 weights/milli/edge-0.1.gguf "$url" "$dir/one.jsonl" "$dir/split"
says 'paper: collect-1: status 4; the same command goes on'
split=$dir/split/split
[ "$(cat "$split/measured.jsonl" | wc -l)" -eq 3 ] && [ -s "$split/learned.jsonl" ] && [ -s "$split/calibrated.jsonl" ] ||
    fail "$(wc -l "$split"/*)"
for file in measured learned calibrated; do
    grep -o '"thing [0-9]*"' "$split/$file.jsonl" | sort -u
done | sort | uniq -d >"$dir/shared"
[ ! -s "$dir/shared" ] || fail "shared concepts: $(cat "$dir/shared")"

# What cannot be is one line, before anything is done.
refuses_paper() { # PATTERN ARGS...
    pattern=$1
    shift
    paper 2 "$@"
    says "$pattern"
    one_line
}
edge=weights/milli/edge-1.gguf cloud=weights/milli/cloud.gguf data=weights/milli/questions.jsonl
refuses_paper 'expected EDGE CLOUD DATA OUT, found 3' $edge $cloud $data
refuses_paper 'found --fast' --fast $edge $cloud $data "$dir/new"
refuses_paper "repeats: expected 1 to 64, found '65'" --repeats 65 $edge $cloud $data "$dir/new"
refuses_paper "expected 1 to 99999, found '0'" --questions 0 $edge $cloud $data "$dir/new"
refuses_paper 'EDGE: .*none.gguf' none.gguf $cloud $data "$dir/new"
paper 4 $edge http://127.0.0.1:1 $data "$dir/new"
says 'cannot connect'
one_line
refuses_paper 'CLOUD: .*none.gguf' $edge none.gguf $data "$dir/new"
refuses_paper 'DATA: cannot read none' $edge $cloud none "$dir/new"
refuses_paper 'DATA: expected lines of' $edge $cloud README.md "$dir/new"
refuses_paper 'found 41' --questions 41 $edge $cloud "$dir/one.jsonl" "$dir/new"
refuses_paper 'expected an empty folder' $edge $cloud $data tools
refuses_paper "other settings: expected EDGE .*, found EDGE " --questions 2 $edge $cloud $data "$dir/whole"
refuses_paper "expected --questions 2, found --questions 3" --questions 3 weights/milli/edge-0.1.gguf $cloud $data "$dir/whole"
paper 0 --dry-run --questions 2 $cloud $edge $data "$dir/new"
says 'EDGE has [0-9]* parameters, CLOUD [0-9]*: are they swapped'
mkdir "$dir/emptied" && : >"$dir/emptied/settings"
refuses_paper "other settings: expected , found mizzle" --questions 2 $edge $cloud $data "$dir/emptied"
[ ! -e "$dir/new" ] || fail "a folder of what was refused"
