#!/bin/sh
# Vocabulary files: tokenizer.json in both forms and vocab.json + merges.txt give the same ids; huge
# ones are refused.
. tests/support/shell.sh

# The 256 bytes as GPT-2 writes them, then a few pieces: ids 0..255, 256 "he", 257 "hel",
# 258 "Ġt", and an added token with id 259.
awk 'BEGIN {
    next_free = 256
    for (b = 0; b < 256; b++) {
        plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174
        printf "\"\\u%04x\":%d,", plain ? b : next_free++, b
    }
    printf "\"he\":256,\"hel\":257,\"\\u0120t\":258"
}' >"$dir/pieces"
added='{"id":259,"content":"<|endoftext|>","special":true}'
merges='"h e","he l","\u0120 t"'

# folder NAME VOCAB MERGES ADDED: a tokenizer.json made of these JSON values.
folder() {
    mkdir -p "$dir/$1"
    printf '{"model":{"type":"BPE","vocab":%s,"merges":%s},"added_tokens":%s}' "$2" "$3" "$4" \
        >"$dir/$1/tokenizer.json"
}
pieces=$(cat "$dir/pieces")
folder good "{$pieces}" "[$merges]" "[$added]"
folder pairs "{$pieces}" '[["h","e"],["he","l"],["\u0120","t"]]' "[$added]"
mkdir "$dir/split"
printf '{%s}' "$pieces" >"$dir/split/vocab.json"
printf '#version: 0.2\nh e\nhe l\n\304\240 t\n' >"$dir/split/merges.txt"
printf '{"added_tokens_decoder":{"259":{"content":"<|endoftext|>","special":true}}}' \
    >"$dir/split/tokenizer_config.json"

printf 'help the t\303\251l\n<|endoftext|>h' >"$dir/text"
want="257 112 258 256 258 195 169 108 10"
for form in good pairs split; do
    for special in "" --special; do
        ids=$("$MIZZLE" tokenize -m "$dir/$form" $special <"$dir/text") ||
            fail "$form is refused"
        [ -z "$special" ] || [ "$ids" = "$want 259 104" ] || fail "$form: found $ids"
        [ -n "$special" ] || [ "${ids#"$want" 60 124 101}" != "$ids" ] || fail "$form: found $ids"
        echo "$ids" | "$MIZZLE" tokenize -m "$dir/$form" --decode >"$dir/back" ||
            fail "$form: --decode"
        cmp -s "$dir/text" "$dir/back" || fail "$form: text does not come back"
    done
done

# A byte order mark in front is no part of a file: tokenizer.json, its other files, a text.
mark() { # FILE...
    for file; do
        { printf '\357\273\277' && cat "$file"; } >"$dir/marked" && mv "$dir/marked" "$file"
    done
}
mark "$dir/good/tokenizer.json" "$dir/split/vocab.json" "$dir/split/tokenizer_config.json" "$dir/text"
for form in good split; do
    [ "$("$MIZZLE" tokenize -m "$dir/$form" --special <"$dir/text")" = "$want 259 104" ] ||
        fail "$form: a byte order mark is read"
done

# Flags of added tokens, and BOS, from the files of each form. A part of a text gets no BOS.
flags='{"content":"<s>","lstrip":true,"rstrip":true,"normalized":true,"special":true'
folder flags "{$pieces}" "[$merges]" "[$flags,\"id\":259}]"
printf '{"add_bos_token":true,"bos_token":{"content":"<s>"},"added_tokens_decoder":{"259":%s}}}' "$flags" \
    >"$dir/split/tokenizer_config.json"
folder post "{$pieces}" "[$merges]" "[$flags,\"id\":259}]"',"post_processor":{"type":"Sequence","processors":
    [{"type":"ByteLevel"},{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}}]}]}'
for form in flags split post; do
    want='65 259 66'
    [ $form = flags ] || want="259 $want"
    [ "$("$MIZZLE" tokenize -m "$dir/$form" --special -p 'A <s> B')" = "$want" ] || fail "$form: flags or BOS"
done

# What would take too much memory or time, as these lists of 2.4 MB take 110 MB; t_malformed_tokenizer
# has what is wrong in small files.
toolarge() { # WORDS: the folder is refused in one line that has them
    refuses 3 "$dir/large.*$1" tokenize -m "$dir/large" -p x
    [ "$(wc -c <"$dir/err")" -lt 600 ] || fail "a long line"
}
mkdir "$dir/large"
large=$dir/large/tokenizer.json
awk 'BEGIN { printf "{\"a\":["; for (i = 0; i < 800000; i++) printf "[],"; print "0]}" }' >"$large"
toolarge 'JSON values'
awk 'BEGIN { printf "{\"a\":\""; for (i = 0; i < 3500000; i++) printf "xxxxxxxxxx"; print "\"}" }' >"$large"
toolarge 'at most 33554432 bytes'
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "[" }' >"$large"
toolarge 'expected a JSON object'
awk 'BEGIN { for (i = 0; i < 1000000; i++) printf "xxxxxxxxxx" }' >"$large"
toolarge 'line'
exit 0
