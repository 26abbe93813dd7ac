#!/bin/sh
# The page of `mizzle explain --output`: its size, that it is complete or not there at all, and that
# texts are inert; then, in a browser, that what it draws is what --json says. SHOTS=DIR keeps
# screenshots.
. tests/support/demo_pair.sh

# At most 6.4 kB a position of the demo pair, prompt and the page's own code included, however long
# the text is.
long='Question: Where could you come across the pofosu? Let us chat. Answer: A merry question.'
for times in 1 36; do
    text=$(awk -v text="$long" -v n=$times 'BEGIN { while (n--) printf "%s ", text }')
    expect 0 explain -p "$text" -n 0 --output "$dir/long.html" --json --cloud off
    positions=$(sed -n 's/^"prompt_tokens":\([0-9]*\),$/\1/p' "$dir/out")
    bytes=$(wc -c <"$dir/long.html")
    [ "$positions" -ge $((25 * times)) ] || fail "a text of $positions positions"
    [ $((bytes / positions)) -le 6400 ] || fail "$bytes bytes for $positions positions"
    echo "$positions positions: $((bytes / positions)) bytes each"
done

# What is refused leaves no file, and a file that cannot be written is found out at once.
expect 2 explain -p "$long" -n 1 --output "$dir/none.html" --layers 9
expect 2 explain -p "$long" -n 1 --output "$dir/none.html" --at 2
[ ! -e "$dir/none.html" ] || fail "a file was left"
expect 3 explain -p "$long" -n 1 --output "$dir/none/none.html"

# A hostile prompt and name of a model: no markup of theirs, no control or bidi characters.
hostile=$(printf '</script><!--<b onclick="x">\342\200\250\342\200\256\033\302\233&amp;')
LC_ALL=C sed 's|Mizzle milli edge-0.5|</title></script><b> |; s|mizzle.crc32|mizzle.crc00|' $edge \
    >"$dir/hostile.gguf"
expect 0 explain -m "$dir/hostile.gguf" --cloud off --policy never -p "$hostile" -n 2 \
    --output "$dir/hostile.html"
[ ! -s "$dir/out" ] && [ ! -s "$dir/err" ] || fail "--output alone prints something"
[ "$(grep -c '</script>' "$dir/hostile.html")" -eq 2 ] || fail "not two ends of scripts"
grep -q '<b onclick\|</title></script>' "$dir/hostile.html" && fail "markup of the text"
LC_ALL=C tr -d '\n' <"$dir/hostile.html" | LC_ALL=C grep -q "$(printf '[\001-\037]')" &&
    fail "control characters"
grep -q "$(printf '\342\200\250')" "$dir/hostile.html" && fail "U+2028"

. tests/support/browser.sh
"$MIZZLE" explain --question 1 -n 16 --span-of pofosu --json --output "$dir/page.html" >"$dir/page.json" || fail "--question"
DIR=$dir CHROMIUM=$chromium NODE_PATH=$modules node tests/tools/page/explain_check.js
