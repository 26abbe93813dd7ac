# browser.sh - the part of a script that opens a page in Debian's chromium, driven by
# playwright-core, with axe-core for accessibility: it says SKIP without them, and sets $chromium
# and $modules.
case ${BUILD:-build/x-release} in
*-release) ;;
*) skip "a page is the same in every build" ;;
esac
# The headless shell does without a browser's windows and needs a third of the processor time.
chromium=
for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    chromium=$(command -v $name) && break
done
[ -n "$chromium" ] || skip "no chromium (sh tools/setup.sh dev)"
command -v node >/dev/null || skip "no node"
modules=build/npm-page/node_modules
sh tests/npm.sh npm-page playwright-core@1.65.1 axe-core@4.14.1 ||
    skip "npm cannot install playwright-core and axe-core"
