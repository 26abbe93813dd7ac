#!/bin/sh
# Files that commands write are complete or absent, whatever happens: a full disk, a signal, an
# input that another process truncates. Also tests the arguments of mizzle logits.
set -u
mizzle=${MIZZLE:-build/mizzle}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/out"

fail() {
    echo "t_output: $*" >&2
    exit 1
}

# expect STATUS ARGS: run mizzle, which must end with this status and leave nothing unfinished; if
# it fails, it prints one line to stderr.
expect() {
    want=$1
    shift
    timeout 120 "$mizzle" "$@" >"$tmp/stdout" 2>"$tmp/err" </dev/null
    got=$?
    [ $got -eq "$want" ] || fail "$*: status $got, expected $want: $(cat "$tmp/err")"
    [ "$want" -eq 0 ] || [ "$(grep -cv 'keys and values\|hardware counters' "$tmp/err")" -eq 1 ] || fail "$*: $(cat "$tmp/err")"
    [ -z "$(find "$tmp/out" -name '*.part')" ] || fail "$*: left a .part file"
}

# Missing ids are wrong usage. The type of keys and values is reported; --kv changes it and the
# bits.
: >"$tmp/empty"
for ids in "" --ids= "--ids-file /dev/null" "--ids-file $tmp/empty"; do
    # shellcheck disable=SC2086
    expect 2 logits $ids -o "$tmp/out/x"
    [ ! -e "$tmp/out/x" ] || fail "logits $ids: wrote a file"
done
expect 0 logits --ids 1,2,3,4 -o "$tmp/out/f32"
grep -q 'keys and values in f32' "$tmp/err" || fail "no type of keys and values: $(cat "$tmp/err")"
expect 0 logits --ids 1,2,3,4 --kv f16 -o "$tmp/out/f16"
grep -q 'keys and values in f16' "$tmp/err" || fail "no type of keys and values: $(cat "$tmp/err")"
cmp -s "$tmp/out/f32" "$tmp/out/f16" && fail "--kv changes nothing"
expect 0 logits --ids 1,2 -o /dev/null
expect 3 logits --ids 1,2 -o "$tmp/out"
cp "$tmp/out/f32" "$tmp/kept"

# --top prints the ids of a text, and what may follow each of them; the ids give the same.
text='A hilava is a kind of'
expect 0 logits -p "$text" --top 3 -o "$tmp/out/top"
cp "$tmp/stdout" "$tmp/top"
ids=$(sed -n '1s/^ids: //p' "$tmp/top")
[ "$ids" = "$("$mizzle" tokenize -p "$text" | tr -s ' \n' ',' | sed 's/,$//')" ] || fail "--top: ids: $ids"
[ "$(wc -l <"$tmp/top")" -eq 10 ] || fail "--top: not ten lines"
sed 1d "$tmp/top" | grep -qvE '^[0-9]+ ".*":( [01]\.[0-9]{6} [0-9]+ "[^"]*",?){3}$' && fail "--top: form"
grep -q '^268 " is": 0.99[0-9]* 258 " a", ' "$tmp/top" || fail "--top: probability"
expect 0 logits --ids "$ids" --top 3
cmp -s "$tmp/stdout" "$tmp/top" || fail "--top: other results with --ids"
expect 0 logits --ids "$ids" -o "$tmp/out/plain"
cmp -s "$tmp/out/top" "$tmp/out/plain" || fail "--top changes what -o writes"
for wrong in "-p x" "-p x --top 101" "-p x --top 2 -o -" "-p x --ids 1 --top 2" "-p= --top 1"; do
    # shellcheck disable=SC2086
    expect 2 logits $wrong
done

# A full disk (here a limit on the size of files) is an error, and the old file stays.
(
    ulimit -f 2
    expect 3 logits --ids 1,2,3,4,5,6 -o "$tmp/out/f32"
    expect 3 logits --ids 1,2,3,4,5,6 -o "$tmp/out/new"
    expect 3 bench kernels --only rmsnorm_f32 -r 1 --plot "$tmp/out/roof.svg"
    exit 0
) || exit 1
cmp -s "$tmp/out/f32" "$tmp/kept" || fail "a full disk spoilt the file that was there"
[ ! -e "$tmp/out/new" ] && [ ! -e "$tmp/out/roof.svg" ] || fail "a full disk leaves a file"

# Long tasks check before they start that the output can be written.
expect 3 router train -o "$tmp/none/r.safetensors"
expect 3 bench kernels --plot "$tmp/none/roof.svg"
[ ! -s "$tmp/stdout" ] || fail "bench measures before it says that it cannot draw"

# A sparse file with one tensor of 8 GiB of zeros: 2048 x 1048576 values.
big() {
    {
        printf 'GGUF\003\000\000\000\001\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000'
        printf '\024\000\000\000\000\000\000\000general.architecture\010\000\000\000'
        printf '\003\000\000\000\000\000\000\000abc'
        printf '\001\000\000\000\000\000\000\000t\002\000\000\000'
        printf '\000\000\020\000\000\000\000\000\000\010\000\000\000\000\000\000'
        printf '\000\000\000\000\000\000\000\000\000\000\000\000'
    } >"$tmp/big.gguf"
    truncate -s 8589934720 "$tmp/big.gguf" # 128 bytes of header
}
big
"$mizzle" info "$tmp/big.gguf" >"$tmp/stdout" 2>&1 || {
    echo "SKIP: no file of 8 GiB can be made here: $(cat "$tmp/stdout")"
    exit 77
}

# begin TYPE: start a conversion and wait until it writes; set pid.
begin() {
    "$mizzle" convert "$tmp/big.gguf" "$tmp/out/big.gguf" --type "$1" 2>"$tmp/err" &
    pid=$!
    turns=0
    until [ -n "$(find "$tmp/out" -name '*.part' -size +0)" ]; do
        kill -0 $pid 2>/dev/null || fail "convert ended at once: $(cat "$tmp/err")"
        [ $((turns += 1)) -lt 2000 ] || fail "convert writes nothing"
        sleep 0.02
    done
}

ends() { # STATUS WHAT: the conversion must end with this status and leave no file
    wait $pid
    got=$?
    [ $got -eq "$1" ] || fail "$2: status $got, expected $1: $(cat "$tmp/err")"
    [ -z "$(find "$tmp/out" -name 'big*')" ] || fail "$2: $(ls "$tmp/out") stay"
}

for type in f32 f16; do
    begin $type
    kill -TERM $pid
    ends 130 SIGTERM
done
begin f16
kill -HUP $pid
ends 129 SIGHUP
begin f16
kill -TERM $pid
kill -TERM $pid 2>/dev/null
wait $pid
[ -z "$(find "$tmp/out" -name 'big*')" ] || fail "a second SIGTERM leaves a file"

# A truncated input gives status 3 and one line that names it.
for type in f32 f16; do
    begin $type
    truncate -s 4096 "$tmp/big.gguf"
    ends 3 "a file cut short"
    [ "$(wc -l <"$tmp/err")" -eq 1 ] && grep -q 'gguf: another process cut' "$tmp/err" ||
        fail "a file cut short: $(cat "$tmp/err")"
    big
done

# info reads keys as it prints them. The pipe is full long before the last one, so the rest is read
# after the file was cut.
{
    printf 'GGUF\003\000\000\000\000\000\000\000\000\000\000\000\021\047\000\000\000\000\000\000'
    printf '\024\000\000\000\000\000\000\000general.architecture\010\000\000\000'
    printf '\003\000\000\000\000\000\000\000abc'
    seq -w 1 10000 | awk '{ printf "\026%c%c%c%c%c%c%cabc.a-key-number-%s%c", 0, 0, 0, 0, 0, 0, 0, $1, 4
                            printf "%c%c%cabcd", 0, 0, 0 }'
} >"$tmp/keys.gguf"
"$mizzle" info "$tmp/keys.gguf" >"$tmp/stdout" 2>"$tmp/err" || fail "many keys: $(cat "$tmp/err")"
[ "$(grep -c a-key-number "$tmp/stdout")" -eq 10000 ] || fail "many keys: $(wc "$tmp/stdout")"
mkfifo "$tmp/fifo"
"$mizzle" info "$tmp/keys.gguf" >"$tmp/fifo" 2>"$tmp/err" &
pid=$!
exec 3<"$tmp/fifo"
read -r line <&3
truncate -s 4096 "$tmp/keys.gguf"
cat <&3 >"$tmp/stdout"
exec 3<&-
ends 3 "info of a file cut short"
[ "$(wc -l <"$tmp/err")" -eq 1 ] && grep -q 'keys.gguf: another process cut' "$tmp/err" ||
    fail "info of a file cut short ($line): $(cat "$tmp/err")"

# Whenever a model is cut: a result, or status 3 and one line.
[ ! -e weights/milli/edge-0.5.gguf ] && exit 0
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    for command in "tokenize -p x" "info" "run -p x -n 1 --policy never" "logits --ids 1 -o $tmp/out/l"; do
        rm -f "$tmp/cut.gguf"
        cp weights/milli/edge-0.5.gguf "$tmp/cut.gguf"
        case $command in
        info) set -- info "$tmp/cut.gguf" ;;
        *) set -- $command -m "$tmp/cut.gguf" ;;
        esac
        "$mizzle" "$@" >"$tmp/stdout" 2>"$tmp/err" </dev/null &
        pid=$!
        [ $((i % 4)) -eq 0 ] || sleep "0.00$((i % 4 * 2))"
        truncate -s $((i * 4096)) "$tmp/cut.gguf"
        wait $pid
        status=$?
        [ $status -eq 0 ] || { [ $status -eq 3 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ]; } ||
            fail "$command, cut: status $status: $(cat "$tmp/err")"
    done
done
exit 0
