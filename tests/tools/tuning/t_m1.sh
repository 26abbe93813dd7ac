#!/bin/sh
# tools/m1.sh writes one file with everything that a row of SPEED.md needs, and names nobody.
. tests/support/shell.sh
QUICK=1 MIZZLE="$MIZZLE" sh tools/m1.sh "$dir/out" 2>"$dir/err" || fail "status $?"
for line in 'version    mizzle [0-9.]*' 'date       20[0-9-]*T[0-9:]*Z' 'system     [A-Z]' 'compiler   .' \
    'cpu     .' 'chosen  .' '== limits' 'read from memory,GB/s' '== q8_0, prefetch 0 ' \
    '== q4_0, prefetch 4096 ' 'matmul_q8,scalar,'; do
    shows "^$line"
done
[ "$(grep -c ',qwen2.5-0.5b,q[48]_0,' "$dir/out")" -eq 8 ] || fail "not two rows for each of four runs"
! grep -q '^failed' "$dir/out" || fail "a part failed"
! grep -qF "$(uname -n)" "$dir/out" || fail "the machine's name is in it"
says "measured: $dir/out"
for shell in dash 'busybox sh'; do
    ! command -v "${shell%% *}" >/dev/null || $shell -n tools/m1.sh || fail "$shell cannot read it"
done
exit 0
