#!/bin/sh
# The steps behind router/results/real with the demo pair and a few made-up questions: what is done
# and what comes next, a step that goes on, parts, what is kept, and answers that are made again.
case ${BUILD:-build/x-release} in *-release) ;; *) echo "SKIP: the commands of the script are tested in every build, it in one" && exit 77 ;; esac
. tests/support/demo_pair.sh
"${PYTHON:-/usr/bin/python3}" -c 'import numpy' 2>/dev/null || skip "no numpy for ${PYTHON:-/usr/bin/python3}"
export MIZZLE REAL="$dir/work" RESULTS="$dir/results" WEIGHTS="$dir/weights"
export DATA="$dir/data" EDGE=$edge CLOUD=weights/milli/cloud.gguf
export TEXTS=90 QUESTIONS=7 CALIBRATION=4 REPEATS=2 HEADS='context combined mlp mix' LABELS=match CHOICES='mix-8 combined-4' KEPT=chat

# expect STATUS ARGS...: run the steps, which must end with this status; $dir/out is what they print.
expect() {
    want=$1 status=0
    shift
    sh tools/results.sh real "$@" >"$dir/out" 2>&1 || status=$?
    [ "$status" -eq "$want" ] || fail "real $*: status $status, expected $want"
}

says() { shows "$1"; }

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

expect 0 --dry-run
says '^split-csqa .* done$'
says '^collect-chat .* ready$'
says '^train-chat .* needs collect-chat$'
says '^dev-chat-routers .* needs train-chat thresholds-chat-routers$'
says 'hours in all'
fails 1 'needs collect-chat' --steps train-chat
fails 77 '^SKIP' --rerun 3
fails 2 'no such step: chat' --dry-run '*-chat' chat
fails 2 'expected names of steps behind the option' --steps train-chat --dry-run
expect 2 --rerun nothing
CLOUD=$dir/none expect 77 --rerun 3
# What is done is not done again, and each step keeps what it has to.
expect 0 --steps '*-chat' dev-chat-ends 'thresholds-chat-routers'
says '^real: dev-chat-ends'
PARTS=2 expect 0 --steps '*-chat' 'dev-chat-routers.2'
says '^real: dev-chat-routers.2'
! grep -q 'real: .*-chat,' "$dir/out" || fail "again: $(cat "$dir/out")"
PARTS=2 expect 0 --dry-run '*chat-routers*'
says '^dev-chat-routers.1 .* ready$'
says '^dev-chat-routers.2 .* done$'
HEADS=combined expect 0 --dry-run train-chat
says '^train-chat .* ready$' # with other heads it is another step
kept=$RESULTS/real
[ "$(grep -c ',mlp=mix,0.06,' "$kept/chat/routers.csv")" -eq 6 ] || fail "part 2: $(cat "$kept/chat/routers.csv")"
sh tools/results.sh pack && PARTS=2 expect 0 --dry-run dev-chat-ends # what is packed is done
says '^dev-chat-ends.1 .* done$'
PARTS=2 expect 0 --steps dev-chat-routers.1 # beside the packed part
[ "$(grep -c ',mlp=mix,0.06,' "$kept/chat/routers.csv")" -eq 14 ] || fail "both parts: $(cat "$kept/chat/routers.csv")"
[ "$(grep -c task, "$kept/chat/routers.csv")" -eq 1 ] || fail "two headers"
[ -e "$WEIGHTS/chat/mix.safetensors.2" ] || fail "no routers kept"
grep -q '^2.*,train-chat,[0-9]*,mizzle .*,[0-9]*,"router train --samples samples --head context .*"$' "$kept/log.csv" ||
    fail "$(cat "$kept/log.csv")"
! grep -q "$dir" "$kept/log.csv" "$kept"/*/*.jsonl || fail "names of folders are kept"
! "${PYTHON:-/usr/bin/python3}" -c 'import numpy' 2>/dev/null ||
    grep -q ',mlp=mix,0.06,citer,7,2,.*,never,' "$kept/figures.csv" || fail "$(cat "$kept/figures.csv")"

# The paper's table, one answer at a time, in step and ahead.
expect 0 --steps timed-paper
[ "$(grep -c ',[01],0[.][4-9]' "$kept/paper.measured.csv")" -eq 16 ] || fail "$(cat "$kept/paper.measured.csv")"

# A pattern leaves out what needs something else, but is not content with nothing.
expect 0 --steps 'dev-chat-sl*' 'thresholds-chat-joint*'
says '^real: thresholds-chat-joint needs train-joint$'
[ -e "$kept/chat/slot.csv" ] || fail "$(cat "$dir/out")"
expect 1 --steps 'thresholds-chat-joint*'

# The fourth plan: scores of the calibration questions give a threshold, which their answers correct.
mkdir -p "$REAL/split/claim"
cp "$DATA/csqa/dev_rand_split.jsonl" "$REAL/split/claim/measure.jsonl"
cp "$REAL/split/csqa/calibration.jsonl" "$REAL/split/claim"
echo "2001-01-01,long-split,$(echo "$(cat tools/results/real/parts.sh)" | cksum | cut -d " " -f 1),,,1," >>"$kept/log.csv"
expect 0 --dry-run 'long-*'
says '^long-ends .* needs a-chosen-form$'
says '^long-gsm8k-gain-ens .* needs split-gsm8k long-gsm8k-loop-gain-ens$'
if "${PYTHON:-/usr/bin/python3}" -c 'import numpy' 2>/dev/null; then
    FORM=rule expect 0 --steps long-ends 'long-*-max-prob' long-max-prob
    for name in loop-max-prob max-prob at-0.02-max-prob; do
        grep -q '^{"calibrated":"max-prob","share":0.0[26],"point":0,"threshold":0[.][0-9]*,"tie":0.0}' "$kept/claim/long/$name.jsonl" ||
            fail "$name: $(cat "$kept/claim/long/$name.jsonl")"
    done
    [ "$(grep -c ',max-prob,0.06,' "$kept/claim/long/max-prob.csv")" -eq 7 ] || fail "$(cat "$kept/claim/long/max-prob.csv")"
    sh tools/results.sh claim >"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
    grep -q '^measure,long,max-prob,1,7,.*' "$kept/claim.csv" || fail "$(cat "$kept/claim.csv")"

    # Labels that are unpacked are no samples: those need their hidden states, until routers have learnt them.
    head -n 2 "$REAL/split/csqa/train.jsonl" >"$REAL/split/claim/train.jsonl"
    export FORM=rule SLICES=2
    TEXTS=2 expect 0 --steps long-gain-1-2
    TEXTS=2 expect 0 --dry-run long-gain-1-2
    says ' done$'
    rm "$REAL/claim/long/gain-1-2.done"
    TEXTS=2 expect 0 --dry-run long-gain-1-2
    says ' ready$'
    mkdir -p "$WEIGHTS/long"
    for router in first gain-ens gain-none-ens divergent-ens combined-ens context; do
        : >"$WEIGHTS/long/$router.safetensors"
    done
    TEXTS=2 expect 0 --dry-run long-gain-1-2
    says ' done$'
    unset FORM SLICES
else
    echo "SKIP: no numpy, thresholds from scores were not tried"
fi

# A step that fails says so, and is not done.
CLOUD=$dir/none expect 3 --steps dev-chat-position
says 'the same command continues'
expect 0 --dry-run 'dev-chat-position*'
says ' ready$'

# With the kept routers and thresholds alone, answers are the same again; one that is changed is not.
rm -r "$REAL/chat"
sh tools/results.sh pack
expect 0 --rerun 4
[ "$(grep -c '^same ' "$dir/out")" -eq 4 ] || fail "$(cat "$dir/out")"
(. tools/results/lib.sh && unpacked "$kept/chat/routers.csv") | sed 's/[0-9a-f]$/x/' >"$dir/new"
rm "$kept"/*/answers.csv.gz "$kept"/claim/*/answers.csv.gz
mv "$dir/new" "$kept/chat/routers.csv"
fails 1 '^DIFFERS .*x, found ' --rerun 1
exit 0
