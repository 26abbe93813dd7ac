#!/bin/sh
# Check an exercise, and show its points and its speed. `make exercise N=3` calls this with the built
# files.
#
# Usage: sh tests/exercises/check.sh PROGRAM [OPERATION MIZZLE]
#
# With an operation, PROGRAM is t_kernels with the set `exercise`, and MIZZLE has that set, too. The
# speed of what is wrong says nothing. That of a set of which only roundings differ is shown: to
# compare it is what some exercises ask for.
set -eu
isa=
[ $# -eq 1 ] || isa='--isa exercise'
failed=0
${RUN:-} "$1" $isa >"$1.log" || failed=1
cat "$1.log"
echo "$((1 - failed)) of 1 point"
if [ $failed -ne 0 ]; then
    [ $# -eq 3 ] && grep -q '^FAIL' "$1.log" || exit 1
    ! grep '^FAIL' "$1.log" | grep -vq ', nearly right: ' || exit 1
fi
[ $# -eq 3 ] || exit 0
${RUN:-} "$3" bench kernels "$2" -r 2 -o csv >"$3.csv"
awk -F, '
    # A shape is in quotes and may hold a comma.
    { gsub(/, /, "; "); gsub(/"/, "") }
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    !($at["shape"] in mine) { order[++n] = $at["shape"]; mine[$at["shape"]] = "" }
    {
        shape = $at["shape"]; us = $at["ns"] / 1000
        mark = $at["doubtful"] == "" ? "" : "?"
        doubts += mark != ""
        if ($at["isa"] == "exercise") {
            mine[shape] = us; moved[shape] = $at["gb_s"]; done[shape] = $at["gop_s"] + 0 ? $at["gop_s"] : ""
            yours[shape] = mark
        }
        else if ($at["isa"] == "scalar") scalar[shape] = time(us) mark
        else if (!(shape in best) || us < best[shape]) { best[shape] = us; name[shape] = $at["isa"] mark }
    }
    function time(us) { return sprintf(us < 100 ? "%.2f us" : "%.0f us", us) }
    END {
        row = "%-28s %12s %8s %8s %12s   %s\n"
        printf row, "shape", "yours", "GB/s", "GOP/s", "scalar", "best set"
        for (i = 1; i <= n; i++) {
            shape = order[i]
            if (mine[shape] == "") continue
            text = shape; sub(/;/, ",", text)
            printf row, text, time(mine[shape]) yours[shape], moved[shape], done[shape],
                scalar[shape], (shape in best) ? time(best[shape]) " (" name[shape] ")" : ""
        }
        if (doubts) print "?: the machine was busy, or slower when its limits were measured"
    }' "$3.csv"
exit $failed
