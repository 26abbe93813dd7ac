#!/bin/sh
# The page of `mizzle serve` in a browser: Debian's chromium, driven by playwright-core, with
# axe-core for accessibility. A mock server answers (mock.js); with PAGE_URL=http://127.0.0.1:PORT
# a real one does, and the mock only for scripted texts. SHOTS=DIR keeps screenshots.
set -u
case ${BUILD:-build/x-release} in
*-release) ;;
*) echo "SKIP: the page is the same in every build" && exit 77 ;;
esac
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo "SKIP: no chromium (apt-get install chromium)"
    exit 77
}
command -v node >/dev/null || { echo "SKIP: no node" && exit 77; }
playwright=1.65.1 axe=4.14.1
modules=build/npm/node_modules
has() { # PACKAGE VERSION: true if it is installed
    grep -q "\"version\": \"$2\"" "$modules/$1/package.json" 2>/dev/null
}
if ! has playwright-core $playwright || ! has axe-core $axe; then
    npm install --silent --no-audit --no-fund --prefix build/npm \
        playwright-core@$playwright axe-core@$axe >/dev/null 2>&1 ||
        { echo "SKIP: npm cannot install playwright-core and axe-core" && exit 77; }
fi
CHROMIUM=$chromium NODE_PATH=$modules exec node tests/tools/page/page_check.js
