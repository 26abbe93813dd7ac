#!/bin/sh
# mizzle cloud --say on the command line: what is refused, and training data of csqa and gsm8k with
# the real vocabulary: a cloud that says its answers, asked for every token, gets them right.
MIZZLE=${MIZZLE:-build/mizzle}
data=${MIZZLE_TESTDATA:-../shared/data}
dir=$(mktemp -d) || exit 1
. tests/support/server.sh
unset MIZZLE_CLOUD_URL MIZZLE_API_KEY OPENAI_API_KEY
fail() {
    echo "t_say: $*" >&2
    tail -n 5 "$dir/out" "$dir/err" "$dir/cloud" >&2
    exit 1
}

"$MIZZLE" cloud --check http://127.0.0.1:9 --say "$dir/say" >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && grep -q 'say: expected without --check' "$dir/err" || fail "--say with --check"
if [ -e weights/milli/vocabulary.gguf ]; then
    # refused PATTERN TEXT: a file of this text ends the server with status 3 and one line.
    refused() {
        printf '%b' "$2" >"$dir/say"
        "$MIZZLE" cloud --port 0 -m weights/milli/vocabulary.gguf --say "$dir/say" \
            >"$dir/out" 2>"$dir/err"
        [ $? -eq 3 ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -q "$1" "$dir/err" || fail "$1"
    }
    refused 'say: expected JSON lines with prompt and cot, found none' ''
    refused 'say: line 2: not JSON' '{"prompt":"a","cot":"b"}\n{"prompt":\n'
    refused 'say: line 1: cot: expected a text, found nothing' '{"prompt":"a"}\n'
    refused 'say: line 2: prompt: expected one text for it, found another than in line 1' \
        '{"prompt":"a","cot":"b"}\n{"prompt":"a","cot":"c"}\n'
    rm "$dir/say"
    "$MIZZLE" cloud --port 0 -m weights/milli/vocabulary.gguf --say "$dir/say" 2>"$dir/err"
    [ $? -eq 3 ] && grep -q 'say: No such file' "$dir/err" || fail "no file"
    # Without --say, a model without weights is none.
    "$MIZZLE" cloud --port 0 -m weights/milli/vocabulary.gguf 2>"$dir/err"
    [ $? -eq 3 ] || fail "a vocabulary is served without texts"
else
    echo "SKIP: no demo pair in weights/milli"
fi

real=$data/tokenizer/qwen2.5-0.5b-instruct
random=$data/../oracle/make_random_qwen2.py
if [ ! -r "$real/vocab.json" ] || [ ! -r "$data/csqa/citer/train_mlp.json" ]; then
    echo "SKIP: no real vocabulary, csqa and gsm8k in $data"
    exit 77
fi
if ! /usr/bin/python3 "$random" "$dir/edge" --vocab 151936 --hidden 32 --heads 2 --kv 1 --ffn 64 \
    --layers 1 >"$dir/out" 2>"$dir/err"; then
    echo "SKIP: no random model: $(tail -n 1 "$dir/err")"
    exit 77
fi
cp "$real/vocab.json" "$real/merges.txt" "$real/tokenizer_config.json" "$dir/edge"
"$MIZZLE" convert "$dir/edge" "$dir/edge.gguf" --type q8_0 2>"$dir/err" || fail "convert"

# answers TASK QUESTIONS RIGHT ARGS: eval must ask and find so many.
answers() {
    kind=$1
    want="\"questions\":$2,\"trainings\":1,\"left_out\":0,\"right\":$3,"
    shift 3
    "$MIZZLE" eval --task "$kind" --data "$dir/items" -m "$dir/edge.gguf" --cloud-url "$url" \
        --prompt citer --policy always --json -q "$@" >"$dir/out" 2>"$dir/err" || fail "eval $kind"
    tail -n 1 "$dir/out" | grep -q "$want" || fail "eval $kind: not $want"
    tail -n 1 "$dir/out" | grep -q '"routed":1.0*,.*"fallback":0,' || fail "eval $kind: fallback"
}
# A vocabulary serves without weights to those who do not ask for a token first. In the last three
# answers, the first text in parentheses is another than the choice.
sed -n '1,6p; 413p; 451p; 1693p' "$data/csqa/citer/train_mlp.json" >"$dir/items"
start_cloud -m "$real" --say "$data/csqa/citer/train_mlp.json" --api sglang
answers csqa 9 9
stop_cloud
head -n 6 "$data/gsm8k/train_mlp.json" >"$dir/items"
start_cloud -m "$dir/edge.gguf" --say "$dir/items"
answers gsm8k 6 6 --cloud-tokens 16
stop_cloud
exit 0
