#!/bin/sh
# mizzle router collect on the demo pair: labels, killed and resumed collections, options that
# contradict, a cloud that dies, a full disk, bad input.
. tests/support/shell.sh
demo=weights/milli
[ -f $demo/edge-0.5.gguf ] || skip "no demo pair in $demo"
subcommand='router collect'

# collect STATUS ARGS: it must end with this status and, unless that is 0, one line on stderr.
collect() {
    expect "$@"
    [ "$want" -eq 0 ] || one_line
}

# sums DIR: print names and checksums of everything in the folder.
sums() {
    (cd "$1" && sha256sum -- *)
}

# same_folders DIR DIR: both hold the same files.
same_folders() {
    [ "$(sums "$1")" = "$(sums "$2")" ] || fail "$1 and $2 differ: $(ls "$1" "$2")"
}

# same_data FILE FILE: two shards hold the same, whoever the cloud was.
same_data() {
    for shard in "$1" "$2"; do
        tail -c "+$((9 + $(od -An -tu8 -N8 "$shard")))" "$shard" | sha256sum
    done | uniq -u | grep -q . && fail "$1 and $2 hold other samples"
}

# counts DIR: print the counts of all shards, in lines NAME:N.
counts() {
    cat "$1"/*.safetensors | LC_ALL=C grep -aoE '"(texts|too_long|written|samples|right|rollouts|left_out)":"[0-9]*"' |
        tr -d '"'
}

# field NAME: print the sum of a count of the last folder that was collected into.
field() {
    counts "$at" | awk -F : -v name="$1" '$1 == name { sum += $2 } END { print sum + 0 }'
}

is() {
    awk "BEGIN { exit !($*) }" || fail "expected $*: $(counts "$at")"
}

# Wrong usage, and data that is wrong.
collect 2
each 'collect 2 -o "$dir/x"' '--labels other' '--questions 0' '--parallel 0' '--cloud off' '--threshold 0.5' \
    '--labels match --router r.safetensors' '--labels match --rollouts 5' '--task csqa'
while IFS='|' read -r status line said; do
    collect "$status" -o "$dir/x" $line
    says "$said"
done <<END
2|--prompt other|chat, @FILE or plain@FILE, found other
2|--labels match --cloud auto|--cloud: expected required, or off with --labels match
2|--kind why|where, which, sums, sort, notes or all
3|--cloud-model $dir/none|$dir/none
END
: >"$dir/data"
collect 3 -o "$dir/x" --task csqa --data "$dir/data"
echo '{"question": "Q", "answerKey": "A"' >"$dir/data"
collect 3 -o "$dir/x" --task csqa --data "$dir/data"
[ -e "$dir/x" ] && fail "a folder was made in spite of wrong options"

# A cloud model of another vocabulary: one more byte at the end, so that no checksum is compared.
(LC_ALL=C sed 's/<|im_start|>/<|im_stark|>/' $demo/cloud.gguf && echo) >"$dir/other.gguf"
collect 3 -o "$dir/x" --questions 8 --cloud-model "$dir/other.gguf"
says vocabulary

item='"question": {"stem": "Q?", "choices": [{"label": "A", "text": "a"}, {"label": "B", "text": "b"}], "question_concept": "q"}, "answerKey": "A"'

# A model that cannot chat is not asked in a chat, and nothing is written.
echo "{$item, \"cot\": \"It is (A).\"}" >"$dir/data"
collect 3 -o "$dir/x" -m "$dir/other.gguf" --task csqa --data "$dir/data" --labels match --prompt chat
says 'expected the added tokens <|im_start|>'
[ -e "$dir/x" ] && fail "a folder was made for a model that cannot chat"

# The kinds of labels. A cloud that is the edge itself is wrong where the edge is, so that answers
# have to be written to their end. It keeps keys and values in f32.
citer="--questions 40 --kv f32 --cloud-model $demo/edge-0.5.gguf"
gain="--questions 20 --labels gain --kv f32"
second="$gain --router $demo/edge-0.5.router.safetensors --threshold 0.9"
drifts="--questions 40 --labels divergent"
into() { # NAME ARGS: collect into this folder
    at=$dir/$1
    shift
    collect 0 -o "$at" "$@"
}
into match --questions 40 --kv f32 --labels match
is "$(field texts) == 40 && $(field samples) > 600 && $(field rollouts) == 0"
is "$(field right) > 0.9 * $(field samples) && $(field right) < $(field samples)"
wrong=$(($(field samples) - $(field right)))
into citer $citer
is "$(field rollouts) == $wrong && $(field left_out) == 0"
into drawn $citer --rollouts 9
is "$(field rollouts) >= 6 && $(field rollouts) <= 9 && $(field rollouts) + $(field left_out) == $wrong"
into second $citer --router $demo/edge-0.5.router.safetensors
is "$(field rollouts) == $wrong"
into divergent $drifts
shows '^rollouts '
is "$(field rollouts) > 0 && $(field right) > 0"
into gain $gain
says '^collect: 16 of 20 texts, .* rollouts'
is "$(field rollouts) > 30 && $(field samples) > $(field rollouts) && $(field right) < $(field samples)"
all=$(field rollouts)
into gain_drawn -q $gain --rollouts 9
[ ! -s "$dir/err" ] || fail "-q says $(cat "$dir/err")"
is "$(field rollouts) >= 6 && $(field rollouts) <= 9 && $(field rollouts) + $(field left_out) == $all"
into gain2 $second
grep -qa '"round":"2"' "$at/00000.safetensors" && grep -qa '"threshold":"0.899' "$at/00000.safetensors" ||
    fail "the folder does not name round and threshold"
# Labels that are kept without hidden states get them back in the same bytes.
python=${PYTHON:-/usr/bin/python3} labels="-B tools/lab/study/labels.py"
if "$python" -c 'import lzma' 2>/dev/null; then
    while read -r way how; do
        "$python" $labels pack "$dir/$way" "$dir/labels.tar.xz" </dev/null &&
            "$python" $labels unpack "$dir/labels.tar.xz" "$dir/light" </dev/null || fail "labels.py: $way"
        is "$(wc -c <"$dir/light/00000.safetensors") * 4 < $(wc -c <"$dir/$way/00000.safetensors")"
        subcommand='router train' collect 3 --samples "$dir/light" -o "$dir/never"
        says 'tensor hidden: expected hidden states, found none'
        subcommand='router collect' collect 0 -o "$dir/light" $how
        same_folders "$dir/$way" "$dir/light"
        rm -r "$dir/light"
    done <<END
gain $gain
gain2 $second
divergent $drifts
drawn $citer --rollouts 9
END
else
    echo "SKIP: no $python, labels without hidden states were not tried"
fi
collect 0 -o "$dir/best" --questions 4 --labels match
collect 0 -o "$dir/scalar" --questions 4 --labels match --isa scalar -t 1
same_folders "$dir/best" "$dir/scalar"

# Questions of one kind; the folder says which.
at=$dir/sums
collect 0 -o "$at" --questions 3 --labels match --kind sums --wording plain
grep -qa '"kind":"sums"' "$at/00000.safetensors" || fail "the folder does not name the kind"
collect 2 -o "$at" --questions 3 --labels match --kind sums
says 'wording: expected all, as the options say, found plain'

# Options that contradict the folder: the field and both values are named.
while IFS='|' read -r line said; do
    collect 2 -o "$dir/match" $line
    says "$said"
done <<END
--questions 40|labels: expected citer, as the options say, found match
--questions 41 --kv f32 --labels match|questions: expected 41, as the options say, found 40
--questions 40 --labels match --kv f16|kv: expected f16
--questions 40 --kv f32 --labels match -m $demo/edge-1.gguf|edge-1
END

# Killed anywhere and run again, it ends with the same bytes.
divergent="--questions 48 --labels divergent"
collect 0 -o "$dir/whole" $divergent
# With any number of calls in flight: the same bytes, and a file of answers that has all of them.
for calls in 1 40; do
    collect 0 -o "$dir/calls$calls" $divergent --parallel $calls \
        --answers "$dir/kept$calls" --cloud-timeout 600000
    same_folders "$dir/whole" "$dir/calls$calls"
    collect 0 -o "$dir/offline$calls" $divergent --answers "$dir/kept$calls" --offline
    # The cloud says something else of itself there.
    [ "$(counts "$dir/whole")" = "$(counts "$dir/offline$calls")" ] || fail "another collection offline"
done
kill_often() { # PAUSES ARGS
    pauses=$1
    shift
    for pause in $pauses; do
        behind "$@"
        sleep $pause
        kill -9 $pid 2>/dev/null
        wait $pid 2>/dev/null
    done
}
kill_often '0.1 0.3 0.2 0.4' -o "$dir/killed" $divergent
# In case no kill came while a file was written.
mkdir -p "$dir/killed" && touch "$dir/killed/00003.safetensors.1.0.part"
collect 0 -o "$dir/killed" $divergent
same_folders "$dir/whole" "$dir/killed"
collect 0 -o "$dir/killed" $divergent # there is nothing left to do
shows 'this run *0 texts'
same_folders "$dir/whole" "$dir/killed"
rm "$dir/killed/00002.safetensors"
collect 0 -o "$dir/killed" $divergent
same_folders "$dir/whole" "$dir/killed"
head -c 1000 "$dir/whole/00001.safetensors" >"$dir/killed/00001.safetensors"
collect 3 -o "$dir/killed" $divergent
says 00001.safetensors

# So it does with labels gain, whose large model is asked through its port here, and over HTTP below.
kill_often '0.1 0.3 0.2' -o "$dir/gain_killed" $gain
collect 0 -o "$dir/gain_killed" $gain --parallel 3 --answers "$dir/kept_gain"
same_folders "$dir/gain" "$dir/gain_killed"

# A cloud that dies: status 4, and another one continues.
start_cloud -m $demo/cloud.gguf --latency 60
died=$url
behind -o "$dir/died" $divergent --cloud-url "$url"
wait_for '[ -e "$dir/died/00000.safetensors" ]'
stop_cloud
left 4
says 'of 48 texts; the same command continues'
start_cloud -m $demo/cloud.gguf --latency 1000
behind -o "$dir/stopped" $divergent --cloud-url "$url"
wait_for '[ -e "$dir/stopped/lock" ]'
kill $pid
left 130
says 'the same command continues'
stop_cloud
start_cloud -m $demo/cloud.gguf --port ${died##*:}
collect 2 -o "$dir/died" $divergent --cloud-url "http://localhost:${died##*:}"
says 'cloud-url: expected'
collect 0 -o "$dir/died" $divergent --cloud-url "$died"
collect 0 -o "$dir/at_once" $divergent --cloud-url "$died"
while read -r what calls how; do
    collect 0 -o "$dir/http$calls" $how --parallel $calls --cloud-url "$died"
    for shard in 00000 00001; do
        same_data "$dir/$what/$shard.safetensors" "$dir/http$calls/$shard.safetensors"
    done
done <<END
gain 1 $gain
gain 40 $gain
gain2 39 $second
END
stop_cloud
same_folders "$dir/at_once" "$dir/died"

# A full disk: status 3, and nothing half written.
at=$dir/full
(
    trap '' XFSZ
    ulimit -f 100
    collect 3 -o "$at" --questions 40 --kv f32 --labels match
) || exit 1
[ "$(ls "$at")" = lock ] || fail "left behind: $(ls "$at")"
collect 0 -o "$at" --questions 40 --kv f32 --labels match
same_folders "$at" "$dir/match"
collect 3 -o "$dir/none/below" --questions 40 --labels match

# A file: a text that is too long is left out, and an item without a reference answer gets the
# cloud's. Only that needs a cloud.
long=$(awk 'BEGIN { for (i = 0; i < 1500; i++) printf "%d ", i % 10 }')
at=$dir/file
{
    echo "{\"id\": \"1\", $item, \"cot\": \"So the answer is a (A).\"}"
    echo "{\"id\": \"2\", $item, \"cot\": \"$long\"}"
    echo "{\"id\": \"3\", $item}"
} >"$dir/data"
collect 0 -o "$at" --task csqa --data "$dir/data" --labels match -n 20
says "prompts are in CITER's plain form"
grep -qa '"prompt":"citer"' "$at/00000.safetensors" || fail "the folder does not name the form"
is "$(field texts) == 2 && $(field too_long) == 1 && $(field written) == 1"
sed -i 2d "$dir/data"
# A cloud that refuses every text: there is no collection, now or when it is tried again.
start_cloud -m $demo/cloud.gguf --context 70
for try in first second gain; do
    labels=divergent
    [ $try != gain ] || labels=gain
    collect 4 -o "$dir/refused_$labels" --task csqa --data "$dir/data" --labels $labels --cloud-url "$url" --prompt citer
    says "found none in 2 texts: 2 refused by the cloud"
    [ $try = second ] || says 'maximum context length is 70'
done
subcommand='router train' expect 3 --samples "$dir/refused_divergent" -o "$dir/none"
says "refused_divergent: expected samples, found none in 2 texts"
stop_cloud
collect 2 -o "$dir/x" --task csqa --data "$dir/data" --labels match --cloud off -m $demo/edge-0.1.gguf \
    --prompt citer
