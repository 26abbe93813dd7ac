#!/bin/sh
# mizzle convert: types, round trips, refusals, leftovers; with a tokenizer, if there is one.
set -u
mizzle=${MIZZLE:-build/mizzle}
data=${MIZZLE_TESTDATA:-../shared/data}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
skipped=

fail() {
    echo "t_convert: $*" >&2
    exit 1
}

# expect STATUS ARGS...: run convert, which must end with this status and print nothing to stdout;
# if it fails, it prints one line to stderr.
expect() {
    want=$1
    shift
    ${RUN:-} "$mizzle" convert "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$?
    [ "$got" -eq "$want" ] || fail "$*: status $got, expected $want: $(cat "$tmp/err")"
    [ ! -s "$tmp/out" ] || fail "$*: wrote to stdout"
    [ "$want" -eq 0 ] || [ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "$*: not one line: $(cat "$tmp/err")"
    # no unfinished file may remain
    ls "$tmp" | grep -q '\.part$' && fail "$*: left a .part file"
}

# has FILE TEXT: the JSON of mizzle info for the file must contain the text.
has() {
    ${RUN:-} "$mizzle" info "$1" --json --tensors >"$tmp/json" || fail "info $1"
    grep -qF "$2" "$tmp/json" || fail "$1: expected $2 in $(cut -c1-2000 "$tmp/json")"
}

same() {
    cmp "$1" "$2" >"$tmp/out" 2>&1 || fail "$1 and $2 differ: $(cat "$tmp/out")"
}

expect 2
expect 2 one --type f32
expect 2 one two
expect 2 one two three --type f32
expect 2 one two --type q4_k_m
grep -q -e '--type: expected f32, f16, bf16, q8_0 or q4_0, found q4_k_m' "$tmp/err" || fail "$(cat "$tmp/err")"
expect 2 one two --type i8
expect 3 "$tmp/none" "$tmp/a.gguf" --type f32
[ ! -e "$tmp/a.gguf" ] || fail "a refused input left an output"

# A tensor in which a value or the scale of a group would become infinite is refused by name.
# large OCTAL: a matrix "t.weight" of 2 x 32 zeros but for its last value, whose bytes are given
large() {
    {
        printf 'GGUF\003\000\000\000\001\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000'
        printf '\024\000\000\000\000\000\000\000general.architecture\010\000\000\000'
        printf '\003\000\000\000\000\000\000\000abc'
        printf '\010\000\000\000\000\000\000\000t.weight\002\000\000\000'
        printf '\040\000\000\000\000\000\000\000\002\000\000\000\000\000\000\000'
        printf '\000\000\000\000\000\000\000\000\000\000\000\000'
        head -c 265 /dev/zero # 13 of padding, 252 of zeros
        # shellcheck disable=SC2059
        printf "$1"
    } >"$tmp/large.gguf"
}
large '\000\344\177\107' # 65508, which rounds to 65504
expect 0 "$tmp/large.gguf" "$tmp/x.gguf" --type f16 -q
large '\000\360\177\107' # 65520
for type in f32 bf16 q8_0 q4_0; do
    expect 0 "$tmp/large.gguf" "$tmp/x.gguf" --type $type
done
rm "$tmp/x.gguf"
expect 3 "$tmp/large.gguf" "$tmp/x.gguf" --type f16
grep -q 'tensor t.weight: expected values below 65520 for F16, found 65520' "$tmp/err" || fail "$(cat "$tmp/err")"
large '\000\000\200\313' # -2^24
for type in q8_0 q4_0; do
    expect 3 "$tmp/large.gguf" "$tmp/x.gguf" --type $type
done
expect 0 "$tmp/large.gguf" "$tmp/x.gguf" --type bf16
large '\377\377\177\177' # the largest float
expect 3 "$tmp/large.gguf" "$tmp/x.gguf" --type bf16
large '\000\000\200\177' # infinite already: nothing is lost
expect 0 "$tmp/large.gguf" "$tmp/x.gguf" --type f16
rm "$tmp/x.gguf"
for value in '\000\000\200\177' '\000\000\200\377' '\000\000\300\177'; do # inf, -inf, nan
    large "$value" # its block would be lost
    for type in q8_0 q4_0; do
        expect 3 "$tmp/large.gguf" "$tmp/x.gguf" --type $type
        grep -q 'tensor t.weight: expected finite values' "$tmp/err" || fail "$(cat "$tmp/err")"
    done
done
expect 2 "$tmp/large.gguf" - --type f16
grep -q 'expected a file to write, found standard output' "$tmp/err" || fail "$(cat "$tmp/err")"
[ ! -e ./- ] || fail "a file named - was written"
# What is no model is refused: without an architecture, or of another type.
large '\000\000\000\000'
LC_ALL=C sed 's/general.architecture/general.brchitecture/' "$tmp/large.gguf" >"$tmp/none.gguf"
expect 3 "$tmp/none.gguf" "$tmp/x.gguf" --type f16
grep -q 'general.architecture: expected .*, found none' "$tmp/err" || fail "$(cat "$tmp/err")"
${RUN:-} "$mizzle" info "$tmp/none.gguf" >"$tmp/out" || fail "info of a file without architecture"
grep -q '^no model .*general.architecture: expected .*, found none' "$tmp/out" || fail "no line: no model"
${RUN:-} "$mizzle" run -m "$tmp/none.gguf" -p x >"$tmp/out" 2>"$tmp/err"
[ $? -eq 3 ] && grep -q 'general.architecture: expected .*, found none' "$tmp/err" || fail "$(cat "$tmp/err")"
{
    printf 'GGUF\003\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000'
    printf '\014\000\000\000\000\000\000\000general.type\010\000\000\000'
    printf '\007\000\000\000\000\000\000\000adapter'
} >"$tmp/adapter.gguf"
expect 3 "$tmp/adapter.gguf" "$tmp/x.gguf" --type f16
grep -q 'general.type: expected model, found adapter' "$tmp/err" || fail "$(cat "$tmp/err")"
[ ! -e "$tmp/x.gguf" ] || fail "a refused input left an output"
for word in 'f32, f16, bf16, q8_0 or q4_0' '-q, --quiet'; do
    ${RUN:-} "$mizzle" convert --help | tr -s ' \n' ' ' | grep -qF -e "$word" || fail "--help has no: $word"
done

src=$data/weights/stories260K_qwen2
[ -r "$src/config.json" ] || {
    echo "SKIP: $src is not there"
    exit 77
}
cp -r "$src" "$tmp/folder" && chmod -R u+w "$tmp/folder" || fail "cannot copy $src"
# No file of the model is replaced, read or not, by its name or by a link's; a GGUF file beside
# them is.
ln -s folder "$tmp/link"
echo '{}' >"$tmp/blob"
ln -s ../blob "$tmp/folder/generation_config.json"
echo text >"$tmp/folder/merges.txt"
for out in model.safetensors config.json merges.txt generation_config.json; do
    for path in "$tmp/folder/$out" "$tmp/link/$out"; do
        expect 2 "$tmp/folder" "$path" --type q8_0
        grep -q "$out: input and output are the same file" "$tmp/err" || fail "$(cat "$tmp/err")"
    done
done
expect 2 "$tmp/folder" "$tmp/blob" --type q8_0
cmp -s "$src/model.safetensors" "$tmp/folder/model.safetensors" || fail "the source was replaced"
cmp -s "$src/config.json" "$tmp/folder/config.json" || fail "the source was replaced"
[ "$(cat "$tmp/blob" "$tmp/folder/merges.txt")" = "{}
text" ] || fail "a file of the source was replaced"
rm "$tmp/folder/merges.txt"
expect 0 "$tmp/folder" "$tmp/folder/out.gguf" --type q8_0
expect 0 "$tmp/folder" "$tmp/folder/out.gguf" --type q8_0
rm -r "$tmp/folder" "$tmp/link" "$tmp/blob"
for type in f32 F16 bf16 Q8_0 q4_0; do
    expect 0 "$src" "$tmp/$type.gguf" --type $type
done
grep -q 'rows are no whole number of blocks: 5 become F16 (the first: blk.0.ffn_down.weight)' "$tmp/err" || fail "said nothing about fallbacks"
has "$tmp/f32.gguf" '"types":{"F32":{"tensors":62,'
has "$tmp/F16.gguf" '"types":{"F32":{"tensors":26,"bytes":5376},"F16":{"tensors":36,'
has "$tmp/bf16.gguf" '"BF16":{"tensors":36,'
has "$tmp/Q8_0.gguf" '"F16":{"tensors":5,"bytes":110080},"Q8_0":{"tensors":31,'
has "$tmp/q4_0.gguf" '"Q4_0":{"tensors":30,'
has "$tmp/q4_0.gguf" '{"name":"token_embd.weight","type":"Q8_0"'
has "$tmp/q4_0.gguf" '"tokenizer":"no_vocab"'
has "$tmp/q4_0.gguf" '"architecture":"qwen2"'

# Converting to the same type gives the same file; exact types survive a round trip.
for type in f32 F16 bf16 Q8_0; do
    expect 0 "$tmp/$type.gguf" "$tmp/again.gguf" --type $type
    same "$tmp/$type.gguf" "$tmp/again.gguf"
done
for type in F16 bf16; do
    expect 0 "$tmp/$type.gguf" "$tmp/wide.gguf" --type f32
    expect 0 "$tmp/wide.gguf" "$tmp/again.gguf" --type $type
    same "$tmp/$type.gguf" "$tmp/again.gguf"
done
# One thread or several give the same bytes; an existing file is replaced.
expect 0 "$src" "$tmp/again.gguf" --type q4_0 -t 1
same "$tmp/q4_0.gguf" "$tmp/again.gguf"

# The folder and the file give the same logits.
${RUN:-} "$mizzle" logits -m "$src" --ids 1,2,3 -o "$tmp/a.f32" >"$tmp/out" 2>&1 || fail "logits: $(cat "$tmp/out")"
${RUN:-} "$mizzle" logits -m "$tmp/f32.gguf" --ids 1,2,3 -o "$tmp/b.f32" >"$tmp/out" 2>&1 || fail "logits: $(cat "$tmp/out")"
same "$tmp/a.f32" "$tmp/b.f32"

# Refusals.
expect 2 "$tmp/f32.gguf" "$tmp/f32.gguf" --type f32
ln "$tmp/f32.gguf" "$tmp/link.gguf"
expect 2 "$tmp/f32.gguf" "$tmp/link.gguf" --type f32
expect 2 "$tmp/f32.gguf" "$tmp" --type f32
expect 3 "$tmp/f32.gguf" "$tmp/no/such.gguf" --type f32
mkfifo "$tmp/pipe"
expect 3 "$tmp/f32.gguf" "$tmp/pipe" --type f32 # only regular files are replaced
[ -p "$tmp/pipe" ] || fail "the pipe was replaced"
(
    ulimit -f 20
    expect 3 "$tmp/f32.gguf" "$tmp/full.gguf" --type f32
    exit 0
) || exit 1
[ ! -e "$tmp/full.gguf" ] || fail "a file cut short stays"
expect 3 "$src/model.safetensors" "$tmp/x.gguf" --type f32
grep -q 'config.json' "$tmp/err" || fail "a lone safetensors file: $(cat "$tmp/err")"
head -c 900000 "$tmp/f32.gguf" >"$tmp/cut.gguf"
expect 3 "$tmp/cut.gguf" "$tmp/x.gguf" --type f32
[ ! -e "$tmp/x.gguf" ] || fail "a refused input left an output"

# Another architecture is rewritten; its keys and vocabulary are kept.
if [ -r "$data/weights/stories260K/stories260K.gguf" ]; then
    expect 0 "$data/weights/stories260K/stories260K.gguf" "$tmp/llama.gguf" --type q8_0
    has "$tmp/llama.gguf" '"architecture":"llama"'
    has "$tmp/llama.gguf" '"tokenizer":"llama","tokens":512'
fi

# Files of any type that another program wrote.
kquants=$data/weights/kquants
if [ -r "$kquants/src-f32.gguf" ]; then
    for type in q2_k q3_k_m q4_1 q4_k_m q5_0 q5_1 q5_k_m q6_k iq4_nl iq4_xs; do
        expect 0 "$kquants/$type.gguf" "$tmp/x.gguf" --type q8_0
        has "$tmp/x.gguf" '"Q8_0":{"tensors":8,'
    done
else
    skipped="SKIP: $kquants is not there"
fi

# A real vocabulary, with a random model that has some more rows.
real=$data/tokenizer/qwen2.5-0.5b-instruct
random=$data/../oracle/make_random_qwen2.py
if [ -r "$real/vocab.json" ] && /usr/bin/python3 -c 'import numpy' 2>"$tmp/out"; then
    /usr/bin/python3 "$random" "$tmp/model" --vocab 151936 --hidden 32 --heads 2 --kv 1 --ffn 64 --layers 1 ||
        fail "make_random_qwen2.py"
    cp "$real/vocab.json" "$real/merges.txt" "$real/tokenizer_config.json" "$tmp/model"
    has "$tmp/model" '"tokenizer":"gpt2","tokens":151665'
    has "$tmp/model" '"refused":{"model":null,"text":null,'
    expect 0 "$tmp/model" "$tmp/real.gguf" --type q8_0
    has "$tmp/real.gguf" '"tokenizer":"gpt2","tokens":151936'
    printf 'Hello, w\303\266rld! <|im_start|>user\n 12345\n' >"$tmp/text"
    for special in "" --special; do
        ${RUN:-} "$mizzle" tokenize -m "$real" $special <"$tmp/text" >"$tmp/a" || fail "tokenize $real"
        ${RUN:-} "$mizzle" tokenize -m "$tmp/real.gguf" $special <"$tmp/text" >"$tmp/b" || fail "tokenize real.gguf"
        same "$tmp/a" "$tmp/b"
    done
    grep -aq '\[PAD151665\]' "$tmp/real.gguf" || fail "rows beyond the vocabulary are not padded"
    grep -aq '\[PAD151664\]' "$tmp/real.gguf" && fail "a used token was padded"
    grep -aq 'tokenizer.chat_template' "$tmp/real.gguf" || fail "the chat template is missing"
    printf 'a file of its own' >"$tmp/model/chat_template.jinja"
    expect 0 "$tmp/model" "$tmp/real.gguf" --type q8_0
    grep -aqF 'a file of its own' "$tmp/real.gguf" ||
        fail "the chat template in a file of its own is missing"
else
    skipped="SKIP: no test data or no numpy: a real vocabulary was not converted"
fi
[ -z "$skipped" ] || {
    echo "$skipped"
    exit 77
}
