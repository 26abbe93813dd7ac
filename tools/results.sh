#!/bin/sh
# Make the tables and pictures of router/results, or make a tenth of them again and compare.
#
# Usage: sh tools/results.sh [--check] [NAME...]
#        sh tools/results.sh NAME --steps|--dry-run|--rerun [ARGS...]
#        sh tools/results.sh pack
#
# The second form makes what an experiment is computed from, where that takes hours: NAME/steps.sh.
# The third packs answers of steps that lie loose in $RESULTS, and shortens their log.
#
# An experiment is a file tools/results/NAME.sh (no hyphen); without NAME, all are run. It defines
#
#   HEADER     the first line of NAME.csv
#   TABLE      another place of that table, without .csv; optional
#   jobs       a function that calls `job COMMAND ARGS...` once for each group of rows, in the order
#              of the table. COMMAND prints its rows and needs no other job.
#   CHECKED    the numbers of the jobs that --check makes again (default: 1, 11, 21, ...)
#   draws      a function that draws drawn/NAME.svg and NAME-*.svg from tables; optional
#   MEASURED, measures
#              header and jobs of NAME.measured.csv, whose rows hold times of this machine, with date
#              and processor. Its jobs run alone, one after another, and are never compared. Optional.
#
# What commands may use is in tools/results/lib.sh. $JOBS jobs run at a time (default: 2). $MIZZLE
# is the program, $RESULTS the folder of the tables, $EXPERIMENTS that of the experiments.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -u
cd "$(dirname "$0")/.." || exit 1
LC_ALL=C
export LC_ALL
case ${2:-} in
--steps | --dry-run | --rerun)
    name=$1
    shift
    exec sh "${EXPERIMENTS:-tools/results}/$name/steps.sh" "$@"
    ;;
esac
mizzle=${MIZZLE:-build/mizzle}
results=${RESULTS:-router/results}
experiments=${EXPERIMENTS:-tools/results}
unset MIZZLE_CLOUD_URL
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir" "$results"/*.csv.new "$results"/*/*.csv.new "$results"/real/*/*.gz.new "$results"/real/claim/*/*.gz.new' EXIT
trap 'stop; exit 130' HUP INT TERM
case $dir in
*[[:blank:],]*) echo "results: TMPDIR: expected neither blanks nor commas: $dir" >&2 && exit 2 ;;
esac
: >"$dir/fine" || exit 1 # as long as nothing has failed: removing a file needs no room on the disk
. tools/results/lib.sh
for pack in "$results"/real/*/answers.csv.gz "$results"/real/claim/*/answers.csv.gz; do [ ! -e "$pack" ] || gzip -t "$pack" || exit; done
if [ "$*" = pack ]; then
    for folder in "$results"/real/*/ "$results"/real/claim/*/; do pack "${folder%/}" || exit; done
    log=$results/real/log.csv
    if [ -e "$log" ]; then short_log <"$log" >"$log.new" && mv "$log.new" "$log"; fi
    exit
fi
"$python" -c 'import numpy, matplotlib' 2>/dev/null ||
    { echo "results: no numpy or no matplotlib for $python: sh tools/setup.sh lab" >&2 && exit 1; }

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

# Linux shows parents in /proc, where a bare system has no ps; others have ps. Process groups would be
# simpler, but dash makes them only where there is a terminal.
parents() { # print pid and parent of each process
    if [ -e /proc/self/status ]; then
        grep -hsE '^P?Pid:' /proc/[0-9]*/status |
            awk '$1 == "Pid:" { pid = $2 } $1 == "PPid:" { print pid, $2 }'
    else
        ps -A -o pid= -o ppid=
    fi
}

descendants() { # print the processes that this shell and its children have started
    parents | awk -v root=$$ '
        { parent[$1] = $2 }
        END {
            for (pid in parent) {
                for (up = parent[pid]; up != root && (up in parent);) up = parent[up]
                if (up == root) print pid
            }
        }'
}

lanes=
stop() { # end all lanes with what they have started, which still write into the folder
    trap '' HUP INT TERM
    processes=$(descendants) tries=50
    # shellcheck disable=SC2086
    kill $lanes $processes 2>/dev/null
    wait
    for process in $processes; do
        while [ $tries -gt 0 ] && kill -0 "$process" 2>/dev/null; do
            sleep 0.1
            tries=$((tries - 1))
        done
    done
}

# Everything below runs in a shell that has read the experiment's file: `name` is that of the
# experiment, `part` is empty or .measured, `number` that of the last job.

chosen() { # NUMBER: true if this job is to be run
    [ -n "$checking" ] || return 0
    [ -n "${CHECKED:-}" ] || { [ $(($1 % 10)) -eq 1 ] && return; }
    case " ${CHECKED:-} " in *" $1 "*) ;; *) return 1 ;; esac
}

job() { # COMMAND ARGS...: run a job, unless another lane has taken it, or gather its rows
    number=$((number + 1))
    chosen $number || return 0
    jobs_chosen=$((jobs_chosen + 1))
    here=$dir/$name$part.$number
    if [ -n "$gathered" ]; then
        gather
    elif mkdir "$here" 2>/dev/null; then
        run_job "$@"
    elif [ ! -d "$here" ]; then
        echo "results: cannot make $here" >&2
        fails
    fi
    return 0
}

run_job() { # COMMAND ARGS...: run a job and report its result
    begin=$(date +%s)
    (set -e && "$@") >"$here/rows" 2>"$here/log" </dev/null
    status=$?
    word=ok
    if [ $status -eq 77 ] && { [ ! -s "$here/rows" ] || whole "$here/rows" 2>>"$here/log"; }; then
        word="SKIP: $(cat "$here/log")"
    elif [ $status -ne 0 ]; then
        word="FAILED (status $status)"
    elif ! whole "$here/rows" 2>>"$here/log" || ! same "$here/rows" 2>>"$here/log"; then
        word=FAILED
    fi
    echo "${word%%[: ]*}" >"$here/result"
    report=$(
        printf '%-36s %4d s  %s\n' "$name$part $number, $*" $(($(date +%s) - begin)) "$word"
        [ "${word%% *}" != FAILED ] || sed 's/^/    /' "$here/log"
    )
    printf '%s\n' "$report" # in one write, since the lanes share the output
}

whole() { # FILE: true if it has rows, each with the columns of the header
    [ -s "$1" ] || { echo "no rows" >&2 && return 1; }
    awk -F, -v header="$header" '
        BEGIN { n = split(header, column, ",") }
        NF != n { print NF " fields, expected " n ": " $0; bad = 1 }
        END { exit bad }' "$1" >&2
}

is_table() { [ -f "$results/$TABLE.csv" ] || [ -f "$results/$TABLE.csv.gz" ]; }

same() { # FILE: when checking, true if the table has its rows, with no other between them
    [ -n "$checking" ] || return 0
    is_table || { echo "no $results/$TABLE.csv" >&2 && return 1; }
    unpacked "$results/$TABLE.csv" | awk -v table="$results/$TABLE.csv" -v is_first=$((number == 1)) '
        NR == FNR { row[++n] = $0 "" }
        NR != FNR && FNR > 1 { line[++lines] = $0 ""; known[$0] }
        END {
            for (i = 1; i <= n; i++)
                if (!(row[i] in known)) { print "not in " table ": " row[i]; exit 1 }
            for (at = 0; at + n <= lines && !(is_first && at); at++) {
                for (i = 1; i <= n && row[i] == line[at + i];) i++
                if (i > n) exit 0
            }
            print "in " table ", but with others before or between them: " row[1] ", ..."
            exit 1
        }' "$1" - >&2
}

experiment() { # COMMAND...: run a command in a shell that has read the experiment
    (
        HEADER='' MEASURED='' CHECKED='' TABLE=$name
        jobs() { :; }
        measures() { :; }
        draws() { :; }
        # shellcheck disable=SC1090
        . "$experiments/$name.sh"
        number=0 jobs_chosen=0 gathered='' part='' header=${HEADER:?}
        "$@"
    )
}

strictly() { # COMMAND: run it until the first command that fails
    set -e
    "$@"
}

measured() {
    part=.measured header=$MEASURED
    [ -z "$MEASURED" ] || measures
}

lane() { for name in $names; do experiment jobs; done; }
measures_lane() { for name in $names; do experiment measured; done; }

gather() { # add the rows of the job to those that are gathered
    case $(cat "$here/result" 2>/dev/null) in
    ok | SKIP) cat "$here/rows" >>"$gathered" && return ;;
    FAILED) ;; # which its report has said
    *) echo "$name$part $number: no result" ;;
    esac
    lost=1
}

# The phases, which `finish` runs, end at the first command that fails.

assemble() { # JOBS: put the rows of one table together, if all these jobs have succeeded
    number=0 lost=''
    table=$results/$TABLE$part.csv gathered=$results/$TABLE$part.csv.new
    mkdir -p "${table%/*}"
    echo "$header" >"$gathered"
    "$1"
    [ "$(wc -l <"$gathered")" -gt 1 ] || cmp -s "$gathered" "$table" || # it has not had any
        { echo "$name$part: no rows" && lost=1; }
    [ -z "$lost" ]
    if [ -e "$table.gz" ]; then gzip -9nf "$gathered" && mv "$gathered.gz" "$table.gz"; else mv "$gathered" "$table"; fi
}

tables() {
    assemble jobs
    part=.measured header=$MEASURED
    [ -z "$MEASURED" ] || assemble measures
}

drawn() { # FILE: print what a picture shows; a table as it is
    sed -n '/<dc:title>/,/<\/dc:description>/p' "$1" | grep . || cat "$1"
}

same_picture() { # FILE FILE: compare them by that, since their bytes depend on matplotlib
    drawn "$1" >"$dir/new.data" && drawn "$2" >"$dir/old.data" && cmp "$dir/new.data" "$dir/old.data"
}

compare() { # check that jobs were run, and the header and pictures of the experiment
    lost='' gathered=$dir/gathered
    jobs
    [ "$jobs_chosen" -gt 0 ] || { echo "$name: none of its $number jobs is checked" && lost=1; }
    [ "$(unpacked "$results/$TABLE.csv" | head -n 1)" = "$HEADER" ] ||
        { echo "$name: $results/$TABLE.csv has not the header $HEADER" && lost=1; }
    [ -z "$lost" ]
    plots=$dir/$name.pictures
    mkdir "$plots"
    draws
    for file in "$plots"/*; do
        [ ! -e "$file" ] || same_picture "$file" "$results/drawn/${file##*/}"
    done
    for file in "$results/drawn/$name.svg" "$results/drawn/$name"-*.svg; do
        [ ! -e "$file" ] || [ -e "$plots/${file##*/}" ] || { echo "$file: not drawn" && exit 1; }
    done
}

finish() { # PHASE: run it for all experiments, and count those in which it fails
    for name in $names; do
        experiment strictly "$1" # alone, because set -e does nothing to the left of || and &&
        status=$?
        [ $status -eq 0 ] || { echo "$name: $1 FAILED" && fails; }
    done
}

mkdir -p "$results/drawn"
[ -e "$results/constants.csv" ] || cp router/results/constants.csv "$results"
plots=$results/drawn
begun=$(date +%s)
left=${JOBS:-2}
while [ "$left" -gt 0 ]; do
    lane &
    lanes="$lanes $!"
    left=$((left - 1))
done
wait
if [ -n "$checking" ]; then
    finish compare
else
    measures_lane & # which a trap can interrupt
    lanes=$!
    wait
    finish tables
    finish draws
fi
count() { cat "$dir"/*/result 2>/dev/null | grep -c "^$1\$"; }
echo "$(count ok) jobs done, $(count FAILED) failed, $(count SKIP) skipped," \
    "$(($(date +%s) - begun)) s"
[ "$(count ok)" -gt 0 ] && [ "$(count FAILED)" -eq 0 ] && [ -e "$dir/fine" ]
