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

# The rows of two lines, not in order; a row without y; a quoted label.
cat >"$tmp/t.csv" <<END
policy,kind,share,right,low,high
mlp,a,0.02,0.9,0.8,0.95
mlp,a,0,0.4,0.3,0.5
"said ""x"", so",a,0,0.4,0.3,0.5
"said ""x"", so",a,0.03,0.5,0.4,0.6
mlp,a,0.01,0.7,0.6,0.8
mlp,b,0.01,0.1,0.05,0.2
random,a,0,,,
END
lines="--x share --y right --by policy --percent share,right --where kind=a"

# shellcheck disable=SC2086
run 0 $lines --band low,high --title "A <finding>" --note why "$tmp/t.csv"
cp "$tmp/out" "$tmp/first"
has 1 '<title>mlp: 0, 40</title>'
has 1 '<title>mlp: 1, 70</title>'
has 1 '<title>mlp: 2, 90</title>'
has 0 'mlp: 1, 10<'
has 1 '>said &quot;x&quot;, so</text>'
has 2 'A &lt;finding&gt;'
has 1 '>right, %</text>'
has 2 'class="band"'
[ "$(grep -n 'mlp: ' "$tmp/out" | tail -n 1)" = "$(grep -n 'mlp: 2, 90' "$tmp/out")" ] ||
    fail "points are not in the order of x"
# shellcheck disable=SC2086
run 0 $lines --band low,high --title "A <finding>" --note why -o "$tmp/again.svg" "$tmp/t.csv"
cmp -s "$tmp/first" "$tmp/again.svg" || fail "a file and standard output differ"

# shellcheck disable=SC2086
run 0 $lines --guide 'alone=40' --guide 'a=b=0,100' "$tmp/t.csv"
has 2 'class="dash"'
has 1 '>alone</text>'
has 1 '>a=b</text>'
# shellcheck disable=SC2086
run 0 $lines --where policy=mlp,random --x-range 0.5,8 "$tmp/t.csv"
has 0 'mlp: 0,'
has 1 'mlp: 1, 70'
has 0 'said'
printf 'x,y\n0.07,1\n0.08,2\n' >"$tmp/ulp.csv"
run 0 --x x --y y --percent x --x-range 0,7 "$tmp/ulp.csv" # 100 times 0.07 is more than 7
has 1 '<title>y: 7, 1</title>'
has 0 '<title>y: 8, 2</title>'
run 0 --x share --y right "$tmp/t.csv" # one line, without a label
has 1 'class="line"'
has 1 '<title>right: 0.01, 0.7</title>'
run 0 --x share --y right --by policy,kind --log-x "$tmp/t.csv"
has 1 '>mlp, b</text>'
has 0 ': 0, '
${RUN:-} "$mizzle" plot --x share --y right - <"$tmp/t.csv" >"$tmp/out" || fail "standard input"
has 1 'class="line"'
run 0 --bars low,high --by policy,kind --x-label ms --where policy=mlp "$tmp/t.csv"
has 4 ' ms</text>'
has 1 '>1.75 ms</text>'
has 1 '>mlp, b</text>'
has 1 '>high</text>'
run 0 --bars low --by policy "$tmp/t.csv"
has 7 'class="fill"' # one for each row, and no key
printf 'a,b\nx,0.474\n' >"$tmp/share.csv"
run 0 --bars b --by a --percent b --x-label % "$tmp/share.csv"
has 1 '>47.4 %<'

refuses 2 'expected a column nothing, found policy,kind,share,right,low,high' \
    --x nothing --y right "$tmp/t.csv"
refuses 2 'expected a column shar,' --x share --y right --percent shar "$tmp/t.csv"
refuses 2 'either --x and --y or --bars' "$tmp/t.csv"
refuses 2 'either --x and --y or --bars' --x share "$tmp/t.csv"
refuses 2 'either --x and --y or --bars' --x share --y right --bars low "$tmp/t.csv"
refuses 2 'no row of' --x share --y right --where policy=nobody "$tmp/t.csv"
refuses 2 'expected COLUMN=VALUE' --x share --y right --where policy "$tmp/t.csv"
refuses 2 'no point is left' --x share --y right --x-range 5,6 "$tmp/t.csv"
refuses 2 'expected LOW < HIGH' --x share --y right --x-range 6,5 "$tmp/t.csv"
refuses 2 'both above 0' --x share --y right --log-y --y-range 0,5 "$tmp/t.csv"
refuses 2 'expected LOW,HIGH' --x share --y right --y-range 5 "$tmp/t.csv"
for range in nan,1 0,inf -inf,1 1,-nan 1e999,2; do
    refuses 2 "--x-range: expected LOW,HIGH, finite numbers, found $range" \
        --x share --y right --x-range "$range" "$tmp/t.csv"
    refuses 2 'y-range: expected LOW,HIGH, finite' --x share --y right --y-range "$range" "$tmp/t.csv"
done
refuses 2 'LABEL=LEFT,RIGHT, finite' --x share --y right --guide 'a=inf' "$tmp/t.csv"
refuses 2 'expected LOW,HIGH' --x share --y right --band low "$tmp/t.csv"
refuses 2 'at most 2 columns' --x share --y right --band low,high,right "$tmp/t.csv"
refuses 2 'LABEL=Y' --x share --y right --guide alone "$tmp/t.csv"
refuses 2 'LABEL=Y' --x share --y right --guide 40 "$tmp/t.csv"
refuses 2 'LABEL=Y' --x share --y right --guide 'alone=x' "$tmp/t.csv"
refuses 2 'expected one FILE.csv' --x share --y right
refuses 3 't.csv: line 2, policy: expected a number, found mlp' --x policy --y right "$tmp/t.csv"
refuses 3 "$tmp/none" --x share --y right "$tmp/none"
refuses 3 'none/t.svg' --x share --y right -o "$tmp/none/t.svg" "$tmp/t.csv"

printf 'a,b\n1,2\n\n3\n' >"$tmp/short.csv"
refuses 3 'short.csv: line 4: expected 2 fields, found 1' --x a --y b "$tmp/short.csv"
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
printf 'a,b\nx,-1\n' >"$tmp/minus.csv"
refuses 3 'expected a number >= 0, found -1' --bars b --by a "$tmp/minus.csv"
# Labels are shown whole, or not at all: cut off, they might be equal, or end within a character.
long=$(printf 'y%.0s' $(seq 95))
printf 'a,b,c\n1,2,%s\n' "$long" >"$tmp/long.csv"
run 0 --x a --y b --by c "$tmp/long.csv"
has 1 ">$long</text>"
run 0 --x a --y b --x-label "$long" --guide "$long=1" "$tmp/long.csv"
printf '2,3,%sz\n' "$long" >>"$tmp/long.csv"
refuses 3 'long.csv: line 3, c: expected a label of up to 95 bytes' --x a --y b --by c "$tmp/long.csv"
refuses 3 'line 2, b: expected a label' --bars a --by c,b "$tmp/long.csv"
refuses 2 '--x-label: expected a label of up' --x a --y b --x-label "z$long" "$tmp/long.csv"
refuses 2 '--guide: expected a label of up' --x a --y b --guide "z$long=1" "$tmp/long.csv"
{ echo a,b,c && seq 60 | sed 's/.*/1,1,&/'; } >"$tmp/many.csv"
refuses 2 'expected at most 56 lines' --x a --y b --by c "$tmp/many.csv"
printf 'a,b\r\n1,2\r\n2,3' >"$tmp/crlf.csv" # other line ends, and none at the end
run 0 --x a --y b "$tmp/crlf.csv"
has 1 '<title>b: 2, 3</title>'
exit 0
