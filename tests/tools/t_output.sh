#!/bin/sh
# Files that commands write are complete or absent, whatever happens: a full disk, a signal. (An input
# that another process cuts short while convert or logits read it: t_command_faults.c. Here info reads
# one.) Also tests the arguments of mizzle logits.
. tests/support/shell.sh
mkdir "$dir/made"

# writes STATUS ARGS: run mizzle, which must end with this status and leave nothing unfinished; if it
# fails, it prints one line to stderr, besides notes on what is measured.
writes() {
    expect "$@"
    [ "$want" -eq 0 ] || [ "$(grep -cv 'keys and values\|hardware counters' "$dir/err")" -eq 1 ] || fail "$*: not one line"
    [ -z "$(find "$dir/made" -name '*.part')" ] || fail "$*: left a .part file"
}
before='timeout 120'

# Missing ids are wrong usage. The type of keys and values is reported; --kv changes it and the
# bits.
for ids in "" --ids=; do
    writes 2 logits $ids -o "$dir/made/x"
    [ ! -e "$dir/made/x" ] || fail "logits $ids: wrote a file"
done
writes 0 logits --ids 1,2,3,4 -o "$dir/made/f32"
says 'keys and values in f32'
writes 0 logits --ids 1,2,3,4 --kv f16 -o "$dir/made/f16"
says 'keys and values in f16'
cmp -s "$dir/made/f32" "$dir/made/f16" && fail "--kv changes nothing"
writes 0 logits --ids 1,2 -o /dev/null
writes 3 logits --ids 1,2 -o "$dir/made"
cp "$dir/made/f32" "$dir/kept"

# --top-k prints the ids of a text, and what may follow each of them; the ids give the same.
text='A hilava is a kind of'
writes 0 logits -p "$text" --top-k 3 -o "$dir/made/top"
cp "$dir/out" "$dir/top"
ids=$(sed -n '1s/^ids: //p' "$dir/top")
[ "$ids" = "$("$MIZZLE" tokenize -p "$text" | tr -s ' \n' ',' | sed 's/,$//')" ] || fail "--top-k: ids: $ids"
[ "$(wc -l <"$dir/top")" -eq 10 ] || fail "--top-k: not ten lines"
sed 1d "$dir/top" | grep -qvE '^[0-9]+ ".*":( [01]\.[0-9]{6} [0-9]+ "[^"]*",?){3}$' && fail "--top-k: form"
grep -q '^268 " is": 0.99[0-9]* 258 " a", ' "$dir/top" || fail "--top-k: probability"
writes 0 logits --ids "$ids" --top-k 3
cmp -s "$dir/out" "$dir/top" || fail "--top-k: other results with --ids"
writes 0 logits --ids "$ids" -o "$dir/made/plain"
cmp -s "$dir/made/top" "$dir/made/plain" || fail "--top-k changes what -o writes"
each 'writes 2 logits' "-p x" "-p x --top-k 101" "-p x --top-k 2 -o -" "-p x --ids 1 --top-k 2" "-p= --top-k 1"

# A closed descriptor does not become that of a file which is written. What stdout would have had is
# lost, which is an error; stderr is not missed.
"$MIZZLE" logits --ids 1,2,3,4 -o "$dir/made/closed" 2>&- || fail "2>&-: status $?"
same "$dir/made/closed" "$dir/kept"
for command in 'run --question 2 -n 4' 'run --question 2 -n 4 --json' "logits -p x --top-k 1 -o $dir/made/lost"; do
    status=0
    "$MIZZLE" $command >&- 2>"$dir/err" || status=$?
    [ $status -eq 3 ] && [ ! -e "$dir/made/lost" ] || fail "$command >&-: status $status"
done
for closed in '<&-' '<&- 2>&-' '<&- >&- 2>&-'; do
    eval "\"\$MIZZLE\" run -n 4 $closed" >"$dir/out" 2>"$dir/err"
    [ $? -eq 3 ] || fail "run $closed: expected an error of the prompt"
done

# A full disk (here a limit on the size of files) is an error, and the old file stays.
(
    ulimit -f 2
    writes 3 logits --ids 1,2,3,4,5,6 -o "$dir/made/f32"
    writes 3 logits --ids 1,2,3,4,5,6 -o "$dir/made/new"
    writes 3 pretrain 0.1 -q -o "$dir/made"
    exit 0
) || exit 1
cmp -s "$dir/made/f32" "$dir/kept" || fail "a full disk spoilt the file that was there"
[ ! -e "$dir/made/new" ] || fail "a full disk leaves a file"

# Another user's link leads to no device and to no new folder. Only root can make such a link.
if [ "$(id -u)" -eq 0 ]; then
    mkdir "$dir/all" && ln -s /dev/null "$dir/all/null" && ln -s .. "$dir/all/up"
    chmod 1777 "$dir/all" && chown -h 65534 "$dir/all/null" "$dir/all/up"
    for to in 'logits --ids 1 -o null' 'pretrain 0.1 -o up/new' \
        'router collect -n 1 --labels divergent -o up/new'; do
        # shellcheck disable=SC2086
        writes 3 ${to% *} "$dir/all/${to##* }"
        says "another user's link"
        [ ! -e "$dir/new" ] || fail "$to: a folder was made"
    done
fi

# Long tasks check before they start that the output can be written.
writes 3 router train --samples "$dir" -o "$dir/none/r.safetensors"

# A sparse file with one tensor of 8 GiB of zeros: 2048 x 1048576 values.
{
    printf 'GGUF\003\000\000\000\001\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000'
    printf '\024\000\000\000\000\000\000\000general.architecture\010\000\000\000'
    printf '\003\000\000\000\000\000\000\000abc'
    printf '\001\000\000\000\000\000\000\000t\002\000\000\000'
    printf '\000\000\020\000\000\000\000\000\000\010\000\000\000\000\000\000'
    printf '\000\000\000\000\000\000\000\000\000\000\000\000'
} >"$dir/big.gguf"
truncate -s 8589934720 "$dir/big.gguf" # 128 bytes of header
"$MIZZLE" info "$dir/big.gguf" >"$dir/out" 2>&1 || skip "no file of 8 GiB can be made here"

# begin TYPE: start a conversion and wait until it writes; set pid.
begin() {
    behind convert "$dir/big.gguf" "$dir/made/big.gguf" --type "$1"
    wait_for '[ -n "$(find "$dir/made" -name "*.part" -size +0)" ] || ! kill -0 $pid'
}

ends() { # STATUS: the conversion must end with this status and leave no file
    left "$1"
    [ -z "$(find "$dir/made" -name 'big*')" ] || fail "status $1: $(ls "$dir/made") stay"
}

for type in f32 f16; do
    begin $type
    kill -TERM $pid
    ends 130
done
if sh -c 'kill -HUP $$'; then
    echo "SKIP: SIGHUP, which is ignored here (nohup)"
else
    begin f16
    kill -HUP $pid
    ends 129
fi
begin f16
kill -TERM $pid
kill -TERM $pid 2>/dev/null
wait $pid
[ -z "$(find "$dir/made" -name 'big*')" ] || fail "a second SIGTERM leaves a file"

# info reads keys as it prints them. The pipe is full long before the last one, so the rest is read
# after the file was cut.
{
    printf 'GGUF\003\000\000\000\000\000\000\000\000\000\000\000\021\047\000\000\000\000\000\000'
    printf '\024\000\000\000\000\000\000\000general.architecture\010\000\000\000'
    printf '\003\000\000\000\000\000\000\000abc'
    seq -w 1 10000 | awk '{ printf "\026%c%c%c%c%c%c%cabc.a-key-number-%s%c", 0, 0, 0, 0, 0, 0, 0, $1, 4
                            printf "%c%c%cabcd", 0, 0, 0 }'
} >"$dir/keys.gguf"
"$MIZZLE" info "$dir/keys.gguf" >"$dir/out" 2>"$dir/err" || fail "many keys"
[ "$(grep -c a-key-number "$dir/out")" -eq 10000 ] || fail "many keys: $(wc "$dir/out")"
mkfifo "$dir/fifo"
"$MIZZLE" info "$dir/keys.gguf" >"$dir/fifo" 2>"$dir/err" &
pid=$!
exec 3<"$dir/fifo"
read -r line <&3
truncate -s 4096 "$dir/keys.gguf"
cat <&3 >"$dir/out"
exec 3<&-
ends 3
one_line
says 'keys.gguf: another process cut'

# What could steer a terminal is escaped in JSON, too.
strange=$dir/$(printf 'e\342\200\256m\302\233.gguf')
[ ! -e weights/milli/edge-0.1.gguf ] || cp weights/milli/edge-0.1.gguf "$strange"
[ ! -e "$strange" ] || expect 0 info "$strange" --json
[ ! -e "$strange" ] || grep -q '/e\\u202em\\u009b.gguf"' "$dir/out" || fail "a file's name in JSON"
exit 0
