#!/bin/sh
# Kept answers with the demo pair on the command line: --answers, and --offline without any network.
. tests/support/demo_pair.sh
ask="run --question 1 --policy always --json"

# Kept with a server and used without one: the same tokens.
echo sesame-1234 >"$dir/key"
start_cloud --api-key-file "$dir/key"
alike tokens $ask --cloud-url "$url" --cloud-key-file "$dir/key" --answers "$dir/kept"
[ "$(wc -l <"$dir/kept")" -eq "$(field committed)" ] || fail "not a line a call"
grep -q sesame "$dir/kept" && fail "the key is in the file"
grep -qv '^{"mizzle_answers":3,"model":"[^"]*","tokenizer":"[0-9a-f]\{16\}","n":[0-9]*,"prefix":"[0-9a-f]\{32\}","id":[0-9]*,"crc":"[0-9a-f]\{8\}"}$' \
    "$dir/kept" && fail "lines"
cp "$dir/kept" "$dir/whole"
alike tokens $ask --cloud-url "$url" --cloud-key-file "$dir/key" --answers "$dir/kept"
[ "$(field calls)" -eq 0 ] && [ "$(field store)" -eq "$(field tokens)" ] || fail "asked again"
same "$dir/kept" "$dir/whole" # no answer is kept twice
stop_cloud
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    before="strace -f -o $dir/calls -e trace=socket,connect -E ASAN_OPTIONS=detect_leaks=0" # (libcurl wakes its thread over a socketpair)
    $before "$MIZZLE" run --question 1 -n 1 --cloud-url http://127.0.0.1:9 >/dev/null 2>&1
    grep -q 'socket(' "$dir/calls" || fail "strace shows no network where there is one"
else
    echo "SKIP: no strace: a dead URL alone shows that --offline uses no network"
fi
for ahead in 0 1; do
    alike tokens $ask --ahead $ahead --answers "$dir/kept" --offline
    [ -z "$before" ] || ! grep -q '(' "$dir/calls" || fail "--offline uses the network"
    [ "$(field fallback)" -eq 0 ] || fail "--offline has fallback tokens"
    [ "$(field calls)" -eq 0 ] && [ "$(field offline)" = true ] || fail "--offline has calls"
done
before=
alike tokens $ask --answers "$dir/kept" --offline --cloud-url http://127.0.0.1:1 --cloud required

# What is missing is a fault, which is named; a torn end is left out. (t_answer_file.c
# has damage, and lines of older versions.)
notes 'offline: no answer to a prefix of [0-9]* tokens, the last of them [0-9]*' run --question 2 --policy always -n 4 --answers "$dir/kept" --offline
says '^offline: [0-9]* calls*: [0-9]* failed'
expect 4 run --question 2 --policy always --cloud required --answers "$dir/kept" --offline -q
one_line
same "$dir/kept" "$dir/whole" # nothing is written
head -c $(($(wc -c <"$dir/whole") - 5)) "$dir/whole" >"$dir/kept"
notes 'left out [0-9]* bytes of a torn line' $ask --answers "$dir/kept" --offline
fails 3 'expected {"mizzle_answers":3,"model":"another".*found {"mizzle_answers":3,"model":' \
    $ask --answers "$dir/whole" --offline --cloud-model another
expect 3 $ask --answers "$dir/none" --offline
fails 2 ': --answers-limit: expected answers' $ask --answers-limit 5
one_line

# Without a network, limits charge nothing: a miss is the fault it is without them.
for cap in '--max-cloud-tokens 0' '--max-cloud-tokens 3' '--max-cloud-input 80'; do
    alike tokens $ask --answers "$dir/whole" --offline --cloud required $cap
    expect 4 run --question 2 --policy always --cloud required --answers "$dir/whole" --offline -q $cap
    one_line
    expect 0 run --question 2 --policy always -n 4 --json --answers "$dir/whole" --offline $cap
    [ "$(field calls)" -eq "$(field fault)" ] && [ "$(field asked_tokens)" -eq 0 ] || fail "$cap"
done

# A model of this machine is named offline as it was with a network.
cp $edge "$dir/large.gguf"
anew
alike tokens $ask -n 8 --cloud-model "$dir/large.gguf" --answers "$dir/local"
alike tokens $ask -n 8 --cloud-model "$dir/large.gguf" --answers "$dir/local" --offline
rm "$dir/large.gguf"
for name in "$dir/large.gguf" large; do
    alike tokens $ask -n 8 --cloud-model "$name" --answers "$dir/local" --offline
    [ "$(field fallback)" -eq 0 ] && [ "$(field store)" -eq "$(field tokens)" ] || fail "$name"
done
alike tokens $ask -n 8 --answers "$dir/local" --offline

# Another model of the same name has its own answers.
grep -qv '"model":"large@[0-9a-f]\{16\}/[0-9a-z]*",' "$dir/local" && fail "no fingerprint"
cp weights/milli/cloud.gguf "$dir/large.gguf"
anew
alike tokens $ask --cloud-model "$dir/large.gguf" # without answers
alike tokens $ask --cloud-model "$dir/large.gguf" --answers "$dir/local"
[ "$(field store)" -eq 0 ] || fail "answers of another model"
for name in "$dir/large.gguf" large; do # the latest one
    alike tokens $ask --cloud-model "$name" --answers "$dir/local" --offline
done
notes 'local: answers of several models: those of large@[0-9a-f]\{16\}/' $ask --answers "$dir/local" --offline
start -m weights/milli/cloud.gguf
expect 0 $ask -n 2 --cloud-url "$url" --answers "$dir/asked"
grep -qv '"model":"cloud@mz-[0-9a-f]\{16\}/[0-9a-z]*",' "$dir/asked" && fail "a server's fingerprint"
expect 0 $ask -n 2 --answers "$dir/asked" --offline --cloud-model cloud
[ "$(field store)" -eq 2 ] || fail "a server's plain name"
fails 2 ': --offline: expected answers' $ask --offline

# Another file is not touched; a full disk ends no text. (t_answer_shared.c has several processes.)
cp $edge "$dir/strange"
fails 3 'strange: expected a file of answers, {"mizzle_answers":3,..., found GGUF' $ask --answers "$dir/strange"
one_line
same $edge "$dir/strange"
expect 2 $ask --answers "$dir/kept" --answers-limit 0
(ulimit -f 1 && exec "$MIZZLE" $ask --answers "$dir/full" >/dev/null 2>"$dir/err") || fail "a full disk: $?"
says 'full: cannot write: '
expect 0 $ask --answers "$dir/full" --offline
[ "$(field cloud)" -gt 2 ] && [ "$(field fallback)" -gt 0 ] || fail "a full disk: $(tail -n 1 "$dir/out")"

# A server's faults are no answers; further tokens of a reply are kept when they are used.
start_cloud --fault 500:0.6 --seed 2
expect 0 $ask -n 12 --ahead 0 --cloud-url "$url" --answers "$dir/faults"
[ "$(field failed)" -gt 0 ] && [ "$(wc -l <"$dir/faults")" -eq "$(field committed)" ] || fail "faults"
stop_cloud
start_cloud
expect 0 $ask --cloud-tokens 4 --cloud-url "$url" --answers "$dir/more"
[ "$(field memo)" -gt 0 ] && [ "$(wc -l <"$dir/more")" -eq "$(field cloud)" ] || fail "further tokens"
stop_cloud
