#!/bin/sh
# mizzle router calibrate on the demo pair: every target, what it writes, what it refuses, and that
# a target that cannot be met leaves the file as it was.
. tests/support/shell.sh
subcommand='router calibrate'

# value NAME: the first number of this line of the result.
value() {
    sed -n "s/^$1 *\([0-9.]*\).*/\1/p" "$dir/out"
}

is() {
    awk "BEGIN { exit !($*) }" || fail "expected $*, in $(cat "$dir/out")"
}

r=$dir/r.safetensors
refuses 2 'expected --router' --target-routed 0.05
refuses 2 'and --target-routed X' --router "$r"
each 'ends 2 --router "$r"' '--target-routed 1.1' '--target-routed -0.1' \
    '--target-routed 0.1 --questions 0' '--target-routed 0.1 --cloud off' '--target-routed 0.1 --cloud auto' \
    '--target-routed 0.1 --task chess' '--target-routed 0.1 --prompt poem' \
    '--target-routed 0.1 --kind why' '--target-routed 0.1 --wording rude' \
    '--target-routed 0.1 --task csqa' '--target-routed 0.1 --max-cloud-tokens 3' '--target-routed 0.1 more'

edge=weights/milli/edge-0.5.gguf
[ -f "$edge" ] || skip "no demo pair in weights/milli"
ends 3 --router "$r" --target-routed 0.05

shipped=weights/milli/edge-0.5.router.safetensors
cp "$shipped" "$r"
ends 4 --router "$r" -m "$edge" --target-routed 0.05 --questions 10
same "$shipped" "$r" # a failure changes nothing

# A share: near the target, in place or in another file, the same bytes with any threads.
ends 0 --router "$r" --target-routed 0.06 --questions 40
is "$(value routed) >= 5.7 && $(value routed) <= 6.05 && $(value threshold) > 0"
is "$(value accuracy) > $(value 'edge alone')"
shows 'keys and values in f16' # the type that run uses
# The interval of the share holds it, and narrows with the root of the questions.
wide=$(value expect | cut -d ' ' -f 1) high=$(sed -n 's/^expect .* - \([0-9.]*\) %.*closed loop: .*/\1/p' "$dir/out")
is "$wide < $(value routed) && $(value routed) < $high"
wide=$(awk "BEGIN { print $high - $wide }")
ends 0 --router "$shipped" -o "$dir/r5" --target-routed 0.06 # 400 questions
shows '^calibrated on *milli, 400 answers'
high=$(sed -n 's/^expect .* - \([0-9.]*\) %.*/\1/p' "$dir/out")
is "$high - $(value expect) < 0.6 * $wide && $high - $(value expect) > 0.15 * $wide"
ends 0 --router "$shipped" -o "$r" --target-routed 0.06 --questions 40
ends 0 --router "$shipped" -o "$dir/r1" --target-routed 0.06 --questions 40 -t 1
same "$r" "$dir/r1"
"$MIZZLE" info --json "$r" >"$dir/info" || fail "info"
for word in '"task":"milli"' '"threshold":0\.[0-9]' '"share":0\.0[56]' 'edge-0.5'; do
    tr -d ' \n' <"$dir/info" | grep -q "$word" || fail "no $word in $(cat "$dir/info")"
done
# It is bound to its model now.
refuses 3 'edge-1 ' --router "$r" -m weights/milli/edge-1.gguf --target-routed 0.05 --cloud-url http://127.0.0.1:9
says 'edge-0.5'

# One token is routed or not: no threshold gives a half.
cp "$r" "$dir/before"
refuses 1 '--target-routed 0.5: the scores do not tell the tokens apart' --router "$r" --target-routed 0.5 --questions 1 -n 1
same "$r" "$dir/before"

# A cloud that is no better than the edge, and a task from a file.
serves=$MIZZLE
start_cloud -m weights/milli/edge-0.1.gguf
for i in 1 2 3 4; do
    echo '{"id":"'$i'","answerKey":"B","question":{"question_concept":"flower'$i'",' \
        '"stem":"Where is a flower '$i'?","choices":[{"label":"A","text":"garden"},' \
        '{"label":"B","text":"lake"}]}}'
done >"$dir/csqa.jsonl"
ends 0 --router "$r" -o "$dir/r4" --task csqa --data "$dir/csqa.jsonl" -n 20 --target-routed 0.3 \
    --cloud-url "$url"
shows '^calibrated on *csqa, 4 answers'
ends 2 --router "$r" --task csqa --data "$dir/csqa.jsonl" --questions 5 --target-routed 0.3 \
    --cloud-url "$url"
says 'at most 4'
stop_cloud

behind --router "$r" --target-routed 0.05 --questions 2000 -q
interrupt $pid
left 130
same "$r" "$dir/before"
[ "$(ls -A "$dir" | grep -c tmp)" -eq 0 ] || fail "unfinished files: $(ls -A "$dir")"
