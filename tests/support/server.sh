# server.sh - `mizzle serve` and `mizzle cloud` for the scripts that source this file. They have set
# $dir, a folder that is deleted at the end, and define fail.
servers= cloud=
cleanup() {
    [ -z "$servers" ] || kill -9 $servers 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT

# start_server COMMAND ARGS: start a command of the program $serves (default: $MIZZLE) on a free
# port, unless ARGS name one, and wait until it listens. Its process is in $server, its address in
# $url, what it says in $dir/COMMAND, and what it prints in $dir/served. It fails if the server ends.
start_server() {
    command=$1
    says=$dir/$command
    shift
    : >"$says" # remove the previous address
    "${serves:-$MIZZLE}" "$command" --port 0 "$@" >"$dir/served" 2>"$says" 3>&- &
    server=$!
    servers="$servers $server"
    url=
    tries=0
    while [ -z "$url" ]; do
        url=$(sed -n 's/^listening on \(https*:.*\)$/\1/p' "$says")
        kill -0 "$server" 2>/dev/null || return 1
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "not ready in time"
        sleep 0.1
    done
}

# stop_server SIGNAL STATUS: stop the latest server, which must end with this status.
stop_server() {
    kill -s "$1" "$server"
    wait "$server"
    status=$?
    servers=${servers% "$server"}
    [ $status -eq "$2" ] || fail "SIG$1: status $status, not $2: $(cat "$says")"
}

start_cloud() {
    start_server cloud "$@" || fail "no cloud: $(cat "$dir/cloud")"
    cloud=$server
}

stop_cloud() {
    kill -9 "$cloud"
    wait "$cloud" 2>/dev/null
    servers=$(echo "$servers" | sed "s/ $cloud\$//; s/ $cloud / /")
    cloud=
}
