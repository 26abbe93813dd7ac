#!/bin/sh
# assets.sh NAME FILE... NAME FILE...: print C arrays asset_NAME with the bytes of the files, joined.
# A name is a word without a dot.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -eu
echo '#include "tools/cli/assets.h"'
while [ $# -gt 0 ]; do
    name=$1
    shift
    echo "const unsigned char asset_${name}[] = {"
    while [ $# -gt 0 ]; do
        case $1 in
        *.*) cat "$1" ;;
        *) break ;;
        esac
        shift
    done | od -An -v -tu1 | sed 's/  */,/g; s/^,//; s/$/,/'
    while [ $# -gt 0 ]; do
        case $1 in *.*) shift ;; *) break ;; esac
    done
    echo "};"
    echo "const size_t asset_${name}_size = sizeof(asset_$name);"
done
