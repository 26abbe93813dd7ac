#!/bin/sh
# make dist: the tarball has the program's version and every file of the commit, and its own tree
# compiles and keeps the rules of the house. DIST_MAKE="CC=clang" also runs `make test` in it with
# these arguments, which takes as long as here.
. tests/support/shell.sh
in_tree() { (cd "$dir/mizzle-$version" && "$@") >"$dir/log" 2>&1; }
version=$("$MIZZLE" --version | sed 's/^mizzle //')
if ! git rev-parse HEAD >/dev/null 2>&1; then
    make dist >"$dir/log" 2>&1 && fail "a tarball of what is no repository"
    grep -q '^dist: this folder is not a git repository$' "$dir/log" || fail "no reason"
    skip "make dist needs git"
fi
make dist >"$dir/log" 2>&1 || fail "make dist"
grep -qx "the tarball is build/mizzle-$version.tar.gz" "$dir/log" || fail "another version than $version"
cp "build/mizzle-$version.tar.gz" "$dir/first"
make dist >"$dir/log" 2>&1 && cmp "$dir/first" "build/mizzle-$version.tar.gz" >"$dir/log" ||
    fail "the same commit gives other bytes"
git ls-tree -r --name-only HEAD | sed "s,^,mizzle-$version/," | sort >"$dir/want"
tar tzf "$dir/first" | grep -v '/$' | sort >"$dir/found"
diff "$dir/want" "$dir/found" >"$dir/log" || fail "not the files of the commit"
tar xzf "$dir/first" -C "$dir" || fail "tar"
in_tree git rev-parse HEAD && fail "the unpacked tree is in git, which this test must not need"
in_tree sh tests/t_layers.sh || fail "t_layers.sh in the unpacked tree"
in_tree sh tests/t_comments.sh || fail "t_comments.sh in the unpacked tree"
in_tree make -n BUILD=build/other test || fail "make test in the unpacked tree"
in_tree make BUILD=build/other build/other/page_assets.o build/other/router/mizzle.o ||
    fail "the page and the library's head in the unpacked tree"
in_tree make dist && fail "a tarball of a tarball"
data=$(cd "$data" 2>/dev/null && pwd)
[ -z "${DIST_MAKE:-}" ] || in_tree make $DIST_MAKE MIZZLE_TESTDATA="$data" test ||
    fail "make $DIST_MAKE test in the unpacked tree"
exit 0
