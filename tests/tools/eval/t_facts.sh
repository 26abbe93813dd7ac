#!/bin/sh
# tools/results/real/facts.sh, the open questions whose answers a rule can check. No question holds
# its own answer; a right answer counts, a wrong one and a part of a word do not.
. tests/support/shell.sh
facts() { sh tools/results/real/facts.sh "$@"; }
[ "$(facts items | sort -u | grep -c '^{"question": "[^?]*?", "answer": "#### 0"}$')" -eq 100 ] || fail "not 100 questions"
facts items | awk '{ sub(/^{"question":/, "\"text\":"); print "{\"policy\":\"asked\",\"share\":null,\"item\":" NR - 1 "," $0 }' >"$dir/journal"
{
    echo '{"settings":{"policy":"never"}}'
    for text in '\nCanberra.' 'It is Canberraville.' 'Sydney'; do
        printf '%s\n' '{"policy":"never","share":null,"item":0,"answer":"Canberra","text":"'"$text"'","tokens":2,"cloud":1}'
    done
    echo '{"policy":"mlp","share":0.05,"item":75,"text":"17 * 23 = **391**","tokens":9,"cloud":0}'
} >>"$dir/journal"
facts judge "$dir/journal" >"$dir/out"
shows '^"asked",null,100,0,'
shows '^"never",null,3,1,6,3,0.5000$'
shows '^"mlp",0.05,1,1,9,0,0.0000$'
exit 0
