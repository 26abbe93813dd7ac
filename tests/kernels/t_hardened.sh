#!/bin/sh
# A release build is hardened: what is linked is bound at the start and then read-only, functions
# with arrays guard their stack, and on x86-64 jumps lead to marked places alone.
. tests/support/shell.sh
BUILD=${BUILD:-$(dirname "$(readlink -f "$MIZZLE")")}
command -v readelf >/dev/null || skip "no readelf"
grep -q -e " -O2" "$BUILD/flags" || skip "not a release build"
readelf -lW "$BUILD/mizzle" >"$dir/out" 2>"$dir/err" || skip "not ELF"
shows GNU_RELRO
readelf -h "$BUILD/mizzle" >"$dir/kind"
readelf -dW "$BUILD/mizzle" >"$dir/out"
grep -q 'NEEDED' "$dir/out" || skip "a static program"
shows 'BIND_NOW'
readelf --dyn-syms -W "$BUILD/mizzle" >"$dir/out"
shows ' __stack_chk_fail'
if grep -q '@GLIBC' "$dir/out"; then shows '_chk@GLIBC'; fi
readelf -nW "$BUILD/tools/main.o" >"$dir/out"
if grep -q X86-64 "$dir/kind"; then shows 'IBT, SHSTK'; fi
exit 0
