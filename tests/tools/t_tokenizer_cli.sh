#!/bin/sh
# mizzle tokenize: ids and back, special tokens, refusals.
. tests/support/shell.sh
set -eu
# Refusals.
small=weights/milli/vocabulary.gguf
given 1008 refuses 2 'id 1008: expected' tokenize -m $small --decode
for ids in 99999999999999999999 -1 x; do
    given $ids refused 2 tokenize -m $small --decode
done
refuses 3 vocab.json tokenize -m tests -p x

data=$data/tokenizer/qwen2.5-0.5b-instruct
[ -d "$data" ] || skip "no $data"
[ "$(printf 'Hello world\n' | "$MIZZLE" tokenize -m "$data")" = "9707 1879 198" ]
[ "$(echo 9707 1879 | "$MIZZLE" tokenize -m "$data" --decode)" = "Hello world" ]
[ "$("$MIZZLE" tokenize -m "$data" --special -p '<|im_end|>')" = 151645 ]
[ "$("$MIZZLE" tokenize -m "$data" -p '<|im_end|>' | wc -w)" -gt 1 ]
"$MIZZLE" tokenize -m "$data" --show -p 'a b' | grep -q '" b"'
# Harmless text is shown unchanged; a control character and a bidi override are escaped.
shown=$(printf 'caf\303\251\033\342\200\256"' | "$MIZZLE" tokenize -m "$data" --show | tr -d '\n')
echo "$shown" | grep -q "$(printf '\303\251')" && echo "$shown" | grep -q 'x1b' &&
    echo "$shown" | grep -q 'xe2' && echo "$shown" | grep -q 'x22'
