#!/bin/sh
# The files of net/ itself form one order: none calls a function of a file above it. Checked on the
# symbols of the objects, so that it holds for what is built and not for what is written down.
set -u
BUILD=${BUILD:-build}
order="cloud_url api_key wire_base wire_call wire cloud_base probe cloud_call cloud_prober cloud_ask
    cloud_commit cloud" # from the bottom to the top
command -v nm >/dev/null 2>&1 || {
    echo "SKIP: nm is not installed"
    exit 77
}
bad=0 lower=' '
for name in $order; do
    object=$BUILD/net/$name.o
    defined=$(nm --defined-only --extern-only "$object" 2>/dev/null | awk '{ print $NF }')
    [ -n "$defined" ] || { echo "$object: expected an object with symbols" && exit 1; }
    for below in $lower; do
        for symbol in $(nm --undefined-only "$BUILD/net/$below.o" | awk '{ print $NF }'); do
            if echo "$defined" | grep -qx "$symbol"; then
                echo "net/$below.c calls $symbol of net/$name.c, which stands above it" && bad=1
            fi
        done
    done
    lower="$lower$name "
done
for file in net/*.c; do
    name=${file#net/}
    case $lower in
    *" ${name%.c} "*) ;;
    *) echo "$file: has no place in the order of this test" && bad=1 ;;
    esac
done
exit $bad
