#!/bin/sh
# The core's libraries and t_kernels are correct C for an Apple processor: clang parses them for
# macOS, with the headers of macos/sdk.txt in the place of Apple's. Linking and running need a Mac.
set -u
command -v clang >/dev/null || { echo "SKIP: no clang"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/sys" || exit 1
awk -v dir="$dir" '/^== / { to = dir "/" $2; print "#pragma once" >to; next } to { print >to }' tests/kernels/macos/sdk.txt
for header in zlib zconf jansson jansson_config; do # Homebrew's are as these
        file=$(find /usr/include -maxdepth 2 -name $header.h | head -n 1)
    [ -n "$file" ] || { echo "SKIP: no $header.h"; exit 77; }
    ln -s "$file" "$dir/$header.h"
done

check() { # FILE...: parse them as make does on a Mac
    clang --target=arm64-apple-macos11 -march=armv8.6-a+dotprod+i8mm -nostdlibinc -isystem "$dir" \
        -std=c11 -D_POSIX_C_SOURCE=200809L -I. -fno-math-errno -fsyntax-only -Wall -Wextra -Wshadow \
        -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wconversion \
        -Wdouble-promotion -Werror "$@"
}
# OpenBLAS, other processors' sets, and the laboratory are left out.
files=$(find kernels weights model router -name '*.c' | sort |
    grep -Ev '^(kernels/(x86/|blas|openblas)|model/train/|router/learn/)')
[ "$(echo "$files" | wc -l)" -ge 75 ] || { echo "only $(echo "$files" | wc -l) files"; exit 1; }
check $files tests/kernels/t_kernels.c tests/support/guard.c || {
    echo "what macOS has, and tests/kernels/macos/sdk.txt lacks, is to be added there"
    exit 1
}

# What macOS lacks is found.
printf '#include <sys/mman.h>\nint f(void);\nint f(void)\n{\n    return MAP_ANONYMOUS;\n}\n' >"$dir/hidden.c"
check "$dir/hidden.c" 2>/dev/null && { echo "what macOS hides is not found"; exit 1; }
exit 0
