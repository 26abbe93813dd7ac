#!/bin/sh
# The lab book (sessions/): each command of the ten sessions and of the answers runs, and what each
# session ends with is so, where it does not depend on the clock. Of times it is only seen that they
# are there. The blocks of a session run in one shell, those of answers.md behind them, in a folder
# of links to this tree, and in the sizes below.
. tests/support/shell.sh
root=$(pwd)
MIZZLE=$(realpath "$MIZZLE") BUILD=$(realpath "${BUILD:-build/x86_64-release}")
case ${BUILD##*/} in x86_64-release) ;; *) skip "the text is about x86_64-release" ;; esac
for f in Makefile README.md kernels weights model net router tools; do ln -s "$root/$f" "$dir/$f"; done
mkdir -p "$dir/build/${BUILD##*/}" "$dir/tests" && ln -s "$root"/tests/* "$dir/tests/"
ln -s "$BUILD"/* "$dir/build/${BUILD##*/}/" && rm -f "$dir/build/${BUILD##*/}/exercises"
ln -s "$MIZZLE" "$dir/build/mizzle"
cd "$dir" || exit 1
book=build/book pages=tests/exercises/sessions

# commands FILE: its blocks of shell; those of Python, ```bash, where matplotlib is.
lab=sh
! /usr/bin/python3 -c 'import numpy, matplotlib' 2>/dev/null || lab='(ba)?sh'
commands() {
    awk -v lab="^\`\`\`$lab\$" '$0 ~ lab { on = 1; next } /^```$/ { on = 0 } on' "$1"
}
# session N SETTINGS: run it, with variables that the text names.
session() {
    page=$(echo $pages/"$1"_*.md)
    commands "$page" >"$dir/session"
    [ "$(wc -l <"$dir/session")" -gt 5 ] || fail "$page: no commands"
    for name in $(echo "$2" | grep -o '[A-Z]*='); do
        grep -q "\${$name}\|\${${name%=}:-" "$page" || fail "$page does not name ${name%=}"
    done
    sed -n "/^## Session ${1#0}\$/,/^## Session $((${1#0} + 1))\$/p" $pages/answers.md >"$dir/answers"
    commands "$dir/answers" >>"$dir/session"
    begin=$(date +%s)
    (eval "$2" && . "$dir/session") >"$dir/log" 2>&1 || fail "$page fails"
    echo "session $1: $(($(date +%s) - begin)) s"
}
# has FILE COLUMN: a table of the session has this column, and a number in it.
has() {
    awk -F, -v column="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i }
        NR == 2 && at && $at + 0 > 0 { found = 1 } END { exit !found }' "$book/$1" ||
        fail "$1: no $2"
}
# claim CONDITION FILE: the condition of awk holds for a line of it.
claim() {
    awk -F, "$1 { found = 1 } END { exit !found }" "$book/$2" ||
        fail "$2: expected $1, found $(cat "$book/$2")"
}
# value FIELD CONDITION FILE: print this field of the line for which the condition holds.
value() {
    awk -F, "$2 { print \$($1) }" "$book/$3"
}
small='SMALL="-m weights/milli/edge-1.gguf"'
set -e

session 01 "$small"
claim '$5 == 525120000' bytes.csv
grep -q '"pass_bytes":613760' $book/why.json || fail "bytes of a pass"
grep -q '"weights_in":"L[123]' $book/why.json || fail "weights_in"
has limits.csv one_thread
has big.csv avg_ts
has demo.csv avg_ts

session 02 "$small ROWS=12 TEXTS=12 QUESTIONS=20"
grep -q '^not a bit differs$' "$dir/log" || fail "other answers in company"
has rows.csv avg_ts
has passes.csv ms
has texts.csv avg_ts

session 03 "$small TYPES=q8_0 QUESTIONS=100 PART=10"
awk '{ sub(/,/, ""); e[$1] = $5 } END { exit !(e["q4_0:"] > 5 * e["q8_0:"] && e["q8_0:"] > 0) }' \
    $book/error.txt || fail "error: $(cat $book/error.txt)"
awk '/perplexity/ { p[$1] = $3 } /right/ { r[$1] = $2 }
    END { exit !(p["q4_0:"] > p["q8_0:"] && r["q4_0:"] > r["q8_0:"] && r["q8_0:"] > 0) }' \
    $book/quality.txt || fail "quality: $(cat $book/quality.txt)"
has types.csv avg_ts
has speed.csv mb

session 04 "$small DEPTHS=200 LENGTHS=1,64"
claim '$4 == 32768 && $6 / $5 > 0.75 && $6 < $5' cache.csv
has depth.csv avg_ts
has anew.csv avg_ns
claim '$1 == 64 && NF == 3 && $3 > 0' places.csv # no ratio of two short times holds everywhere
[ "$(grep -c '^attention .* ms a token$' "$dir/log")" -eq 2 ] || fail "mini --time"

session 05 'NAMES="pofosu rirenuta kezoguno medivo"'
grep -q '^    1    0    99.8%$' $book/heads.txt || fail "head 1.0: $(cat $book/heads.txt)"
claim '$1 == "1.0" && $2 == 4' without.csv
claim '$1 == "0.5" && $2 == 0' without.csv
claim '$1 == "1.0" && $2 > 0.99 && $3 == 4' dots.csv

session 06 'TRAIN=100 QUESTIONS=20'
claim '$1 == "max-prob" { m = $2 } $1 == "mlp" && $2 > m + 3' router.csv
claim '$1 ~ /^combined/ { c = $2 } $1 ~ /^mlp/ { m = $2 } c && m >= c' rivals.csv
grep -q '^slot  *64.7 % right ' $book/real.txt || fail "real: $(cat $book/real.txt)"

session 07 'QUESTIONS=40 THRESHOLDS=0.2'
claim '$1 == 0.2 && $3 > 0.05' max-prob.csv
best=$(value 2 '$1 == 0.2' max-prob.csv)
claim "\$1 == 0.4 && \$3 < 0.05 && \$2 > $best" place.csv
has policies.csv accuracy

session 08 'QUESTIONS=20 TRIPS="0 500"'
claim '$1 == "random" && $2 == 500 && $4 > 0.6 && $6 < $5 / 2' ahead.csv
claim '$1 == "mlp" && $2 == 500 && $4 < 0.5 && $6 < $5 && $6 > $5 / 2' ahead.csv
awk '/ 60 of 100, round trip 500 / && $12 < $14 { fine = 1 } END { exit !fine }' $book/known.txt ||
    fail "ten texts: $(cat $book/known.txt)"

session 09 ''
grep -q '^0 of 1 point$' $book/one.txt && grep -q '^896 .* us' $book/one.txt ||
    fail "one lane: $(cat $book/one.txt)"
for version in lanes vectors; do
    grep -q '^1 of 1 point$' $book/$version.txt && grep -q '^896 .* us' $book/$version.txt ||
        fail "$version: $(cat $book/$version.txt)"
done
grep -q '"name":"rmsnorm_f32","state":"wrong","points":0,"of":1' $book/points.json || fail "points"

session 10 "QUESTIONS=10 PORT=$((20000 + $$ % 12000))"
claim '$1 == "mine" && !$2 { m = $3 } $1 == "project" && !$2 && $3 == m && !$4' dialect.csv
fine=$(value 3 '$1 == "project" && !$2' dialect.csv)
alone=$(value 2 '$1 == "never"' never.csv)
claim "\$1 == \"mine\" && /prompt-in-front/ && \$3 < $alone && !\$4" dialect.csv
claim "\$1 == \"project\" && /prompt-in-front/ && \$3 == $fine && !\$4" dialect.csv
[ "$(wc -l <$book/dialect.csv)" -eq 8 ] || fail "dialect.csv: $(cat $book/dialect.csv)"
