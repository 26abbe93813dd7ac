#!/bin/sh
# The objects that hold secrets still call wipe: the compiler has removed none of the calls.
set -u
BUILD=${BUILD:-build/x86_64-release}
bad=0
for tool in nm objdump; do
    command -v $tool >/dev/null || { echo "SKIP: no $tool"; exit 77; }
done
nm --defined-only "$BUILD/kernels/sys/wipe.o" 2>/dev/null | grep -qw wipe || {
    echo "$BUILD/kernels/sys/wipe.o does not define wipe"
    exit 1
}
# calls OBJECT FUNCTION LEAST: at least LEAST places in the object's code call the function.
calls() {
    n=$(objdump -r "$BUILD/$1.o" | grep -cE "[^_[:alnum:]]$2([^_[:alnum:]]|$)")
    [ "$n" -ge "$3" ] || { echo "$1.o: $n calls of $2, at least $3 expected" && bad=1; }
}
calls kernels/sys/wipe wipe 1
calls net/api_key wipe 1
calls net/http/http wipe 2
calls net/wire wipe_text 1
calls net/server/server wipe_text 1
calls router/routing wipe_text 1
calls tools/lab/cmd_cloud wipe_text 2
exit $bad
