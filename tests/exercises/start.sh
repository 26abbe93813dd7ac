#!/bin/sh
# Begin an exercise: copy its skeleton into exercises/, which belongs to you and not to the project.
#
# Usage: sh tests/exercises/start.sh N
cd "$(dirname "$0")/../.." || exit 1
here=tests/exercises
case $* in
[1-9]) skeleton=$(echo $here/0"$1"_*.c) ;;
1[0-2]) skeleton=$(echo $here/"$1"_*.c) ;;
*)
    echo "start.sh: expected an exercise from 1 to 12, found '$*'" >&2
    exit 2
    ;;
esac
mine=exercises/${skeleton##*/}
if [ -e "$mine" ]; then
    echo "start.sh: $mine is there already; remove it to begin again" >&2
    exit 1
fi
mkdir -p exercises && cp "$skeleton" "$mine" || exit 1
echo "write $mine, then type: make exercise N=$1"
