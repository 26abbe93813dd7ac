#!/bin/sh
# Each number in router/results/README.md is one of the tables that its section names, as it is or
# as a percentage, or a mean of it over seeds, or stands in the section's command or in the script
# that made them, or in the list below, with what it is. A number may have another's cell by chance;
# but sentences that are older than their table do not pass.
set -u
LC_ALL=C
export LC_ALL
results=router/results
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# SECTION|NUMBER|WHAT: what is computed by t_figures.sh, or from two numbers, or is no result.
cat >"$dir/others" <<'LIST'
results|160|things in the demo world, of all seeds (tools/demo/world.h)
A real pair|8,398|samples of the run of its commands
Span|0.99|a bound that was read off scores
Pace|1.40|36.7 / 26.2
Pace|1.498|38.9 / 26.0
Pace|1.45|a factor that was tried while the pace was designed
Pace|1.44|the same
Audit|190|the least of column drawn, rounded
Audit|260|the most of column drawn, rounded
Network|2.56|511 / 200
Tasks|490|questions of all kinds but one (tools/results/tasks.sh)
Labels|77.9|one training, before there were five
Labels|85.5|the same
Labels|1024|a width that was tried
Labels|7.5|share of tokens that are facts (`mizzle eval --describe`)
Labels|3,000|questions of a training that the table does not hold
Paper|20|ms of computing in the server
LIST

# Print the tables and scripts of a section, which is on stdin.
sources() {
    grep -o 'real/[a-z0-9-]*\.csv\|[a-z][a-z0-9.-]*\.csv\|drawn/[a-z0-9.-]*\.svg' |
        sed 's,^drawn/,,; s/\.[a-z]*$//' | awk '{ print; if (sub(/-.*/, "")) print }' | sort -u |
        while read -r name; do
            for file in $results/$name.csv $results/drawn/$name.csv tools/results/$name.sh; do
                [ ! -e "$file" ] || echo "$file"
            done
            case $name in real/*) echo tools/results/real/steps.sh ;; esac
        done
}

awk -v dir="$dir" '
    /^    / { print >(dir "/commands." n); next }
    /^#/ { n++; print substr($0, index($0, " ") + 1) >(dir "/title." n) }
    { print >(dir "/section." n) }' $results/README.md

cat >"$dir/check.awk" <<'AWK'
function plain(text) { gsub(/,/, "", text); return text }
function keep(value) { if (value ~ /^-?[0-9.]+(e-?[0-9]+)?$/) cells[n++] = value + 0 }
function column(name,    i) { for (i = 1; i <= fields; i++) if (head[i] == name) return i; return 0 }
# The table, the script or the commands: every number, and means over the seeds.
FILENAME ~ /[.]csv$/ {
    m = split($0, cell, ",")
    if (FNR == 1) {
        fields = split($0, head, ",")
        seed = column("seed")
        first = column("questions")
        next
    }
    key = FILENAME
    for (i = 1; i <= m; i++) {
        k = split(cell[i], part, " ")
        for (j = 1; j <= k; j++) keep(part[j])
        if (seed && i < first && i != seed) key = key "," cell[i]
    }
    if (seed)
        for (i = first; i <= m; i++)
            if (cell[i] ~ /^-?[0-9.]+$/) { sum[key "," i] += cell[i]; rows[key "," i]++ }
    next
}
FILENAME ~ /others$/ {
    split($0, part, "|")
    if (index(title, part[1]) == 1) known[plain(part[2])] = FNR
    next
}
FILENAME !~ /section/ {
    while (match($0, /[0-9]+([.][0-9]+)?/)) {
        written[substr($0, RSTART, RLENGTH) + 0] = 1
        $0 = substr($0, RSTART + RLENGTH)
    }
    next
}
{ text = text " " $0 }
END {
    for (key in sum) if (rows[key] > 1) keep(sum[key] / rows[key])
    while (match(text, /(^|[^A-Za-z0-9_.-])[0-9][0-9,]*([.][0-9]+)?( %)?/)) {
        found = substr(text, RSTART, RLENGTH)
        context = substr(text, RSTART > 50 ? RSTART - 50 : 1, RLENGTH + 60)
        text = substr(text, RSTART + RLENGTH)
        sub(/^[^0-9]/, "", found)
        share = sub(/ %$/, "", found)
        sub(/,$/, "", found)
        digits = plain(found)
        value = digits + 0
        places = index(digits, ".") ? length(digits) - index(digits, ".") : 0
        if (!share && !places && value <= 10) continue # a count in words, or "two"
        fine = value in written || value / 100 in written
        for (i = 0; i < n && !fine; i++)
            for (scale = 0.001; scale <= 100 && !fine; scale = scale < 1 ? 1 : 100 * scale)
                fine = sprintf("%." places "f", cells[i] * scale) + 0 == value || \
                       sprintf("%." places "f", -cells[i] * scale) + 0 == value
        if (fine) continue
        if (digits in known) { print known[digits] >used; continue }
        print "t_numbers: " title ": no table has " found ": ..." context >"/dev/stderr"
        bad = 1
    }
    exit bad
}
AWK

: >"$dir/used"
failed=0
for title in "$dir"/title.*; do
    n=${title##*.}
    [ -e "$dir/commands.$n" ] || : >"$dir/commands.$n"
    # shellcheck disable=SC2046
    awk -v title="$(cat "$title")" -v used="$dir/used.$n" -f "$dir/check.awk" \
        $(cat "$dir/section.$n" "$dir/commands.$n" | sources) "$dir/others" "$dir/commands.$n" \
        "$dir/section.$n" || failed=1
    cat "$dir/used.$n" >>"$dir/used" 2>/dev/null
done
awk 'NR == FNR { used[$1]; next } !(FNR in used) { print "t_numbers: not there any more: " $0; bad = 1 }
     END { exit bad }' "$dir/used" "$dir/others" >&2 || failed=1
exit $failed
