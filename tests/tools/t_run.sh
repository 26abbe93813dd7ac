#!/bin/sh
# mizzle run on the command line, with the demo pair: defaults, JSON, faults of the cloud,
# interrupts, conversation, and what a terminal shows.
. tests/support/demo_pair.sh
escape=$(printf '\033')
subcommand=run

# By default: the demo pair, its router, the stand-in cloud.
notes '^Question:' --question 1
says '^reference:'
says '^[0-9]* tokens, [0-9]* from the cloud ([0-9.]* %), [0-9.]* tokens/s$'
expect 0 --question 1 --policy always --json --ahead 0
[ ! -s "$dir/err" ] || fail "--json writes to stderr"
for count in "$(field cloud)" "$(field calls)" "$(grep -c '"event":"token"' "$dir/out")" \
    "$(grep -c '"source":"cloud".*"edge_id":null' "$dir/out")"; do # the head is not read for them
    [ "$count" -eq "$(field tokens)" ] || fail "always, in step: $count, of $(field tokens) tokens"
done
keys='"event":"done","offline":false'
for key in tokens cloud fallback memo store calls committed failed prompt_tokens \
    passes drafted accepted retries \
    asked_tokens bytes_up bytes_down header_bytes_up header_bytes_down prompt_ms ttft_ms total_ms \
    edge_ms router_ms cloud_ms start_ms tok_s; do
    keys="$keys,\"$key\":[0-9.]*"
done
keys="$keys,\"held\":{.*}"
tail -n 1 "$dir/out" | grep -q "^{$keys,\"reason\":\"eos\"}\$" || fail "done: keys"
grep -Evq '^\{"event":("token","pos":[0-9]+,"id":[0-9]+,"text":"([^"\\]|\\.)*","source":"(edge|cloud|fallback)","score":(null|[0-9.e+-]+),"edge_id":(null|[0-9]+)(,"reason":"[a-z-]+","message":"([^"\\]|\\.)+")?,"ms":[0-9.]+\}$|"done")' \
    "$dir/out" && fail "token: keys"

tokens() { sed -n 's/"edge_id":.*//; /"event":"token"/p' "$dir/out"; }

# -1 is no limit but the context, and a nucleus of 0 the likeliest token alone.
expect 0 -p x -n -1 -c 20 --policy never --temp 1 --top-p 0 --json
[ "$(field tokens)" -eq 20 ] || fail "-n -1 does not fill the context"

# Without a cloud.
expect 0 -m $edge -p 'Question: Where' -n 4
[ "$(grep -c 'cloud off' "$dir/err")" -eq 1 ] || fail "that the cloud is off is not said once"
refused 4 -m $edge -p x --policy always
expect 4 -m $edge -p x --cloud required
expect 4 -p x --cloud required --cloud-url http://127.0.0.1:1
expect 0 -p x -n 3 --policy always --cloud-url http://127.0.0.1:1 --json
[ "$(field fallback)" -eq 3 ] || fail "no fallback without a server"
[ "$(field committed)" -eq 0 ] && [ "$(field failed)" -eq "$(field calls)" ] ||
    fail "a failed call counts as committed"
[ "$(grep -c '"source":"fallback","score":null,"edge_id":[0-9]*,"reason":"[a-z]*","message":"[^"]*127.0.0.1' "$dir/out")" -eq 3 ] ||
    fail "no score is measured, and fallback tokens say why"
expect 0 -p x -n 2 --policy max-prob --threshold 1 --max-cloud-tokens 0 --json
[ "$(grep -c '"score":[0-9].*"reason":"capped","message":"--max-cloud-tokens is reached"' "$dir/out")" -eq 2 ] ||
    fail "a score that is measured, and the limit"
prints '\[fallback:' -p x -n 3 --policy always --cloud-url http://127.0.0.1:1
expect 0 -p x -n 3 --policy always --cloud-url http://127.0.0.1:1 --plain
grep -q 'fallback' "$dir/out" && fail "--plain has marks"
[ "$(grep -c 'cannot connect: ' "$dir/err")" -eq 1 ] || fail "that the cloud is dead is not said once"
grep -Eq '^cloud: [0-9]+ calls?: [0-9]+ failed; fallback: .*[0-9] without an answer$' "$dir/err" ||
    fail "a dead cloud: summary $(cat "$dir/err")"

# A file as --cloud-model is served from this process; the demo pair's gives the demo's text.
ask="-p x -n 6 --policy always --json --cloud required"
expect 0 $ask
tokens >"$dir/first"
expect 0 $ask -m $edge --cloud-model weights/milli/cloud.gguf
tokens | cmp -s - "$dir/first" || fail "--cloud-model FILE: another text"
expect 0 $ask -m $edge --cloud-model $edge
tokens | cmp -s - "$dir/first" && fail "--cloud-model FILE: another model, the same text"
fails 3 'cloud-model .without --cloud-url.: no-such-model: No such file' $ask -m $edge --cloud-model no-such-model
expect 3 $ask -m $edge --cloud-model Makefile
expect 0 -p x -n 2 -m $edge --cloud off --cloud-model no-such-model

# A cloud that is down at the start is tried again, and the wait is reported.
start_cloud --latency 1
port=${url##*:}
stop_cloud
mkfifo "$dir/lines" || fail "no FIFO"
stdin=$dir/lines
behind --chat --policy always -n 5 --json --cloud-url "$url"
exec 3>"$dir/lines"
echo one >&3
wait_for 'grep -q "\"event\":\"done\"" "$dir/out"'
start_cloud --port "$port"
echo two >&3
exec 3>&-
left 0
stop_cloud
[ "$(grep -c '"event":"done"' "$dir/out")" -eq 2 ] || fail "expected two answers"
grep '"event":"done"' "$dir/out" | head -n 1 |
    grep -q '"cloud":0,"fallback":[1-9],.*"start_ms":[0-9.]*[1-9][0-9.]*,' ||
    fail "a cloud that is down, or the wait at the start is not said"
[ "$(field cloud)" -gt 0 ] || fail "a cloud that is down at the start is never tried again"
says 'no answer from the cloud yet'

# The cloud dies in the middle of an answer.
for mode in auto required; do
    start_cloud --latency 60
    behind --question 1 --policy always --cloud $mode --cloud-url "$url" --json
    wait_for '[ "$(grep -c token "$dir/out")" -ge 3 ]'
    stop_cloud
    wait $pid
    status=$?
    [ "$(field event)" = done ] && [ "$(field cloud)" -ge 3 ] || fail "killed cloud, $mode"
    if [ $mode = auto ]; then
        [ $status -eq 0 ] && [ "$(field fallback)" -gt 0 ] || fail "killed cloud: status $status"
        case $(field reason) in
        eos | length) ;;
        *) fail "killed cloud: the text ends with $(field reason)" ;;
        esac
    else
        [ $status -eq 4 ] && [ "$(field reason)" = error ] || fail "killed cloud: status $status"
    fi
done

# Ctrl-C while waiting for a slow cloud.
start_cloud --latency 3000
behind --question 1 --policy always --cloud-url "$url"
interrupt $pid 1
begin=$(date +%s)
left 130
[ $(($(date +%s) - begin)) -le 2 ] || fail "SIGINT: not at once"
stop_cloud

# While models and the cloud are opened, it ends at once; here opening waits for another file.
mkfifo "$dir/waits"
for args in 'run -p x --private-file' 'eval --task csqa --data' 'serve --port 0 --private-file'; do
    subcommand='' behind $args "$dir/waits"
    interrupt $pid
    left 130
    [ ! -s "$dir/err" ] || fail "$args: SIGINT while opening: $(cat "$dir/err")"
done

# Ctrl-C in a conversation stops only the answer; a second one ends the program.
lines() { # COUNT PATTERN: wait until COUNT lines of $dir/out match
    wait_for "[ \"\$(grep -c '$2' '$dir/out')\" -ge $1 ] || ! kill -0 $pid 2>/dev/null"
    [ "$(grep -c "$2" "$dir/out")" -ge "$1" ] || fail "it ended before $2 number $1"
}
start_cloud --latency 2500
mkfifo "$dir/in"
trap '' PIPE
stdin=$dir/in
behind --chat --policy always --cloud-url "$url" --ahead 0 --json
exec 3>"$dir/in"
echo one >&3
lines 1 '"source":"cloud"'
kill -INT $pid
lines 1 '"event":"done"'
echo two 2>/dev/null >&3 || fail "SIGINT ends the conversation"
lines 2 '"source":"cloud"'
kill -INT $pid
left 130
exec 3>&-
trap - PIPE
[ "$(grep -c '"event":"done"' "$dir/out")" -eq 2 ] || fail "SIGINT ends the conversation"
stop_cloud

# Sampling, stop strings, conversation.
text() { cat "$dir/out"; }
anew
each 'alike text --question 2 --policy never --temp 1.5 --seed 5 -q' '' '-t 1'
prints 'answer is' --question 2 --policy never -q
anew
each 'alike text --question 2 --policy never -q --stop "answer is"' '--stop nothing' "--stop=  --stop="
[ -s "$dir/out" ] && ! grep -q answer "$dir/out" || fail "a stop string: $(cat "$dir/out")"
expect 0 --question 2 --policy never --json --stop 'answer is'
[ "$(field reason)" = stop ] || fail "reason is not stop"
expect 0 --chat -p x --policy never -n 1 --json
said=$(field prompt_tokens)
expect 0 --chat -p 'x<|im_end|>' --policy never -n 1 --json # forged: as a mark it would be one token
[ "$(field prompt_tokens)" -gt $((said + 4)) ] || fail "a message forges the end of its turn"
expect 0 --chat -p x --policy never -n 1
[ "$(grep -c 'no chat template' "$dir/err")" -eq 1 ] || fail "a guessed chat form is not said"
head -n 1 "$dir/err" | grep -q 'no chat template' || fail "a guessed chat form is said late"
expect 0 --chat -p x --policy never -n 1 --chat-template chatml
grep -q 'no chat template' "$dir/err" && fail "the chat form is given, yet called guessed"
grep -q 'think' "$dir/err" && fail "a note on --think, which is not given"
expect 0 --chat -p x --policy never -n 1 --chat-template chatml --think off -q
[ "$(grep -c '^mizzle: --think: no effect' "$dir/err")" -eq 1 ] || fail "--think without effect: $(cat "$dir/err")"
each "fails 2 'only works with --chat' -p x --policy never -n 1" '--chat-template chatml' '--system x' '--think off'
fails 2 '--chat-template: expected qwen2.5, qwq, qwen3, qwen3-coder, deepseek, deepseek-r1 or chatml, found llama' \
    --chat -p x --policy never -n 1 --chat-template llama
fails 2 '--think: expected auto, on or off, found much' --chat -p x --policy never -n 1 --think much
printf '%800s' | tr ' ' '#' >"$dir/long"
fails 2 '--context: expected at least 800 for this prompt, found 500' -p "$(cat "$dir/long")" -c 500 --policy never
printf '%2000s' | tr ' ' '#' >"$dir/long"
fails 2 'the context that the model was made for' -p "$(cat "$dir/long")" --policy never
# A context beyond what the demo model was made for, wherever a text is opened.
for args in 'run -p x -c 1025' 'serve -c 1025 --port 0' 'cloud -c 1025 --port 0' 'bench model -d 1024 -n 1' \
    "logits -o $dir/logits --ids 1$(printf '%1024s' | sed 's/ /,1/g')"; do
    subcommand='' before='timeout 60' fails 2 'context: expected at most 1024, the context that the model was made for, found 1' $args
    [ "$(wc -l <"$dir/err")" -le 2 ] && [ ! -e "$dir/logits" ] || fail "$args: $(cat "$dir/err")"
done
given 'one\n\n/clear\n/help\ntwo\n/quit\nthree\n' \
    notes '^mizzle run: /help: expected /clear .* or /quit' --chat --policy never -n 4 --json
[ "$(grep -c '"event":"done"' "$dir/out")" -eq 2 ] || fail "expected two answers"
# The history is what was shown: an answer that stopped before its second token equals one of one.
given 'one\n' expect 0 --chat --policy never --json -n 2
stop=$(sed -n 's/.*"pos":1,.*"text":"\([^"]*\)".*/\1/p' "$dir/out")
[ -n "$stop" ] || fail "no second token"
for limit in 1 4; do
    given 'one\ntwo\n' expect 0 --chat --policy never --json -n $limit --stop "$stop"
    field prompt_tokens >>"$dir/prompts"
done
[ "$(sort -u "$dir/prompts" | wc -l)" -eq 1 ] || fail "a stop string stays in the history"
given Question expect 0 --policy never -n 2 -q

# A text of `echo` is the text of -p, and that its newline is dropped is said.
expect 0 -p Question --policy never -n 0 --json
said=$(field prompt_tokens)
for end in '\n' '\r\n'; do
    given "Question$end" notes '^mizzle: dropped the newline at the end of the prompt' --policy never -n 0 --json
    [ "$(field prompt_tokens)" -eq "$said" ] || fail "$end is part of the prompt"
done
given 'Question\n' expect 0 --policy never -n 0 -q
[ ! -s "$dir/err" ] || fail "-q: $(cat "$dir/err")"

# What cuts an answer is said: -n, or the context, which alone ends an answer of a conversation.
stopped='^mizzle: stopped after'
notes "$stopped 4 tokens, before the text ended: -n N writes more$" --question 1 --policy never -n 4
expect 0 --question 1 --policy never
! grep "$stopped" "$dir/err" || fail "a text that ended by itself was stopped"
long='--policy never --temp 9'
notes "$stopped 256 tokens, .*-n N writes more$" -p 'Question: Where' $long
notes "$stopped 1009 tokens, .*the context is full" --chat -p 'Question: Where' $long
[ "$(grep -c 'the demo pair was not taught to chat' "$dir/err")" -eq 1 ] || fail "this pair was not taught to chat"
expect 0 --chat -p 'Question: Where' $long -n 300 -q -m $edge
! grep -q 'taught\|stopped' "$dir/err" || fail "a named model, and -q: $(cat "$dir/err")"

# Refusals.
each 'refused 2 --cloud off' '--policy none -p x' '--threshold 2 -p x' '--cloud maybe -p x' '--temp -1 -p x' \
    '-p x -f y' '-p x -v' 'x' '-p x --kv q3' '-p x --isa z80' '-c 999999999 -p x' \
    '-t 65 -p x' '--ahead 2 -p x' '--ahead -1 -p x' '--cloud auto --cloud-tokens 0 --policy always --cloud-url http://127.0.0.1:1 -p x'
head -c 5000 $edge >"$dir/cut.gguf"
each 'expect 3 -p x' "-m $dir/none.gguf" "-m $dir/cut.gguf" "-m $edge --router $dir/cut.gguf"
# A byte order mark is no part of a prompt.
expect 0 -p 'Name four animals.' --policy never -n 4
cp "$dir/out" "$dir/plain"
given '\357\273\277Name four animals.' expect 0 --policy never -n 4 -q
same "$dir/out" "$dir/plain"
given '\357\273\277/quit\n' expect 0 --chat --policy never -n 2 -q
[ ! -s "$dir/out" ] || fail "a byte order mark in a conversation"
# The longest prompt, plus one byte: the error names the bound.
dd if=/dev/zero of="$dir/long.txt" bs=1 count=1 seek=67108864 2>/dev/null
stdin=$dir/long.txt fails 3 ': expected at most 67108864 bytes$'
rm "$dir/long.txt"

# A terminal gets colour and underline, or marks if colour is not wanted.
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1; then
    # terminal ARGS: run mizzle run on a terminal.
    terminal() { TERM=${term:-xterm} script -qec "$MIZZLE run $*" /dev/null >"$dir/out" 2>&1; }
    # behind_terminal ARGS: the same behind the script, as $pid; what is written to 3 is typed.
    behind_terminal() {
        : >"$dir/out"
        terminal "$@" <"$dir/keys" &
        pid=$!
        exec 3>"$dir/keys"
    }
    # typed PROMPTS SECONDS KEYS: type the keys once so many prompts are shown and the terminal is prepared.
    typed() {
        wait_for "[ \$(grep -o '> ' '$dir/out' | wc -l) -ge $1 ]"
        sleep "$2"
        printf "$3" >&3
    }
    # ended STATUS WHAT: it ends with this status, and has given one answer.
    ended() {
        status=0
        wait $pid || status=$?
        exec 3>&-
        [ $status -eq "$1" ] && [ "$(grep -c ' tokens/s' "$dir/out")" -eq 1 ] || fail "$2: status $status, $(cat "$dir/out")"
    }
    line='--question 1 --policy always -q'
    terminal $line </dev/null
    LC_ALL=C grep -q "$escape\[4;36m" "$dir/out" || fail "no colour and underline on a terminal"
    grep -q '\[cloud:' "$dir/out" && fail "marks beside colour"
    printf 'Question: Where\\\nAnswer:\n/quit\n' | terminal --policy never -n 3
    [ "$(grep -c ' tokens/s' "$dir/out")" -eq 1 ] || fail "line by line: expected one answer"
    # Lines are edited where there is libedit: the arrow brings the line before, Ctrl-A goes to its
    # beginning. Without, the model answers these lines.
    ! ldd "$MIZZLE" 2>/dev/null | grep -q libedit || for typed in '/qui\n\033[At\nno\n' 'quit\001/\nno\n'; do
        printf "$typed" | terminal --chat --policy never -n 2
        ! grep -q ' tokens/s' "$dir/out" || fail "lines are not edited: $(cat "$dir/out")"
    done
    # Ctrl-C drops a line that is typed, which is known where there is libedit; on an empty line,
    # the second one ends. A command that is none is no prompt.
    half=
    ! ldd "$MIZZLE" 2>/dev/null | grep -q libedit || half='half \003'
    mkfifo "$dir/keys"
    for chat in '' --chat; do
        behind_terminal $chat --policy never -n 2
        prompts=0 last=
        for next in $half '\003' '/help\n' 'one\n' $half '\003' '\003'; do
            [ "$last" = half ] || prompts=$((prompts + 1))
            last=$next
            typed $prompts 0.2 "$next"
        done
        ended 130 "$chat: Ctrl-C at the prompt"
        [ "$(grep -c 'Ctrl-C again, Ctrl-D or /quit ends' "$dir/out")" -eq 2 ] &&
            [ "$(grep -c '/help: expected /clear' "$dir/out")" -eq 1 ] || fail "$chat: Ctrl-C at the prompt: $(cat "$dir/out")"
    done
    # What is pasted is one prompt, with libedit and without (stderr is no terminal then), and with -q
    # there is a sign that it is waited for.
    for to in '' "2>$dir/err"; do
        printf '\033[200~one\ntwo\303\251\033[201~ x\n/quit\n' | terminal --policy never -n 1 -q --json "$to"
        [ "$(grep -c '"event":"done".*"prompt_tokens":9,' "$dir/out")" -eq 1 ] || fail "pasted lines: $to $(cat "$dir/out")"
        [ "$(cat "$dir/out" "$dir/err" | grep -c '^.*> ')" -gt 0 ] || fail "-q: no sign"
    done
    # Ctrl-C in a paste without an end drops the line, and the next one is answered.
    behind_terminal --policy never -n 2
    for next in '\033[200~abc\rdef' '\003' 'one\n' '/quit\n'; do
        typed 1 0.4 "$next"
    done
    ended 0 "Ctrl-C in a paste"
    for way in NO_COLOR=1 term=dumb; do
        (export $way && terminal $line </dev/null)
        LC_ALL=C grep -q "$escape\[" "$dir/out" && fail "$way: colour"
        grep -q '\[cloud:' "$dir/out" || fail "$way: no marks"
    done
else
    echo "SKIP: no script(1), terminals were not tested"
fi
exit 0
