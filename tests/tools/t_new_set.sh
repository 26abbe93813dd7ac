#!/bin/sh
# tools/new_set.sh in a copy of the tree: the set compiles, exports its table alone, is found and
# tested by t_kernels, and leaves nothing behind; for another processor as well.
BUILD=${BUILD:-build}
case $BUILD in
/*) ;;
*) BUILD=$(pwd)/$BUILD ;;
esac
. tests/support/shell.sh
root=$(pwd)
mkdir "$dir/tree" && cp -R Makefile README.md LICENSE kernels weights model net router tools tests "$dir/tree" &&
    cd "$dir/tree" || exit 1
untouched() { diff -r "$root/kernels" kernels >"$dir/log" && cmp "$root/Makefile" Makefile >"$dir/log"; }
new_set() { sh tools/new_set.sh "$@" >"$dir/log" 2>&1; }
refuses() { # WORDS ARGUMENTS...: one line that has these words, and nothing changes
    words=$1
    shift
    new_set "$@" && fail "$*: accepted"
    [ "$(wc -l <"$dir/log")" -eq 1 ] && grep -qF -- "$words" "$dir/log" || fail "$*: not \"$words\""
    untouched || fail "$*: something has changed"
}
for name in '' Mine 'a b' ../x 1st x_blocks aaaaaaaaaaaaaaaaaaaaaaaaa 'x;y' é; do
    refuses "expected a name" "$name"
done
refuses "usage" mine too
refuses "usage"
for name in avx2 neon scalar sets product; do
    refuses "'$name' is taken" $name
done

# What another compiler would say of itself is enough.
for arch in x86_64 aarch64; do
    printf '#!/bin/sh\necho %s-linux-gnu\n' $arch >"$dir/cc"
    chmod +x "$dir/cc"
    wing=$([ $arch = x86_64 ] && echo x86 || echo arm)
    CC="$dir/cc" new_set mine || fail "new_set.sh for $arch"
    [ -e kernels/$wing/mine.c ] && grep -q "^flags.kernels/$wing/mine :=" Makefile &&
        grep -q '^    &kernels_mine,$' kernels/kernels.c || fail "not in the folder of $arch"
    new_set mine && fail "the same name twice"
    sh tests/t_layers.sh >"$dir/log" 2>&1 || fail "t_layers.sh with a set for $arch"
    rm kernels/$wing/mine.c
    cp "$root/Makefile" . && cp "$root/kernels/kernels.c" kernels
    untouched || fail "more than two files have changed for $arch"
done

case $(cc -dumpmachine) in
x86_64-* | aarch64-*) ;;
*) exit 0 ;;
esac
new_set mine || fail "new_set.sh"
diff -rq "$root/kernels" kernels >"$dir/log"
[ "$(wc -l <"$dir/log")" -eq 2 ] && grep -q 'kernels/kernels\.c ' "$dir/log" && grep -q ': mine\.c$' "$dir/log" ||
    fail "more than kernels.c and the set, so more would be compiled"
set=$(echo kernels/*/mine.c)
set=${set%.c}
make BUILD=build/new build/new/$set.o build/new/kernels/kernels.o >"$dir/log" 2>&1 || fail "$set.c does not compile"
nm --defined-only --extern-only build/new/$set.o | grep -v __odr_asan >"$dir/log"
[ "$(wc -l <"$dir/log")" -eq 1 ] && grep -q 'kernels_mine$' "$dir/log" || fail "more than its table is exported"
case $BUILD in
*-release) ;;
*) exit 0 ;; # t_kernels.o of other builds needs their compiler and flags
esac
[ -e "$BUILD/tests/kernels/t_kernels.o" ] || # $ONLY may leave it out
    make -C "$root" BUILD="$BUILD" "$BUILD/tests/kernels/t_kernels.o" "$BUILD/tests/support/guard.o" \
        "$BUILD/tests/support/torture.o" >"$dir/log" 2>&1 || fail "t_kernels.o does not compile"
wrap=-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=posix_memalign
cc $wrap "$BUILD/tests/kernels/t_kernels.o" "$BUILD/tests/support/guard.o" "$BUILD/tests/support/torture.o" \
    build/new/$set.o build/new/kernels/kernels.o "$BUILD/lib.a" -lpthread -lm -ldl -o t_kernels \
    >"$dir/log" 2>&1 || fail "t_kernels does not link"
./t_kernels --isa mine >"$dir/log" 2>&1 || fail "t_kernels fails"
grep -q '^mine  *1 operation, 0 failed$' "$dir/log" || fail "t_kernels does not know the set"
