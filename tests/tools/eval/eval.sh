# eval.sh - opens the scripts that source this file to try `mizzle eval` with the demo pair: what
# demo_pair.sh gives, for this command, and run, field and is.
. tests/support/demo_pair.sh
set -u
before=${RUN:-} subcommand=eval

# run STATUS ARGS...: expect this; set $last to the last line of what eval prints.
run() {
    expect "$@"
    last=$(tail -n 1 "$dir/out")
}

# field NAME: print this field of $last. is EXPRESSION: it holds, as awk reads it.
field() {
    printf '%s\n' "$last" | sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"
}
is() {
    awk "BEGIN { exit !($*) }" || fail "expected $*, in $last"
}
