#!/bin/sh
# Install what building and testing Mizzle needs, and is missing.
#
#   sh tools/setup.sh          compiler, make and libraries: `make`, `make test`, `make demo`
#   sh tools/setup.sh dev      also the tools for the gates of .ci/run
#   sh tools/setup.sh lab      also Python's numpy and matplotlib: tools/lab/study, `make results`
#   sh tools/setup.sh cross    also the arm64 libraries: `make CC=aarch64-linux-gnu-gcc`
#
# Debian and Ubuntu use apt-get, as root or through sudo; macOS uses Homebrew. On other systems, or
# without permission to install, the script prints the command to run and ends with status 1.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -eu

build="gcc make libc6-dev libcurl4-openssl-dev libjansson-dev libmicrohttpd-dev zlib1g-dev
 libopenblas-dev libedit-dev ca-certificates curl"
dev="git ccache clang clang-format libclang-rt-dev llvm universal-ctags qemu-user gcc-aarch64-linux-gnu
 libc6-dev-arm64-cross python3-regex groff-base
 g++ pkg-config debootstrap"
lab="python3-numpy python3-matplotlib"
# For the tests in a browser and of npm's packages, for make web, and for make perf. Ubuntu packs no
# chromium, and perf by version of its kernel; node may come from elsewhere, with npm in it.
! grep -qs '^ID=debian' /etc/os-release ||
    dev="$dev chromium-headless-shell fonts-dejavu-core linux-perf binutils
 lld wasi-libc libclang-rt-dev-wasm32"
command -v npm >/dev/null || dev="$dev nodejs npm"
cross="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user libcurl4-openssl-dev:arm64
 libjansson-dev:arm64 libmicrohttpd-dev:arm64 zlib1g-dev:arm64"

case ${1:-} in
'') wanted=$build ;;
dev) wanted="$build $dev $lab" ;;
lab) wanted="$build $lab" ;;
cross) wanted="$build $cross" ;;
*)
    echo "usage: sh tools/setup.sh [dev | lab | cross]" >&2
    exit 2
    ;;
esac

installed() { # PACKAGE[:ARCH]: true if it is installed for this architecture
    case $1 in
    *:*) arch=${1##*:} ;;
    *) arch=$(dpkg --print-architecture) ;;
    esac
    dpkg-query -W -f '${Architecture} ${db:Status-Status}\n' "${1%%:*}" 2>/dev/null |
        grep -Eqx "($arch|all) installed"
}

debian() {
    missing=
    for package in $wanted; do
        installed "$package" || missing="$missing $package"
    done
    [ -n "$missing" ] || { echo "nothing to install" && exit 0; }
    line="apt-get install -y --no-install-recommends$missing"
    foreign=
    case " $missing" in
    *:arm64*) [ "$(dpkg --print-architecture)" = arm64 ] ||
        dpkg --print-foreign-architectures | grep -qx arm64 || foreign=yes ;;
    esac
    if [ "$(id -u)" -eq 0 ]; then
        as=
    elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
        as=sudo
    else
        echo "Mizzle needs packages, but this user can use neither root nor sudo. As root, type:" >&2
        [ -z "$foreign" ] || echo "dpkg --add-architecture arm64" >&2
        echo "apt-get update && $line" >&2
        exit 1
    fi
    echo "installing:$missing"
    [ -z "$foreign" ] || $as dpkg --add-architecture arm64
    log=$(mktemp)
    # An unrelated package source may fail without harm; the installation will show.
    $as env DEBIAN_FRONTEND=noninteractive apt-get -qq update >"$log" 2>&1 || true
    # shellcheck disable=SC2086
    if ! $as env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 install -y \
        --no-install-recommends $missing >>"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        rm -f "$log"
        exit 1
    fi
    rm -f "$log"
}

macos() {
    if ! xcode-select -p >/dev/null 2>&1; then
        echo "Apple's compiler is missing; type: xcode-select --install" >&2
        exit 1
    fi
    missing=
    formulas="jansson libmicrohttpd openblas"
    case ${1:-} in dev | lab) formulas="$formulas numpy python-matplotlib" ;; esac
    [ "${1:-}" != dev ] || formulas="$formulas clang-format universal-ctags pkg-config node"
    if ! command -v brew >/dev/null; then
        echo "Homebrew is missing (https://brew.sh); then type: brew install $formulas" >&2
        exit 1
    fi
    for formula in $formulas; do
        brew list --versions "$formula" >/dev/null 2>&1 || missing="$missing $formula"
    done
    # shellcheck disable=SC2086
    [ -z "$missing" ] || brew install $missing
}

# True if a C program with all the libraries can be built.
builds() {
    command -v make >/dev/null && command -v cc >/dev/null &&
        printf '%s\n' '#include <curl/curl.h>' '#include <jansson.h>' '#include <microhttpd.h>' \
            '#include <zlib.h>' 'int main(void) { return 0; }' |
        cc -x c - -lcurl -ljansson -lmicrohttpd -lz -o /dev/null 2>/dev/null
}

other() {
    if builds && [ -z "${1:-}" ]; then
        exit 0
    fi
    if command -v dnf >/dev/null; then
        line="dnf install gcc make libcurl-devel jansson-devel libmicrohttpd-devel zlib-devel \
openblas-devel libedit-devel"
    elif command -v pacman >/dev/null; then
        line="pacman -S --needed gcc make curl jansson libmicrohttpd zlib openblas libedit"
    elif command -v zypper >/dev/null; then
        line="zypper install gcc make libcurl-devel libjansson-devel libmicrohttpd-devel \
zlib-devel openblas-devel libedit-devel"
    elif command -v apk >/dev/null; then
        line="apk add gcc make musl-dev curl-dev jansson-dev libmicrohttpd-dev zlib-dev \
openblas-dev libedit-dev"
    else
        line="the packages of your system for: a C compiler, make, and the development files of \
libcurl, jansson, libmicrohttpd, zlib and (optional) OpenBLAS and libedit"
    fi
    echo "Mizzle needs packages that this script cannot install here. As root, type:" >&2
    echo "$line" >&2
    exit 1
}

if [ "$(uname)" = Darwin ]; then
    macos "$@"
elif command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    debian
else
    other "$@"
fi
