#!/bin/sh
# A bare Debian 12: what debootstrap's minbase holds, and no program of this machine. It shows that
# what README says needs nothing else.
#
#   sh .ci/bare.sh create ROOT          make it in the folder ROOT, with a copy of this repository;
#                                       where that cannot be, the last line of the output says why
#   sh .ci/bare.sh run ROOT COMMAND     run a command of the shell in that copy; all that it has
#                                       started ends with the process in ROOT.pid
#
# The system and the packages are downloaded once, into mizzle-ci in $XDG_CACHE_HOME or ~/.cache. A
# command has namespaces of its own, so that all mounts and processes end with it, however it ends.
set -eu
cd "$(dirname "$0")/.."
action=$1 root=$2 command=${3:-}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mizzle-ci
suite=bookworm
isolated="unshare --mount --pid --fork --kill-child"
enter="$isolated sh .ci/bare.sh mounted"

no() { # REASON
    echo "$*" >&2
    exit 1
}

show() { # FROM TO: let a folder of this machine be read there, if there is one
    [ -d "$1" ] || return 0
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    mount -o remount,bind,ro "$root$2"
}

mounted() { # COMMAND: run it as the first process of its namespace
    mount -t proc proc "$root/proc"
    mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
    mount -t tmpfs tmpfs "$root/dev/shm"
    mount --bind "$cache/packages" "$root/var/cache/apt/archives"
    show "${MIZZLE_TESTDATA:-../shared/data}" /root/shared/data
    show "${MIZZLE_MODELS:-$HOME/.cache/mizzle}" /root/.cache/mizzle
    exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        sh -c "cd /root/mizzle && $1"
}

# The mirror, and whatever this machine's apt has set for downloads, hold there, too.
system() {
    mirror=$(apt-get indextargets --format '$(SITE)' "Release: $suite" 'Component: main' \
        'Created-By: Packages' | head -n 1)
    if [ -e "$cache/$suite.tar" ]; then
        tar -C "$root" -xf "$cache/$suite.tar"
    else
        eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
        [ -z "${http_proxy:-}" ] || export http_proxy
        # shellcheck disable=SC2086
        $isolated debootstrap --variant=minbase $suite "$root" $mirror || no "debootstrap failed"
        rm -f "$root"/var/cache/apt/archives/*.deb
        tar -C "$root" -cf "$cache/$suite.tar.new" .
        mv "$cache/$suite.tar.new" "$cache/$suite.tar"
    fi
    [ -z "$mirror" ] || echo "deb $mirror $suite main" >"$root/etc/apt/sources.list"
    apt-config dump | grep '^Acquire::' >"$root/etc/apt/apt.conf.d/99machine"
    cp -L /etc/resolv.conf "$root/etc"
}

# The files that git knows, as they are now: one that was not added is missed there.
repository() {
    now=$(git -c user.name=ci -c user.email=ci stash create)
    git archive -o "$root/root/mizzle.tar" --prefix=mizzle/ "${now:-HEAD}"
    tar -C "$root/root" -xf "$root/root/mizzle.tar"
}

create() {
    $isolated true || no "no namespaces of one's own, which takes root"
    command -v debootstrap || no "no debootstrap (sh tools/setup.sh dev)"
    mkdir -p "$cache/packages" "$root"
    system
    repository
    $enter "$root" true || no "no mounts or no chroot"
    $enter "$root" "apt-get -qq -o APT::Update::Error-Mode=any update && apt-get -qq autoclean" ||
        no "no packages to be downloaded"
}

case $action in
create) create ;;
run) echo $$ >"$root.pid" && exec $enter "$root" "$command" ;;
mounted) mounted "$command" ;;
esac
