#!/bin/sh
# mizzle eval --task agree: two models on lines of ids. stories260K, quantised and as it is, against
# the logits of another engine; then the demo pair with its router, and what is refused.
MIZZLE=${MIZZLE:-build/mizzle}
data=${MIZZLE_TESTDATA:-../shared/data}/weights
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "t_agree: $*" >&2
    tail -n 5 "$dir/out" "$dir/err" >&2
    exit 1
}
# agree STATUS ARGS: run the task, which must end with this status.
agree() {
    want=$1
    shift
    "$MIZZLE" eval --task agree "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    [ $status -eq "$want" ] || fail "$*: status $status, not $want"
}
# row N FIELD: print a field of line N of the output.
row() { sed -n "$1s/.*\"$2\":\([^,}]*\).*/\1/p" "$dir/out"; }
# is EXPRESSION: awk must find it true.
is() { awk "BEGIN { exit !($*) }" || fail "expected $*"; }
# refused STATUS PATTERN ARGS: the task must say so, in one line.
refused() {
    pattern=$2
    want=$1
    shift 2
    agree "$want" "$@"
    { [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -q -e "$pattern" "$dir/err"; } || fail "$* says this"
}

if [ -e weights/milli/edge-0.5.gguf ]; then
    milli="-m weights/milli/edge-0.5.gguf --cloud-model weights/milli/cloud.gguf"
    echo '300 301 302 303 304 305 306 307 310 312 314 316 318 320' >"$dir/ids"
    printf '\n 400 401 402 403 404\t405 406 407\r\n' >>"$dir/ids"
    # shellcheck disable=SC2086
    agree 0 $milli --data "$dir/ids" --policy never,mlp --target-routed 0.3 -n 8 --json
    is "$(row 1 tokens) == 22 && $(row 1 mlp) >= 0 && $(row 1 mlp) <= 1"
    is "$(row 3 tokens) == 160 && $(row 3 routed) > 0.2 && $(row 3 routed) < 0.4"
    # shellcheck disable=SC2086
    refused 2 'data FILE' $milli
    refused 2 'cloud-model FILE' -m weights/milli/edge-0.5.gguf --data "$dir/ids"
    # shellcheck disable=SC2086
    refused 2 oracle $milli --data "$dir/ids" --policy oracle
    for bad in '1 2 x' '1008' '-1' '1.5' '1 99999999999999999999' '1,2'; do
        printf '1 2 3\n%s\n' "$bad" >"$dir/bad"
        # shellcheck disable=SC2086
        refused 3 'bad: line 2: expected token ids below 1008, found "[^"]' $milli --data "$dir/bad"
    done
    printf '1 2\0003' >"$dir/bad"
    # shellcheck disable=SC2086
    refused 3 'bad: .*found a byte 0' $milli --data "$dir/bad"
    awk 'BEGIN { for (i = 0; i < 5000; i++) printf "7 " }' >"$dir/bad"
    # shellcheck disable=SC2086
    refused 3 'bad: line 1: expected fewer than .* ids, found 5000' $milli --data "$dir/bad"
    printf '\n \n' >"$dir/bad"
    # shellcheck disable=SC2086
    refused 3 'bad: expected lines of token ids, found none' $milli --data "$dir/bad"
    # shellcheck disable=SC2086
    refused 3 'no/such' $milli --data "$dir/no/such"
else
    echo "SKIP: no demo pair in weights/milli"
fi

f32=$data/stories260K_qwen2
ids=$data/stories260K/golden_ids.txt
if [ ! -r "$ids" ] || [ ! -r "$f32/config.json" ]; then
    echo "SKIP: no stories260K in $data"
    exit 77
fi
"$MIZZLE" convert --type q4_0 "$f32" "$dir/q4.gguf" 2>"$dir/err" || fail "convert"
# The mean of -ln p of the text that the program of llama2.c writes, from its own logits
# (golden_logits_f32.bin), is 0.475583.
agree 0 -m "$f32" --cloud-model "$f32" --data "$ids" --policy never,always --questions 1 -n 219 --json
is "$(row 1 tokens) == 220 && $(row 1 differ) == 0"
is "$(row 2 accuracy) == 1 && $(row 2 nats) == 0.475583 && $(row 3 nats) == 0.475583"
is "$(row 2 routed) == 0 && $(row 3 routed) == 1 && \"$(row 3 pgr)\" == \"null\""

agree 0 -m "$dir/q4.gguf" --cloud-model "$f32" --data "$ids" --questions 4 -n 24 --json
is "$(row 1 differ) == 24 && $(sed -n '1s/.*"max-prob":\([0-9.]*\).*/\1/p' "$dir/out") == 0.8784"
is "$(row 3 equal) == 96 && $(row 3 cloud) == 96 && $(row 2 equal) < 48 && $(row 2 pgr) == 0"
[ "$(wc -l <"$dir/out")" -eq 31 ] || fail "expected two baselines and four policies at seven shares"
sed '1d; s/"isa".*//' "$dir/out" >"$dir/all"
for i in 4 5 6 7 8 9 10; do # max-prob: more shares, more of the text
    is "$(row $i routed) <= $(row $i target) + 0.0105 && $(row $i equal) >= $(row $((i > 4 ? i - 1 : i)) equal)"
done
is "$(row 10 equal) == 96 && $(row 10 cloud) == 48" # half of the tokens give the whole text
is "$(row 10 nats) == $(row 3 nats)"
for field in accuracy routed questions tokens threshold pgr; do
    [ -n "$(row 31 $field)" ] || fail "no $field in the last object"
done
agree 0 -m "$dir/q4.gguf" --cloud-model "$f32" --data "$ids" --questions 4 -n 24 --json -t 1 \
    --sweep 0.05:0.1:2 --policy max-prob
sed '1d; s/"isa".*//' "$dir/out" >"$dir/two"
[ "$(grep -c . "$dir/two")" -eq 2 ] || fail "a sweep of two shares"
while read -r line; do grep -qF "$line" "$dir/all" || fail "one thread: other numbers"; done <"$dir/two"
refused 2 'expected a model of at least 1008 ids, found 512' -m weights/milli/edge-0.5.gguf \
    --cloud-model "$f32" --data "$ids"
exit 0
