#!/bin/sh
# The library as other programs see it: which files are installed, which names it exports, the C and
# Python programs of router/LIBRARY.md, a program in C++ and one that is linked statically.
. tests/support/demo_pair.sh
case ${BUILD:-build} in
build/*-release) ;;
*) skip "the library is tested with the release build" ;;
esac
CC=${CC:-cc} CXX=${CXX:-g++}
D=$dir/root
make install DESTDIR="$D" PREFIX=/usr >"$dir/log" 2>&1 || fail "make install"

# Both libraries export nothing but the API.
for way in "-D $D/usr/lib/libmizzle.so" "-g $D/usr/lib/libmizzle.a"; do
    nm --defined-only $way >"$dir/log" || fail "nm $way"
    grep -q ' T mizzle_open$' "$dir/log" || fail "$way: no mizzle_open"
    awk 'NF == 3 && $3 !~ /^mizzle_/ { bad = 1 } END { exit bad }' "$dir/log" ||
        fail "$way: exports more than the API"
done
# The library exports exactly what the header declares.
sed -n 's/^MIZZLE_API .*[ *]\(mizzle_[a-z_]*\)(.*/\1/p' router/mizzle.h | sort >"$dir/declared"
nm -D --defined-only "$D/usr/lib/libmizzle.so" | sed 's/.* //' | sort >"$dir/exported"
cmp -s "$dir/declared" "$dir/exported" || fail "header and library differ"

command -v pkg-config >/dev/null || skip "no pkg-config (sh tools/setup.sh dev)"
config() {
    PKG_CONFIG_SYSROOT_DIR=$D PKG_CONFIG_PATH=$D/usr/lib/pkgconfig pkg-config "$@" mizzle
}
[ "mizzle $(config --modversion)" = "$("$D/usr/bin/mizzle" --version)" ] ||
    fail "pkg-config: version"

sed -n '/^```c$/,/^```$/p' router/LIBRARY.md | grep -v '^```' >"$dir/app.c"
sed -n '/^```python$/,/^```$/p' router/LIBRARY.md | grep -v '^```' >"$dir/app.py"
# As C++ it needs casts; it has the locale of its user, too.
sed 's/(out\([,)]\)/((FILE *)out\1/; s/^    struct mizzle \*m/    setlocale(LC_ALL, "");\n&/' "$dir/app.c" >"$dir/app.cc"
$CC -Wall -Wextra -Werror "$dir/app.c" -o "$dir/app" $(config --cflags --libs) >"$dir/log" 2>&1 ||
    fail "README's C"
$CC "$dir/app.c" -o "$dir/app-static" $(config --cflags) "$D/usr/lib/libmizzle.a" \
    $(config --static --libs | sed 's/-lmizzle//') >"$dir/log" 2>&1 || fail "C, static"

serves=$D/usr/bin/mizzle
start_cloud
prompt='The gusutize is'
want=' a[ bell].'
# writes NAME COMMAND...: the program must write the routed answer, and nothing to stderr.
writes() {
    name=$1
    shift
    LD_LIBRARY_PATH=$D/usr/lib "$@" $edge "$url" "$prompt" >"$dir/out" 2>"$dir/log" ||
        fail "$name: status $?"
    [ "$(cat "$dir/out")" = "$want" ] || fail "$name: $(cat "$dir/out"), not $want"
    [ ! -s "$dir/log" ] || fail "$name: writes to stderr"
}
writes C "$dir/app"
LD_LIBRARY_PATH='' writes "C, static" "$dir/app-static"
[ "$(LD_LIBRARY_PATH=$D/usr/lib "$dir/app" none.gguf "$url" x 2>&1)" = \
    "none.gguf: No such file or directory" ] || fail "a missing file is not named"
"$D/usr/bin/mizzle" run -m $edge --cloud-url "$url" -p "$prompt" -q --plain >"$dir/out" 2>"$dir/log"
[ "$(cat "$dir/out")" = ' a bell.' ] || fail "mizzle run writes something else"
if command -v "$CXX" >/dev/null; then
    echo '#include <mizzle.h>' | $CXX -std=c++11 -Wall -Wextra -pedantic -Werror -fsyntax-only -x c++ \
        $(config --cflags) - >"$dir/log" 2>&1 || fail "C++ of 2011"
    $CXX -std=c++20 -Wall -Wextra -Wno-missing-field-initializers -pedantic -Werror \
        -include clocale "$dir/app.cc" -o "$dir/app-cc" $(config --cflags --libs) >"$dir/log" 2>&1 ||
        fail "C++"
    writes C++ "$dir/app-cc"
    # In a locale with a decimal comma, thresholds and JSON still have decimal points.
    if sh tests/router/comma_locale.sh "$dir"; then
        LOCPATH=$dir LC_ALL=comma writes "C++ in a locale with a comma" "$dir/app-cc"
    else
        echo "SKIP: localedef makes no locale, one with a decimal comma was not tested"
    fi
else
    echo "SKIP: no $CXX, C++ was not tested"
fi
if command -v python3 >/dev/null; then
    writes Python python3 "$dir/app.py"
else
    echo "SKIP: no python3, README's Python was not tested"
fi
make uninstall DESTDIR="$D" PREFIX=/usr >"$dir/log" 2>&1 || fail "make uninstall"
[ -z "$(find "$D" ! -type d)" ] || fail "uninstall leaves $(find "$D" ! -type d)"
exit 0
