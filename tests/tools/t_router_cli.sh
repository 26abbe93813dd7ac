#!/bin/sh
# mizzle router on the command line: import and score against PyTorch's numbers, refusals, training.
set -u
mizzle=${MIZZLE:-build/mizzle}
data=${MIZZLE_TESTDATA:-../shared/data}/pth
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

fail() {
    echo "t_router_cli: $*" >&2
    exit 1
}

# expect STATUS ARGS...: run mizzle router, which must end with this status and print nothing to
# stdout; if it fails, it prints one line to stderr.
expect() {
    want=$1
    shift
    ${RUN:-} "$mizzle" router "$@" >"$tmp/out" 2>"$tmp/err"
    got=$?
    [ "$got" -eq "$want" ] || fail "router $*: status $got, expected $want: $(cat "$tmp/err")"
    [ -s "$tmp/out" ] && fail "router $*: wrote to stdout"
    [ "$want" -eq 0 ] || [ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "router $*: not one line: $(cat "$tmp/err")"
}

# difference FILE FILE: print the largest difference between two raw f32 files.
difference() {
    od -An -v -tf4 -w4 "$1" >"$tmp/a"
    od -An -v -tf4 -w4 "$2" >"$tmp/b"
    paste "$tmp/a" "$tmp/b" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > m) m = d }
                                   END { if (NR != 64) m = 9; print m }'
}

expect 2
expect 2 polish
expect 2 import one
expect 2 score --router r
expect 2 train
expect 2 train -o "$tmp/r" --tap middle
expect 2 train -o "$tmp/r" --share 2
expect 2 train -o "$tmp/r" --questions 0

skipped=
if [ -f "$data/router_zip.pth" ]; then
    for kind in zip legacy checkpoint dataparallel half bf16; do
        case $kind in
        half) within=0.001 ;;
        bf16) within=0.005 ;;
        *) within=0.00001 ;;
        esac
        expect 0 import "$data/router_$kind.pth" "$tmp/r.safetensors"
        expect 0 score --router "$tmp/r.safetensors" --hidden "$data/golden_x_f32_64x64.bin" -o "$tmp/y.f32"
        d=$(difference "$tmp/y.f32" "$data/golden_y_f32_64.bin")
        awk "BEGIN { exit !($d < $within) }" || fail "$kind: off by $d"
        expect 0 score --router "$data/router_$kind.pth" --hidden "$data/golden_x_f32_64x64.bin" -o "$tmp/direct.f32"
        cmp -s "$tmp/y.f32" "$tmp/direct.f32" || fail "$kind: imported and direct differ"
        expect 0 score --isa scalar --router "$tmp/r.safetensors" --hidden "$data/golden_x_f32_64x64.bin" -o "$tmp/scalar.f32"
        cmp -s "$tmp/y.f32" "$tmp/scalar.f32" || fail "$kind: instruction sets differ"
    done
    for bad in evil_print router_fullmodule bad_central_offset bad_empty bad_pickle_byte \
        bad_truncated_10 bad_truncated_half; do
        expect 3 import "$data/$bad.pth" "$tmp/never"
        [ -e "$tmp/never" ] && fail "$bad: something was written"
        expect 3 score --router "$data/$bad.pth" --hidden "$data/golden_x_f32_64x64.bin" -o "$tmp/y"
    done
    head -c 1000 "$data/golden_x_f32_64x64.bin" >"$tmp/cut.f32"
    expect 3 score --router "$data/router_zip.pth" --hidden "$tmp/cut.f32" -o "$tmp/half"
    [ -e "$tmp/half" ] && fail "score: some rows of a file that is cut were written"
else
    skipped="no PyTorch files in $data (set MIZZLE_TESTDATA)"
fi

questions=${ROUTER_QUESTIONS:-60} # fewer for slow builds
if [ -f weights/milli/edge-0.5.gguf ]; then
    for threads in 1 2; do
        ${RUN:-} "$mizzle" router train --questions "$questions" -t $threads \
            -o "$tmp/r$threads.safetensors" >"$tmp/table" 2>"$tmp/err" || fail "train: $(cat "$tmp/err")"
    done
    cmp -s "$tmp/r1.safetensors" "$tmp/r2.safetensors" || fail "train: threads change the bits"
    # It is what collect and train do one after the other, so both heads can share one collection.
    "$mizzle" router collect --labels divergent --kv f32 --questions "$questions" -o "$tmp/samples" -q >"$tmp/log" 2>&1 ||
        fail "collect: $(cat "$tmp/log")"
    "$mizzle" router train --samples "$tmp/samples" -q -o "$tmp/two.safetensors" >"$tmp/log" 2>&1 ||
        fail "train --samples: $(cat "$tmp/log")"
    cmp -s "$tmp/r1.safetensors" "$tmp/two.safetensors" || fail "collect and train give other bits"
    for word in threshold routed "held-out AUC" "errors caught" "written to"; do
        grep -q "^$word" "$tmp/table" || fail "train: no line '$word'"
    done
    awk '/^routed/ { ok = $2 <= 5.5 } END { exit !ok }' "$tmp/table" || fail "train: routes too much"
else
    skipped="${skipped:+$skipped; }no demo pair in weights/milli"
fi
if [ "$skipped" ]; then
    echo "SKIP: $skipped"
    exit 77
fi
