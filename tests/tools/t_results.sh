#!/bin/sh
# tools/results.sh with small experiments: the order of rows, what --check notices, what is kept of
# absent data, and errors.
set -u
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/experiments"
export EXPERIMENTS="$tmp/experiments" RESULTS="$tmp/results" MIZZLE="${MIZZLE:-build/mizzle}" TMP_DATA="$tmp/data"

fail() {
    echo "t_results: $*" >&2
    exit 1
}

# run STATUS ARGS...: run the script, which must end with this status; $tmp/out is what it prints.
run() {
    want=$1
    shift
    sh tools/results.sh "$@" >"$tmp/out" 2>&1
    got=$?
    [ "$got" -eq "$want" ] || fail "results $*: status $got, expected $want: $(cat "$tmp/out")"
}

says() { grep -qF -e "$1" "$tmp/out" || fail "not printed: $1: $(cat "$tmp/out")"; }

cat >"$tmp/experiments/squares.sh" <<'END'
HEADER=kind,x,y
squares_rows() {
    [ "$1" -ne 2 ] || sleep 0.1 # the lanes do not finish in the order of the table
    echo "$2,$1,$(($1 * $1))"
}
squares_data() {
    [ -e "$TMP_DATA" ] || skip data, "no data"
    echo "data,1,$(cat "$TMP_DATA")"
    echo "data,2,9"
}
jobs() {
    for i in 1 2 3 4 5 6; do job squares_rows $i plain; done
    job squares_data
    for i in 7 8 9 10 11; do job squares_rows $i "two words"; done
}
draws() {
    plot squares.svg squares.csv --x x --y y --by kind \
        --title "11 times 11 is $(value squares y x=11)"
}
END
cat >"$tmp/experiments/timed.sh" <<'END'
HEADER=a
MEASURED=a,date,processor
jobs() { job echo 1; }
measures() { job timed_row; }
timed_row() { echo "1,$(today),$(processor)"; }
draws_measured() { plot timed.measured.svg timed.measured.csv --x a --y a; }
END

# Made: rows are in order, whatever the lanes do; the table is drawn, and the title has its figure.
echo 5 >"$tmp/data"
run 0
says '14 jobs done, 0 failed, 0 skipped'
{
    echo kind,x,y
    for i in 1 2 3 4 5 6; do echo "plain,$i,$((i * i))"; done
    printf 'data,1,5\ndata,2,9\n'
    for i in 7 8 9 10 11; do echo "two words,$i,$((i * i))"; done
} >"$tmp/want.csv"
cmp "$tmp/want.csv" "$tmp/results/squares.csv" || fail "another table"
grep -q '11 times 11 is 121' "$tmp/results/squares.svg" || fail "no picture"
grep -q '^1,20[0-9-]*,[^,]' "$tmp/results/timed.measured.csv" || fail "no measured row"
[ -e "$tmp/results/timed.measured.svg" ] || fail "no picture of measured rows"

# Checked: jobs 1 and 11 of the first, and nothing that was measured.
echo changed >>"$tmp/results/timed.measured.csv"
run 0 --check
says '3 jobs done'
says 'squares 11, squares_rows 10 two words'

# Rows of absent data stay when the table is made, and are left out of the check; both aloud.
rm "$tmp/data"
run 0 squares
says 'SKIP: no data'
cmp "$tmp/want.csv" "$tmp/results/squares.csv" || fail "absent data changed the table"
sed 's/^HEADER=.*/& CHECKED="7 12"/' "$tmp/experiments/squares.sh" >"$tmp/experiments/chosen.sh"
sed 's/squares/chosen/g' "$tmp/experiments/chosen.sh" >"$tmp/experiments/new" &&
    mv "$tmp/experiments/new" "$tmp/experiments/chosen.sh"
run 0 chosen # a first table without the data has none of its rows
[ "$(wc -l <"$tmp/results/chosen.csv")" -eq 12 ] || fail "$(cat "$tmp/results/chosen.csv")"
run 0 --check chosen
says '1 jobs done, 0 failed, 1 skipped'

# One byte of a row, the header or a picture is enough.
cp "$tmp/results/squares.csv" "$tmp/results/squares.svg" "$tmp"
sed 's/^plain,1,1$/plain,1,2/' "$tmp/squares.csv" >"$tmp/results/squares.csv"
run 1 --check squares
says "not in $tmp/results/squares.csv: plain,1,1"
sed 's/kind,x,y/kind,x,z/' "$tmp/squares.csv" >"$tmp/results/squares.csv"
run 1 --check squares
says 'has not the header kind,x,y'
cp "$tmp/squares.csv" "$tmp/results"
sed 's/121/122/' "$tmp/squares.svg" >"$tmp/results/squares.svg"
run 1 --check squares
says 'squares: compare FAILED'
rm "$tmp/results/squares.svg"
run 1 --check squares
cp "$tmp/squares.svg" "$tmp/results"
run 0 --check squares

# A job that fails, prints nothing or too little, or a figure that is not there: no new table.
# shellcheck disable=SC2016
for bad in 'false; echo 1,1,1' ':' 'echo 1,1' 'value squares y x=0; echo 1,1,1' \
    'mizzle info "$TMP_DATA/none"; echo 1,1,1' 'mizzle info --json | columns a,b,c'; do
    printf 'HEADER=a,b,c\nbad() { %s; }\njobs() { job bad; job echo 1,2,3; }\n' "$bad" \
        >"$tmp/experiments/bad.sh"
    run 1 bad
    says '1 jobs done, 1 failed'
    [ ! -e "$tmp/results/bad.csv" ] || fail "a table in spite of: $bad"
done
run 2 nothing
says 'no '
cat >"$tmp/experiments/titled.sh" <<'END'
HEADER=x,y
jobs() { job echo 1,2; }
draws() { plot titled.svg titled.csv --x x --y y --title "none: $(value titled y x=5)"; }
END
run 1 titled
says '0 rows, or no column y: x=5'
sed -i.old 's/(value titled y x=5)/(figure %.1f "100 *")/' "$tmp/experiments/titled.sh"
run 1 titled
# Columns by name, constants, and figures.
(
    results=$tmp/results dir=$tmp
    . tools/results/lib.sh
    printf 'a,b,c\n1,2,3\n' | columns c,kind=x,a >"$tmp/out" && says 3,x,1
    ! printf 'a,b\n1,2\n' | columns a,d 2>"$tmp/out" || fail "no column d"
    says 'no column d'
    printf 'name,value,unit,source\nrate,2.5,1/s,somewhere\n' >"$results/constants.csv"
    [ "$(constant rate)" = 2.5 ] || fail "constant"
    [ "$(figure %.1f "100 * 0.25")" = 25.0 ] || fail figure
) || exit 1
exit 0
