#!/bin/sh
# mizzle router on the command line: import and score against PyTorch's numbers, refusals, training.
. tests/support/shell.sh

# routes STATUS ARGS...: run mizzle router, which must end with this status and print nothing to
# stdout; if it fails, it prints one line to stderr.
routes() {
    ends "$@"
    [ ! -s "$dir/out" ] || fail "router $*: wrote to stdout"
}
subcommand=router

# imports ARGS...: the same of an import, which says what it has written.
imports() {
    ends 0 import "$@"
    grep -q '^reads           [0-9]' "$dir/out" && grep -q '^written to      ' "$dir/out" || fail "$(cat "$dir/out")"
}

# difference FILE FILE: print the largest difference between two raw f32 files.
difference() {
    od -An -v -tf4 -w4 "$1" >"$dir/a"
    od -An -v -tf4 -w4 "$2" >"$dir/b"
    paste "$dir/a" "$dir/b" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > m) m = d }
                                   END { if (NR != 64) m = 9; print m }'
}

routes 2
routes 2 polish
routes 2 import one
routes 2 score -o "$dir/y"
routes 2 score --router r --kv f16 # which a router does not read
routes 3 score --router /tmp
says 'expected a router: safetensors, .pt, .pth or .rmlp'
routes 2 train
routes 2 train -o "$dir/r" --tap middle
routes 2 train -o "$dir/r" --share 2
routes 2 train -o "$dir/r" --questions 0

# llama-route's form: two inputs, one unit, all numbers zero.
printf 'RMLP\001\0\0\0\002\0\0\0\001\0\0\0%s' "$(printf '%20s' '')" | tr ' ' '\0' >"$dir/zero.rmlp"
head -c 8 /dev/zero >"$dir/x.f32"
imports "$dir/zero.rmlp" "$dir/r.safetensors"
imports "$dir/r.safetensors" "$dir/back.rmlp"
same "$dir/zero.rmlp" "$dir/back.rmlp"
routes 0 score --router "$dir/zero.rmlp" --hidden "$dir/x.f32" -o "$dir/y.f32"
[ "$(od -An -tf4 "$dir/y.f32" | tr -d ' ')" = 0.5 ] || fail "a router of zeros: $(od -An -tf4 "$dir/y.f32")"
expect 0 score --router "$dir/zero.rmlp" --hidden "$dir/x.f32"
[ "$(cat "$dir/out")" = 0.5 ] || fail "a score that is printed: $(cat "$dir/out")"
routes 3 score --router "$dir/zero.rmlp" --hidden /dev/null -o "$dir/never"
routes 3 score --router "$dir/x.f32" --hidden "$dir/x.f32"
says 'expected a router: safetensors, .pt, .pth or .rmlp'
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n' >"$dir/r.pt"
routes 3 score --router "$dir/r.pt" --hidden "$dir/x.f32"
says 'r.pt: expected the file itself, found a Git LFS pointer'
[ ! -e "$dir/never" ] || fail "score: no rows, but a file"
routes 2 calibrate --router "$dir/zero.rmlp" --target-routed 0.05
grep -q 'a .rmlp file cannot be replaced: expected -o' "$dir/err" || fail "$(cat "$dir/err")"
ln "$dir/zero.rmlp" "$dir/other.rmlp"
for to in "$dir/x.f32" "$dir/zero.rmlp" "$dir/other.rmlp"; do
    routes 2 score --router "$dir/zero.rmlp" --hidden "$dir/x.f32" -o "$to"
    says "$to: input and output are the same file"
done
routes 2 import "$dir/zero.rmlp" "$dir/other.rmlp"
routes 2 import "$dir/zero.rmlp" "$dir/never.pt"
says 'never.pt: expected OUT.safetensors or OUT.rmlp'
head -c 30 "$dir/zero.rmlp" >"$dir/short.rmlp"
routes 3 import "$dir/short.rmlp" "$dir/never"

skipped=
if [ -f "$data/pth/router_zip.pth" ]; then
    for kind in zip legacy checkpoint dataparallel half bf16; do
        case $kind in
        half) within=0.001 ;;
        bf16) within=0.005 ;;
        *) within=0.00001 ;;
        esac
        imports "$data/pth/router_$kind.pth" "$dir/r.safetensors"
        routes 0 score --router "$dir/r.safetensors" --hidden "$data/pth/golden_x_f32_64x64.bin" -o "$dir/y.f32"
        d=$(difference "$dir/y.f32" "$data/pth/golden_y_f32_64.bin")
        awk "BEGIN { exit !($d < $within) }" || fail "$kind: off by $d"
        routes 0 score --router "$data/pth/router_$kind.pth" --hidden "$data/pth/golden_x_f32_64x64.bin" -o "$dir/direct.f32"
        cmp -s "$dir/y.f32" "$dir/direct.f32" || fail "$kind: imported and direct differ"
        routes 0 score --isa scalar --router "$dir/r.safetensors" --hidden "$data/pth/golden_x_f32_64x64.bin" -o "$dir/scalar.f32"
        cmp -s "$dir/y.f32" "$dir/scalar.f32" || fail "$kind: instruction sets differ"
    done
    for bad in evil_print router_fullmodule bad_central_offset bad_empty bad_pickle_byte \
        bad_truncated_10 bad_truncated_half; do
        routes 3 import "$data/pth/$bad.pth" "$dir/never"
        [ -e "$dir/never" ] && fail "$bad: something was written"
        routes 3 score --router "$data/pth/$bad.pth" --hidden "$data/pth/golden_x_f32_64x64.bin" -o "$dir/y"
    done
    head -c 1000 "$data/pth/golden_x_f32_64x64.bin" >"$dir/cut.f32"
    routes 3 score --router "$data/pth/router_zip.pth" --hidden "$dir/cut.f32" -o "$dir/half"
    [ -e "$dir/half" ] && fail "score: some rows of a file that is cut were written"
else
    skipped="no PyTorch files in $data/pth (set MIZZLE_TESTDATA)"
fi

if [ -f "$data/r2r/hidden.pt" ]; then
    r2r=$data/r2r
    score_r2r() { # STATUS NAME ROUTER OPTIONS...
        status=$1 name=$2 router=$3
        shift 3
        routes "$status" score --router "$router" --hidden "$r2r/$name.hidden.f32" -o "$dir/y.f32" "$@"
    }
    set -- --logits "$r2r/token_logits.logits.f32" --tokens "$r2r/token_logits.token.u32"
    for name in hidden logits token_logits; do
        imports "$r2r/$name.pt" "$dir/r.safetensors"
        for router in "$r2r/$name.pt" "$dir/r.safetensors"; do
            case $name in
            hidden) score_r2r 0 $name "$router" --raw ;;
            logits) score_r2r 0 $name "$router" --raw --logits "$r2r/logits.logits.f32" ;;
            token_logits) score_r2r 0 $name "$router" --raw "$@" --embedding "$r2r/$name.embedding.f32" ;;
            esac
            d=$(difference "$dir/y.f32" "$r2r/$name.score.f32")
            awk "BEGIN { exit !($d < 0.00001) }" || fail "R2R's $name: off by $d"
        done
    done
    rm "$dir/y.f32"
    score_r2r 2 token_logits "$dir/r.safetensors" "$@"                         # no embedding
    score_r2r 2 hidden "$r2r/hidden.pt" --logits "$r2r/logits.logits.f32"      # which is not read
    score_r2r 3 hidden "$dir/r.safetensors" "$@" --embedding "$r2r/hidden.hidden.f32" # ids beyond it
    score_r2r 3 token_logits "$dir/r.safetensors" "$@" --embedding /dev/null
    grep -q '/dev/null: expected rows of 256 bytes, found 0' "$dir/err" || fail "$(cat "$dir/err")"
    # Fewer rows in one file: no score is printed.
    head -c $(($(wc -c <"$r2r/token_logits.hidden.f32") / 2)) "$r2r/token_logits.hidden.f32" >"$dir/few"
    routes 3 score --router "$dir/r.safetensors" --hidden "$dir/few" "$@" --embedding "$r2r/token_logits.embedding.f32"
    says 'logits.f32: expected 32 rows, as in .*few, found 64'
    head -c 255 "$r2r/token_logits.token.u32" >"$dir/tokens"
    score_r2r 3 token_logits "$dir/r.safetensors" --logits "$r2r/token_logits.logits.f32" --tokens "$dir/tokens" \
        --embedding "$r2r/token_logits.embedding.f32"
    [ ! -e "$dir/y.f32" ] || fail "scores of rows that are not whole were written"
    for type in bf16 q8_0; do
        imports --type $type "$r2r/hidden.pt" "$dir/r.safetensors"
        score_r2r 0 hidden "$dir/r.safetensors" --raw
        d=$(difference "$dir/y.f32" "$r2r/hidden.score.f32")
        awk "BEGIN { exit !($d > 0.0001 && $d < 0.05) }" || fail "$type: off by $d"
    done
    routes 2 import --type q4_0 "$r2r/hidden.pt" "$dir/r.safetensors"
    imports --type q8_0 "$dir/r.safetensors" "$dir/again.safetensors"
    routes 2 import --type bf16 "$dir/r.safetensors" "$dir/again.safetensors"
    # Rows of all logits, 300 here: the largest 100 of each are read, as if they had been picked.
    all=$r2r/token_logits.embedding.f32
    od -An -v -to1 -w4 "$all" >"$dir/b"
    od -An -v -tf4 -w4 "$all" | paste - "$dir/b" | awk '{ print int((NR - 1) / 300) "\t" $0 }' |
        sort -s -t "$(printf '\t')" -k 1,1n -k 2,2gr | awk 'seen[$1]++ < 100' | cut -f 3 |
        sed 's/ *\([0-7][0-7]*\)/\\\1/g' | while read -r bytes; do
        printf "$bytes"
    done >"$dir/largest.f32"
    score_r2r 0 logits "$r2r/logits.pt" --logits "$all"
    mv "$dir/y.f32" "$dir/of_all"
    score_r2r 0 logits "$r2r/logits.pt" --logits "$dir/largest.f32"
    same "$dir/of_all" "$dir/y.f32"
    head -c 25600 "$all" >"$dir/unsorted.f32"
    score_r2r 3 logits "$r2r/logits.pt" --logits "$dir/unsorted.f32"
    says 'expected rows of 100 logits in descending order, found '
    head -c 25604 "$all" >"$dir/unsorted.f32"
    score_r2r 3 logits "$r2r/logits.pt" --logits "$dir/unsorted.f32"
    says 'expected 64 rows of 100 logits or more, found 25604 bytes'
    edge=weights/milli/edge-0.1.gguf # whose hidden states are as long
    if [ -f $edge ]; then
        score_r2r 0 token_logits "$r2r/token_logits.pt" "$@" -m $edge
        score_r2r 3 token_logits "$r2r/token_logits.pt" "$@" -m weights/milli/edge-0.5.gguf
        says 'token_embd.weight: expected at least .100,64.'
        score_r2r 2 token_logits "$r2r/token_logits.pt" "$@" --embedding "$all" -m $edge
        score_r2r 2 hidden "$r2r/hidden.pt" -m $edge # of which it reads nothing
        score_r2r 3 logits "$r2r/logits.pt" --logits "$all" -m $edge
        says 'expected 64 rows of 100 logits or of all 1008, found 76800 bytes'
    fi
else
    skipped="${skipped:+$skipped; }no checkpoints of R2R in $data/r2r (set MIZZLE_TESTDATA)"
fi

questions=${ROUTER_QUESTIONS:-60} # fewer for slow builds
if [ -f weights/milli/edge-0.5.gguf ]; then
    # Without samples it is what collect and train do one after the other.
    routes_quietly() {
        "$MIZZLE" router "$@" -q >"$dir/log" 2>&1 || fail "$*: $(cat "$dir/log")"
    }
    routes_quietly train --questions "$questions" -o "$dir/one.safetensors"
    routes_quietly collect --labels divergent --kv f32 --questions "$questions" -o "$dir/samples"
    routes_quietly train --samples "$dir/samples" -o "$dir/two.safetensors"
    same "$dir/one.safetensors" "$dir/two.safetensors"
else
    skipped="${skipped:+$skipped; }no demo pair in weights/milli"
fi
[ -z "$skipped" ] || skip "$skipped"
