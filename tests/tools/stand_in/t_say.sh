#!/bin/sh
# mizzle cloud --say on the command line: what is refused, and training data of csqa and gsm8k with
# the real vocabulary: a cloud that says its answers, asked for every token, gets them right.
. tests/support/shell.sh

expect 2 cloud --check http://127.0.0.1:9 --say "$dir/say"
says 'say: expected without --check'
if [ -e weights/milli/vocabulary.gguf ]; then
    # wrong PATTERN TEXT: a file of this text ends the server with status 3 and one line.
    wrong() {
        printf '%b' "$2" >"$dir/say"
        refused 3 cloud --port 0 -m weights/milli/vocabulary.gguf --say "$dir/say"
        says "$1"
    }
    wrong 'say: expected JSON lines with prompt and cot, found none' ''
    wrong 'say: line 2: not JSON' '{"prompt":"a","cot":"b"}\n{"prompt":\n'
    wrong 'say: line 1: cot: expected a text, found nothing' '{"prompt":"a"}\n'
    wrong 'say: line 2: prompt: expected one text for it, found another than in line 1' \
        '{"prompt":"a","cot":"b"}\n{"prompt":"a","cot":"c"}\n'
    rm "$dir/say"
    expect 3 cloud --port 0 -m weights/milli/vocabulary.gguf --say "$dir/say"
    says 'say: No such file'
    # Without --say, a model without weights is none.
    expect 3 cloud --port 0 -m weights/milli/vocabulary.gguf
else
    echo "SKIP: no demo pair in weights/milli"
fi

real=$data/tokenizer/qwen2.5-0.5b-instruct
random=$data/../oracle/make_random_qwen2.py
if [ ! -r "$real/vocab.json" ] || [ ! -r "$data/csqa/citer/train_mlp.json" ]; then
    skip "no real vocabulary, csqa and gsm8k in $data"
fi
if ! /usr/bin/python3 "$random" "$dir/edge" --vocab 151936 --hidden 32 --heads 2 --kv 1 --ffn 64 \
    --layers 1 >"$dir/out" 2>"$dir/err"; then
    skip "no random model: $(tail -n 1 "$dir/err")"
fi
cp "$real/vocab.json" "$real/merges.txt" "$real/tokenizer_config.json" "$dir/edge"
expect 0 convert "$dir/edge" "$dir/edge.gguf" --type q8_0

# answers TASK QUESTIONS RIGHT ARGS: eval must ask and find so many.
answers() {
    kind=$1
    counts="\"questions\":$2,\"trainings\":1,\"left_out\":0,\"right\":$3,"
    shift 3
    expect 0 eval --task "$kind" --data "$dir/items" -m "$dir/edge.gguf" --cloud-url "$url" \
        --prompt citer --policy always --json -q "$@"
    shows "$counts"
    shows '"routed":1.0*,.*"fallback":0,'
}
# A vocabulary serves without weights to those who do not ask for a token first. In the last three
# answers, the first text in parentheses is another than the choice.
sed -n '1,6p; 413p; 451p; 1693p' "$data/csqa/citer/train_mlp.json" >"$dir/items"
start_cloud -m "$real" --say "$data/csqa/citer/train_mlp.json" --cloud-api sglang
answers csqa 9 9
stop_cloud
head -n 6 "$data/gsm8k/train_mlp.json" >"$dir/items"
start_cloud -m "$dir/edge.gguf" --say "$dir/items"
answers gsm8k 6 6 --cloud-tokens 16
stop_cloud
exit 0
