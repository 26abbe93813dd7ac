#!/bin/sh
# Files that others made to break readers: `mizzle info` accepts or refuses each one as the formats'
# own readers do.
. tests/support/shell.sh
tab=$(printf '\t')

# info FILE...: sets $status. A refused file gives 3 and one line that names it, others a report.
info() {
    timeout 60 "$MIZZLE" info --tensors "$@" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
}

accepted() {
    info "$1"
    [ $status -eq 0 ] && [ ! -s "$dir/err" ] && [ -s "$dir/out" ] || fail "$1: expected a report"
}

bad() {
    info "$1"
    [ $status -eq 3 ] && [ ! -s "$dir/out" ] || fail "$1: status $status, expected a refusal"
    one_line
    says "$1: "
}

# A file's strings reach the terminal without control characters, whatever they contain.
printf 'GGUF\003\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000' >"$dir/escape.gguf"
printf '\014\000\000\000\000\000\000\000general.name\010\000\000\000' >>"$dir/escape.gguf"
printf '\013\000\000\000\000\000\000\000a\033[31m\302\233\n\tb' >>"$dir/escape.gguf"
accepted "$dir/escape.gguf"
[ "$(LC_ALL=C tr -d '\n -~' <"$dir/out" | wc -c)" -eq 0 ] || fail "control characters in: $(cat -v "$dir/out")"
info "$dir/escape.gguf" --json
[ $status -eq 0 ] && [ "$(LC_ALL=C tr -d '\n -~' <"$dir/out" | LC_ALL=C tr -d '\200-\377' | wc -c)" -eq 0 ] ||
    fail "control characters in JSON"
printf 'GGUF' >"$dir/short"
bad "$dir/short"
bad "$dir/none.gguf"
echo 'hello, this is no model' >"$dir/text"
bad "$dir/text"
says 'GGUF or safetensors'
# A FIFO without a writer blocks no reader.
mkfifo "$dir/pipe"
bad "$dir/pipe"
before='timeout 20'
fails 3 "regular file" router score --router "$dir/pipe" --hidden x -o y
mkdir "$dir/piped"
mkfifo "$dir/piped/tokenizer.json"
fails 3 "regular file" tokenize -m "$dir/piped"

# The report on a router shows its input and its threshold.
router=weights/milli/edge-0.5.router.safetensors
if [ -r $router ]; then
    accepted $router
    grep -Eq '^router +mlp, 256 wide, reads 128 values of tap final, threshold 0\.524' "$dir/out" || fail info
    info $router --json
    grep -Eq '"router":\{"name":"mlp","hidden":128,"features":0,"width":256,"members":1,"tap":"final","threshold":0\.524' "$dir/out" || fail "info --json"
fi

[ -r "$data/badinput/gguf/expect.tsv" ] || skip "$data/badinput is not there"
count=0
while IFS=$tab read -r name verdict _; do
    case $verdict in
    OK) accepted "$data/badinput/gguf/$name" ;;
    REJECT) bad "$data/badinput/gguf/$name" ;;
    *) fail "$name: no verdict" ;;
    esac
    count=$((count + 1))
done <"$data/badinput/gguf/expect.tsv"
[ $count -eq 31 ] || fail "expected 31 GGUF files, found $count"

count=0
while IFS=$tab read -r name verdict; do
    file=$data/badinput/safetensors/$name
    case $name in
    ok_fp4*) bad "$file" ;; # four-bit floats are not supported
    ok_*) accepted "$file" ;;
    *) bad "$file" ;;
    esac
    case $name in # the row that the report must contain
    ok_attn.0_f32*) row="F32      [1,2,3]  attn.0" ;;
    ok_attn0*) row="F32      [1,1,2,3]  attn0" ;;
    ok_deserialization*) row="I32      [2,2]  test" ;;
    ok_empty_shape*) row="I32      []  test" ;;
    ok_py_meta.*) row="I32      [2,2]  test1" ;;
    ok_py_two*) row="F16      [2,2]  test2" ;;
    ok_zero*) row="I32      [2,0]  test" ;;
    *) row= ;;
    esac
    [ -z "$row" ] || grep -qF "$row" "$dir/out" || fail "$name: expected \"$row\": $(cat "$dir/out")"
    count=$((count + 1))
done <"$data/badinput/safetensors/expect.tsv"
[ $count -eq 20 ] || fail "expected 20 safetensors files, found $count"
