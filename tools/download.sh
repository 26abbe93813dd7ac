#!/bin/sh
# Fetch a model from Hugging Face with curl into the cache where Mizzle and hf look for it.
#
# Usage: sh tools/download.sh ORG/NAME:TYPE   the GGUF files whose names have the part TYPE
#        sh tools/download.sh ORG/NAME        a folder of safetensors
#        sh tools/download.sh ORG/NAME FILE...
#
# A file that was begun is continued. Each file, also one that was here before, is compared with the
# size and hash that the hub names. $HF_TOKEN opens repositories that ask for it, $HF_ENDPOINT is
# another hub, and the cache is that of hf: $HF_HUB_CACHE, $HF_HOME/hub,
# $XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub.
# Exit status: 0, 1 where something could not be fetched, 2 for wrong usage.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -u
fail() { echo "download: $1" >&2 && exit "${2:-1}"; }
usage() { fail "expected ORG/NAME:TYPE, or ORG/NAME and names of files; found '$*'" 2; }

[ $# -gt 0 ] || usage
name=${1%%:*} type=
[ "$name" = "$1" ] || type=${1#*:}
case $name in
*[!A-Za-z0-9._/-]* | */*/* | /* | */ | -* | *..* | *--*) usage "$*" ;;
*/*) ;;
*) usage "$*" ;;
esac
case $type in *[!A-Za-z0-9._-]*) usage "$*" ;; esac
[ -z "$type" ] || [ $# -eq 1 ] || usage "$*"
shift
command -v curl >/dev/null || fail "curl is not installed"
hub=${HF_ENDPOINT:-https://huggingface.co}
if [ -n "${HF_HUB_CACHE:-}" ]; then
    cache=$HF_HUB_CACHE
elif [ -n "${HF_HOME:-}" ]; then
    cache=$HF_HOME/hub
else
    cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/huggingface/hub
fi
into=$cache/models--$(echo "$name" | sed 's,/,--,')
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' HUP INT TERM

# The token goes to curl by its standard input, so that no list of processes shows it. curl keeps it
# from other hosts, to which the hub sends for large files.
ask() { # ARGS...: run curl
    { [ -z "${HF_TOKEN:-}" ] || printf 'header = "Authorization: Bearer %s"\n' "$HF_TOKEN"; } |
        curl --config - --silent --show-error --fail --proto-redir =http,https "$@"
}

# The limit on files, in blocks of 512 bytes, cuts an answer that does not say how long it is.
within() ( # BYTES ARGS...: ask for no more
    trap '' XFSZ
    ulimit -f $(($1 / 512 + 1))
    shift
    ask "$@"
)

# After curl's status: 22 is an answer of the hub, 23 one that was cut, any other is none.
not_there() { # STATUS MESSAGE
    here=$(cd "$into/snapshots" 2>/dev/null && find . ! -type d | sed 's,.*/,,' | sort -u | xargs)
    [ "$1" -ne 23 ] || fail "$hub: the answer is too long"
    [ "$1" -eq 22 ] || fail "$hub: not reached${here:+; here already: $here}"
    fail "$2, or none that may be read"
}

lower() { printf '%s' "$1" | tr 'A-Z' 'a-z'; }

if [ $# -eq 0 ]; then # choose among the repository's files
    within 16000000 --location --output "$dir/list" "$hub/api/models/$name" ||
        not_there $? "$name: no such model"
    grep -o '"rfilename" *: *"[^"\\]*"' "$dir/list" | sed 's/.*: *"//; s/"$//' >"$dir/files"
    if [ -n "$type" ]; then
        part=$(lower "$type" | sed 's/[.[\*^$]/\\&/g')
        tr 'A-Z' 'a-z' <"$dir/files" | grep -nE "(^|[-._/])$part([-.].*)?\.gguf\$" | cut -d : -f 1 >"$dir/lines"
        found=$(sed -n "$(sed 's/$/p/' "$dir/lines" | tr '\n' ';')" "$dir/files")
    else
        found=$(grep -E '^(model.*\.safetensors(\.index\.json)?|(generation_|tokenizer_)?config\.json|tokenizer\.json|vocab\.json|merges\.txt)$' "$dir/files")
        case $found in *.safetensors*) ;; *) found= ;; esac
    fi
    wanted="a folder of safetensors"
    [ -z "$type" ] || wanted="GGUF files with $type in their names"
    [ -n "$found" ] ||
        fail "$name: expected $wanted, found $(grep -E '\.(gguf|safetensors)$' "$dir/files" | head -n 30 | xargs)"
    ! printf '%s\n' "$found" | grep '[^A-Za-z0-9._/-]' >"$dir/strange" ||
        fail "$name: expected names of letters, digits and ._/-, found '$(head -n 1 "$dir/strange")'"
    # shellcheck disable=SC2086 # names have no blanks
    set -- $found
fi

field() { # NAME: print the value of a header of the last answer
    tr -d '\r' <"$dir/head" | awk -v name="$1:" 'tolower($1) == name { value = $2 } END { gsub(/^W\/|"/, "", value); print value }'
}

sum() { # 1|256: print the SHA of stdin
    if command -v sha${1}sum >/dev/null; then sha${1}sum; else shasum -a $1; fi | cut -d ' ' -f 1
}

bytes() { if [ -e "$1" ]; then wc -c <"$1"; else echo -1; fi; }

right() { # FILE: compare it with its SHA-256, or with git's hash of small files
    [ "$(bytes "$1")" -eq "$size" ] || return
    case ${#hash} in
    64) [ "$(sum 256 <"$1")" = "$hash" ] ;;
    *) [ "$({ printf 'blob %s\0' "$size" && cat "$1"; } | sum 1)" = "$hash" ] ;;
    esac
}

for file; do
    case $file in *[!A-Za-z0-9._/-]* | /* | -* | *..*) usage "$file" ;; esac
    # The hub names hash and size before it sends to another host, or in what it itself goes on to.
    at=$hub/$name/resolve/main/$file commit='' hash='' size=''
    for hop in 1 2 3; do
        ask --head --output "$dir/head" "$at" || not_there $? "$name: no file $file"
        [ -n "$commit" ] || commit=$(field x-repo-commit)
        [ -n "$hash" ] || hash=$(field x-linked-etag) size=$(field x-linked-size)
        next=$(field location)
        case $next in /*) at=$(echo "$hub" | sed 's,\(://[^/]*\).*,\1,')$next ;; *) break ;; esac
    done
    [ -n "$hash" ] || hash=$(field etag) size=$(field content-length)
    case $commit,$hash in *[!0-9a-f,]* | ,*) hash= ;; esac
    case $size in '' | *[!0-9]* | 0?* | ????????????????*) hash= ;; esac
    case ${#hash} in
    40 | 64) ;;
    *) fail "$file: the hub named no commit, hash and size that could be read" ;;
    esac
    blob=$into/blobs/$hash
    mkdir -p "$into/blobs" "$into/refs" "$(dirname "$into/snapshots/$commit/$file")" || exit 1
    if [ -e "$blob" ] && ! right "$blob"; then
        echo "download: $file: what is here has another hash than the hub's; it is fetched again" >&2
        rm -f "$blob"
    fi
    if [ ! -e "$blob" ]; then
        echo "download: $name/$file, $((size / 1000000)) MB" >&2
        bar=
        [ ! -t 2 ] || bar='--no-silent --progress-bar'
        # --max-filesize refuses an answer that says it is longer; one that redirects may be.
        # shellcheck disable=SC2086
        [ "$(bytes "$blob.part")" -eq "$size" ] ||
            within "$size" $bar --max-filesize $((size + 65536)) --location --continue-at - --output "$blob.part" "$hub/$name/resolve/main/$file" ||
            [ $? -eq 63 ] || [ "$(bytes "$blob.part")" -gt "$size" ] || fail "$file: cut off; the same command goes on"
        right "$blob.part" || { rm -f "$blob.part"; fail "$file: expected $size bytes with hash $hash, found others; begin again"; }
        mv "$blob.part" "$blob" || exit 1
    fi
    up=$(echo "$file" | sed 's,[^/]*$,,; s,[^/]*/,../,g')
    ln -sfn "../../${up}blobs/$hash" "$into/snapshots/$commit/$file" || exit 1
done
printf %s "$commit" >"$into/refs/main" || exit 1

# Another size of the model with this type makes a pair: the smaller one writes, the larger one helps.
pair=$(find "$cache"/models--*/snapshots/* -iname "*${type:-config.json}*" ! -type d |
    sed "s,.*/models--,,; s,/snapshots/.*,,; s,--,/," | sort -u | awk -v name="$name" -v type="${type:+:$type}" '
        function family(s) { size = match(s, /-[0-9.]+[Bb](-|$)/) ? substr(s, RSTART + 1) + 0 : 0; sub(/-[0-9.]+[Bb]/, "", s); return s }
        BEGIN { own = family(name); edge = cloud = name; least = most = mine = size }
        family($0) != own || !mine || !size { next }
        size < least { least = size; edge = $0 }
        size > most { most = size; cloud = $0 }
        END { print "-m " edge type (edge == cloud ? "" : " --cloud-model " (edge == name ? cloud : name) type) }')
program=build/mizzle
[ -x build/mizzle ] || program=$(command -v mizzle) || program='make && build/mizzle'
echo "download: done; try: $program run --chat $pair" >&2
