# cloud.sh - a `mizzle cloud` for the scripts that source this file. They have set $dir, a folder
# that is deleted at the end, and define fail.
cloud=
cleanup() {
    [ -z "$cloud" ] || kill -9 "$cloud" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT

# start_cloud ARGS: start the program $serves (default: $MIZZLE) on a free port, unless ARGS name
# one, and wait until it listens; its address is in $url.
start_cloud() {
    : >"$dir/cloud" # remove the previous address
    "${serves:-$MIZZLE}" cloud --port 0 "$@" 2>"$dir/cloud" 3>&- &
    cloud=$!
    url=
    tries=0
    while [ -z "$url" ]; do
        url=$(sed -n 's/^listening on \(http:.*\)$/\1/p' "$dir/cloud")
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "the cloud is not ready in time"
        sleep 0.1
    done
}

stop_cloud() {
    kill -9 "$cloud"
    wait "$cloud" 2>/dev/null
    cloud=
}
