#!/bin/sh
# Make the tables and pictures of router/results, or make a tenth of them again and compare.
#
# Usage: sh tools/results.sh [--check] [NAME...]
#
# An experiment is a file tools/results/NAME.sh; without NAME, all are run. It defines
#
#   HEADER     the first line of NAME.csv
#   jobs       a function that calls `job COMMAND ARGS...` once for each group of rows, in the order
#              of the table. COMMAND prints its rows and needs no other job.
#   CHECKED    the numbers of the jobs that --check makes again (default: 1, 11, 21, ...)
#   draws      a function that draws NAME*.svg from tables; optional
#   MEASURED, measures, draws_measured
#              the same for NAME.measured.csv, whose rows hold times of this machine, with date and
#              processor. Its jobs run alone, one after another, and are never compared. Optional.
#
# What commands may use is in tools/results/lib.sh. $JOBS jobs run at a time (default: 2). $MIZZLE
# is the program, $RESULTS the folder of the tables, $EXPERIMENTS that of the experiments.
set -u
cd "$(dirname "$0")/.." || exit 1
LC_ALL=C
export LC_ALL
mizzle=${MIZZLE:-build/mizzle}
results=${RESULTS:-router/results}
experiments=${EXPERIMENTS:-tools/results}
unset MIZZLE_CLOUD_URL
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
. tools/results/lib.sh

checking=
if [ "${1:-}" = --check ]; then
    checking=1
    shift
fi
names=$*
if [ -z "$names" ]; then
    for file in "$experiments"/*.sh; do
        name=${file##*/}
        [ "$name" = lib.sh ] || names="$names ${name%.sh}"
    done
fi
for name in $names; do
    [ -f "$experiments/$name.sh" ] || { echo "results: no $experiments/$name.sh" >&2 && exit 2; }
done

# Everything below runs in a shell that has read the experiment's file: `name` is that of the
# experiment, `part` is empty or .measured, `number` that of the last job.

has() { command -v "$1" >/dev/null; }

chosen() { # NUMBER: true if this job is to be run
    [ -n "$checking" ] || return 0
    [ -n "${CHECKED:-}" ] || { [ $(($1 % 10)) -eq 1 ] && return; }
    case " ${CHECKED:-} " in *" $1 "*) ;; *) return 1 ;; esac
}

job() { # COMMAND ARGS...: run a job, unless another lane has taken it, and report its result
    number=$((number + 1))
    chosen $number || return 0
    here=$dir/$name$part.$number
    mkdir "$here" 2>/dev/null || return 0
    begin=$(date +%s)
    (set -e && "$@") >"$here/rows" 2>"$here/log" </dev/null
    status=$?
    word=ok
    if [ $status -eq 77 ]; then
        word="SKIP: $(cat "$here/log")"
    elif [ $status -ne 0 ]; then
        word="FAILED (status $status)"
    elif ! whole "$here/rows" 2>>"$here/log" || ! same "$here/rows" 2>>"$here/log"; then
        word=FAILED
    fi
    echo "${word%%[: ]*}" >"$here/result"
    {
        printf '%-36s %4d s  %s\n' "$name$part $number, $*" $(($(date +%s) - begin)) "$word"
        [ "${word%% *}" != FAILED ] || sed 's/^/    /' "$here/log"
    } >"$here/report"
    cat "$here/report"
}

whole() { # FILE: true if it has rows, each with the columns of the header
    [ -s "$1" ] || { echo "no rows" >&2 && return 1; }
    awk -F, -v header="$header" '
        BEGIN { n = split(header, column, ",") }
        NF != n { print NF " fields, expected " n ": " $0; bad = 1 }
        END { exit bad }' "$1" >&2
}

same() { # FILE: when checking, true if each of its rows is in the table
    [ -n "$checking" ] || return 0
    while IFS= read -r row; do
        grep -Fxq -e "$row" "$results/$name.csv" ||
            { echo "not in $results/$name.csv: $row" >&2 && return 1; }
    done <"$1"
}

experiment() { # COMMAND: run a command in a shell that has read the experiment
    (
        # shellcheck disable=SC1090
        . "$experiments/$name.sh"
        number=0 part='' header=${HEADER:?}
        "$1"
    )
}

measured() {
    has measures || return 0
    part=.measured header=$MEASURED
    measures
}

lane() { for name in $names; do experiment jobs; done; }

assemble() { # put the rows of one table together, if all jobs have succeeded
    number=1
    echo "$header" >"$dir/table"
    while [ -d "$dir/$name$part.$number" ]; do
        case $(cat "$dir/$name$part.$number/result" 2>/dev/null) in
        ok | SKIP) cat "$dir/$name$part.$number/rows" >>"$dir/table" ;;
        *) return 1 ;;
        esac
        number=$((number + 1))
    done
    cp "$dir/table" "$results/$name$part.csv"
}

tables() {
    assemble || return 1
    ! has measures || { part=.measured header=$MEASURED && assemble; }
}

pictures() { # draw the pictures, in the place where `plot` puts them
    ! has draws || draws || return 1
    [ -n "$checking" ] || ! has draws_measured || draws_measured
}

compare() { # check header and pictures of the experiment
    [ "$(head -n 1 "$results/$name.csv")" = "$HEADER" ] ||
        { echo "$name: $results/$name.csv has not the header $HEADER" && return 1; }
    plots=$dir/pictures
    mkdir -p "$plots"
    pictures || return 1
    for file in "$plots"/*; do
        [ ! -e "$file" ] || cmp "$file" "$results/${file##*/}" || return 1
    done
}

finish() { # PHASE: run it for all experiments, and count those in which it fails
    for name in $names; do
        (set +e && experiment "$1") || { echo "$name: $1 FAILED" && touch "$dir/failed"; }
    done
}

mkdir -p "$results"
[ -e "$results/constants.csv" ] || cp router/results/constants.csv "$results"
plots=$results
begun=$(date +%s)
lanes=0
while [ $lanes -lt "${JOBS:-2}" ]; do
    lane &
    lanes=$((lanes + 1))
done
wait
if [ -n "$checking" ]; then
    finish compare
else
    for name in $names; do experiment measured; done
    finish tables
    finish pictures
fi
count() { cat "$dir"/*/result 2>/dev/null | grep -c "^$1\$"; }
echo "$(count ok) jobs done, $(count FAILED) failed, $(count SKIP) skipped," \
    "$(($(date +%s) - begun)) s"
[ "$(count ok)" -gt 0 ] && [ "$(count FAILED)" -eq 0 ] && [ ! -e "$dir/failed" ]
