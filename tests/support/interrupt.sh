# interrupt.sh - for scripts that source this file: interrupt PID sends SIGINT once the program is
# at work. A shell starts programs behind & with the signal ignored, so one that comes before the
# program has set its handler is lost, which happens on a busy machine.
interrupt() {
    tries=0
    until [ ! -r "/proc/$1/status" ] || grep -q '^SigCgt:.*[2367abef]$' "/proc/$1/status"; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "it does not handle SIGINT"
        sleep 0.1
    done
    sleep "${2:-0.5}"
    kill -INT "$1"
}
