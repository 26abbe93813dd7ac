#!/bin/sh
# The page without a server (tools/lab/web): make web gives a folder of at most 8 MB. Its module
# writes in node what run writes, with the bits of scores, and so does its page in Debian's
# chromium, offline, which asks nobody but the server of its files.
. tests/support/demo_pair.sh
case ${BUILD:-build/x-release} in
*-release) ;;
*) skip "a page is the same in every build" ;;
esac
for tool in node clang wasm-ld; do
    command -v $tool >/dev/null || skip "no $tool (sh tools/setup.sh dev)"
done
echo 'int main(void) { return 0; }' >"$dir/a.c"
clang --target=wasm32-wasi "$dir/a.c" -o "$dir/a.wasm" 2>"$dir/log" ||
    skip "clang lacks WASI's libraries (sh tools/setup.sh dev)"
make -s web >"$dir/log" 2>&1 || fail "make web: $(cat "$dir/log")"
size=$(cat build/web/* | wc -c)
[ "$size" -le 8000000 ] || fail "build/web: expected at most 8000000 bytes, found $size"

for q in 0 2 4 7; do
    expect 0 run --question $q --json
    cp "$dir/out" "$dir/run.$q"
done
node tests/tools/page/web_check.js "$dir" 0 2 4 7 || fail "build/web in node"
. tests/support/browser.sh
CHROMIUM=$chromium NODE_PATH=$modules node tests/tools/page/web_check.js "$dir" 2 4 7 ||
    fail "build/web in a browser"
