#!/bin/sh
# The files of net/ itself form one order: none calls a function of a file above it. This is checked
# on the symbols of the objects, so it holds for what is built and not for what is written down.
set -u
BUILD=${BUILD:-build}
order="wire_reply wire_call wire cloud_call cloud_url api_key probe cloud cloud_ask" # from the bottom to the top
command -v nm >/dev/null 2>&1 || {
    echo "SKIP: nm is not installed"
    exit 77
}
bad=0 known=' '
for name in $order; do
    [ -f "$BUILD/net/$name.o" ] || { echo "$BUILD/net/$name.o: expected an object" && exit 1; }
    known="$known$name "
done
for file in net/*.c; do
    name=${file#net/}
    case $known in
    *" ${name%.c} "*) ;;
    *) echo "$file: has no place in the order of this test" && bad=1 ;;
    esac
done
for name in $order; do
    nm -g "$BUILD/net/$name.o" | awk -v file="$name" 'NF > 1 { print file, $(NF - 1), $NF }'
done | awk '
    !($1 in place) { place[$1] = ++files }
    $2 == "U" { used[++uses] = $1; symbol[uses] = $3; next }
    { home[$3] = $1; defined++ }
    END {
        for (i = 1; i <= uses; i++)
            if (place[home[symbol[i]]] > place[used[i]]) {
                printf "net/%s.c calls %s of net/%s.c, which stands above it\n", used[i],
                       symbol[i], home[symbol[i]]
                bad = 1
            }
        if (defined < files) { print "nm: expected symbols in every object"; bad = 1 }
        exit bad
    }' || bad=1
exit $bad
