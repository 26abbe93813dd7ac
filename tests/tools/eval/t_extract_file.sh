#!/bin/sh
# mizzle eval --task extract: the rules on a file or on standard input, without a model; every line is
# checked before anything is printed.
. tests/support/shell.sh
cat >"$dir/good" <<'END'
{"labels":["A","B"],"choices":["bank","mall"],"text":"The answer is B. mall","reader":"B"}
{"labels":["1","2"],"choices":["bank","mall"],"text":"mall"}
{"labels":["A","B"],"choices":["bank","mall"],"text":""}
{"text":"\\boxed{\\text{1,800}}"}
{"text":"\\boxed{"}
END
cat >"$dir/want" <<'END'
{"citer":null,"answer":"B"}
{"citer":"2","answer":"2"}
{"citer":null,"answer":null}
{"citer":"\\text{1,800}","answer":"1800"}
{"citer":"","answer":null}
END
subcommand='eval --json'
expect 0 --task extract --data "$dir/good"
same "$dir/want" "$dir/out"
"$MIZZLE" eval --task extract --data - --json <"$dir/good" | cmp "$dir/want" - || fail "standard input"
[ "$("$MIZZLE" eval --task extract --data "$dir/good" | awk '{ print $1 $2 }' | tr '\n' ' ')" = \
    'citeranswer -B 22 -- \text{1,800}1800 - ' ] || fail "$("$MIZZLE" eval --task extract --data "$dir/good")"

bad() {
    printf '{"text":"18"}\n%s\n' "$2" >"$dir/bad"
    refuses 3 "$dir/bad: line 2: $1" --task extract --data "$dir/bad"
}
bad 'text: expected a string, found a number' '{"text":3}'
bad 'text: expected a string, found nothing' '{}'
bad 'text: expected a text, found a byte 0' '{"text":"\u0000"}'
bad 'choices: expected a list, found nothing' '{"labels":["A"],"text":"x"}'
bad 'labels: expected a list, found null' '{"labels":null,"text":"x"}'
bad 'labels: expected 1 to 26, found 0' '{"labels":[],"choices":[],"text":"x"}'
bad 'choices: expected as many as labels, 1, found 2' \
    '{"labels":["A"],"choices":["a","b"],"text":"x"}'
bad 'labels\[0]: expected one letter or digit, found AB' '{"labels":["AB"],"choices":["a"],"text":"x"}'
bad 'choices\[0]: expected a string, found a list' '{"labels":["A"],"choices":[[]],"text":"x"}'
bad 'the line: expected JSON' '{"text":'
refuses 3 "$dir/none: No such file" --task extract --data "$dir/none"
refuses 2 '--task extract: expected --data FILE' --task extract
refuses 2 '--model: expected without --task extract' --task extract --data "$dir/good" -m edge.gguf
