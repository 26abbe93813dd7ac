#!/bin/sh
# Vocabulary files: tokenizer.json in both forms and vocab.json + merges.txt give the same ids;
# damaged ones are refused.
set -u
mizzle=${MIZZLE:-build/mizzle}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
fail() {
    echo "t_vocab: $*" >&2
    exit 1
}

# The 256 bytes as GPT-2 writes them, then a few pieces: ids 0..255, 256 "he", 257 "hel",
# 258 "Ġt", and an added token with id 259.
awk 'BEGIN {
    next_free = 256
    for (b = 0; b < 256; b++) {
        plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174
        printf "\"\\u%04x\":%d,", plain ? b : next_free++, b
    }
    printf "\"he\":256,\"hel\":257,\"\\u0120t\":258"
}' >"$tmp/pieces"
added='{"id":259,"content":"<|endoftext|>","special":true}'
merges='"h e","he l","\u0120 t"'

# folder NAME VOCAB MERGES ADDED: a tokenizer.json made of these JSON values.
folder() {
    mkdir -p "$tmp/$1"
    printf '{"model":{"type":"BPE","vocab":%s,"merges":%s},"added_tokens":%s}' "$2" "$3" "$4" \
        >"$tmp/$1/tokenizer.json"
}
pieces=$(cat "$tmp/pieces")
folder good "{$pieces}" "[$merges]" "[$added]"
folder pairs "{$pieces}" '[["h","e"],["he","l"],["\u0120","t"]]' "[$added]"
mkdir "$tmp/split"
printf '{%s}' "$pieces" >"$tmp/split/vocab.json"
printf '#version: 0.2\nh e\nhe l\n\304\240 t\n' >"$tmp/split/merges.txt"
printf '{"added_tokens_decoder":{"259":{"content":"<|endoftext|>","special":true}}}' \
    >"$tmp/split/tokenizer_config.json"

printf 'help the t\303\251l\n<|endoftext|>h' >"$tmp/text"
want="257 112 258 256 258 195 169 108 10"
for form in good pairs split; do
    for special in "" --special; do
        ids=$(${RUN:-} "$mizzle" tokenize -m "$tmp/$form" $special <"$tmp/text") ||
            fail "$form is refused"
        [ -z "$special" ] || [ "$ids" = "$want 259 104" ] || fail "$form: found $ids"
        [ -n "$special" ] || [ "${ids#"$want" 60 124 101}" != "$ids" ] || fail "$form: found $ids"
        echo "$ids" | ${RUN:-} "$mizzle" tokenize -m "$tmp/$form" --decode >"$tmp/back" ||
            fail "$form: --decode"
        cmp -s "$tmp/text" "$tmp/back" || fail "$form: text does not come back"
    done
done

# refused NAME WORD: status 3, one line that names the folder and has WORD.
refused() {
    ${RUN:-} "$mizzle" tokenize -m "$tmp/$1" <"$tmp/text" >"$tmp/out" 2>"$tmp/err"
    status=$?
    [ $status -eq 3 ] && [ ! -s "$tmp/out" ] || fail "$1: status $status: $(head -c 300 "$tmp/err")"
    [ "$(wc -l <"$tmp/err")" -eq 1 ] && [ "$(wc -c <"$tmp/err")" -lt 600 ] || fail "$1: not one line: $(head -c 300 "$tmp/err")"
    grep -q "$tmp/$1" "$tmp/err" && grep -q "$2" "$tmp/err" || fail "$1: says $(cat "$tmp/err")"
}
# bad NAME WORD VOCAB MERGES ADDED: a folder made of these values is refused.
bad() {
    folder "$1" "$3" "$4" "$5"
    refused "$1" "$2"
}
mkdir "$tmp/none"
refused none 'expected tokenizer.json or vocab.json'
all="{$pieces}"
bad list 'expected an object of pieces' '[]' "[$merges]" '[]'
bad empty 'expected an object of pieces' '{}' "[$merges]" '[]'
bad negative 'expected an id' '{"a":-1}' '[]' '[]'
bad real 'expected an id' '{"a":1.5}' '[]' '[]'
bad string 'expected an id' '{"a":"1"}' '[]' '[]'
bad huge 'expected an id' '{"a":99999999999}' '[]' '[]'
bad twice 'is there twice' '{"a":0,"b":0}' '[]' '[]'
bad bytes 'byte' '{"a":0}' '[]' '[]'
bad surrogate 'expected a JSON object' '{"\ud800":0}' '[]' '[]'
bad control 'line' "{\"a
b\":0}" '[]' '[]'
bad nomerges 'merges' "$all" 'null' '[]'
bad number 'merge 0' "$all" '[7]' '[]'
bad triple 'merge' "$all" '[["a","b","c"]]' '[]'
bad oneword 'merge' "$all" '["he"]' '[]'
bad words 'merge' "$all" '["h e l"]' '[]'
bad unknown 'merge' "$all" '["h q"]' '[]'
bad addedtext 'added token' "$all" "[$merges]" '[{"id":"x","content":"y"}]'
bad addedless 'added token' "$all" "[$merges]" '[{"id":300}]'
bad addedfar 'id' "$all" "[$merges]" '[{"id":99999999,"content":"y"}]'
bad addedneg 'id' "$all" "[$merges]" '[{"id":-5,"content":"y"}]'
bad addedempty 'empty' "$all" "[$merges]" '[{"id":260,"content":""}]'
mkdir "$tmp/lists" "$tmp/large" # 2.4 MB that would take 110 MB; a file over the limit
awk 'BEGIN { printf "{\"a\":["; for (i = 0; i < 800000; i++) printf "[],"; print "0]}" }' \
    >"$tmp/lists/tokenizer.json"
refused lists 'JSON values'
awk 'BEGIN { printf "{\"a\":\""; for (i = 0; i < 3500000; i++) printf "xxxxxxxxxx"; print "\"}" }' \
    >"$tmp/large/tokenizer.json"
refused large 'at most 33554432 bytes'
mkdir "$tmp/wordpiece" "$tmp/deep" "$tmp/cut" "$tmp/zero" "$tmp/long" "$tmp/nomergefile"
echo '{"model":{"type":"WordPiece","vocab":{}}}' >"$tmp/wordpiece/tokenizer.json"
refused wordpiece 'expected BPE'
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "[" }' >"$tmp/deep/tokenizer.json"
refused deep 'expected a JSON object'
head -c 2000 "$tmp/good/tokenizer.json" >"$tmp/cut/tokenizer.json"
refused cut 'line'
: >"$tmp/zero/tokenizer.json"
refused zero 'line'
awk 'BEGIN { for (i = 0; i < 1000000; i++) printf "xxxxxxxxxx" }' >"$tmp/long/tokenizer.json"
refused long 'line'
printf '{%s}' "$pieces" >"$tmp/nomergefile/vocab.json"
refused nomergefile 'merges.txt'
for line in 'he' 'h e l' 'h q' ' e' 'h '; do
    printf '%s\n' "$line" >"$tmp/split/merges.txt"
    refused split 'merge'
done
exit 0
