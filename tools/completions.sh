#!/bin/sh
# Print what lets a shell complete commands and options: sh tools/completions.sh SHELL
# SHELL is bash, zsh or fish. The words come from the program's own --help when Tab is pressed.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac

# PROGRAM [COMMAND [SUBJECT]]: the words that may follow, the same in each shell.
words='case $# in
1) "$1" --help | sed -n "s/^  \([a-z][a-z]*\)  *[a-z].*/\1/p" ;;
*) "$@" --help all | sed -n "s/^  mizzle $2 \([a-z]*\)  .*/\1/p; s/^  -., \(--[a-z-]*\).*/\1/p; s/^      \(--[a-z-]*\).*/\1/p" ;;
esac 2>/dev/null'

case ${1:-} in
bash)
    cat <<END
_mizzle() {
    local at=("\${COMP_WORDS[@]:0:COMP_CWORD}")
    case "\${at[1]}" in bench | router) at=("\${at[@]:0:3}") ;; *) at=("\${at[@]:0:2}") ;; esac
    [ "\${at[2]#-}" = "\${at[2]}" ] || unset 'at[2]'
    COMPREPLY=(\$(compgen -W "\$(sh -c '$words' - "\${at[@]}")" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _mizzle mizzle
END
    ;;
zsh)
    cat <<END
#compdef mizzle
local -a at=("\${(@)words[1,CURRENT-1]}")
case \$at[2] in bench | router) at=("\${(@)at[1,3]}") ;; *) at=("\${(@)at[1,2]}") ;; esac
[[ \$at[3] != -* ]] || at=("\${(@)at[1,2]}")
compadd -- \$(sh -c '$words' - \$at)
[[ \$CURRENT == 2 || \$PREFIX == -* ]] || _files
END
    ;;
fish)
    cat <<END
function __mizzle
    set -l at (commandline -opc)
    set -l most 2
    contains -- "\$at[2]" bench router; and set most 3
    string match -q -- '-*' "\$at[3]"; and set most 2
    sh -c '$words' - \$at[1..(math "min(\$most, "(count \$at)")")]
end
complete -c mizzle -a '(__mizzle)'
END
    ;;
*) echo "completions: expected bash, zsh or fish, found ${1:-}" >&2 && exit 2 ;;
esac
