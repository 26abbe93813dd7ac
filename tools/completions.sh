#!/bin/sh
# Print what lets a shell complete commands and options: sh tools/completions.sh SHELL PROGRAM...
# SHELL is bash, zsh or fish. All is read from the program's own --help.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
shell=$1
shift
export LC_ALL=C
"$@" --help >/dev/null || exit
tab=$(printf '\t')

commands() { # print name, tab, summary; with apostrophes that no shell reads as quotes
    {
        "$@" --help | sed -n "s/^  \([a-z][a-z]*\)  *\([a-z].*\)/\1$tab\2/p"
        for first in router bench; do
            "$@" $first --help | sed -n "s/^  mizzle \($first [a-z]*\)  *\([a-z].*\)/\1$tab\2/p"
        done
    } | sed "s/'/’/g"
}

# Print command, letter or -, option, argument or -, and the first line of its help, with tabs.
options() {
    commands "$@" | cut -f 1 | while read -r command; do
        # shellcheck disable=SC2086 # a name of two words is two arguments
        "$@" $command --help all | awk -v command="$command" -v OFS='\t' '
            { example = goes_on; goes_on = /\\$/ }
            !example && /^(  -., |      )--[a-z]/ {
                letter = $1 ~ /^-.,$/ ? substr($1, 2, 1) : "-"
                sub(/^ *(-., )? */, "")
                option = $1
                words = $0
                sub(/^[^ ]+/, "", words)
                arg = words ~ /^ [^ ]/ ? $2 : "-"
                sub(/^ [^ ]+/, "", words)
                if (words !~ /[^ ]/) getline words
                gsub(/^ +|\(default.*|\[|\]/, "", words)
                gsub(/'\''/, "’", words)
                gsub(/:/, " ", words)
                print command, letter, option, arg, words
            }'
    done
}

case $shell in
bash)
    echo '_mizzle() {'
    echo "    local word=\${COMP_WORDS[COMP_CWORD]} words=$("$@" --help | awk '
        /^  [a-z]/ && $1 != "mizzle" { all = all " " $1 } END { print "\"" substr(all, 2) "\"" }')"
    echo '    case "$COMP_CWORD ${COMP_WORDS[1]} ${COMP_WORDS[2]}" in'
    echo '    1\ *) ;;'
    options "$@" | awk -F '\t' '
        $1 != last { if (last) print words "\" ;;"; last = $1; words = "" }
        { words = (words ? words " " : "    *\\ " (sub(/ /, "\\ ", $1) ? $1 : $1 "\\ *") ") words=\"") $3 }
        END { print words "\" ;;" }' | sort -r
    echo '    esac'
    echo '    [ "$COMP_CWORD" = 1 ] || [ "${word#-}" != "$word" ] || words= # files'
    for first in router bench; do
        echo "    [ \"\$COMP_CWORD \${COMP_WORDS[1]}\" = '2 $first' ] && words=\"\$words $(
            commands "$@" | sed -n "s/^$first \([a-z]*\).*/\1/p" | xargs)\""
    done
    echo '    COMPREPLY=($(compgen -W "$words" -- "$word"))'
    echo '}'
    echo 'complete -o default -F _mizzle mizzle'
    ;;
zsh)
    echo '#compdef mizzle'
    echo 'local -a words_of'
    echo 'case "$CURRENT $words[2] $words[3]" in'
    commands "$@" | awk -F '\t' '
        $1 !~ / / { all = all " '\''" $1 ":" $2 "'\''" }
        END { print "2\\ *) words_of=(" substr(all, 2) ") ;;" }'
    options "$@" | awk -F '\t' '
        $1 != last { if (last) print words ") ;;"; last = $1; words = "" }
        { words = (words ? words " " : "*\\ " (sub(/ /, "\\ ", $1) ? $1 : $1 "\\ *") ") words_of=(") "'\''" $3 ":" $5 "'\''" }
        END { print words ") ;;" }' | sort -r
    echo 'esac'
    echo "(( CURRENT == 3 )) && case \$words[2] in"
    for first in router bench; do
        commands "$@" | awk -F '\t' -v first=$first '
            sub("^" first " ", "", $1) { all = all " '\''" $1 ":" $2 "'\''" }
            END { print first ") words_of+=(" substr(all, 2) ") ;;" }'
    done
    echo 'esac'
    echo 'if [[ $CURRENT == 2 || $PREFIX == -* || "$CURRENT $words[2]" == (3 router|3 bench) ]]; then'
    echo '    _describe mizzle words_of'
    echo 'else'
    echo '    _files'
    echo 'fi'
    ;;
fish)
    echo 'complete -c mizzle -n __fish_use_subcommand -f'
    commands "$@" | awk -F '\t' '
        { n = split($1, word, " ") }
        n == 1 { print "complete -c mizzle -n __fish_use_subcommand -a " $1 " -d '\''" $2 "'\''" }
        n == 2 { print "complete -c mizzle -f -n '\''__fish_seen_subcommand_from " word[1] "'\'' -a " word[2] " -d '\''" $2 "'\''" }'
    options "$@" | awk -F '\t' '
        {
            gsub(/ /, "; and __fish_seen_subcommand_from ", $1)
            print "complete -c mizzle -n '\''__fish_seen_subcommand_from " $1 "'\'' -l " substr($3, 3) \
                ($2 != "-" ? " -s " $2 : "") ($4 != "-" ? " -r" : "") " -d '\''" $5 "'\''"
        }'
    ;;
*) echo "completions: expected bash, zsh or fish, found $shell" >&2 && exit 2 ;;
esac
