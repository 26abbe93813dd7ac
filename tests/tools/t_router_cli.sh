#!/bin/sh
# mizzle router on the command line: scores, refusals, training.
. tests/support/shell.sh

# routes STATUS ARGS...: run mizzle router, which must end with this status and print nothing to
# stdout; if it fails, it prints one line to stderr.
routes() {
    ends "$@"
    [ ! -s "$dir/out" ] || fail "router $*: wrote to stdout"
}
subcommand=router

each 'routes 2' '' polish "score -o $dir/y" 'score --router r --kv f16' train "train -o $dir/r --questions 0"
routes 2 import one two
says 'expected one of collect, train, calibrate, score, found import; see mizzle router --help'
routes 3 score --router /tmp --hidden x
says '/tmp: expected a router in safetensors, found none; tools/lab/import_router.py makes one of '

# Two inputs, one unit, all numbers zero. The header has 254 bytes, octal 376.
head='{"router.w1":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"router.b1":{"dtype":"F32","shape":'
head=$head'[1],"data_offsets":[8,12]},"router.w2":{"dtype":"F32","shape":[1,1],"data_offsets":[12,16]},'
head=$head'"router.b2":{"dtype":"F32","shape":[1],"data_offsets":[16,20]}}'
{ printf '\376\0\0\0\0\0\0\0%s' "$head" && head -c 20 /dev/zero; } >"$dir/zero.safetensors"
head -c 8 /dev/zero >"$dir/x.f32"
routes 0 score --router "$dir/zero.safetensors" --hidden "$dir/x.f32" -o "$dir/y.f32"
[ "$(od -An -tf4 "$dir/y.f32" | tr -d ' ')" = 0.5 ] || fail "a router of zeros: $(od -An -tf4 "$dir/y.f32")"
expect 0 score --router "$dir/zero.safetensors" --hidden "$dir/x.f32"
[ "$(cat "$dir/out")" = 0.5 ] || fail "a score that is printed: $(cat "$dir/out")"
routes 3 score --router "$dir/zero.safetensors" --hidden /dev/null -o "$dir/never"
head -c 12 /dev/zero >"$dir/cut.f32"
routes 3 score --router "$dir/zero.safetensors" --hidden "$dir/cut.f32" -o "$dir/never"
says 'cut.f32: expected rows of 8 bytes, found 1 and 4 bytes over'
routes 2 score --router "$dir/zero.safetensors"
says 'expected --router and --hidden, found one'
for file in x.f32 r.pth r.rmlp; do
    printf 'PK\003\004' >"$dir/r.pth"
    printf 'RMLP\001\0\0\0' >"$dir/r.rmlp"
    routes 3 score --router "$dir/$file" --hidden "$dir/x.f32"
    says "$file: expected a router in safetensors, found none; tools/lab/import_router.py makes one"
done
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n' >"$dir/r.pt"
routes 3 score --router "$dir/r.pt" --hidden "$dir/x.f32"
says 'r.pt: expected the file itself, found a Git LFS pointer'
[ ! -e "$dir/never" ] || fail "score: no rows, but a file"
ln "$dir/zero.safetensors" "$dir/other"
for to in "$dir/x.f32" "$dir/zero.safetensors" "$dir/other"; do
    routes 2 score --router "$dir/zero.safetensors" --hidden "$dir/x.f32" -o "$to"
    says "$to: input and output are the same file"
done
