#!/bin/sh
# The journal of mizzle eval: every setting that answers depend on is held, and another one refused
# by its name; an answer that the cloud has not given is asked again.
. tests/tools/eval/eval.sh

# plain FILE: print rows without date, times and bytes; a call that is made again sends more of them.
plain() {
    sed 's/"\(ms\|edge_ms\|ttft_ms\|tbt_ms\|tbt_p95_ms\|tok_s\|bytes_up\|bytes_down\)":[0-9.]*,//g; s/"date":"[^"]*",//' "$1"
}

# What writes the answers stands in the journal, each under its name.
start_cloud
ask="--questions 8 --policy never,random --threshold 0.2 --json --cloud-url $url"
run 0 $ask --jsonl "$dir/j"
# One that others may write is not theirs to fill, nor to lead elsewhere.
cp "$dir/j" "$dir/common" && chmod 620 "$dir/common"
fails 3 'expected a file only its owner may write (chmod go-w), found mode 0620' $ask --jsonl "$dir/common"
# One from which nothing can be continued: a FIFO would wait, and the zeros of a device do not end.
mkfifo "$dir/fifo"
for file in /dev/null /dev/zero "$dir/fifo"; do
    fails 3 "$file: expected a regular file" $ask --jsonl "$file"
done
if [ "$(id -u)" -eq 0 ]; then
    mkdir "$dir/all" && ln -s .. "$dir/all/x" && chmod 1777 "$dir/all" && chown -h 65534 "$dir/all/x"
    fails 3 "x is another user's link" $ask --jsonl "$dir/all/x/new"
    [ ! -e "$dir/new" ] && cp "$dir/j" "$dir/common" && chmod 600 "$dir/common" && chown 65534 "$dir/common"
    fails 3 'expected a file of this user, found one of user 65534' $ask --jsonl "$dir/common"
fi
grep -q 'keys and values in f16' "$dir/err" || fail "does not name the type: $(cat "$dir/err")"
for is in '"version":"[0-9.]*"' '"kernels":"exact"' '"edge_model":"[^"]*edge-0.5"' '"edge_fingerprint":"[0-9a-f]\{16\}"' '"edge_bits":"[0-9a-f]\{16\}"' \
    '"weights":"Q8_0"' '"kv":"f16"' '"cloud_model":"cloud"' '"cloud_url":"http' '"cloud_says":"{.*fingerprint' \
    '"cloud_vocabulary":"[0-9a-f]\{16\}"' '"template":""' '"form":' '"think":""' '"isa":"[a-z0-9]'; do
    head -n 1 "$dir/j" | grep -q "$is" || fail "no $is: $(head -n 1 "$dir/j")"
done

# refused FIELD ARGS...: the journal is of other answers than these.
refused() {
    field=$1
    shift
    cp "$dir/j" "$dir/copy"
    fails 2 "other settings: \(--$(echo $field | tr _ -)\|$field\): expected .*, found " $ask --jsonl "$dir/copy" "$@"
    cmp -s "$dir/j" "$dir/copy" || fail "$field: a refused journal was written to"
}
refused kv --kv f32
refused edge_model -m weights/milli/edge-0.1.gguf 
refused cloud_url --cloud-url "$(echo "$url" | sed 's/127.0.0.1/localhost/')"
refused cloud_model --cloud-model other
refused max_tokens -n 50
if MIZZLE_ISA=blas "$MIZZLE" eval --questions 1 --policy never -q --jsonl "$dir/blas" >/dev/null 2>&1; then
    MIZZLE_ISA=blas refused kernels
fi
MIZZLE_ISA=scalar run 0 $ask --jsonl "$dir/j" # gives the same bits
# A process that goes on says where it runs, once, and one that has nothing to add says nothing.
sed '$d' "$dir/j" >"$dir/on"
for again in 1 2; do
    run 0 $ask --jsonl "$dir/on"
    [ "$(grep -c '^{"on":{"parallel":.*"isa"' "$dir/on")" -eq 1 ] || fail "notes: $(grep '^{"on"' "$dir/on")"
done
for field in version edge_fingerprint edge_bits weights form cloud_says cloud_vocabulary template think; do
    sed "1s/\"$field\":\"[^\"\\\\]*/&x/" "$dir/j" >"$dir/other"
    fails 2 "other settings: $field: expected .*, found .*x" $ask --jsonl "$dir/other"
done
sed '1s/"version":"[^"]*",//' "$dir/j" >"$dir/older"
fails 2 'version: expected ".*", found none' $ask --jsonl "$dir/older"
stop_cloud

# Another model under the same name at the same address.
port=${url##*:}
cp weights/milli/cloud.gguf "$dir/cloud.gguf"
"$MIZZLE" convert weights/milli/cloud.gguf "$dir/q4.gguf" --type q4_0 -q >/dev/null 2>&1 || fail convert
cp "$dir/q4.gguf" "$dir/cloud.gguf"
start_cloud --port "$port" -m "$dir/cloud.gguf"
fails 2 'other settings: cloud_says' $ask --jsonl "$dir/j"
stop_cloud

# A cloud that fails ends the run, which says how far it came, and the same command goes on.
start_cloud --port "$port"
run 0 $ask
plain "$dir/out" >"$dir/whole"
stop_cloud
run 4 $ask --jsonl "$dir/fails" # not there at all
[ ! -e "$dir/fails" ] || fail "a journal of nobody knows what: $(cat "$dir/fails")"
start_cloud --port "$port" --fault 500:0.2
run 4 $ask --jsonl "$dir/fails"
grep -q 'status 500.*; a token was not given, after [0-7] of 8 answers of result 2 of 2; the same command continues$' \
    "$dir/err" || fail "$(cat "$dir/err")"
! grep -q '"missing"' "$dir/fails" || fail "an answer without a token was kept"
stop_cloud
start_cloud --port "$port" --fault 400:0.2 # which would refuse the same text again
run 4 $ask
grep -q "status 400.*, after [0-7] of 8 answers of .* of 2; with --jsonl FILE, the same command would continue$" \
    "$dir/err" || fail "$(cat "$dir/err")"
stop_cloud
start_cloud --port "$port"
run 0 $ask --jsonl "$dir/fails"
plain "$dir/out" | cmp -s - "$dir/whole" || fail "goes on in another way: $(cat "$dir/out")"
stop_cloud

# An answer that lacks tokens, as eval up to 0.5.1 kept them, is asked again.
start_cloud --port "$port"
sed '3s/"hash":/"missing":1,&/' "$dir/fails" >"$dir/lacks"
lines=$(wc -l <"$dir/lacks")
run 0 $ask --jsonl "$dir/lacks"
[ "$(wc -l <"$dir/lacks")" -eq $((lines + 2)) ] || fail "not asked again"
plain "$dir/out" | cmp -s - "$dir/whole" || fail "asked again, other rows: $(cat "$dir/out")"
run 0 $ask --jsonl "$dir/lacks"
[ "$(wc -l <"$dir/lacks")" -eq $((lines + 2)) ] || fail "asked again for ever"
stop_cloud
# The small model alone needs no cloud.
run 0 -m weights/milli/edge-0.5.gguf --questions 2 --policy never -q
fails 4 'there is no cloud' -m weights/milli/edge-0.5.gguf --questions 2 --policy mlp -q

# Parts, asked by two processes with the lines of the README, are the whole, whatever else is drawn
# or calibrated; in any order. tools/lab/study puts them together (tests/lab/t_answers.py).
A="--policy never,mlp,max-prob,random --target-routed 0.1 --questions 11 -q"
P="-m weights/milli/edge-0.5.gguf --cloud-model weights/milli/cloud.gguf --kv f32"
run 0 $P $A --jsonl "$dir/every"
command -v parallel >/dev/null 2>&1 || parallel() { xargs -P 2 -I {} "$@"; }
sed -n '/^    .* parallel /p; /^    .*SLURM/p' tools/lab/eval/README.md |
    sed 's/^ *//; s,build/mizzle,"$MIZZLE",; s/ 199 / 10 /; s/50/4/g' >"$dir/lines"
[ "$(wc -l <"$dir/lines")" -eq 2 ] || fail "the lines of the README: $(cat "$dir/lines")"
(
    cd "$dir" || exit 1
    ln -s "$OLDPWD/weights" weights
    case $MIZZLE in /*) ;; *) MIZZLE=$OLDPWD/$MIZZLE ;; esac
    grep ' parallel ' lines >one && . ./one
    rm part-8.jsonl # it is the third task of the array
    export SLURM_ARRAY_TASK_ID=2
    grep SLURM lines >one && . ./one
) >"$dir/out" 2>"$dir/err" || fail "the lines of the README: $(cat "$dir/out" "$dir/err")"
answers() { sed '/^{"policy"/!d; s/,"ms":.*"edge_ms":[^,]*//; s/"us":\[[^]]*\]//' "$@" | sort; }
answers "$dir/every" >"$dir/whole"
answers "$dir"/part-[048].jsonl | cmp - "$dir/whole" || fail "the parts are another run than the whole"
# What a part cannot know.
fails 2 '--first: expected less than the 8 questions, found 8' $P --questions 8 --first 8 --policy mlp
fails 2 'policy random: expected --target-routed' $P --questions 8 --first 0:4 --policy mlp,random
exit 0
