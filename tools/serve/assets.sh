#!/bin/sh
# assets.sh NAME FILE... NAME FILE...: print C arrays serve_assets_NAME with the bytes of the files,
# joined. A name is a word without a dot.
set -eu
echo '#include "tools/serve/serve_assets.h"'
while [ $# -gt 0 ]; do
    name=$1
    shift
    echo "const unsigned char serve_assets_${name}[] = {"
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
    echo "const size_t serve_assets_${name}_size = sizeof(serve_assets_$name);"
done
