#!/bin/sh
# make install and uninstall in a temporary folder; the installed program finds the demo pair. Also
# tests which builds become build/mizzle.
. tests/support/shell.sh
case ${BUILD:-build} in
build/*-release) ;;
*) skip "make install and build/mizzle are tried with the release build" ;;
esac
unset MIZZLE_DEMO
links() { make -n "$@" all 2>"$dir/log" | grep -q 'ln -sfn .* build/mizzle'; }
links MODE=release || fail "a release build is not linked"
for other in MODE=asan MODE=tsan MODE=debug ARCH=other BUILD=build/other; do
    links $other && fail "make $other links build/mizzle, which people measure"
done
make install PREFIX=/usr DESTDIR="$dir/a b" >"$dir/log" 2>&1 || fail "make install"
bin="$dir/a b/usr/bin/mizzle"
[ "$(wc -c <"$bin")" -lt "$(($(wc -c <build/mizzle) / 2))" ] || fail "the program has its symbols"
"$bin" --version >"$dir/log" 2>&1 || fail "the installed program does not run"
[ -s "$dir/a b/usr/share/man/man1/mizzle.1" ] || fail "no manual page"
share="$dir/a b/usr/share"
[ -s "$share/doc/mizzle/LICENSE" ] || fail "no licence"
# Each shell has its completions; those that are here read them.
zsh=$share/zsh/site-functions/_mizzle fish=$share/fish/vendor_completions.d/mizzle.fish
grep -q '^compadd -- ' "$zsh" && grep -q '^complete -c mizzle ' "$fish" ||
    fail "completions of zsh and fish"
! command -v zsh >/dev/null || zsh -n "$zsh" || fail "zsh does not read its completions"
! command -v fish >/dev/null || fish -n "$fish" || fail "fish does not read its completions"
if command -v bash >/dev/null; then
    bash -c '. "$1/bash-completion/completions/mizzle" && shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && _mizzle && echo "${COMPREPLY[*]}"' - "$share" \
        "$bin" router collect --lab >"$dir/log" && grep -qx -e --labels "$dir/log" || fail "bash: $(cat "$dir/log")"
fi
if [ -e weights/milli/edge-0.5.gguf ]; then
    ln -s "$bin" "$dir/link"
    for program in "$bin" "$dir/link"; do
        (cd / && "$program" run -q --policy never -n 1 -p x) >"$dir/log" 2>&1 ||
            fail "$program does not find the demo pair"
    done
fi
make uninstall PREFIX=/usr DESTDIR="$dir/a b" >"$dir/log" 2>&1 || fail "make uninstall"
[ -z "$(find "$dir/a b" ! -type d)" ] || fail "uninstall leaves $(find "$dir/a b" ! -type d)"
exit 0
