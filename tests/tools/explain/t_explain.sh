#!/bin/sh
# mizzle explain on the command line, with the demo pair: the text of mizzle run, the same numbers
# with any threads and kernels, what is kept, the page, and what is refused.
. tests/support/demo_pair.sh

# ran, written: the tokens of run, and those of explain but for the prompt, with their sources.
ran() { sed -n 's/.*"token".*"id":\([0-9]*\),.*"source":"\([a-z]*\)".*/\1 \2/p' "$dir/out"; }
written() {
    sed -n '/"prompt","why"/d; s/^{"pos":.*"id":\([0-9]*\),.*"source":"\([a-z]*\)","why".*/\1 \2/p' "$dir/out"
}

# The text is that of mizzle run, with its scores: what is looked at is what happened.
for what in 'mlp --question 3' 'max-prob --question 3' 'mlp --chat -p Where?'; do
    policy=${what%% *}
    line="${what#* } --policy $policy --threshold 0.9 -n 8 --json"
    expect 0 run $line --ahead 0
    ran >"$dir/run"
    sed -n 's/.*"token".*"score":\([0-9.e-]*\),.*/\1/p' "$dir/out" >"$dir/scores"
    expect 0 explain $line
    ! grep -v 'no chat template' "$dir/err" || fail "$what: --json writes to stderr"
    written | cmp -s - "$dir/run" || fail "$what: another text than that of run"
    [ "$(wc -l <"$dir/run")" -eq 8 ] || fail "$what: not 8 tokens"
    prompt=$(sed -n 's/^"prompt_tokens":\([0-9]*\),$/\1/p' "$dir/out")
    sed -n 's/^{"pos":.*"score":\([0-9.e-]*\),"verdict".*/\1/p' "$dir/out" |
        awk -v first="$prompt" 'NR >= first' >"$dir/seen"
    paste "$dir/scores" "$dir/seen" | awk '($1 - $2) ^ 2 > 1e-14 { exit 1 }' ||
        fail "$what: other scores than those of run"
    [ "$(wc -l <"$dir/seen")" -eq 8 ] || fail "$what: scores are missing"
done

# No number but times depends on threads and kernels. By default the last layer's rows are whole.
count() { grep -o "$1" "$dir/out" | wc -l; }
text='A hilava is a kind of'
for how in '-t 3' '-t 1 --isa scalar'; do
    expect 0 explain -p "$text" -n 3 --kv q8 --json $how
    [ "$(count '"at":\[')" -eq 264 ] && [ "$(count '"rest":')" -eq 264 ] || fail "$how: rows"
    [ "$(count '"at":\[[0-9]*,[0-9]*,[0-9]*,')" -gt 50 ] || fail "$how: no whole rows"
    [ "$(grep -c '^{"pos"' "$dir/out")" -eq 23 ] || fail "$how: not 12 tokens and 11 positions"
    sed '1,/"positions"/d; /^"reading"/,$d' "$dir/out" >"$dir/numbers$(echo "$how" | wc -w)"
done
cmp "$dir/numbers2" "$dir/numbers4" || fail "threads or kernels change a number"

# Whole rows of the chosen layers alone, no text at all, and a reason of a fallback.
expect 0 explain -p "$text" -n 0 --json --layers 0:1
[ "$(count '"rest":')" -eq 216 ] || fail "--layers: rows"
long=$(count '"at":\[[0-9]*,[0-9]*,[0-9]*,[0-9]')
[ "$long" -gt 40 ] && [ "$long" -le 96 ] || fail "--layers: $long rows are whole"
[ "$(grep -c '^{"pos"' "$dir/out")" -eq 18 ] || fail "-n 0: not 9 tokens and 9 positions"
expect 0 explain -p "$text" -n 4 --policy always --max-cloud-tokens 1 --json
[ "$(count '"why":"the policy is always"')" -eq 1 ] || fail "always: why"
[ "$(count '"source":"fallback".*"reason":"capped"')" -ge 1 ] || fail "no reason of a fallback"

# The page: the position asked for, in 80 columns, without colour or other control characters.
prints "^Position 5: " explain -p "$(printf 'A \033[31mh\tis')" -n 4 --at 5 --layers 0:2
LC_ALL=C grep -q '[^ -~]' "$dir/out" && fail "control characters"
awk 'length($0) > 80 { print; exit 1 }' "$dir/out" || fail "over 80 columns"
grep -q '^Stopped after 4 tokens, .* -n N writes more$' "$dir/out" || fail "not said that it stopped"
# The verdict is that of the sum beside the threshold in force.
expect 0 explain --question 2 --threshold 0.95
grep -q '^The largest share for the cloud is that of the threshold: -2.944' "$dir/out" &&
    grep -q ', threshold -2.944$' "$dir/out" || fail "shares beside the threshold of 0.95"
# One of 0 or 1, which decides alone, has no share.
for limit in 0 1; do
    expect 0 explain --question 2 --threshold $limit
    grep -q '^  all other units .*, bias [+-][0-9.]*$' "$dir/out" && ! grep -q 'largest share\|inf' "$dir/out" ||
        fail "the share of a threshold of $limit"
    expect 0 explain -p "$text" -n 1 --threshold $limit --json
    ! grep -q '"decided":"' "$dir/out" || fail "--json: the share of a threshold of $limit"
done
full=$(awk 'BEGIN { for (i = 0; i < 1020; i++) printf "is " }')
prints '^Stopped after 4 tokens, .* the context is full$' explain -p "$full" -n 50
expect 0 explain -p "$text" -n 1 --output "$dir/page.html"
[ "$(ls -l "$dir/page.html" | cut -c1-10)" = -rw------- ] || fail "--output: others may read it"
expect 0 explain --question 1
grep -q '^Stopped after' "$dir/out" && fail "--question: stopped before the answer ended"
tr -s '\n ' ' ' <"$dir/out" |
    grep -q ' where the cloud was asked with the lowest score; --at N .* --layers 0:2 ' ||
    fail "--question: not the position where the cloud was asked"
for line in '' '--cloud-tokens 8'; do
    expect 0 run --question 1 --json $line
    ran >"$dir/run"
    expect 0 explain --question 1 --json $line
    written | cmp -s - "$dir/run" || fail "--question $line: another answer than that of run"
done
prints 'where the small model was least sure' explain --question 1 -n 2 --policy never
expect 0 explain --question 1 -n 2 --at 40
for part in 'Position 40: ' 'Then comes ' 'The residual stream' 'Where the heads of layer 2 look' \
    'What the small model would write' 'The score of mlp is '; do
    grep -q "$part" "$dir/out" || fail "the page has no $part"
done

# Attention to a name; of the text, nothing changes. The document has the times of all operations.
positions() { sed '/^{"pos":/!d; s/,"span":[0-9.e-]*}/}/g; s/,"[a-z_]*ms":[0-9.e-]*//g' "$dir/out"; }
expect 0 explain --question 2 --json
positions >"$dir/before"
for op in embed norm qkv attention o ffn down head; do
    [ "$(count "{\"op\":\"$op\",\"calls\":[0-9]*,[^}]*\"of_limit\":")" -eq 2 ] || fail "--json: no $op"
done
expect 0 explain --question 2 --span-of hirukudi --json
positions | cmp -s - "$dir/before" || fail "--span-of: another text"
grep -q '^"span":{"text":"hirukudi","at":\[7,8,9,10,11,48,49,50,51,52\],"pos":62,' "$dir/out" ||
    fail "--span-of: $(grep '^"span"' "$dir/out")"
expect 0 explain --question 2 --span-of hirukudi
for part in '^The largest share for the cloud is that of the other 248 hidden units together:' \
    '^Which heads look at the span from position 62' '^    2    1    49\.6%'; do
    grep -q -- "$part" "$dir/out" || fail "the page has no $part"
done
awk 'length($0) > 80 { print; exit 1 }' "$dir/out" || fail "over 80 columns"

# What is refused takes one line.
refused 2 explain
refuses 2 '--chat: expected -p, found --question' explain --question 2 --chat
for bad in '--question 1' more '--layers 3' '--layers 1:0' '--layers 0:1:2' '--layers 0:' \
    '--layers 0,' '--layers 0:1,5' '--layers 0:1000000' '--layers 1:99999999999' '--layers :' \
    '--layers :1' '--layers 1x' '--policy any' '--span-of x=y' -p= --output=; do
    refused 2 explain -p "$text" $bad
done
refuses 2 'at: expected 0 to 9, found 10' explain -p "$text" -n 2 --at 10
refused 3 explain -p "$text" -m "$dir/none"
refused 4 explain -p "$text" --policy always --cloud off
refused 2 explain -p "$full $full"

# An interrupt ends it while the cloud is awaited.
start_cloud --latency 20000
behind explain -p "$text" --policy always --cloud-url "$url" --cloud-timeout 60000
interrupt $pid
left 130
stop_cloud
