# shell.sh - the beginning of a script: $dir, a folder that is deleted at the end, servers
# (server.sh), and functions that run the program and look at what it prints.
MIZZLE=${MIZZLE:-build/mizzle}
data=${MIZZLE_TESTDATA:-../shared/data}
umask 022 # what others may write is not appended to
unset MIZZLE_CLOUD_URL MIZZLE_API_KEY OPENAI_API_KEY MIZZLE_SERVE_KEY NO_COLOR
dir=$(mktemp -d) || exit 1
. tests/support/server.sh

# fail WORDS: end with them and the ends of what was printed.
fail() {
    echo "$(basename "$0" .sh): $*" >&2
    for file in out err log served; do
        [ ! -s "$dir/$file" ] || tail -n 20 "$dir/$file" | cut -c1-600 >&2
    done
    exit 1
}

skip() {
    echo "SKIP: $*"
    exit 77
}

# expect STATUS ARGS: run mizzle $subcommand, under $before if that is set and with $stdin as its
# standard input, which must end with this status; its output is kept in $dir.
before= subcommand= stdin=
expect() {
    want=$1 status=0
    shift
    $before "$MIZZLE" $subcommand "$@" >"$dir/out" 2>"$dir/err" <"${stdin:-/dev/null}" || status=$?
    [ $status -eq "$want" ] || fail "$subcommand $*: status $status, not $want"
}

# refused STATUS ARGS: the same; it prints one line on stderr and nothing else.
refused() {
    expect "$@"
    [ ! -s "$dir/out" ] || fail "$*: wrote to stdout"
    one_line
}

# fails STATUS PATTERN ARGS: expect this status, and stderr says the pattern. refuses: nothing else.
fails() {
    code=$1 pattern=$2
    shift 2
    expect "$code" "$@"
    says "$pattern"
}
refuses() {
    fails "$@"
    [ ! -s "$dir/out" ] || fail "$*: wrote to stdout"
    one_line
}

# prints PATTERN ARGS: expect 0, and stdout shows the pattern. notes: stderr says it.
prints() {
    pattern=$1
    shift
    expect 0 "$@"
    shows "$pattern"
}
notes() { fails 0 "$@"; }

# given TEXT COMMAND...: run one of these functions with a text, as printf has it, on standard input.
given() {
    printf -- "$1" >"$dir/given"
    shift
    stdin=$dir/given
    "$@"
    stdin=
}

# ends STATUS ARGS: expect 0, else refused.
ends() {
    if [ "$1" -eq 0 ]; then expect "$@"; else refused "$@"; fi
}

# each COMMAND WORDS...: run a line of shell with the words of each of these at its end.
each() {
    each_line=$1
    shift
    for each_words; do eval "$each_line \$each_words"; done
}

one_line() {
    [ "$(wc -l <"$dir/err")" -eq 1 ] || fail "not one line on stderr"
}

# says PATTERN: stderr has it. shows PATTERN: stdout has it.
says() {
    grep -q -e "$1" "$dir/err" || fail "stderr does not say: $1"
}
shows() {
    grep -q -e "$1" "$dir/out" || fail "stdout does not show: $1"
}

# real_model SIZE: print where the official file of Qwen2.5-Coder-SIZE-Instruct is: in $MIZZLE_MODELS,
# else ~/.cache/mizzle, else in the hub's cache, to which README.md's commands fetch it.
real_model() {
    hub=${HF_HUB_CACHE:-${HF_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/huggingface}/hub}
    file=qwen2.5-coder-$(echo "$1" | tr A-Z a-z)-instruct-q4_k_m.gguf
    for model in "${MIZZLE_MODELS:-$HOME/.cache/mizzle}/$file" \
        "$hub/models--Qwen--Qwen2.5-Coder-$1-Instruct-GGUF/snapshots"/*/"$file"; do
        [ ! -r "$model" ] || break
    done
    echo "$model"
}

# same FILE FILE: they have the same bytes.
same() {
    cmp "$1" "$2" >"$dir/log" 2>&1 || fail "$1 and $2 differ"
}

# wait_for CONDITION: a line of shell, until it is true, for at most 30 seconds.
wait_for() {
    tries=0
    until eval "$1"; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "not in time: $1"
        sleep 0.1
    done
}

# interrupt PID [SECONDS]: send SIGINT once the program is at work. A shell starts programs behind &
# with the signal ignored, so one that comes before the program has set its handler is lost, which
# happens on a busy machine.
interrupt() {
    wait_for "[ ! -r /proc/$1/status ] || grep -q '^SigCgt:.*[2367abef]\$' /proc/$1/status"
    sleep "${2:-0.5}"
    kill -INT "$1"
}

# behind ARGS: run mizzle $subcommand behind the script, as $pid, with $stdin as its standard input.
behind() {
    : >"$dir/out" # remove what an earlier one printed
    "$MIZZLE" $subcommand "$@" <"${stdin:-/dev/null}" >"$dir/out" 2>"$dir/err" 3>&- &
    pid=$! stdin=
}

# left STATUS: the program behind must end with this status.
left() {
    status=0
    wait $pid || status=$?
    [ $status -eq "$1" ] || fail "status $status, not $1: $(cat "$dir/err")"
}

# certificate: make $dir/tls.crt for 127.0.0.1, and $dir/tls.pem with its key; fails without openssl.
certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
        -subj /CN=mizzle-test -addext subjectAltName=IP:127.0.0.1 -keyout "$dir/tls.key" \
        -out "$dir/tls.crt" >/dev/null 2>&1 && cat "$dir/tls.crt" "$dir/tls.key" >"$dir/tls.pem"
}

# oracle: find the reference in numpy: $ORACLE, its folder, and $PYTHON; says SKIP without them.
oracle() {
    ORACLE=${MIZZLE_ORACLE:-../shared/oracle}
    PYTHON=${PYTHON:-/usr/bin/python3}
    [ -e "$ORACLE/qwen2_np.py" ] || skip "no oracle at $ORACLE"
    "$PYTHON" -c 'import numpy' 2>/dev/null || skip "no numpy for $PYTHON"
    export PYTHONDONTWRITEBYTECODE=1
}
