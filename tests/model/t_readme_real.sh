#!/bin/sh
# README.md's lines of the real pair print what stands below them. SKIP without the official files,
# for which real_model looks.
. tests/support/shell.sh
case $MIZZLE in *asan* | *tsan* | *portable* | *aarch64*) skip "its text is that of a release build" ;; esac
E=$(real_model 0.5B) L=$(real_model 1.5B)
[ -r "$E" ] && [ -r "$L" ] || skip "no $E and $L"
sed -n '/^    echo "What is the tallest/,/^$/s/^    //p' README.md |
    sed "s,build/mizzle,$MIZZLE," >"$dir/lines"
[ "$(wc -l <"$dir/lines")" -eq 2 ] || fail "README.md: $(cat "$dir/lines")"
. "$dir/lines" >"$dir/out" 2>"$dir/err" || fail "status $?"
sed -n '/^This prints/,/^The small model/s/^    //p' README.md >"$dir/want"
sed 's/  *$//; /^$/d' "$dir/out" >"$dir/printed"
same "$dir/printed" "$dir/want"
sed 's/--cloud-model.*/--policy never/' "$dir/lines" >"$dir/alone"
. "$dir/alone" >"$dir/out" 2>"$dir/err" || fail "alone: status $?"
shows 'Mount Everest, which is located in the Himalayas'
