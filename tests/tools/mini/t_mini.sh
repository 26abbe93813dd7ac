#!/bin/sh
# tools/lab/mini/mini.c, the file for a first reading: it is short, builds without a warning, and
# gives the bits of the engine. The same logits after prompts of all kinds of ASCII, the same ids,
# sources and scores of 20 questions of the demo, for which both ask the same server; the same text. A
# real model, converted to Q8_0, gives the same ids. (t_mini_shapes.c has other shapes, and F32.)
. tests/support/demo_pair.sh
mini=$dir/mini source=tools/lab/mini/mini.c
case ${BUILD:-} in
*asan* | *tsan*) skip "mini.c is compared with a release build" ;;
esac
[ "$(wc -l <$source)" -le 900 ] || fail "$source: more than 900 lines"
! grep -q '#include "' $source || fail "$source includes something of the project"
for cc in "${CC:-cc}" gcc clang; do
    command -v "${cc##* }" >/dev/null || continue
    $cc -O2 -ffp-contract=off -Wall -Wextra -Werror $source -o "$mini" -lm -lcurl 2>"$dir/err" ||
        fail "$cc: $(cat "$dir/err")"
done

# logits MODEL PROMPT: the row after the prompt is the same.
logits() {
    "$mini" --tokens 1 --logits "$dir/mine" -- "$1" "$2" >/dev/null || fail "mini: $2"
    expect 0 logits -m "$1" -p "$2" -o "$dir/all"
    tail -c "$(wc -c <"$dir/mine")" "$dir/all" >"$dir/engine"
    same "$dir/mine" "$dir/engine"
}
odd="x  y   
 
z	a.b... ''s it'S they'Re we'Ll I'D x's
don't 1234 -12.5e3 (a) { b } <|im_start|>user
<|im_end|>  <|endoftext|>.<|im_end|> !<|im_end|>?
 tail "
for prompt in a ' ' '  ' "$(printf 'a\r\n\r\n  b')" "$odd" "$(printf '\033[1m\001~\177 \014x')" \
    "'" "''" "'s" "'l" "'LL" '  .' '<|im_end' ' <|im_end|>' '  <|im_end|>x' '.<<|im_end|>>' \
    "$(cat $source | head -c 600)" 'The gusutize is'; do
    logits $edge "$prompt"
done

# tokens FILE: position, id, source and score of each token.
tokens() {
    sed -n 's/,"edge_id.*/}/; s/"text":"\([^"\\]\|\\.\)*",//; s/^.*"pos"/"pos"/p' "$1"
}
# answers QUESTION: they are the same.
answers() {
    prompt=$(sed -n "$(($1 + 1))s/^{\"prompt\":\"\(.*\)\",\"answer.*/\1/p" weights/milli/questions.jsonl)
    prompt=$(printf '%b' "$prompt")
    "$mini" --json --cloud-url "$url" $edge "$prompt" >"$dir/mini.out" || fail "mini: question $1"
    expect 0 run -m $edge --question "$1" --kv f32 --json --cloud-url "$url"
    tokens "$dir/mini.out" >"$dir/mine"
    tokens "$dir/out" >"$dir/engine"
    [ "$(wc -l <"$dir/mine")" -gt 5 ] || fail "question $1: no answer"
    same "$dir/mine" "$dir/engine"
    cat "$dir/mine" >>"$dir/both"
}
start_cloud
question=0
while [ $question -lt 20 ]; do
    answers $question
    question=$((question + 1))
done
[ "$(grep -c '"cloud"' "$dir/both")" -gt 20 ] || fail "the cloud is hardly asked"
answers 7

# What a person sees, also when the server is gone.
text() {
    "$mini" --time --cloud-url "$url" $edge "$prompt" >"$dir/mine" 2>"$dir/times" || fail "mini: text"
    expect 0 run --question 7 --kv f32 --cloud-url "$url"
    same "$dir/mine" "$dir/out"
}
text
cp "$dir/out" "$dir/routed"
grep -q '\[cloud: ' "$dir/out" || fail "no mark"
line=$(sed -n "s,^    build/mini \(--cloud-url\) [^ ]*,\"$mini\" \1 $url,p" README.md)
eval "$line" >"$dir/mine" || fail "README.md: $line"
grep -qF "Here it writes \`$(cat "$dir/mine")\`:" README.md || fail "README.md: it writes another text"
expect 0 run -p "$(echo "$line" | sed 's/^.* "\(.*\)"$/\1/')" --kv f32 --cloud-url "$url"
same "$dir/mine" "$dir/out"
[ "$(grep -c ' ms a token$' "$dir/times")" -eq 10 ] || fail "--time: $(cat "$dir/times")"
gone=$url
start -m weights/milli/cloud.gguf --policy never --kv f32 # it speaks the same API
"$mini" --cloud-url "$url" $edge "$prompt" >"$dir/mine" || fail "mini: serve"
same "$dir/mine" "$dir/routed"
stop_cloud
url=$gone
text
grep -q '\[fallback: ' "$dir/out" || fail "no fallback"

# What it cannot do ends it with one line.
rejects() {
    (MIZZLE=$mini && fails 1 "$@" && [ ! -s "$dir/out" ]) || fail "mini: $*"
}
rejects usage
rejects usage --none $edge x
rejects 'expected ASCII.*unicode.c' $edge 'Gr\303\274n'"$(printf '\303\274')"
rejects 'cannot be opened' "$dir/none" x
rejects 'not a GGUF file' Makefile x
head -c 300000 $edge >"$dir/short.gguf"
rejects 'short.gguf: ' "$dir/short.gguf" x
expect 0 convert $edge "$dir/f16.gguf" --type f16
rejects 'expected .* of F32 or Q8_0' "$dir/f16.gguf" x
head -c 90000 weights/milli/edge-0.5.router.safetensors >"$dir/f16.router.safetensors"
cp $edge "$dir/f16.gguf"
rejects 'not a router' "$dir/f16.gguf" x

real=$(real_model 0.5B)
[ -e "$real" ] || { echo "SKIP: no $real" && exit 0; }
expect 0 convert "$real" "$dir/real.gguf" --type q8_0 -q
# Other instructions, which vectorise integers and fuse what is written as fmaf, change no bit.
${CC:-cc} -O3 -march=native -ffp-contract=off $source -o "$mini" -lm -lcurl || fail "-march=native"
prompt='<|im_start|>user
What is 17 times 6?<|im_end|>
<|im_start|>assistant
'
"$mini" --json --tokens 6 "$dir/real.gguf" "$prompt" | sed 's/,"score.*//' >"$dir/mine"
expect 0 run -m "$dir/real.gguf" -p "$prompt" -n 6 --kv f32 --json --policy never
tokens "$dir/out" | sed 's/^/{/; s/,"score.*//' >"$dir/engine"
same "$dir/mine" "$dir/engine"
