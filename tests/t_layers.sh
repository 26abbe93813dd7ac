#!/bin/sh
# The rules of the house that need nothing but a shell: who may include whom, how long a file may
# be, functions that are not used, words that mean unfinished work, what the top level holds.
set -u
bad=0
sources=$(find kernels weights model net router tools tests -name '*.[ch]')

awk '
    BEGIN {
        may["kernels"] = "kernels"
        may["weights"] = "kernels weights"
        may["model"]   = "kernels weights model"
        may["net"]     = "kernels net"
        may["router"]  = "kernels weights model net router"
        may["tools"]   = "kernels weights model net router tools"
        may["tests"]   = may["tools"] " tests"
    }
    /^#include "/ {
        split(FILENAME, at, "/"); split($2, inc, "\""); split(inc[2], to, "/"); ok = 0
        n = split(may[at[1]], m, " ")
        for (i = 1; i <= n; i++) ok += m[i] == to[1]
        if (!ok) { printf "%s:%d: %s may not include %s\n", FILENAME, FNR, at[1], inc[2]; bad = 1 }
        if (!(inc[2] in there_is)) {
            there_is[inc[2]] = (getline line <inc[2]) >= 0
            close(inc[2])
        }
        if (!there_is[inc[2]]) { printf "%s:%d: no file %s\n", FILENAME, FNR, inc[2]; bad = 1 }
        here = FILENAME; there = inc[2]
        sub(/[^\/]*$/, "", here); sub(/[^\/]*$/, "", there)
        if (inc[2] ~ /_internal\.h$/ && here != there && at[1] != "tests") {
            printf "%s:%d: %s is for %s alone\n", FILENAME, FNR, inc[2], there; bad = 1
        }
    }
    END { exit bad }' $sources || bad=1

# Three parts: what writes one text, what serves many over HTTP, and what trains, measures and shows.
# None may include a later one, and the first two have a size. Texts in one pass are core, because a
# large model in the same process is asked through them.
core=33380 serve=5290
rooms='kernels 7240 model 6030 weights 3100 net 4325 router 7900 tools 4775' # of the core
awk -v core=$core -v serve=$serve -v rooms="$rooms" '
    function part(f) {
        if (f ~ /^(net\/server|tools\/serve)\//) return 2
        return f ~ /^(router\/learn|model\/train|tools\/lab)\// ? 3 : 1
    }
    { lines[part(FILENAME)]++ }
    part(FILENAME) == 1 { split(FILENAME, at, "/"); room[at[1]]++ }
    /^#include "/ {
        split($2, inc, "\"")
        if (part(inc[2]) > part(FILENAME)) {
            printf "%s:%d: part %d may not include %s of part %d\n", FILENAME, FNR,
                part(FILENAME), inc[2], part(inc[2])
            bad = 1
        }
    }
    END {
        if (lines[1] > core) { printf "core: %d lines, at most %d\n", lines[1], core; bad = 1 }
        n = split(rooms, most, " ")
        for (i = 1; i < n; i += 2)
            if (room[most[i]] > most[i + 1]) {
                printf "%s: %d lines, at most %d\n", most[i], room[most[i]], most[i + 1]
                bad = 1
            }
        if (lines[2] > serve) { printf "serve: %d lines, at most %d\n", lines[2], serve; bad = 1 }
        exit bad
    }' $(echo "$sources" | grep -v '^tests/') $(find kernels weights model net router tools -name '*.inc' -o -name '*.def') || bad=1

# The decoding loop is one thing in one file.
for f in $sources; do
    most=500
    case $f in
    router/decode/step.c) most=665 ;;
    tools/lab/mini/mini.c) most=900 ;; # all of a model, to be read from the first page to the last
    esac
    lines=$(wc -l <"$f")
    [ "$lines" -le $most ] || { echo "$f: $lines lines, at most $most" && bad=1; }
done

# The laboratory, the tests and the pages have sizes, too.
at_most() { # NAME MOST: lines of the files on stdin
    lines=$(xargs cat | wc "${3:--l}")
    [ "$lines" -le "$2" ] || { echo "$1: $lines, at most $2" && bad=1; }
}
names() { find "$@" -type f; } # of .c .h .sh .js .py, as find is told
names tools/lab router/learn model/train -name '*.[ch]' >"${list=$(mktemp)}" && at_most laboratory 21380 <"$list"
names tests -regex '.*[.]\([ch]\|sh\|js\|py\)' >"$list" && at_most tests 45500 <"$list"
names tools/lab -name '*.py' >"$list" && at_most Python 2605 <"$list"
names .ci tools -name '*.sh' >"$list" && at_most shell 4240 <"$list"
names README.md kernels weights model net router tools tests -name '*.md' >"$list" && at_most words 36640 -w <"$list"
rm -f "$list"

# A folder can be taken in at a glance.
find .ci kernels weights model net router tools tests -type f | sed 's,/[^/]*$,,' | sort | uniq -c |
    awk '$1 > 45 { print $2 ": " $1 " files, at most 45"; bad = 1 } END { exit bad }' || bad=1

libraries=$(echo "$sources" | grep -v '^tests/')
if grep -nwE '(sprintf|strcpy|strcat|strtok|gets|atoi|atof|alloca)[[:space:]]*\(' $libraries; then
    echo "banned functions" && bad=1
fi
if grep -nE '(^|[^f_a-z])(printf|puts|putchar|exit|abort|perror)[[:space:]]*\(' \
    $(echo "$libraries" | grep -v '^tools/'); then
    echo "a library prints or exits" && bad=1
fi
if grep -nE '(^|[^a-z0-9_.>])(exp|expf|log|logf|pow|powf|sin|sinf|cos|cosf|tanh|tanhf|exp2f?|log2f?) ?\(' \
    $(echo "$libraries" | grep -v '^tools/') | grep -vE ':[0-9]+:[[:space:]]*(/?\*|//)|/\*.*(exp|log|pow|sin|cos)'; then
    echo "mathematics from libm: other bits on other machines (kernels/math.h has its own)" && bad=1
fi
words='\b(TO''DO|FIX''ME|X''XX|not impl''emented|st''ub|place''holder)\b'
if grep -rnIiE "$words" kernels weights model net router tools tests Makefile README.md .ci; then
    echo "words of unfinished work" && bad=1
fi
for f in * .ci .clang-format .gitignore; do
    case $f in
    Makefile | README.md | LICENSE | CITATION.cff | .clang-format | .gitignore | .ci | build | kernels | weights | model | net | router | tools | tests) ;;
    exercises) ;; # belongs to whoever does them (tests/exercises); git ignores it
    *) echo "$f: the top level does not hold that" && bad=1 ;;
    esac
done
exit $bad
