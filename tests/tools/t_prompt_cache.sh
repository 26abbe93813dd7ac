#!/bin/sh
# mizzle run --prompt-cache: the answer is the same with a file of any relation to the prompt, on
# every set and number of threads; a file that cannot be used is named in one line and replaced; no
# path and no interrupt loses an answer or a file.
. tests/support/demo_pair.sh
file=$dir/x.cache
text='Question: Which of these things is kept in the old harbour, and what is it made of? Answer:'
# tokens: print what is the same in every run.
tokens() { sed -n 's/,"ms":.*//; /"event":"token"/p' "$dir/out"; }
# ask STATUS TEXT ARGS: answer a prompt as JSON, routed by a score of each token.
ask() {
    want=$1
    prompt=$2
    shift 2
    expect "$want" run -m $edge --cloud off --policy mlp -n 12 --json -p "$prompt" "$@"
}
# same CACHED TEXT ARGS: the answer is that without a file, and CACHED says how many tokens of the
# prompt the file had: a number, none, some or all but the last.
same() {
    cached=$1
    prompt=$2
    shift 2
    ask 0 "$prompt" "$@"
    tokens >"$dir/plain"
    ask 0 "$prompt" "$@" --prompt-cache "$file"
    tokens | cmp -s - "$dir/plain" || fail "$prompt: another answer with the file"
    found=$(field prompt_cached)
    all=$(($(field prompt_tokens) - 1))
    case $cached in
    none) [ "$found" -eq 0 ] ;;
    some) [ "$found" -gt 0 ] && [ "$found" -lt $all ] ;;
    all) [ "$found" -eq $all ] ;;
    esac || fail "$prompt $*: $found of $all tokens came from the file, expected $cached"
}
# noted TEXT: one line on stderr says this.
noted() {
    [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -q "$1" "$dir/err" || fail "no line '$1'"
}

# A new file, the same prompt, its beginning, a longer one, one that differs, an empty file.
same none "$text"
[ "$(find "$file" -perm 600)" = "$file" ] || fail "others can read the file"
cp "$file" "$dir/first"
same all "$text"
same all 'Question: Which of these'
cmp -s "$file" "$dir/first" || fail "a file that has the prompt was written again"
same some "$text The harbour"
same all "$text The harbour"
same some 'Question: Which of these things is kept somewhere else?'
same none 'Somewhere else'
: >"$file"
same none "$text"
cmp -s "$file" "$dir/first" || fail "another file of the same prompt"
[ ! -s "$dir/err" ] || fail "a note without a reason"

# A file of one set and number of threads serves all; what is written is the same, too.
for isa in $("$MIZZLE" info --json | sed 's/.*"sets":\[\([^]]*\)\].*/\1/; s/[",]/ /g'); do
    case $isa in
    blas | avx512bf16) continue ;;
    esac
    for threads in 1 2 3; do
        same all "$text" --isa "$isa" -t $threads
        cp "$file" "$dir/kept"
        rm "$file"
        same none "$text" --isa "$isa" -t $threads
        cmp -s "$file" "$dir/kept" || fail "$isa, $threads threads: another file"
    done
done

# Nothing to answer is a way to prepare the file; sampling and drafts do not matter to it.
rm "$file"
ask 0 "$text" -n 0 --prompt-cache "$file"
cmp -s "$file" "$dir/first" || fail "-n 0: another file"
same all "$text" --temp 0.8 --seed 3 --repeat-penalty 1.2 --draft off

# Files of another kind: one line each, and they are replaced.
for other in f32 q8; do
    same none "$text" --kv $other
    noted "^mizzle: $file: KV type: expected $other, found "
    same all "$text" --kv $other
done
same none "$text" --kv f16
ask 0 "$text" -m weights/milli/edge-1.gguf --policy never --prompt-cache "$file"
noted ': made with other weights; evaluating the prompt and replacing it$'
[ "$(field prompt_cached)" -eq 0 ] || fail "the cache of another model was used"
same none "$text"
"$MIZZLE" convert $edge "$dir/q4.gguf" --type q4_0 -q || fail convert
ask 0 "$text" -m "$dir/q4.gguf" --policy never --prompt-cache "$file" --kv f16
noted ': made with other weights'
# The line comes before the answer.
same none "$text"
"$MIZZLE" run -m weights/milli/edge-1.gguf --policy never -n 4 --plain -p "$text" \
    --prompt-cache "$file" >"$dir/out" 2>&1 </dev/null
head -n 1 "$dir/out" | grep -q 'made with other weights' || fail "a line after the answer"
rm "$file"
# The same weights in another place are the same model.
cp $edge "$dir/moved.gguf"
same none "$text"
ask 0 "$text" -m "$dir/moved.gguf" --policy never --prompt-cache "$file"
[ "$(field prompt_cached)" -gt 0 ] && [ ! -s "$dir/err" ] || fail "a model that was moved"
for damage in 'bs=1 seek=8:version' 'bs=1 seek=100:checksum of the head' \
    'bs=1 seek=210:checksum of the ids' 'bs=1 seek=2000:checksum of the cache'; do
    cp "$dir/first" "$file"
    # shellcheck disable=SC2086
    printf '\377' | dd of="$file" ${damage%%:*} conv=notrunc 2>/dev/null
    same none "$text"
    noted "^mizzle: $file: ${damage#*:}: expected .*, found "
    cmp -s "$file" "$dir/first" || fail "$damage: not replaced"
done
head -c 1500 "$dir/first" >"$file"
same none "$text"
noted "$file: size: expected "

# Paths that cannot be meant are refused before the model's answer, and left as they are.
ask 3 "$text" --prompt-cache "$dir/none/x"
noted 'none/x: cannot be written: No such file or directory$'
ask 2 "$text" --prompt-cache "$dir"
noted "$dir: expected a prompt cache, found a folder"
ask 2 "$text" --prompt-cache ''
cp README.md "$dir/mine"
ask 2 "$text" --prompt-cache "$dir/mine"
noted 'mine: expected a prompt cache, found another file$'
cmp -s README.md "$dir/mine" || fail "a file that is no prompt cache was replaced"
[ ! -s "$dir/out" ] || ! grep -q '"event":"token"' "$dir/out" || fail "an answer after a refusal"

# A link stays, and what it leads to is written, even if that does not exist yet.
mkdir "$dir/there"
ln -s link2 "$dir/link"
ln -s there/cache "$dir/link2"
plain=$file
for round in none all; do
    file=$dir/link
    same $round "$text"
    cmp -s "$dir/first" "$dir/there/cache" || fail "not written through a link"
    [ -L "$dir/link" ] && [ -L "$dir/link2" ] || fail "a link was replaced"
done
echo >>"$dir/there/cache"
same none "$text"
noted "$file: size: expected "
cmp -s "$dir/first" "$dir/there/cache" && [ -L "$dir/link2" ] || fail "not replaced through a link"
ln -s loop "$dir/loop"
ask 3 "$text" --prompt-cache "$dir/loop"
ln -sf there/none/x "$dir/link2"
ask 3 "$text" --prompt-cache "$file"
noted 'link: cannot be written: No such file or directory$'
file=$plain

# A disk without room for it costs the file, not the answer.
rm "$file"
ask 0 "$text"
tokens >"$dir/plain"
(
    ulimit -f 1
    "$MIZZLE" run -m $edge --cloud off --policy mlp -n 12 --json -p "$text" --prompt-cache "$file" \
        2>"$dir/err" </dev/null
) | cat >"$dir/out"
tokens | cmp -s - "$dir/plain" || fail "a full disk: another answer"
noted "prompt cache not written: $file: File too large"
[ -z "$(find "$dir" -name 'x.cache*')" ] || fail "a file is left"

# A conversation keeps its first turn.
printf 'One\nTwo\n' | "$MIZZLE" run -m $edge --cloud off --chat -n 4 -q --prompt-cache "$file" \
    >"$dir/plain" 2>"$dir/err" || fail "a conversation"
cp "$file" "$dir/first"
printf 'One\nThree\n' | "$MIZZLE" run -m $edge --cloud off --chat -n 4 -q --prompt-cache "$file" \
    >"$dir/out" 2>"$dir/err" || fail "a conversation"
cmp -s "$file" "$dir/first" || fail "a conversation keeps another turn than the first"
"$MIZZLE" run --help all | tr -s ' \n' ' ' | grep -q 'FILE holds the prompt itself' ||
    fail "the help does not say what the file holds"
exit 0
