#!/bin/sh
# mizzle plot: which rows become which line, what options change, and what is refused.
set -u
mizzle=${MIZZLE:-build/mizzle}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

fail() {
    echo "t_plot: $*" >&2
    exit 1
}

# run STATUS ARGS...: run plot, which must end with this status; $tmp/out is the picture.
run() {
    want=$1
    shift
    ${RUN:-} "$mizzle" plot "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$?
    [ "$got" -eq "$want" ] || fail "plot $*: status $got, expected $want: $(cat "$tmp/err")"
}

# has COUNT TEXT: the picture has TEXT in so many lines.
has() {
    n=$(grep -cF -e "$2" "$tmp/out")
    [ "$n" -eq "$1" ] || fail "'$2' in $n lines, expected $1: $(cat "$tmp/out")"
}

# refuses STATUS TEXT ARGS...: an error with TEXT, in one line, and no picture.
refuses() {
    status=$1 text=$2
    shift 2
    run "$status" "$@"
    grep -qF -e "$text" "$tmp/err" || fail "plot $*: $(cat "$tmp/err"), expected $text"
    [ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "plot $*: more than a line"
    [ ! -s "$tmp/out" ] || fail "plot $*: a picture"
}

# The rows of two lines, not in order; a row without y; a quoted label and a quoted name.
cat >"$tmp/t.csv" <<END
policy,share,"right, %",low,high,kind
mlp,2,90,80,95,a
mlp,0,40,30,50,a
"said ""x"", so",0,40,30,50,a
"said ""x"", so",3,50,40,60,a
mlp,1,72,62,82,b
random,0,,,,b
END
lines="--x share --by policy --interval low,high"

# shellcheck disable=SC2086
run 0 $lines --y "right, %" --title "A <finding>" --note why "$tmp/t.csv"
cp "$tmp/out" "$tmp/first"
has 1 '<title>mlp: 0, 40</title>'
has 1 '<title>mlp: 1, 72</title>'
has 1 '<title>mlp: 2, 90</title>'
has 0 'random'
has 1 '>said &quot;x&quot;, so</text>'
has 2 'A &lt;finding&gt;'
has 1 '>why</text>'
has 1 '>right, %</text>'
has 2 'class="band"'
has 2 'class="line" d="M'
[ "$(grep -n 'mlp: ' "$tmp/out" | tail -n 1)" = "$(grep -n 'mlp: 2, 90' "$tmp/out")" ] ||
    fail "points are not in the order of x"
# shellcheck disable=SC2086
run 0 $lines --y "right, %" --title "A <finding>" --note why -o "$tmp/again.svg" "$tmp/t.csv"
cmp -s "$tmp/first" "$tmp/again.svg" || fail "a file and standard output differ"
${RUN:-} "$mizzle" plot - <"$tmp/t.csv" $lines --y "right, %" --title "A <finding>" --note why >"$tmp/out" ||
    fail "standard input"
cmp -s "$tmp/first" "$tmp/out" || fail "a file and standard input differ"

# shellcheck disable=SC2086
run 0 $lines --y "right, %" --dots --guide '40=alone' --guide '1e1=a=b' "$tmp/t.csv"
has 2 'class="dash"'
has 1 '>alone</text>'
has 1 '>a=b</text>'
has 5 'class="error"'
has 0 'class="line"'
run 0 --x share --y high "$tmp/t.csv" # one line, without a label
has 1 'class="line"'
has 1 '<title>high: 1, 82</title>'
run 0 --bars policy --y "right, %" --by kind --interval low,high "$tmp/t.csv"
has 5 'class="bar s' # one for each row that has a value
has 5 'class="error'
has 3 '>mlp</text>'
has 1 '>random</text>'
has 1 '>b</text>'
has 1 '>72</text>'
[ "$(grep -n '>random<' "$tmp/out" | cut -d: -f1)" -gt "$(grep -n '>72<' "$tmp/out" | cut -d: -f1)" ] ||
    fail "bars of a group are not in the order of the rows"
run 0 --bars policy --y low "$tmp/t.csv"
has 5 'class="bar s0"'

refuses 2 'expected a column nothing, found policy,share,right, %,low,high' \
    --x nothing --y low "$tmp/t.csv"
refuses 2 'expected a column x,' --x share --y low --by x "$tmp/t.csv"
for wrong in '' '--x share' '--y low' '--bars policy' '--x share --bars policy --y low'; do
    # shellcheck disable=SC2086
    refuses 2 'expected --y and either --x or --bars' $wrong "$tmp/t.csv"
done
for wrong in --dots '--guide 1=a'; do
    # shellcheck disable=SC2086
    refuses 2 '--bars: expected without' --bars policy --y low $wrong "$tmp/t.csv"
done
for wrong in low low,high,share; do
    refuses 2 '--interval: expected LOW,HIGH' --x share --y low --interval $wrong "$tmp/t.csv"
done
refuses 2 'expected a column highest' --x share --y low --interval low,highest "$tmp/t.csv"
for wrong in alone 40 x=alone inf=alone nan=alone =alone; do
    refuses 2 '--guide: expected Y=LABEL' --x share --y low --guide "$wrong" "$tmp/t.csv"
done
refuses 2 'expected one FILE.csv' --x share --y low
refuses 3 't.csv: line 2, policy: expected a number, found mlp' --x policy --y low "$tmp/t.csv"
refuses 3 "$tmp/none" --x share --y low "$tmp/none"
refuses 3 'none/t.svg' --x share --y low -o "$tmp/none/t.svg" "$tmp/t.csv"

printf 'a,b\n1,2\n\n3\n' >"$tmp/short.csv"
refuses 3 'short.csv: line 4: expected 2 fields, found 1' --x a --y b "$tmp/short.csv"
printf 'a,b\n1,2,3\n' >"$tmp/short.csv"
refuses 3 'short.csv: line 2: expected 2 fields, found 3' --x a --y b "$tmp/short.csv"
printf 'a,b\n"1,2\n' >"$tmp/open.csv"
refuses 3 'open.csv: line 2: expected a quotation mark' --x a --y b "$tmp/open.csv"
printf 'a,b\n1,"2\n' >"$tmp/open.csv"
refuses 3 'open.csv: line 2: expected a quotation mark' --x a --y b "$tmp/open.csv"
# A quotation mark inside a field is no special character, in one that is quoted, either.
printf 'a"b,"c,d,e"\n1,2\n' >"$tmp/marks.csv"
run 0 --x 'a"b' --y 'c,d,e' "$tmp/marks.csv"
printf 'x,"a"b"c,d"e"\n1,2,3\n' >"$tmp/marks.csv"
refuses 2 'expected a column y, found x,ab"c,d"e"' --x x --y y "$tmp/marks.csv"
printf 'a,b\n' >"$tmp/header.csv"
refuses 3 'found the header alone' --x a --y b "$tmp/header.csv"
: >"$tmp/empty.csv"
refuses 3 'found an empty file' --x a --y b "$tmp/empty.csv"
printf 'a,b\n1,\377\n' >"$tmp/bytes.csv"
refuses 3 'expected text in UTF-8' --x a --y b "$tmp/bytes.csv"
printf 'a,b\n1,nan\n' >"$tmp/nan.csv"
refuses 3 'expected a number, found nan' --x a --y b "$tmp/nan.csv"
printf 'a,b\n,2\n' >"$tmp/blank.csv"
refuses 2 'no point is left' --x a --y b "$tmp/blank.csv"
{ echo a,b,c && seq 600 | sed 's/.*/1,1,&/'; } >"$tmp/many.csv"
run 0 --x a --y b --by c "$tmp/many.csv"
has 1 '>600</text>'
printf 'a,b\r\n1,2\r\n2,3' >"$tmp/crlf.csv" # other line ends, and none at the end
run 0 --x a --y b "$tmp/crlf.csv"
has 1 '<title>b: 2, 3</title>'
exit 0
