#!/bin/sh
# mizzle imatrix, and mizzle convert with its files and those of llama.cpp's older form.
set -u
mizzle=${MIZZLE:-build/mizzle}
model=weights/milli/edge-0.5.gguf
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

fail() {
    echo "t_imatrix: $*" >&2
    exit 1
}

# expect STATUS COMMAND ARGS...: run it; a failure prints one line and leaves no file.
expect() {
    want=$1
    shift
    ${RUN:-} "$mizzle" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$?
    [ "$got" -eq "$want" ] || fail "$*: status $got, expected $want: $(cat "$tmp/err")"
    [ "$want" -eq 0 ] || [ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "$*: not one line: $(cat "$tmp/err")"
    ls "$tmp" | grep -q '\.part$' && fail "$*: left a .part file"
}

said() {
    grep -q -e "$1" "$tmp/err" || fail "expected $1, found $(cat "$tmp/err")"
}

# differ FILE FILE: true if they differ; an error is none.
differ() {
    cmp -s "$1" "$2"
    [ $? -eq 1 ]
}

head -c 4000 README.md >"$tmp/text"
expect 2 imatrix -m $model -f "$tmp/text"
expect 2 imatrix -m $model -o "$tmp/a"
expect 2 imatrix -m $model -f "$tmp/text" -o "$tmp/a" more
expect 2 imatrix -m $model -f "$tmp/text" -o "$tmp/a" -c 0
said 'context: expected a whole number of at least 1, found 0'
expect 2 imatrix -m $model -f "$tmp/text" -o "$tmp/a" -c 1025 # beyond what the model was made for
expect 3 imatrix -m $model -f "$tmp/none" -o "$tmp/a"
expect 3 imatrix -m $model -f $model -o "$tmp/a"
said 'edge-0.5.gguf: expected a text in UTF-8, found a NUL byte'
printf 'caf\351 %4000s' x >"$tmp/latin"
expect 3 imatrix -m $model -f "$tmp/latin" -o "$tmp/a" -c 64
said 'latin: expected a text in UTF-8, found other bytes'
expect 3 imatrix -m $model -f "$tmp/text" -o "$tmp/no/such"
expect 3 imatrix -m "$tmp/none" -f "$tmp/text" -o "$tmp/a"
# Neither the model nor the text is overwritten.
cp $model "$tmp/model"
expect 2 imatrix -m "$tmp/model" -f "$tmp/text" -o "$tmp/model"
expect 2 imatrix -m $model -f "$tmp/text" -o "$tmp/text"
cmp -s $model "$tmp/model" || fail "the model was overwritten"
expect 3 imatrix -m $model -f "$tmp/text" -o /dev/null
head -c 100 README.md >"$tmp/short"
expect 3 imatrix -m $model -f "$tmp/short" -o "$tmp/a"
said 'expected a text of at least 512 tokens'
(
    ulimit -f 4
    expect 3 imatrix -m $model -f "$tmp/text" -o "$tmp/a" -c 64
    exit 0
) || exit 1
[ ! -e "$tmp/a" ] || fail "a failure left a file"

# The same bytes for any number of threads; three layers' seven matrices and the head.
expect 0 imatrix -m $model -f "$tmp/text" -o "$tmp/a" -c 64 -t 1
said '22 matrices, measured on [1-9][0-9]* pieces of 64 tokens; left out: the last [1-9][0-9]* tokens, too few for another piece$'
head -c 1400 "$tmp/text" >"$tmp/short"
expect 0 imatrix -m $model -f "$tmp/short" -o "$tmp/b" -c 600
said 'measured on 1 piece of 600 tokens'
expect 0 imatrix -m $model -f "$tmp/text" -o "$tmp/b" -c 64 -t 3
cmp "$tmp/a" "$tmp/b" || fail "threads change the file"
${RUN:-} "$mizzle" imatrix -m $model -f - -o "$tmp/c" -c 64 <"$tmp/text" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
said 22.matrices

# info says what it is, whatever its name.
expect 0 info "$tmp/a" --tensors
for line in 'format        importance matrix, gguf, of 22 matrices' "text          $tmp/text" \
    'pieces        [1-9][0-9]* of 64 tokens' ' *256 inputs  blk.1.ffn_down.weight'; do
    grep -qx -e "$line" "$tmp/out" || fail "info: expected $line, found $(cat "$tmp/out")"
done
expect 0 info "$tmp/a" --json
grep -q '"format":"imatrix","gguf":true,"matrices":22,"chunks":[1-9][0-9]*,"chunk_size":64,"texts"' "$tmp/out" ||
    fail "info --json: $(cat "$tmp/out")"

# Every matrix has values, and they change what is written.
for type in q4_0 q5_1 q4_K_M; do
    expect 0 convert $model "$tmp/plain" --type $type
    expect 0 convert $model "$tmp/weighted" --type $type --imatrix "$tmp/a" -t 1
    ! grep -q 'no values' "$tmp/err" || fail "$(cat "$tmp/err")"
    differ "$tmp/plain" "$tmp/weighted" || fail "$type: the matrix changes nothing"
    expect 0 convert $model "$tmp/again" --type $type --imatrix "$tmp/a" -t 3
    cmp "$tmp/weighted" "$tmp/again" || fail "threads change the file"
done
expect 0 info "$tmp/weighted"
grep -qx 'type          Q4_K_M' "$tmp/out" || fail "info: no type Q4_K_M in $(cat "$tmp/out")"
grep -aq quantize.imatrix.entries_count "$tmp/weighted" || fail "the file does not name the matrix"

# word N: a 32-bit number; entry NAME VALUES: a matrix in the older form, all inputs alike
word() {
    printf "\\$(printf %o $(($1 % 256)))\\$(printf %o $(($1 / 256)))\\0\\0"
}
entry() {
    word ${#1}
    printf '%s' "$1"
    word 1
    word "$2"
    awk -v n="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s", "aaa=" }' # 0.055
}
{
    word 1
    entry blk.1.ffn_down.weight 256
} >"$tmp/old"
expect 0 convert $model "$tmp/x" --type q4_0 --imatrix "$tmp/old"
said 'old has no values for 21 tensors: token_embd.weight, .*, \.\.\.$'
rm "$tmp/x"
cp "$tmp/old" "$tmp/model.dat"
expect 0 info "$tmp/model.dat"
grep -qx "format        importance matrix, llama.cpp's older form, of 1 matrix" "$tmp/out" || fail "$(cat "$tmp/out")"
expect 0 info "$tmp/model.dat" --json --tensors
grep -q '"texts":\[\],"matrix_list":\[{"name":"blk.1.ffn_down.weight","inputs":256}\]' "$tmp/out" || fail "$(cat "$tmp/out")"
head -c 40 "$tmp/old" >"$tmp/model.dat"
expect 3 info "$tmp/model.dat"
said "older form, found a wrong length at byte"
{
    word 1
    entry blk.1.ffn_down.weight 255
} >"$tmp/old"
expect 3 convert $model "$tmp/x" --type q4_0 --imatrix "$tmp/old"
said 'old: blk.1.ffn_down.weight: expected 256 values, found 255'
{
    word 1
    entry blk.9.ffn_down.weight 256
} >"$tmp/old"
expect 3 convert $model "$tmp/x" --type q4_0 --imatrix "$tmp/old"
said 'expected values for tensors of this model, found none'
expect 3 convert $model "$tmp/x" --type q4_0 --imatrix "$tmp/text"
said 'expected an importance matrix'
expect 3 convert $model "$tmp/x" --type q4_0 --imatrix $model
said 'general.type: expected imatrix, found'
expect 3 convert $model "$tmp/x" --type q4_0 --imatrix "$tmp/none"
[ ! -e "$tmp/x" ] || fail "a failure left a file"
exit 0
