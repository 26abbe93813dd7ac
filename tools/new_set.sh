#!/bin/sh
# Begin a kernel set of your own, for the processor that $CC compiles for: its file with one
# operation, add_f32, its place among the sets and its compiler flags. t_kernels tests every set, so
# `make kernels-test` has it at once. kernels/README.md says how to go on.
#
# Usage: sh tools/new_set.sh NAME
#        git checkout Makefile kernels/kernels.c    takes it back, and leaves the file
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -eu
cd "$(dirname "$0")/.."
say() {
    echo "new_set.sh: $*" >&2
    exit 2
}
[ $# -eq 1 ] || say "usage: sh tools/new_set.sh NAME"
name=$1
case $name in
'' | [!a-z]* | *[!a-z0-9_]* | ?????????????????????????* | *_blocks)
    say "expected a name of at most 24 small letters, digits and _, which begins with a letter" \
        "and does not end in _blocks, found '$name'"
    ;;
esac
case $(${CC:-cc} -dumpmachine) in
x86_64-*) wing=kernels/x86 flags='$(flags.kernels/x86/avx2)' end='^#elif defined.__aarch64__' ;;
aarch64-* | arm64-*) wing=kernels/arm flags='-march=armv8-a' end='^#endif' ;;
*) say "${CC:-cc} compiles for no processor that kernels/ has a folder for" ;;
esac
! grep -rqw "kernels_$name" kernels && [ ! -e "$wing/$name.c" ] || say "'$name' is taken"

# Nothing is in place before all edits are made.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
awk -v set="flags.$wing/$name := $flags" '
    seen == 1 && !/^flags\.kernels\// { print set; seen = 2 }
    !seen && /^flags\.kernels\// { seen = 1 }
    { print }' Makefile >"$tmp/Makefile"
awk -v name="$name" '
    /^const struct kernels \*const kernels_sets/ { print "extern const struct kernels kernels_" name ";" }
    /^#if defined.__x86_64__/ { inside = 1 }
    inside && /'"$end"'/ { print "    &kernels_" name ","; inside = 0 }
    { print }' kernels/kernels.c >"$tmp/kernels.c"
[ "$(diff Makefile "$tmp/Makefile" | grep -c '^>')" -eq 1 ] &&
    [ "$(diff kernels/kernels.c "$tmp/kernels.c" | grep -c '^>')" -eq 2 ] ||
    say "no place for its lines was found in Makefile and kernels/kernels.c"
{
    echo "/* $name.c - Begun by tools/new_set.sh. What it leaves out comes from the sets before it. */"
    if [ $wing = kernels/x86 ]; then
        bit=CPU_AVX2 lanes=8
        add='_mm256_storeu_ps(y + i, _mm256_add_ps(_mm256_loadu_ps(y + i), _mm256_loadu_ps(x + i)));'
        echo '#include <immintrin.h>'
    else
        bit=CPU_NEON lanes=4
        add='vst1q_f32(y + i, vaddq_f32(vld1q_f32(y + i), vld1q_f32(x + i)));'
        echo '#include <arm_neon.h>'
    fi
    cat <<END

#include "kernels/kernels.h"
#include "kernels/sys/cpu.h"

/* Whole vectors first, then what is left. */
static void add_f32_$name(float *y, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + $lanes <= n; i += $lanes)
        $add
    for (; i < n; i++)
        y[i] += x[i];
}

const struct kernels kernels_$name = {
    .isa = "$name",
    .needs = $bit,
    .add_f32 = add_f32_$name,
};
END
} >"$tmp/set.c"
cat "$tmp/set.c" >"$wing/$name.c"
cat "$tmp/Makefile" >Makefile
cat "$tmp/kernels.c" >kernels/kernels.c
echo "write $wing/$name.c, then type: make kernels-test"
