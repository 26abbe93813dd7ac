#!/bin/sh
# tools/results.sh with small experiments: the order of rows, what --check notices, what is kept of
# absent data, errors and interrupts. And the experiments of tools/results with made-up rows.
. tests/support/shell.sh
"${PYTHON:-/usr/bin/python3}" -c 'import numpy, matplotlib' 2>/dev/null || skip "no matplotlib"
mkdir "$dir/experiments"
export MIZZLE EXPERIMENTS="$dir/experiments" RESULTS="$dir/results" TMP_DATA="$dir/data"

# expect STATUS ARGS...: run the script, which must end with this status; $dir/out is what it prints.
expect() {
    want=$1 status=0
    shift
    sh tools/results.sh "$@" >"$dir/out" 2>&1 || status=$?
    [ "$status" -eq "$want" ] || fail "results $*: status $status, expected $want"
}

says() { grep -qF -e "$1" "$dir/out" || fail "not printed: $1"; }

cat >"$dir/experiments/squares.sh" <<'END'
HEADER=kind,x,y
squares_rows() {
    [ "$1" -ne 2 ] || sleep 0.1 # the lanes do not finish in the order of the table
    echo "$2,$1,$(($1 * $1))"
}
squares_data() {
    [ -e "$TMP_DATA" ] || skip kind=data "no data"
    echo "data,1,$(cat "$TMP_DATA")"
    echo "data,2,9"
}
jobs() {
    for i in 1 2 3 4 5 6; do job squares_rows $i plain; done
    job squares_data
    for i in 7 8 9 10 11; do job squares_rows $i "two words"; done
}
draws() {
    shape squares kind,x,y '{ print of("kind"), of("x"), of("y") }' |
        plot squares.svg --x x --y y --by kind --title "11 times 11 is $(value squares y x=11)"
}
END
cat >"$dir/experiments/timed.sh" <<'END'
HEADER=a
MEASURED=a,date,processor
jobs() { job echo 1; }
measures() {
    job timed_row 1
    job timed_row 2
}
timed_row() {
    [ "$1" -ne 2 ] || [ -e "$TMP_DATA" ] || skip a=2 "no data"
    echo "$1,$(today),$(processor)"
}
END

# Made: rows are in order, whatever the lanes do; the table is drawn, and the title has its figure.
echo 5 >"$dir/data"
expect 0
says '15 jobs done, 0 failed, 0 skipped'
{
    echo kind,x,y
    for i in 1 2 3 4 5 6; do echo "plain,$i,$((i * i))"; done
    printf 'data,1,5\ndata,2,9\n'
    for i in 7 8 9 10 11; do echo "two words,$i,$((i * i))"; done
} >"$dir/want.csv"
same "$dir/want.csv" "$dir/results/squares.csv"
grep -q '11 times 11 is 121' "$dir/results/drawn/squares.svg" || fail "no picture"
grep -q '^1,20[0-9-]*,[^,]' "$dir/results/timed.measured.csv" || fail "no measured row"

# Checked: jobs 1 and 11 of the first, and nothing that was measured.
echo changed >>"$dir/results/timed.measured.csv"
notes '3 jobs done' --check
says 'squares 11, squares_rows 10 two words'

# What an experiment does not set, the environment does not set either.
export CHECKED=7 MEASURED=kind
notes '2 jobs done' --check squares
expect 0 squares
unset CHECKED MEASURED

# Rows of absent data stay when the table is made, and are left out of the check; both aloud.
rm "$dir/data"
notes 'SKIP: no data' squares
same "$dir/want.csv" "$dir/results/squares.csv"
sed 's/,20[0-9-]*,/,2001-01-01,/' "$dir/results/timed.measured.csv" >"$dir/old"
cp "$dir/old" "$dir/results/timed.measured.csv"
expect 0 timed
grep '^2,' "$dir/old" >"$dir/kept"
tail -n 1 "$dir/results/timed.measured.csv" | cmp - "$dir/kept" || fail "a measured row is lost"
sed 's/^a,date/b,date/' "$dir/old" >"$dir/results/timed.measured.csv"
fails 1 'other columns' timed
sed '/^2,/s/$/,5/' "$dir/old" >"$dir/results/timed.measured.csv"
fails 1 '4 fields, expected 3' timed
sed 's/^HEADER=.*/& CHECKED="7 12"/' "$dir/experiments/squares.sh" >"$dir/experiments/chosen.sh"
sed 's/squares/chosen/g' "$dir/experiments/chosen.sh" >"$dir/experiments/new" &&
    mv "$dir/experiments/new" "$dir/experiments/chosen.sh"
expect 0 chosen # a first table without the data has none of its rows
[ "$(wc -l <"$dir/results/chosen.csv")" -eq 12 ] || fail "$(cat "$dir/results/chosen.csv")"
notes '1 jobs done, 0 failed, 1 skipped' --check chosen
sed 's/CHECKED="7 12"/CHECKED=13/' "$dir/experiments/chosen.sh" >"$dir/experiments/none.sh"
sed 's/chosen/none/g' "$dir/results/chosen.csv" >"$dir/results/none.csv"
fails 1 'none: none of its 12 jobs is checked' --check chosen none

# The rows of a job stand together and in order, those of the first job at the beginning.
echo 5 >"$dir/data"
expect 0 chosen
expect 0 --check chosen
cp "$dir/results/chosen.csv" "$dir/chosen.csv"
for edit in '/^data,1/{h;d;};/^data,2/G' 's/^data,1.*/&\
data,1,6/' '/^data,2/d'; do
    sed "$edit" "$dir/chosen.csv" >"$dir/results/chosen.csv"
    fails 1 "$dir/results/chosen.csv" --check chosen
done
rm "$dir/data" "$dir/experiments/chosen.sh" "$dir/experiments/none.sh"
sed '1s/$/\
old,1,1/' "$dir/want.csv" >"$dir/results/squares.csv"
fails 1 'others before' --check squares
cp "$dir/want.csv" "$dir/results/squares.csv"

# One byte of a row, the header or a picture is enough.
cp "$dir/results/squares.csv" "$dir/results/drawn/squares.svg" "$dir"
sed 's/^plain,1,1$/plain,1,2/' "$dir/squares.csv" >"$dir/results/squares.csv"
fails 1 "not in $dir/results/squares.csv: plain,1,1" --check squares
sed 's/kind,x,y/kind,x,z/' "$dir/squares.csv" >"$dir/results/squares.csv"
fails 1 'has not the header kind,x,y' --check squares
cp "$dir/squares.csv" "$dir/results"
sed 's/^two words,11,121,/two words,11,122,/' "$dir/squares.svg" >"$dir/results/drawn/squares.svg"
fails 1 'squares: compare FAILED' --check squares
rm "$dir/results/drawn/squares.svg"
expect 1 --check squares
cp "$dir/squares.svg" "$dir/results/drawn"
expect 0 --check squares

# Each picture of the experiment must be drawn again, and each that is drawn be there.
cp "$dir/squares.svg" "$dir/results/drawn/squaresome.svg"
expect 0 --check squares
cp "$dir/squares.svg" "$dir/results/drawn/squares-old.svg"
fails 1 'squares-old.svg: not drawn' --check squares
rm "$dir/results/drawn/squares-old.svg"
cat >"$dir/experiments/drawn.sh" <<'END'
HEADER=x,y
jobs() { job echo 1,2; }
draws() {
    plot drawn-1.svg --x x --y y <"$results/drawn.csv"
    ! [ -e "$TMP_DATA" ] || plot drawn-2.svg --x x --y z <"$results/drawn.csv" || :
    plot drawn-3.svg --x x --y y <"$results/drawn.csv"
}
END
expect 0 drawn
expect 0 --check drawn
echo >"$dir/data"
expect 1 drawn
expect 1 --check drawn
sed 's/plot drawn-2.* || :/false/' "$dir/experiments/drawn.sh" >"$dir/new"
cp "$dir/new" "$dir/experiments/drawn.sh"
fails 1 'drawn: compare FAILED' --check drawn
rm "$dir/data" "$dir/experiments/drawn.sh"

# A job that fails, prints nothing or too little, or a figure that is not there: no new table.
for bad in 'false; echo 1,1,1' ':' 'echo 1,1' 'value squares y x=0; echo 1,1,1' \
    'mizzle info "$TMP_DATA/none"; echo 1,1,1' 'mizzle info --json | columns a,b,c'; do
    printf 'HEADER=a,b,c\nbad() { %s; }\njobs() { job bad; job echo 1,2,3; }\n' "$bad" \
        >"$dir/experiments/bad.sh"
    fails 1 '1 jobs done, 1 failed' bad
    [ ! -e "$dir/results/bad.csv" ] || fail "a table in spite of: $bad"
done
fails 2 'no ' nothing
cat >"$dir/experiments/titled.sh" <<'END'
HEADER=x,y
jobs() { job echo 1,2; }
draws() { plot titled.svg --x x --y y --title "none: $(value titled y x=5)" <"$results/titled.csv"; }
END
fails 1 '0 rows, or no column y: x=5' titled
sed -i.old 's/(value titled y x=5)/(figure %.1f "100 *")/' "$dir/experiments/titled.sh"
expect 1 titled

# A column that a picture's table does not have.
cat >"$dir/experiments/shaped.sh" <<'END'
HEADER=x,y
jobs() { job echo 1,0.25; }
draws() { shape shaped a,b '{ print of("x"), percent("'"${SHAPED:-z}"'") }' | plot shaped.svg --x a --y b; }
END
SHAPED=y expect 0 shaped
grep -q '^,1,25,,' "$dir/results/drawn/shaped.svg" || fail "no share in percent"
fails 1 'no column z' shaped

# A job whose folder cannot be made is not one that another lane has taken; no table is half made.
cat >"$dir/experiments/full.sh" <<'END'
HEADER=x CHECKED='1 2'
jobs() { job full_row 1; job full_row 2; }
full_row() { echo "$1"; }
END
expect 0 full
cp "$dir/results/full.csv" "$dir"
echo 'full_row() { : >"$dir/full.2"; echo "$1"; }' >>"$dir/experiments/full.sh"
for mode in '' --check; do
    JOBS=1 expect 1 $mode full
    says 'cannot make'
    same "$dir/full.csv" "$dir/results/full.csv"
done
printf 'HEADER=x\njobs() { job skip x=1 "no data"; }\n' >"$dir/experiments/full.sh"
rm "$dir/results/full.csv"
fails 1 'full: no rows' full squares
[ -z "$(find "$dir/results" -name 'full*')" ] || fail "a table without rows"
mkdir "$dir/with blank"
TMPDIR="$dir/with blank" expect 2 squares
says 'expected neither blanks nor commas'

# Interrupted: what the lanes have started ends, too, and the working folder goes.
mkdir "$dir/jobs"
cat >"$dir/experiments/slow.sh" <<'END'
HEADER=x
jobs() { job slow_row; job slow_row; }
slow_row() {
    sh -c 'sleep 60 & echo $$ $! >"$0.new" && mv "$0.new" "$0" && wait' "$here/process"
    echo 1
}
END
TMPDIR=$dir/jobs sh tools/results.sh slow >"$dir/out" 2>&1 &
lanes=$!
wait_for '[ "$(cat "$dir"/jobs/*/*/process 2>/dev/null | wc -l)" -ge 2 ]'
processes=$(cat "$dir"/jobs/*/*/process)
kill $lanes
wait $lanes
[ $? -eq 130 ] || fail "interrupted: another status"
for process in $processes; do ! kill -0 "$process" 2>/dev/null || fail "$process goes on"; done
[ -z "$(ls "$dir/jobs")" ] || fail "left: $(ls "$dir/jobs")"
rm "$dir/experiments/slow.sh"

# real NAME LINE...: make an experiment of tools/results with other jobs.
real() {
    real_name=$1
    shift
    printf '%s\n' ". tools/results/$real_name.sh" 'MEASURED=' "$@" >"$dir/experiments/$real_name.sh"
}

# Rows of a program that does not end well do not count.
dies='mizzle() { "$MIZZLE" "$@"; return 137; }'
real memory "$dies" 'jobs() { job memory_rows qwen2.5-0.5b; }'
fails 1 '(status 137)' memory

# Machines: the hash of all answers decides, too, and one of no answers is none.
machines() { # ROW...
    printf '%s\n' "$@" >"$dir/data"
    real machines 'jobs() { job cat "$TMP_DATA"; }'
    expect 0 machines
}
machines a,1,m,1,100,f0,e0,1,1000 b,1,m,1,100,f0,e0,1,1000 c,1,m,1,24,e0,e0,1,1000
drawn() { # TITLE
    grep -q "<dc:title>$1[;<]" "$dir/results/drawn/machines.svg" || fail "machines: not drawn: $1"
}
drawn '3 kernel sets give the same answers'
machines a,1,m,1,100,f0,e0,1,1000 b,1,m,1,100,f1,e0,1,1000 c,1,m,1,24,e0,e0,1,1000
drawn '3 kernel sets give different answers'
machines a,1,m,1,100,f0,e0,1,1000 b,1,m,1,24,e1,e1,1,1000
drawn '2 kernel sets give different answers'
real machines 'jobs() { job machines_row scalar 100 1; }' \
    'machines_ask() { : >"$here/answers"; echo 1; }'
fails 1 'expected 100 answers, found 0' machines

# Real: every row is computed from the answers that are kept, and one that is changed is noticed.
real real
mkdir -p "$dir/results/real/chat"
sed -n 's/^HEADER=//p' tools/results/real.sh >"$dir/results/real/figures.csv"
fails 1 'SKIP: no answers' real # nothing is done, but nothing fails
fails 1 '0 jobs done, 0 failed, 1 skipped' --check real
{
    echo task,form,pair,id,group,policy,share,run,right_citer,right_answer,tokens,cloud,calls,read,hash,settings
    for row in never,,1,0,1,8,0 mlp,0.05,1,1,1,9,1 mlp,0.05,2,1,0,9,2 context,0.05,1,1,0,9,1 always,,1,1,1,10,10; do
        echo "csqa,chat,edge+cloud,a,00000000000000aa,$row,1,7,00000000000000ff,0000000000000001"
        echo "csqa,chat,edge+cloud,b,00000000000000bb,$row,1,7,00000000000000ff,0000000000000001"
    done
} >"$dir/results/real/chat/a.csv"
expect 0 real
grep -q '^csqa,chat,edge+cloud,mlp,0.05,citer,2,2,1.000000,.*,0.166667,9.000000,1.500000,1.000000,7.000000,1.000000,' \
    "$dir/results/real/figures.csv" || fail "$(cat "$dir/results/real/figures.csv")"
grep -q ',mlp,0.05,answer,2,2,0.500000,.*,context,0.111111,0.500000,' "$dir/results/real/figures.csv" ||
    fail "no difference: $(cat "$dir/results/real/figures.csv")"
grep -q '^mlp,16.6667,100,' "$dir/results/drawn/real-csqa-chat.svg" &&
    grep -q '^always,,' "$dir/results/drawn/real-csqa-chat.svg" || fail "no picture of the answers"
expect 0 --check real

# Packed answers and a packed table are the same, packing again changes nothing, and the log keeps a
# command a step with the range of its questions.
cp "$dir/results/real/chat/a.csv" "$dir/a.csv"
gzip -n "$dir/results/real/figures.csv"
{
    echo date,step,sum,version,processor,seconds,command
    echo '2026-11-29,dev-chat-a,1,mizzle 1,x,7,"mizzle eval -q -m x/small.gguf --first 64:64 --jsonl a/64-64.jsonl --policy mlp=/x/y.safetensors;mizzle eval --first 128:20 --policy z"'
} >"$dir/results/real/log.csv"
expect 0 pack
[ "$(tail -n 1 "$dir/results/real/log.csv")" = '2026-11-29,dev-chat-a,1,mizzle 1,x,7,"eval --first 64:84 --policy mlp=y"' ] ||
    fail "$(cat "$dir/results/real/log.csv")"
[ ! -e "$dir/results/real/chat/a.csv" ] || fail "not packed"
expect 0 --check real
cp "$dir/results/real/chat/answers.csv.gz" "$dir/pack.gz"
cp "$dir/results/real/log.csv" "$dir/log.csv"
head -n 2 "$dir/a.csv" >"$dir/results/real/chat/a.csv" # a copy of what is packed
expect 0 pack
cmp "$dir/results/real/chat/answers.csv.gz" "$dir/pack.gz" && cmp "$dir/results/real/log.csv" "$dir/log.csv" || fail "packed twice"
(. tools/results/lib.sh && unpacked "$dir/results/real/chat/a.csv") | sort | cmp - "$(sort "$dir/a.csv" >"$dir/sorted" && echo "$dir/sorted")" ||
    fail "the pack has other answers"
cp "$dir/a.csv" "$dir/results/real/chat/a.csv" && head -c 99 "$dir/pack.gz" >"$dir/results/real/chat/answers.csv.gz"
fails 1 'unexpected end of file' pack # beside a damaged pack nothing is made, and nothing goes
cmp "$dir/a.csv" "$dir/results/real/chat/a.csv" && head -c 99 "$dir/pack.gz" | cmp - "$dir/results/real/chat/answers.csv.gz" || fail "damaged"
sed 's/,mlp,0.05,2,1,/,mlp,0.05,2,0,/' "$dir/a.csv" >"$dir/results/real/chat/a.csv"
rm "$dir/results/real/chat/answers.csv.gz"
fails 1 'not in ' --check real
rm -r "$dir/results/real"

# Goals: a figure is rounded after it was held against the goal; the other tables must be there.
cat >"$dir/data" <<'END'
never,,1,1000,0.0,0.400000,0.4,0.4,,,,,,,,,,,,,,
mlp,0.060000,1,1000,0.06,0.900000,0.9,0.9,0.4,0.6,1.25,1.0,1.5,0.899600,0.85,0.95,,,,,,
random,0.060000,1,1000,0.06,0.410000,0.4,0.4,0.0,0.02,0.025,0.0,0.05,0.02,0.0,0.04,,,,,,
entropy,0.07,1,400,0.07,0.8,0.8,0.8,0.3,0.5,1.0,0.75,1.25,0.7,0.6,0.8,0.5,0.4,0.6,0.5,0.4,0.6
END
real reach 'jobs() { job cat "$TMP_DATA"; }'
fails 1 'labels.csv, too' reach
[ ! -e "$dir/results/drawn/goals.csv" ] || fail "goals without labels.csv"
{
    echo job,router,difference,difference_low,difference_high
    for row in labels,divergent labels,citer rounds,second heads,citer control,shuffled; do
        echo "$row,0.010000,0.000400,0.020000"
    done
} >"$dir/results/labels.csv"
printf 'seed,threshold,broken\n7,,0\n' >"$dir/results/risk.csv"
expect 0 reach
cat >"$dir/want.csv" <<'END'
goal,figure,low,high,wanted,reached
relative gain over the edge alone at 6 % routed,1.250,1.000,1.500,at least 0.6,yes
gap closed at 6 % routed,0.900,0.850,0.950,at least 0.9,no
gain at 6 % routed less 3 times that of random,0.470,0.340,0.600,at least 0,yes
mean PGR to 7 % over the best of the others (entropy),2.000,1.667,2.500,at least 1.25; interval above 1,yes
labels divergent over match at 5 %,0.010,0.000,0.020,interval above 0,yes
labels citer over match at 5 %,0.010,0.000,0.020,interval above 0,yes
round 2 over round 1,0.010,0.000,0.020,reported,yes
head citer over head mlp,0.010,0.000,0.020,reported,yes
shuffled labels over random,0.010,0.000,0.020,interval not above 0,no
risk bound 2 % at 95 %: broken in 1 seeds,0,,,at most 3 of the 0 promised,no
END
cmp "$dir/want.csv" "$dir/results/drawn/goals.csv" || fail "$(cat "$dir/results/drawn/goals.csv")"

# Columns by name, means, constants, and figures.
(
    results=$dir/results
    . tools/results/lib.sh
    printf 'a,b,c\n1,2,3\n' | columns c,kind=x,a >"$dir/out" && says 3,x,1
    ! printf 'a,b\n1,2\n' | columns a,d 2>"$dir/out" || fail "no column d"
    says 'no column d'
    printf 'way,case,x,y\na,1,2,5\na,2,3,6\na,1,4,8\n' | means >"$dir/out"
    says a,3,6.5,5,8
    says a,3,6,6,6
    printf 'name,value,unit,source\nrate,2.5,1/s,somewhere\n' >"$results/constants.csv"
    [ "$(constant rate)" = 2.5 ] || fail "constant"
    [ "$(figure %.1f "100 * 0.25")" = 25.0 ] || fail figure
) || exit 1
