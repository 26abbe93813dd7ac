#!/bin/sh
# mizzle plot: which rows become which line, what options change, and what is refused.
. tests/support/shell.sh
subcommand=plot

# has COUNT TEXT: the picture has TEXT in so many lines.
has() {
    n=$(grep -cF -e "$2" "$dir/out")
    [ "$n" -eq "$1" ] || fail "'$2' in $n lines, expected $1"
}

# bad STATUS TEXT BYTES: columns a and b of a file that has these bytes are refused with this text.
bad() {
    printf "$3" >"$dir/bad.csv"
    refuses "$1" "$2" --x a --y b "$dir/bad.csv"
}

# The rows of two lines, not in order; a row without y; a quoted label and a quoted name.
cat >"$dir/t.csv" <<END
policy,share,"right, %",low,high,kind
mlp,2,90,80,95,a
mlp,0,40,30,50,a
"said ""x"", so",0,40,30,50,a
"said ""x"", so",3,50,40,60,a
mlp,1,72,62,82,b
random,0,,,,b
END
lines="--x share --by policy --interval low,high"

expect 0 $lines --y "right, %" --title "A <finding>" --note why "$dir/t.csv"
cp "$dir/out" "$dir/first"
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
[ "$(grep -n 'mlp: ' "$dir/out" | tail -n 1)" = "$(grep -n 'mlp: 2, 90' "$dir/out")" ] ||
    fail "points are not in the order of x"
expect 0 $lines --y "right, %" --title "A <finding>" --note why -o "$dir/again.svg" "$dir/t.csv"
same "$dir/first" "$dir/again.svg"
"$MIZZLE" plot - <"$dir/t.csv" $lines --y "right, %" --title "A <finding>" --note why >"$dir/out" ||
    fail "standard input"
same "$dir/first" "$dir/out"

expect 0 $lines --y "right, %" --dots --guide '40=alone' --guide '1e1=a=b' "$dir/t.csv"
has 2 'class="dash"'
has 1 '>alone</text>'
has 1 '>a=b</text>'
has 5 'class="error"'
has 0 'class="line"'
expect 0 --x share --y high "$dir/t.csv" # one line, without a label
has 1 'class="line"'
has 1 '<title>high: 1, 82</title>'
expect 0 --bars policy --y "right, %" --by kind --interval low,high "$dir/t.csv"
has 5 'class="bar s' # one for each row that has a value
has 5 'class="error'
has 3 '>mlp</text>'
has 1 '>random</text>'
has 1 '>b</text>'
has 1 '>72</text>'
[ "$(grep -n '>random<' "$dir/out" | cut -d: -f1)" -gt "$(grep -n '>72<' "$dir/out" | cut -d: -f1)" ] ||
    fail "bars of a group are not in the order of the rows"
expect 0 --bars policy --y low "$dir/t.csv"
has 5 'class="bar s0"'

refuses 2 'expected a column nothing, found policy,share,right, %,low,high' \
    --x nothing --y low "$dir/t.csv"
refuses 2 'expected a column x,' --x share --y low --by x "$dir/t.csv"
each "refuses 2 'expected --y and either --x or --bars' \$dir/t.csv" '' '--x share' '--y low' '--bars policy' \
    '--x share --bars policy --y low'
each "refuses 2 '--bars: expected without' \$dir/t.csv --bars policy --y low" --dots '--guide 1=a'
each "refuses 2 '--interval: expected LOW,HIGH' \$dir/t.csv --x share --y low --interval" low low,high,share
refuses 2 'expected a column highest' --x share --y low --interval low,highest "$dir/t.csv"
each "refuses 2 '--guide: expected Y=LABEL' \$dir/t.csv --x share --y low --guide" alone 40 x=alone inf=alone nan=alone =alone
refuses 2 'expected one FILE.csv' --x share --y low
refuses 3 't.csv: line 2, policy: expected a number, found mlp' --x policy --y low "$dir/t.csv"
refuses 3 "$dir/none" --x share --y low "$dir/none"
refuses 3 'none/t.svg' --x share --y low -o "$dir/none/t.svg" "$dir/t.csv"

bad 3 'bad.csv: line 4: expected 2 fields, found 1' 'a,b\n1,2\n\n3\n'
bad 3 'bad.csv: line 2: expected 2 fields, found 3' 'a,b\n1,2,3\n'
bad 3 'bad.csv: line 2: expected a quotation mark' 'a,b\n"1,2\n'
bad 3 'bad.csv: line 2: expected a quotation mark' 'a,b\n1,"2\n'
# A quotation mark inside a field is no special character, in one that is quoted, either.
printf 'a"b,"c,d,e"\n1,2\n' >"$dir/marks.csv"
expect 0 --x 'a"b' --y 'c,d,e' "$dir/marks.csv"
printf 'x,"a"b"c,d"e"\n1,2,3\n' >"$dir/marks.csv"
refuses 2 'expected a column y, found x,ab"c,d"e"' --x x --y y "$dir/marks.csv"
bad 3 'found the header alone' 'a,b\n'
bad 3 'found an empty file' ''
bad 3 'expected text in UTF-8' 'a,b\n1,\377\n'
bad 3 'expected a number, found nan' 'a,b\n1,nan\n'
bad 2 'no point is left' 'a,b\n,2\n'
{ echo a,b,c && seq 600 | sed 's/.*/1,1,&/'; } >"$dir/many.csv"
expect 0 --x a --y b --by c "$dir/many.csv"
has 1 '>600</text>'
printf 'a,b\r\n1,2\r\n2,3' >"$dir/crlf.csv" # other line ends, and none at the end
expect 0 --x a --y b "$dir/crlf.csv"
has 1 '<title>b: 2, 3</title>'
