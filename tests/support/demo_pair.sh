# demo_pair.sh - the beginning of a script that runs the program with the demo pair: it says SKIP
# without it, and gives what shell.sh does, and field.
. tests/support/shell.sh
edge=weights/milli/edge-0.5.gguf
[ -e $edge ] || skip "no demo pair in weights/milli"
# field NAME: print this field of the last line of $dir/out.
field() {
    tail -n 1 "$dir/out" | sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"
}
