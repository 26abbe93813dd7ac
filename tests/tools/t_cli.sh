#!/bin/sh
# The program itself: the overview, the help of every command and script, unknown names, the manual page.
. tests/support/shell.sh

expect 2
[ ! -s "$dir/out" ] && grep -q 'Usage: mizzle COMMAND' "$dir/err" || fail "no arguments"
expect 0 --help
[ ! -s "$dir/err" ] || fail "--help writes to stderr"
grep -q '^  run  ' "$dir/out" || fail "--help does not name run"
commands=$(sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' "$dir/out")
expect 0 --version
grep -Eqx 'mizzle [0-9]+\.[0-9]+\.[0-9]+' "$dir/out" || fail "--version"
fails 2 'did you mean eval' evla
fails 2 'did you mean --n-predict' run --max-tokens 3
fails 2 'did you mean --temp' run --temperature=3
expect 2 "$(printf 'a\033[31m')"
LC_ALL=C grep -q "$(printf '\033')" "$dir/err" && fail "an escape character reaches the terminal"
expect 2 help evla
fails 2 'expected one of collect, train, calibrate, score, found colect; see mizzle router --help$' router colect -o x
fails 2 'expected one of collect, .*, found none; ' router
fails 2 'expected one of model, .*, found foo; ' bench foo
fails 2 'unknown option --foo; see mizzle --help$' --foo
fails 2 'expected -p or --ids, found none$' logits
fails 2 'isa: expected one of scalar.*, found foo$' run -p x --isa foo
fails 2 'expected -p or --question, found both$' run -p x --question 2
expect 2 help router nope
fails 3 'no model here: expected config.json or a .gguf file$' info /

expect 0 --help
grep -q '(serve$' "$dir/out" && grep -q '^and cloud: 0 after SIGTERM)' "$dir/out" || fail "--help: status of serve"

# What info and run would ignore is refused.
info="info weights/milli/edge-0.5.gguf"
if [ -e "${info#* }" ]; then
    each 'refused 2' "$info -c 0" "info -c 0" "info -c 9" "$info -c 1025"
    says '--context: expected at most 1024, the context'
    # 0 is not a context, and no command takes more than 64 threads.
    for line in 'run -p x' 'serve --port 0' 'cloud --port 0' 'bench memory' 'eval --task ppl'; do
        fails 2 '--context: expected .*1.*, found 0' $line -c 0
    done
    for line in 'run -p x' 'bench limits' 'bench model --shape qwen2.5-0.5b' 'bench model' "pretrain --output $dir/trained" \
        "convert ${info#* } $dir/x --type q8_0"; do
        fails 2 ' --threads: expected at most 64, found 65$' $line -t 65
    done
    [ ! -e "$dir/trained" ] || fail "pretrain -t 65: made its folder first"
    for policy in never always; do
        fails 2 ': --cloud-url: expected http:// or https://, found foo$' run -p x --policy $policy --cloud-url foo
    done
    expect 2 run -p x --cloud off --cloud-url foo
fi
mkdir "$dir/folder"
printf '\002\0\0\0\0\0\0\0{}' >"$dir/folder/part.safetensors"
fails 3 "part.safetensors: one part of a folder; name the folder $dir/folder\$" run -p x -m "$dir/folder/part.safetensors"
fails 3 "$dir/folder: no model here: expected config.json or a .gguf file\$" run -p x -m "$dir/folder"

"$MIZZLE" man >"$dir/mizzle.1" || fail man
[ -z "$(uniq -d "$dir/mizzle.1")" ] || fail "mizzle man prints a line twice: $(uniq -d "$dir/mizzle.1")"
# Commands of two words are named by the help of the first one.
longer=$(sed -n 's/^\.SS mizzle \([a-z][a-z]* [a-z][a-z]*\) .*/\1/p' "$dir/mizzle.1")
for first in $(echo "$longer" | cut -d' ' -f1 | sort -u); do
    expect 0 "$first" --help
    sed -n "s/^  mizzle \\($first [a-z][a-z]*\\)  .*/\\1/p" "$dir/out"
done | sort >"$dir/named"
[ "$(cat "$dir/named")" = "$(echo "$longer" | sort)" ] || fail "--help names $(cat "$dir/named")"
printf '%s\n' "$commands" "$longer" >"$dir/commands"
# few MOST: at most so many different options are on stdin.
few() {
    found=$(sed -n 's/^ \{2,6\}\(-., \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p' | grep -vx -e --help | sort -u | wc -l)
    [ "$found" -le "$1" ] || fail "$found options, at most $1"
}
while read -r c; do
    set -- $c
    expect 0 "$@" --help
    [ ! -s "$dir/err" ] || fail "$c --help writes to stderr"
    shows "^Usage: mizzle $c "
    awk -v c="$c" 'length > 80 { print c ": " $0; bad = 1 } END { exit bad }' "$dir/out" ||
        fail "lines of more than 80 columns"
    cp "$dir/out" "$dir/help"
    expect 0 help "$@"
    cmp -s "$dir/out" "$dir/help" || fail "help $c differs from $c --help"
    case $c in
    run | serve | eval)
        [ "$(wc -l <"$dir/out")" -le 25 ] || fail "$c --help: more than a screen"
        expect 0 "$@" --help all
        awk 'length > 80 { exit 1 }' "$dir/out" || fail "$c --help all: more than 80 columns"
        cp "$dir/out" "$dir/help"
        expect 0 help "$@" all
        cmp -s "$dir/out" "$dir/help" || fail "help $c all differs from $c --help all"
        ;;
    esac
    # What is said above the options names no option that left; an example may run something else.
    known=$(sed -n 's/^  *\(-., \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p' "$dir/help")
    left=$(sed "/^  *-/d; /^  mizzle $c /b; /^  [a-z]/d; /^       /d" "$dir/help" | grep -oe '--[a-z][a-z0-9-]*' | grep -vxF -e "$known")
    [ -z "$left" ] || fail "$c --help names $left"
    case $c in run) few 40 ;; eval) few 29 ;; serve) few 37 ;; esac <"$dir/help"
    cat "$dir/help" >>"$dir/helps"
    case $c in run | serve | eval) more=1 ;; *) more=0 ;; esac # the others have no more than this
    [ "$(grep -c -e '^  -h, --help \[all\] ' "$dir/help")" -eq $more ] &&
        grep -q -e '^  -h, --help ' "$dir/help" || fail "$c: help of all options"
    expect 2 "$@" --no-such-option
    one_line
    grep -q "^\.SS mizzle $c " "$dir/mizzle.1" || fail "the manual page does not name $c"
done <"$dir/commands"
few 90 <"$dir/helps"
if command -v groff >/dev/null; then
    groff -man -Tascii -P-cbou -ww "$dir/mizzle.1" >"$dir/page" 2>"$dir/warn" || fail groff
    [ ! -s "$dir/warn" ] || fail "groff warns: $(head -n 3 "$dir/warn")"
    grep -q 'EXIT STATUS' "$dir/page" || fail "the page is cut"
else
    echo "SKIP: manual page not formatted: no groff"
fi
# Every script says what it does, and does nothing else.
for script in $(grep -lx '#!/bin/sh' $(find tools -name '*.sh')); do
    for help in -h --help; do
        timeout 20 sh "$script" $help >"$dir/out" 2>&1 ||
            fail "$script $help: $(cat "$dir/out")"
        sed '1d;/^#/!d' "$script" | head -n "$(wc -l <"$dir/out")" | sed 's/^# \{0,1\}//' | cmp -s - "$dir/out" &&
            [ "$(wc -l <"$dir/out")" -gt 1 ] || fail "$script $help: not what stands at its head"
    done
done
if [ -e /dev/full ]; then
    "$MIZZLE" --help >/dev/full 2>"$dir/err"
    [ $? -eq 3 ] && grep -q 'cannot write' "$dir/err" || fail "a full device is not reported"
fi
# A reader that has gone, as `| head` does, is no failure.
for c in --help man info "run --question 2" "explain --question 2 --json" "tokenize -p hello" \
    "logits -p hello --top-k 2" "eval --questions 1"; do
    { sleep 0.2 && "$MIZZLE" $c 2>"$dir/err" && echo fine >"$dir/ended"; } | true
    [ "$(cat "$dir/ended")" = fine ] || fail "$c, whose reader has gone: $(cat "$dir/err")"
    ! grep 'written\|write' "$dir/err" || fail "$c, whose reader has gone"
    rm "$dir/ended"
done
exit 0
