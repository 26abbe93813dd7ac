#!/bin/sh
# mizzle convert: types, round trips, refusals, leftovers; with a tokenizer, if there is one.
. tests/support/shell.sh

# converts STATUS ARGS...: run convert, which must end with this status and print nothing to stdout;
# if it fails, it prints one line to stderr. No unfinished file may remain.
converts() {
    subcommand=convert
    expect "$@"
    [ "$1" -eq 0 ] || one_line
    [ ! -s "$dir/out" ] || fail "$*: wrote to stdout"
    ls "$dir" | grep -q '\.part$' && fail "$*: left a .part file"
    subcommand=
}

# tells STATUS PATTERN ARGS...: converts, and it says the pattern.
tells() {
    code=$1 pattern=$2
    shift 2
    converts "$code" "$@"
    says "$pattern"
}

# has FILE TEXT: the JSON of mizzle info for the file must contain the text.
has() {
    expect 0 info "$1" --json --tensors
    grep -qF "$2" "$dir/out" || fail "$1: expected $2"
}

each 'converts 2' '' 'one --type f32' 'one two' 'one two three --type f32' 'one two --type q4_k_m'
says '--type: expected f32, f16, bf16, q8_0 or q4_0, found q4_k_m'
converts 3 "$dir/none" "$dir/a.gguf" --type f32
[ ! -e "$dir/a.gguf" ] || fail "a refused input left an output"

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
        printf "$1"
    } >"$dir/large.gguf"
}
large '\000\344\177\107' # 65508, which rounds to 65504
converts 0 "$dir/large.gguf" "$dir/x.gguf" --type f16 -q
large '\000\360\177\107' # 65520
each 'converts 0 "$dir/large.gguf" "$dir/x.gguf" --type' f32 bf16 q8_0 q4_0
rm "$dir/x.gguf"
tells 3 'tensor t.weight: expected values below 65520 for F16, found 65520' "$dir/large.gguf" "$dir/x.gguf" --type f16
large '\000\000\200\313' # -2^24
each 'converts 3 "$dir/large.gguf" "$dir/x.gguf" --type' q8_0 q4_0
converts 0 "$dir/large.gguf" "$dir/x.gguf" --type bf16
large '\377\377\177\177' # the largest float
converts 3 "$dir/large.gguf" "$dir/x.gguf" --type bf16
large '\000\000\200\177' # infinite already: nothing is lost
converts 0 "$dir/large.gguf" "$dir/x.gguf" --type f16
rm "$dir/x.gguf"
for value in '\000\000\200\177' '\000\000\200\377' '\000\000\300\177'; do # inf, -inf, nan
    large "$value" # its block would be lost
    for type in q8_0 q4_0; do
        tells 3 'tensor t.weight: expected finite values' "$dir/large.gguf" "$dir/x.gguf" --type $type
    done
done
tells 2 'expected a file to write, found standard output' "$dir/large.gguf" - --type f16
[ ! -e ./- ] || fail "a file named - was written"
# What is no model is refused: without an architecture, or of another type.
large '\000\000\000\000'
LC_ALL=C sed 's/general.architecture/general.brchitecture/' "$dir/large.gguf" >"$dir/none.gguf"
tells 3 'general.architecture: expected .*, found none' "$dir/none.gguf" "$dir/x.gguf" --type f16
prints '^no model .*general.architecture: expected .*, found none' info "$dir/none.gguf"
fails 3 'general.architecture: expected .*, found none' run -m "$dir/none.gguf" -p x
{
    printf 'GGUF\003\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000'
    printf '\014\000\000\000\000\000\000\000general.type\010\000\000\000'
    printf '\007\000\000\000\000\000\000\000adapter'
} >"$dir/adapter.gguf"
tells 3 'general.type: expected model, found adapter' "$dir/adapter.gguf" "$dir/x.gguf" --type f16
[ ! -e "$dir/x.gguf" ] || fail "a refused input left an output"
for word in 'f32, f16, bf16, q8_0 or q4_0' '-q, --quiet'; do
    "$MIZZLE" convert --help | tr -s ' \n' ' ' | grep -qF -e "$word" || fail "--help has no: $word"
done

src=$data/weights/stories260K_qwen2
[ -r "$src/config.json" ] || skip "$src is not there"
cp -r "$src" "$dir/folder" && chmod -R u+w "$dir/folder" || fail "cannot copy $src"
# No file of the model is replaced, read or not, by its name or by a link's; a GGUF file beside
# them is.
ln -s folder "$dir/link"
echo '{}' >"$dir/blob"
ln -s ../blob "$dir/folder/generation_config.json"
echo text >"$dir/folder/merges.txt"
for out in model.safetensors config.json merges.txt generation_config.json; do
    for path in "$dir/folder/$out" "$dir/link/$out"; do
        tells 2 "$out: input and output are the same file" "$dir/folder" "$path" --type q8_0
    done
done
converts 2 "$dir/folder" "$dir/blob" --type q8_0
for file in model.safetensors config.json; do same "$src/$file" "$dir/folder/$file"; done
[ "$(cat "$dir/blob" "$dir/folder/merges.txt")" = "{}
text" ] || fail "a file of the source was replaced"
rm "$dir/folder/merges.txt"
converts 0 "$dir/folder" "$dir/folder/out.gguf" --type q8_0
converts 0 "$dir/folder" "$dir/folder/out.gguf" --type q8_0
rm -r "$dir/folder" "$dir/link" "$dir/blob"
for type in f32 F16 bf16 Q8_0 q4_0; do
    converts 0 "$src" "$dir/$type.gguf" --type $type
done
says 'rows are no whole number of blocks: 5 become F16 (the first: blk.0.ffn_down.weight)'
has "$dir/f32.gguf" '"types":{"F32":{"tensors":62,'
has "$dir/F16.gguf" '"types":{"F32":{"tensors":26,"bytes":5376},"F16":{"tensors":36,'
has "$dir/bf16.gguf" '"BF16":{"tensors":36,'
has "$dir/Q8_0.gguf" '"F16":{"tensors":5,"bytes":110080},"Q8_0":{"tensors":31,'
has "$dir/q4_0.gguf" '"Q4_0":{"tensors":30,'
has "$dir/q4_0.gguf" '{"name":"token_embd.weight","type":"Q8_0"'
has "$dir/q4_0.gguf" '"tokenizer":"no_vocab"'
has "$dir/q4_0.gguf" '"architecture":"qwen2"'

# Converting to the same type gives the same file; exact types survive a round trip.
for type in f32 F16 bf16 Q8_0; do
    converts 0 "$dir/$type.gguf" "$dir/again.gguf" --type $type
    same "$dir/$type.gguf" "$dir/again.gguf"
done
for type in F16 bf16; do
    converts 0 "$dir/$type.gguf" "$dir/wide.gguf" --type f32
    converts 0 "$dir/wide.gguf" "$dir/again.gguf" --type $type
    same "$dir/$type.gguf" "$dir/again.gguf"
done
# One thread or several give the same bytes; an existing file is replaced.
converts 0 "$src" "$dir/again.gguf" --type q4_0 -t 1
same "$dir/q4_0.gguf" "$dir/again.gguf"

# The folder and the file give the same logits.
expect 0 logits -m "$src" --ids 1,2,3 -o "$dir/a.f32"
expect 0 logits -m "$dir/f32.gguf" --ids 1,2,3 -o "$dir/b.f32"
same "$dir/a.f32" "$dir/b.f32"

# Refusals.
converts 2 "$dir/f32.gguf" "$dir/f32.gguf" --type f32
ln "$dir/f32.gguf" "$dir/link.gguf"
converts 2 "$dir/f32.gguf" "$dir/link.gguf" --type f32
converts 2 "$dir/f32.gguf" "$dir" --type f32
converts 3 "$dir/f32.gguf" "$dir/no/such.gguf" --type f32
mkfifo "$dir/pipe"
converts 3 "$dir/f32.gguf" "$dir/pipe" --type f32 # only regular files are replaced
[ -p "$dir/pipe" ] || fail "the pipe was replaced"
(
    ulimit -f 20
    converts 3 "$dir/f32.gguf" "$dir/full.gguf" --type f32
    exit 0
) || exit 1
[ ! -e "$dir/full.gguf" ] || fail "a file cut short stays"
tells 3 'config.json' "$src/model.safetensors" "$dir/x.gguf" --type f32
head -c 900000 "$dir/f32.gguf" >"$dir/cut.gguf"
converts 3 "$dir/cut.gguf" "$dir/x.gguf" --type f32
[ ! -e "$dir/x.gguf" ] || fail "a refused input left an output"

# Another architecture is rewritten; its keys and vocabulary are kept.
if [ -r "$data/weights/stories260K/stories260K.gguf" ]; then
    converts 0 "$data/weights/stories260K/stories260K.gguf" "$dir/llama.gguf" --type q8_0
    has "$dir/llama.gguf" '"architecture":"llama"'
    has "$dir/llama.gguf" '"tokenizer":"llama","tokens":512'
fi

# A real vocabulary, with a random model that has some more rows.
real=$data/tokenizer/qwen2.5-0.5b-instruct
random=$data/../oracle/make_random_qwen2.py
if [ -r "$real/vocab.json" ] && /usr/bin/python3 -c 'import numpy' 2>"$dir/out"; then
    /usr/bin/python3 "$random" "$dir/model" --vocab 151936 --hidden 32 --heads 2 --kv 1 --ffn 64 --layers 1 ||
        fail "make_random_qwen2.py"
    cp "$real/vocab.json" "$real/merges.txt" "$real/tokenizer_config.json" "$dir/model"
    has "$dir/model" '"tokenizer":"gpt2","tokens":151665'
    has "$dir/model" '"refused":{"model":null,"text":null,'
    converts 0 "$dir/model" "$dir/real.gguf" --type q8_0
    has "$dir/real.gguf" '"tokenizer":"gpt2","tokens":151936'
    printf 'Hello, w\303\266rld! <|im_start|>user\n 12345\n' >"$dir/text"
    for special in "" --special; do
        "$MIZZLE" tokenize -m "$real" $special <"$dir/text" >"$dir/a" || fail "tokenize $real"
        "$MIZZLE" tokenize -m "$dir/real.gguf" $special <"$dir/text" >"$dir/b" || fail "tokenize real.gguf"
        same "$dir/a" "$dir/b"
    done
    grep -aq '\[PAD151665\]' "$dir/real.gguf" || fail "rows beyond the vocabulary are not padded"
    grep -aq '\[PAD151664\]' "$dir/real.gguf" && fail "a used token was padded"
    grep -aq 'tokenizer.chat_template' "$dir/real.gguf" || fail "the chat template is missing"
    # BOS, and what GGUF has room for of several ends of text and of the flags of added tokens.
    sed 's/"add_bos_token": false/"add_bos_token": true/; s/"bos_token": null/"bos_token": "<|box_start|>"/
        s/"lstrip": false/"lstrip": true/' "$real/tokenizer_config.json" >"$dir/model/tokenizer_config.json"
    echo '{"eos_token_id":[151645,151643,64,65,66]}' >"$dir/model/generation_config.json"
    tells 0 'lost: lstrip, rstrip, normalized of 22 tokens' "$dir/model" "$dir/ends.gguf" --type q8_0 -q
    says 'lost: token 66 as an end of text'
    "$MIZZLE" tokenize -m "$dir/model" -p x >"$dir/a" && "$MIZZLE" tokenize -m "$dir/ends.gguf" -p x >"$dir/b"
    same "$dir/a" "$dir/b"
    [ "$(cat "$dir/b")" = '151648 87' ] || fail "BOS: $(cat "$dir/b")"
    has "$dir/ends.gguf" '"tokenizer":"gpt2"'
    for key in eot eom; do
        grep -aq "tokenizer.ggml.${key}_token_id" "$dir/ends.gguf" || fail "no $key"
    done
    cp "$real/tokenizer_config.json" "$dir/model"
    printf 'a file of its own' >"$dir/model/chat_template.jinja"
    converts 0 "$dir/model" "$dir/real.gguf" --type q8_0
    grep -aqF 'a file of its own' "$dir/real.gguf" ||
        fail "the chat template in a file of its own is missing"
else
    skip "no test data or no numpy: a real vocabulary was not converted"
fi
