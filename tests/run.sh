#!/bin/sh
# Run tests: the programs named as arguments (each $BUILD/tests/FOLDER/NAME) and every
# tests/*/t_*.sh, tests/*/*/t_*.sh and tests/lab/t_*.py. Print one line for each with its result and
# seconds, the output of those that fail, and at the end their reports again and the counts.
# `make test` calls this in the root of the repository.
#
# $RUN goes in front of each program (QEMU). $ONLY selects tests; its words are folders
# (tests/router/), beginnings of paths, or patterns of names (t_de*); a word after "-" leaves out
# what those before it select. $JOBS tests run at a time, by default two a processor, since many wait
# for sockets and clocks most of the time. With --list in front of the programs, only
# print those that $ONLY selects.
set -u
BUILD=${BUILD:-build}
MIZZLE=${MIZZLE:-$BUILD/mizzle}
MIZZLE_TESTDATA=${MIZZLE_TESTDATA:-../shared/data}
python=${PYTHON:-/usr/bin/python3}
JOBS=${JOBS:-$(($(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) * 2))}
export MIZZLE MIZZLE_TESTDATA RUN BUILD
unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY

wanted() ( # tests/FOLDER/NAME: true if $ONLY selects the test
    set -f
    chosen=1
    for word in ${ONLY:-*}; do
        case $word in
        -*) status=1 ;;
        *) status=0 ;;
        esac
        word=${word#-}
        case $word in
        */*) case $1 in $word*) chosen=$status ;; esac ;;
        *) case ${1##*/} in $word) chosen=$status ;; esac ;;
        esac
    done
    exit $chosen
)

if [ "${1:-}" = --list ]; then
    shift
    for name; do
        ! wanted "$name" || echo "$name"
    done
    exit
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# The whole report is printed by one process, so that those of other lanes do not come between.
report() { # NAME STATUS SECONDS LOG
    case $2 in
    0) word=ok ;;
    77) word=SKIP ;;
    *) word="FAILED (status $2)" ;;
    esac
    printf '%-28s %3d s  %s\n' "${1#tests/}" "$3" "$word" >"$4.report"
    case $2 in
    0 | 77) grep '^SKIP' "$4" | sed 's/^/    /' >>"$4.report" ;;
    *) tail -n 60 "$4" | sed 's/^/    /' >>"$4.report" ;;
    esac
    cat "$4.report"
    echo "${word%% *}" >"$4.result"
}

one() { # tests/FOLDER/NAME: run a test and report its result, unless another lane has taken it
    log=$dir/$(echo "$1" | tr / .)
    mkdir "$log.taken" 2>/dev/null || return
    begin=$(date +%s)
    if [ -e "$1.sh" ]; then
        sh "$1.sh" >"$log" 2>&1 </dev/null
    elif [ -e "$1.py" ]; then
        (command -v "$python" || { echo "SKIP: no $python" && exit 77; }
            exec "$python" -B "$1.py") >"$log" 2>&1 </dev/null
    else
        ${RUN:-} "$BUILD/$1" >"$log" 2>&1 </dev/null
    fi
    report "$1" $? $(($(date +%s) - begin)) "$log"
}

lane() { # NUMBER: take tests until none is left
    for name in $names; do
        case $name in # these call make in the same folder
        */t_exercises | */t_sessions | */t_web | */t_embed | */t_install | */t_new_set) [ "$1" -eq 1 ] || continue ;;
        esac
        one "$name"
    done
}

# The slowest begin first, so that none of them runs alone at the end.
names= slow=
for name in "$@" tests/t_*.sh tests/*/t_*.sh tests/*/*/t_*.sh tests/lab/t_*.py; do
    # Scripts start the program themselves, without $RUN.
    case $name in *.sh | *.py) [ -e "$name" ] && [ -z "${RUN:-}" ] || continue ;; esac
    name=${name%.sh} name=${name%.py}
    wanted "$name" || continue
    case $name in
    */t_page | */t_dist | */t_convert | */t_cli | */t_command_faults | \
        */t_milli | */t_router_collect | */t_eval | */t_run | */t_router_cli | */t_bench | \
        */t_exercises | */t_embed | */t_int8 | */t_types | */t_session_exact | \
        */t_kernels | */t_ahead | */t_chat_jinja | */t_explain_page | */t_eval_* | tests/lab/*)
        slow="$slow $name"
        ;;
    *) names="$names $name" ;;
    esac
done
names="$slow $names"
set -f
for word in ${ONLY:-}; do # one that is misspelt would pass
    case $word in -*) continue ;; esac
    (ONLY=$word; for name in $names; do wanted "$name" && exit; done; exit 1) ||
        { echo "ONLY: no test matches $word" && exit 2; }
done
set +f
number=1
while [ "$number" -le "$JOBS" ]; do
    lane $number &
    number=$((number + 1))
done
wait
count() { cat "$dir"/*.result 2>/dev/null | grep -c "^$1\$"; }
failed=$(count FAILED)
for name in $names; do # a test without a result, for example of a lane that was killed
    [ -e "$dir/$(echo "$name" | tr / .).result" ] && continue
    echo "$name: no result"
    failed=$((failed + 1))
done
grep -l FAILED "$dir"/*.result 2>/dev/null | while read -r result; do
    cat "${result%.result}.report"
done
echo "$(count ok) passed, $failed failed, $(count SKIP) skipped"
[ "$failed" -eq 0 ]
