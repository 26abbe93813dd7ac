#!/bin/sh
# Say how many exercises are right, a point for each. `make exercise` calls this, and with JSON=1 it
# prints one object for a teacher's script. Nothing is timed.
#
# Usage: BUILD=FOLDER MAKE=make [JSON=1] sh tests/exercises/points.sh [N...]
#
# An exercise is "not started" (nothing in exercises/), "not written" (as it was copied), "does not
# compile", "wrong" or "right".
set -u
numbers=${*:-1 2 3 4 5 6 7 8 9 10 11 12}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

# Set name, mine (the learner's file) and program (what checks it) of exercise N.
exercise() {
    name=$(echo tests/exercises/"$(printf %02d "$1")"_*.c)
    name=${name##*/} name=${name%.c} mine=exercises/$name.c
    [ "$1" -le 8 ] && program=$BUILD/exercises/$name.kernels || program=$BUILD/exercises/$name.check
}

# Set state of the exercise.
state() {
    isa=
    case $program in *.kernels) isa='--isa exercise' ;; esac
    if [ ! -e "$mine" ]; then
        state='not started'
    elif [ ! -e "$program" ] || [ "$(find "$mine" -newer "$program")" ]; then
        state='does not compile'
    elif ${RUN:-} "$program" $isa >"$log" 2>&1; then
        state=right
    elif grep -q ': not written yet: ' "$log"; then
        state='not written'
    else
        state=wrong
    fi
}

programs= sum=0 of=0 objects=
for n in $numbers; do
    exercise "$n"
    [ ! -e "$mine" ] || programs="$programs $program"
done
[ -z "$programs" ] || $MAKE -k $programs >"$log" 2>&1
for n in $numbers; do
    exercise "$n"
    state
    points=0
    [ "$state" != right ] || points=1
    sum=$((sum + points)) of=$((of + 1))
    [ -n "${JSON:-}" ] || printf '%2d  %-14s %d / 1  %s\n' "$n" "${name#*_}" $points "$state"
    objects="$objects${objects:+,}
{\"n\":$n,\"name\":\"${name#*_}\",\"state\":\"$state\",\"points\":$points,\"of\":1}"
done
[ -n "${JSON:-}" ] || printf '%18s %d / %d\n' points: $sum $of
[ -z "${JSON:-}" ] || printf '{"points":%d,"of":%d,"exercises":[%s]}\n' $sum $of "$objects"
