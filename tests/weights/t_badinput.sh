#!/bin/sh
# Files that others made to break readers: `mizzle info` accepts or refuses each one as the formats'
# own readers do.
set -u
mizzle=${MIZZLE:-build/mizzle}
data=${MIZZLE_TESTDATA:-../shared/data}/badinput
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
tab=$(printf '\t')

fail() {
    echo "t_badinput: $*" >&2
    exit 1
}

# info FILE...: sets $status. A refused file gives 3 and one line that names it, others a report.
info() {
    ${RUN:-} timeout 60 "$mizzle" info --tensors "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    status=$?
}

accepted() {
    info "$1"
    [ $status -eq 0 ] && [ ! -s "$tmp/err" ] && [ -s "$tmp/out" ] ||
        fail "$1: status $status, expected a report: $(cat "$tmp/err")"
}

refused() {
    info "$1"
    [ $status -eq 3 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] &&
        grep -qF "$1: " "$tmp/err" || fail "$1: status $status, expected a refusal: $(cat "$tmp/err")"
}

# A file's strings reach the terminal without control characters, whatever they contain.
printf 'GGUF\003\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000' >"$tmp/escape.gguf"
printf '\014\000\000\000\000\000\000\000general.name\010\000\000\000' >>"$tmp/escape.gguf"
printf '\013\000\000\000\000\000\000\000a\033[31m\302\233\n\tb' >>"$tmp/escape.gguf"
accepted "$tmp/escape.gguf"
[ "$(LC_ALL=C tr -d '\n -~' <"$tmp/out" | wc -c)" -eq 0 ] || fail "control characters in: $(cat -v "$tmp/out")"
info "$tmp/escape.gguf" --json
[ $status -eq 0 ] && [ "$(LC_ALL=C tr -d '\n -~' <"$tmp/out" | LC_ALL=C tr -d '\200-\377' | wc -c)" -eq 0 ] ||
    fail "control characters in JSON"
printf 'GGUF' >"$tmp/short"
refused "$tmp/short"
refused "$tmp/none.gguf"
# A FIFO without a writer blocks no reader.
mkfifo "$tmp/pipe"
refused "$tmp/pipe"
${RUN:-} timeout 20 "$mizzle" router score --router "$tmp/pipe" --hidden x -o y 2>"$tmp/err"
[ $? -eq 3 ] && grep -q "regular file" "$tmp/err" || fail "a FIFO as a router: $(cat "$tmp/err")"
mkdir "$tmp/piped"
mkfifo "$tmp/piped/tokenizer.json"
timeout 20 "$MIZZLE" tokenize -m "$tmp/piped" </dev/null 2>"$tmp/err"
[ $? -eq 3 ] && grep -q "regular file" "$tmp/err" || fail "a FIFO as a tokenizer: $(cat "$tmp/err")"

# The report on a router shows its input and its threshold.
router=weights/milli/edge-0.5.router.safetensors
if [ -r $router ]; then
    accepted $router
    grep -Eq '^router +256 wide, reads 128 values of tap final, threshold 0\.524' "$tmp/out" || fail "info: $(cat "$tmp/out")"
    info $router --json
    grep -Eq '"router":\{"hidden":128,"features":0,"width":256,"tap":"final","threshold":0\.524' "$tmp/out" || fail "info --json: $(cat "$tmp/out")"
fi

[ -r "$data/gguf/expect.tsv" ] || {
    echo "SKIP: $data is not there"
    exit 77
}
count=0
while IFS=$tab read -r name verdict _; do
    case $verdict in
    OK) accepted "$data/gguf/$name" ;;
    REJECT) refused "$data/gguf/$name" ;;
    *) fail "$name: no verdict" ;;
    esac
    count=$((count + 1))
done <"$data/gguf/expect.tsv"
[ $count -eq 31 ] || fail "expected 31 GGUF files, found $count"

count=0
while IFS=$tab read -r name verdict; do
    file=$data/safetensors/$name
    case $name in
    ok_fp4*) refused "$file" ;; # four-bit floats are not supported
    ok_*) accepted "$file" ;;
    *) refused "$file" ;;
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
    [ -z "$row" ] || grep -qF "$row" "$tmp/out" || fail "$name: expected \"$row\": $(cat "$tmp/out")"
    count=$((count + 1))
done <"$data/safetensors/expect.tsv"
[ $count -eq 20 ] || fail "expected 20 safetensors files, found $count"

for name in evil_print router_fullmodule bad_central_offset bad_empty bad_pickle_byte bad_truncated_10 \
    bad_truncated_half; do
    refused "$data/../pth/$name.pth"
done
refused "$data/../pth/router_fullmodule.pth"
grep -q 'save its state_dict() instead' "$tmp/err" || fail "a whole module: $(cat "$tmp/err")"
for name in zip legacy checkpoint dataparallel half bf16; do
    accepted "$data/../pth/router_$name.pth"
    grep -q 'tap final, no threshold$' "$tmp/out" || fail "router_$name.pth: $(cat "$tmp/out")"
    grep -q 'mlp.0.weight$' "$tmp/out" || fail "router_$name.pth: no mlp.0.weight"
done
