#!/bin/sh
# The journals that 0.5.1 has written (journals-0.5.1.tar.xz; index.txt has their options): their
# answers give the rows of network.csv and ways.csv, which they outlive.
. tests/support/shell.sh
unxz <tests/tools/eval/journals-0.5.1.tar.xz >"$dir/tar" 2>/dev/null || skip "no unxz"
tar -C "$dir" -xf "$dir/tar" || fail "expected a tar file"
of=$dir/journals-0.5.1

# sums JOURNAL POLICY: its answers, those that are right, tokens, those of the cloud.
sums() {
    awk -v policy="$2" '
        function of(name) {
            return match($0, "\"" name "\":[0-9]+") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) : 0
        }
        index($0, "{\"policy\":\"" policy "\"") == 1 { n++; right += /"right":true/; tokens += of("tokens"); cloud += of("cloud") }
        END { printf "%d %.6f %d %d\n", n, right / n, tokens, cloud }' "$1"
}

while IFS=$(printf '\t') read -r name options; do
    [ -s "$of/$name" ] || fail "$name: expected a journal, found none"
    case $options in
    *--bandwidth*)
        row=$(echo "$options" | awk '
            { for (i = 1; i < NF; i++) at[$i] = $(i + 1) }
            { printf "%s,%d,%s,%s,,", at["--latency"], at["--bandwidth"] / 125, at["--loss"], at["--ahead"] }')
        wanted=$(awk -F, -v row="$row" 'index($0, "," row) { print $7, $12, $9, $10; exit }' router/results/network.csv)
        found=$(sums "$of/$name" mlp)
        ;;
    *never,verify,always*)
        latency=$(echo "$options" | sed 's/.*--latency \([0-9]*\).*/\1/')
        wanted=$(awk -F, -v ms="$latency" '$1 == "always" && $3 == ms { print $4, $6 }' router/results/ways.csv)
        found=$(sums "$of/$name" always | cut -d ' ' -f 1,2)
        ;;
    *) continue ;;
    esac
    [ "$found" = "$wanted" ] || fail "$name: expected '$wanted', found '$found'"
    checked=$((${checked:-0} + 1))
done <"$of/index.txt"
[ "$checked" -eq 37 ] || fail "expected 37 journals with rows, found $checked"
