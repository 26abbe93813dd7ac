#!/bin/sh
# Show the whole system with the demo pair: a small model that answers alone, the same model asking a
# large one for the tokens that it is least sure of, and for those that a router chooses, and a table
# of the results.
#
# Usage: sh tools/demo.sh [path of mizzle]
#
# $QUESTIONS: number of questions for the table (default: 200).
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -eu
mizzle=${1:-build/mizzle}
questions=${QUESTIONS:-200}
unset MIZZLE_CLOUD_URL
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    echo "Tokens of the large model are underlined and coloured."
else
    echo "Tokens of the large model are shown as [cloud:...]."
fi

# max-prob asks where the most likely token has a probability below this. That routes at least as
# many tokens as the router does.
least_sure="--policy max-prob --threshold 0.2"

for n in ${DEMO:-14 2 8}; do
    echo
    "$mizzle" run --question "$n" -n 0 --policy never 2>&1
    printf 'small model alone:'
    "$mizzle" run --question "$n" --policy never --quiet
    printf 'where least sure: '
    # shellcheck disable=SC2086 # two words
    "$mizzle" run --question "$n" $least_sure --quiet
    printf 'with the router:  '
    "$mizzle" run --question "$n" --quiet
done

echo
echo "$questions other questions: never is the small model alone, always is the cloud alone, max-prob"
echo "asks where the small model is least sure, and mlp where the router expects an error that counts."
"$mizzle" eval --parallel 1 --questions "$questions" --seed 2 --kv f32 --policy never,mlp,max-prob,always

echo
! cmp -s build/mizzle "$mizzle" 2>/dev/null || mizzle=build/mizzle # the name in the README
echo "On a page, with questions of your own: $mizzle serve"
