#!/bin/sh
# "The shortest way through" in tests/exercises/README.md is true: ten files with their numbers of lines, where to
# begin in each and its header, and their sum, which is at most 3,200. The README of every folder
# names the file to open first.
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

way() { # FILE: check the section in it
    sed -n '/^## The shortest way through$/,/^## Words$/p' "$1" >"$tmp/section"
    sed -n 's/^| [0-9]* | `\([^`]*\)` | \([0-9]*\) | `\([^`]*\)` | `\([^`]*\)` | .*/\1 \2 \3 \4/p' \
        "$tmp/section" >"$tmp/rows"
    bad=0 sum=0
    while read -r file lines begin header; do
        grep -qws -- "$begin" "$file" || { echo "$1: $file has no $begin" && bad=1; }
        [ -e "$header" ] || { echo "$1: there is no $header" && bad=1; }
        found=$(wc -l 2>/dev/null <"$file") || found=no
        [ "$found" = "$lines" ] || { echo "$1: $file: $lines lines, found $found" && bad=1; }
        sum=$((sum + lines))
    done <"$tmp/rows"
    [ "$(sort -u "$tmp/rows" | wc -l)" -eq 10 ] || { echo "$1: not ten files" && bad=1; }
    [ $sum -le 3200 ] || { echo "$1: $sum lines, at most 3,200" && bad=1; }
    said=$(printf '%d,%03d lines in all' $((sum / 1000)) $((sum % 1000)))
    grep -qF " $said. " "$tmp/section" || { echo "$1: expected $said" && bad=1; }
    return $bad
}

page=tests/exercises/README.md
way $page || exit 1
# A wrong count, a file, function or header that is gone and a row too few are found.
for change in 's/`forward_pass`/`forward_none`/' 's,model/batch_internal.h,model/none.h,' \
    's/^\(| 4 | .* | \)[0-9]* |/\11 |/' 's,^\(| 4 | `\)[^`]*,\1model/none.c,' '/^| 4 |/d'; do
    sed "$change" $page >"$tmp/README.md"
    way "$tmp/README.md" >/dev/null 2>&1 && echo "passes after: $change" && exit 1
done
find kernels weights model net router tools tests -name README.md >"$tmp/pages"
while read -r page; do
    head -n 10 "$page" | grep -q '[Oo]pen `\|Begin with `' ||
        { echo "$page: no file to open first in its first ten lines" && exit 1; }
done <"$tmp/pages"
exit 0
