#!/bin/sh
# tools/lab/study/figures.py: its statistics, figures of answers that eval has kept, and what it
# refuses.
script=figures.py
. tests/tools/eval/study.sh

"$python" -B tests/tools/eval/figures_check.py >"$dir/out" 2>"$dir/err" || fail "figures_check.py"

# row LINE COL...: these columns of the row that begins with this behind task, form and pair.
row() {
    row=$1
    shift
    awk -F, -v row=",$row" -v want="$*" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; n = split(want, name, " "); next }
        index($0, row) { for (k = 1; k <= n; k++) printf "%s%s", $at[name[k]], k < n ? " " : "\n" }' "$dir/figures"
}
is() { # WHAT FOUND EXPECTED
    [ "$2" = "$3" ] || fail "$1: expected $3, found $2"
}

# Answers of ten tokens: POLICY,SHARE RUN CLOUD RIGHTS.
header=task,form,pair,id,group,policy,share,run,right_citer,right_answer,tokens,cloud,calls,read,hash,settings
answers() {
    echo "$1" "$2" "$3" "$4" | awk -v OFS=, '{ for (i = 1; i <= length($4); i++)
        print "csqa,chat,pair", i, "000000000000000" i, $1, $2, 1, substr($4, i, 1), 10, $3, $3, 3 * $3, "0000000000000abc", "0000000000000001" }'
}
{
    echo $header
    answers never, 1 0 100010
    answers mlp,0.05 1 1 1011 # asked the first four alone
    answers mlp,0.05 2 3 1111
    answers mlp=mix,0.05 1 1 101100
    answers always, 1 10 111110
    answers random,0.02 1 0 100000000 # more than the models alone
} >"$dir/one"

# The models alone have 2 and 5 of 6, and of the first four 1 and 4.
study 0 --against mlp=mix --csv "$dir/figures" "$dir/one" "$dir/one" # what is there twice counts once
is never "$(row never,,answer questions runs accuracy)" '6 1 0.333333'
is mlp "$(row mlp,0.05,answer questions runs accuracy routed tokens cloud calls pgr gain relative_gain)" \
    '4 2 0.875000 0.200000 10.000000 2.000000 2.000000 0.833333 0.625000 2.500000'
# With half of its answers from the small model alone it routes a tenth, too.
is 'mlp beside mix' "$(row mlp,0.05,answer against against_routed difference equal)" \
    'mlp=mix 0.100000 0.125000 -0.187500'
is always "$(row always,,citer accuracy)" 1.000000
study 0 --against mlp --csv "$dir/figures" "$dir/one"
is 'mix beside what has not answered all' "$(row mlp=mix,0.05,answer accuracy against equal)" '0.500000  '
is 'random without the models' "$(row random,0.02,answer accuracy routed pgr gain against)" '0.111111 0.000000   '
# Against all, each row with a router, on the questions that both have answered.
study 0 --against all --csv "$dir/figures" "$dir/one"
is rows "$(wc -l <"$dir/figures")" $((1 + 2 * (5 + 3 + 3)))
is versus "$(row mlp=mix,0.05,answer against questions | tr '\n' ' ')" ' 6 always 6 mlp 4 never 6 '

# An own share and its comparisons are what eval itself has found, but for another order of draws.
if [ -e $edge ]; then
    expect 0 -q --questions 12 --policy never,mlp,random,always --target-routed 0.1 \
        --against random --json --jsonl "$dir/journal"
    "$python" -B tools/lab/study/answers.py items "$dir/journal" >"$dir/items" || fail "items"
    sed 's/.*"policy":"\([a-z]*\)".*"accuracy":\([0-9.]*\),.*"pgr":\([0-9.]*\),.*"routed":\([0-9.]*\),.*/\1 \2 \4 \3/' "$dir/out" |
        awk '{ printf "%s %.6f %.6f %.6f\n", $1, $2, $3, $4 }' | sort >"$dir/want"
    study 0 --against random --csv "$dir/figures" "$dir/items"
    for policy in never mlp random always; do row "$policy," policy accuracy routed pgr; done | sort -u >"$dir/got"
    cmp "$dir/want" "$dir/got" || fail "$(cat "$dir/want" "$dir/got")"
    # One line for each answer, the same however the answers are written.
    for more in '--parallel 1 --ahead 0' '--parallel 7'; do
        rm -f "$dir/other"
        expect 0 -q --questions 12 --policy never,mlp,random,always --target-routed 0.1 --jsonl "$dir/other" $more
        "$python" -B tools/lab/study/answers.py items "$dir/other" | cmp - "$dir/items" || fail "$more"
    done
    grep -qE '^milli,[a-z]+,[0-9a-f]{16}\+[0-9a-f]{16},11,[0-9a-f]{16},mlp,0.1,1,0,[01]' "$dir/items" || fail "$(cat "$dir/items")"
    # Trainings one by one are one policy.
    for k in 1 2; do cp weights/milli/edge-0.5.router.safetensors "$dir/two.safetensors.$k"; done
    expect 0 -q --questions 6 --policy "never,mlp=$dir/two.safetensors.1,mlp=$dir/two.safetensors.2" --jsonl "$dir/two"
    study 0 --csv "$dir/figures" "$dir/two"
    is trainings "$(row mlp=two, policy runs questions)" 'mlp=two 2 6'
    study 0 --against random --csv "$dir/figures" "$dir/items"
    # A journal says the same, and what has a threshold has an interval with the questions that set it.
    cp "$dir/figures" "$dir/first"
    printf '{"policy":"mlp","sha' >>"$dir/journal" # torn
    study 0 --against random --csv "$dir/figures" "$dir/journal"
    same "$dir/first" "$dir/figures"
    study 0 --calibration "$dir/journal" --csv "$dir/figures" "$dir/items"
    for policy in never mlp random always; do row "$policy," calibrated; done | sort | uniq -c | tr -s ' \n' ' ' >"$dir/got"
    is calibrated "$(cat "$dir/got")" ' 1 12 3 none '
    low=$(row mlp, routed_low) high=$(row mlp, routed_high) routed=$(row mlp, routed)
    awk "BEGIN { exit !($low < $routed && $routed < $high) }" || fail "$low $routed $high"
    # Scores: 16 bits a token, of policies that have them; below the threshold, the cloud is asked.
    "$python" - "$dir/journal" <<'END' >"$dir/out" 2>"$dir/err" || fail scores
import base64, json, sys
lines = [json.loads(x) for x in open(sys.argv[1]) if x.endswith("\n")]
threshold = {x["calibrated"]: x["threshold"] for x in lines if "calibrated" in x}
for x in lines:
    assert x.get("policy") not in ("never", "always") or "scores" not in x, x
    if "scores" in x:
        raw = base64.b64decode(x["scores"])
        scores = [int.from_bytes(raw[i:i + 2], "big") / 65534 for i in range(0, len(raw), 2)]
        assert len(scores) == len(x["trace"]) == x["tokens"], x
        for score, by in zip(scores, x["trace"]):
            assert (by in "=#?") == (score < threshold[x["policy"]]) or abs(score - threshold[x["policy"]]) < 1e-5, x
assert sum("scores" in x for x in lines) == 24, "answers with scores"
END
fi

changed() { # FROM TO WORDS [STATUS]: a file in which the first is replaced is refused
    awk -v from="$1" -v to="$2" '!done && sub(from, to) { done = 1 } { print }' "$dir/one" >"$dir/two"
    refused "${4:-3}" "$3" "$dir/one" "$dir/two"
}
changed calls,read read 'line 1: expected task,form'
changed ,0000000000000abc, ,000000000000abc, 'line 2: expected task,form'
changed ,1,10,0,0, ,1,10,11,0, 'line 2: expected task,form'
changed ,1,1,10, ,1,2,10, 'line 2: expected task,form'
changed never,,1, never,,0, 'line 2: expected task,form'
changed 0000000000000abc, 0000000000000abd, 'two: line 2: expected the answer of .*/one: line 2' 2
changed mlp,0.05,2, mlp,0.05,3, 'policy mlp: expected its answer to 2 in run 3, found none' 2
sed 's/,never,,1,1,1,10,0,0,0,0000000000000abc,0000000000000001/,never,,1,1,1,10,0,0,0,0000000000000abc,0000000000000002/' \
    "$dir/one" | sed 's/,1,0000000000000001,never/,7,0000000000000001,never/' | grep -e task -e ',7,.*never' >"$dir/two"
refused 2 'policy never: expected settings 0000000000000001' "$dir/one" "$dir/two"
refused 2 'against: expected one of the policies, found mix' --against mix "$dir/one"
refused 1 'none: No such file' "$dir/none"
refused 2 'expected files' --csv "$dir/figures"
echo '{"settings":{}}{' >"$dir/bad"
refused 3 'bad: line 1: expected an answer of --jsonl, found Extra data' "$dir/bad"
echo '{"settings":{"cloud_says":""}}
{"policy":"mlp","left_out":false,"share":null}' >"$dir/bad"
refused 3 "bad: line 1: expected an answer of --jsonl, found 'edge_fingerprint'" "$dir/bad"
exit 0
