#!/bin/sh
# The steps behind router/results/real with the demo pair and a few made-up questions: what is done
# and what comes next, a step that goes on, parts, what is kept, and answers that are made again.
set -u
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export MIZZLE="${MIZZLE:-build/mizzle}" REAL="$tmp/work" RESULTS="$tmp/results" WEIGHTS="$tmp/weights"
export DATA="$tmp/data" EDGE=weights/milli/edge-0.5.gguf CLOUD=weights/milli/cloud.gguf
export TEXTS=90 QUESTIONS=7 CALIBRATION=4 REPEATS=2 HEADS='context combined mlp mix' LABELS=match CHOICES='mix-8 combined-4' KEPT=chat
if [ ! -f "$EDGE" ]; then
    echo "SKIP: no demo pair in weights/milli"
    exit 77
fi

fail() {
    echo "t_real_steps: $*" >&2
    exit 1
}

# run STATUS ARGS...: run the steps, which must end with this status; $tmp/out is what they print.
run() {
    want=$1
    shift
    sh tools/results.sh real "$@" >"$tmp/out" 2>&1
    got=$?
    [ "$got" -eq "$want" ] || fail "real $*: status $got, expected $want: $(cat "$tmp/out")"
}

says() { grep -q -e "$1" "$tmp/out" || fail "not printed: $1: $(cat "$tmp/out")"; }

questions() { # FROM TO
    for i in $(seq "$1" "$2"); do
        echo '{"answerKey": "B", "id": "id'"$i"'", "question": {"question_concept": "thing '$((i / 2))'", "choices": [{"label": "A", "text": "pond"}, {"label": "B", "text": "school"}], "stem": "Where is thing '"$i"'?"}}'
    done
}
mkdir -p "$DATA/csqa" "$REAL/split/csqa" "$RESULTS/real"
questions 1 9 >"$DATA/csqa/dev_rand_split.jsonl"
questions 20 110 >"$REAL/split/csqa/train.jsonl"
questions 120 130 >"$REAL/split/csqa/calibration.jsonl"
{
    echo date,step,sum,version,processor,seconds,command
    echo "2001-01-01,split-csqa,$(cksum <tools/results/real/split.sh | cut -d " " -f 1),,,1,"
} >"$RESULTS/real/log.csv"

run 0 --dry-run
says '^split-csqa .* done$'
says '^collect-chat .* ready$'
says '^train-chat .* needs collect-chat$'
says '^dev-chat-routers .* needs train-chat thresholds-chat-routers$'
says 'hours in all'
run 1 --steps train-chat
says 'needs collect-chat'
run 77 --rerun 3
says '^SKIP'
run 2 --rerun nothing
CLOUD=$tmp/none run 77 --rerun 3
# What is done is not done again, and each step keeps what it has to.
run 0 --steps '*-chat' dev-chat-ends 'thresholds-chat-routers'
says '^real: dev-chat-ends'
PARTS=2 run 0 --steps '*-chat' 'dev-chat-routers.2'
says '^real: dev-chat-routers.2'
! grep -q 'real: .*-chat,' "$tmp/out" || fail "again: $(cat "$tmp/out")"
PARTS=2 run 0 --dry-run '*chat-routers*'
says '^dev-chat-routers.1 .* ready$'
says '^dev-chat-routers.2 .* done$'
HEADS=combined run 0 --dry-run train-chat
says '^train-chat .* ready$' # with other heads it is another step
kept=$RESULTS/real
[ "$(grep -c ',mlp=mix,0.06,' "$kept/items-chat-routers.csv")" -eq 6 ] || fail "part 2: $(cat "$kept/items-chat-routers.csv")"
PARTS=2 run 0 --steps dev-chat-routers.1
[ "$(grep -c ',mlp=mix,0.06,' "$kept/items-chat-routers.csv")" -eq 14 ] || fail "both parts: $(cat "$kept/items-chat-routers.csv")"
[ "$(grep -c task, "$kept/items-chat-routers.csv")" -eq 1 ] || fail "two headers"
[ -e "$WEIGHTS/chat/mix.safetensors.2" ] || fail "no routers kept"
grep -q '^2.*,train-chat,[0-9]*,mizzle .*,[0-9]*,"mizzle router train .*;.* --head mix .*"$' "$kept/log.csv" ||
    fail "$(cat "$kept/log.csv")"
! grep -q "$tmp" "$kept/log.csv" "$kept/thresholds"/* || fail "names of folders are kept"
grep -q ',mlp=mix,0.06,citer,7,2,.*,never,' "$kept/figures.csv" || fail "$(cat "$kept/figures.csv")"

# The paper's table, one answer at a time, in step and ahead.
run 0 --steps timed-paper
[ "$(grep -c ',[04],0[.][4-9]' "$kept/paper.measured.csv")" -eq 16 ] || fail "$(cat "$kept/paper.measured.csv")"

# A step that fails says so, and is not done.
CLOUD=$tmp/none run 3 --steps dev-chat-position
says 'the same command continues'
run 0 --dry-run 'dev-chat-position*'
says ' ready$'

# With the kept routers and thresholds alone, answers are the same again; one that is changed is not.
rm -r "$REAL/chat"
run 0 --rerun 4
[ "$(grep -c '^same ' "$tmp/out")" -eq 4 ] || fail "$(cat "$tmp/out")"
sed 's/[0-9a-f]$/x/' "$kept/items-chat-routers.csv" >"$tmp/new"
mv "$tmp/new" "$kept/items-chat-routers.csv"
rm "$kept/items-chat-ends.csv"
run 1 --rerun 1
says '^DIFFERS .*x, found '
exit 0
