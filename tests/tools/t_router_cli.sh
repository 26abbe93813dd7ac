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
routes 3 score --router /tmp
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

python=${PYTHON:-/usr/bin/python3}
if "$python" -c '' 2>/dev/null; then
    # Routers of R2R's form and what they read, from a seed: 64 tokens, 100 logits, 300 ids.
    r2r=$dir/r2r
    mkdir "$r2r"
    "$python" - "$r2r" <<'END' || fail "routers from a seed"
import json, random, struct, sys
rng = random.Random(5)

def numbers(name, n, wide=1.0):
    v = [rng.uniform(-wide, wide) for _ in range(n)]
    open(f"{sys.argv[1]}/{name}.f32", "wb").write(struct.pack(f"<{n}f", *v))

def router(name, front):
    back = {"input_projection": (48, 48), "blocks.0.layer_norm": (48,), "blocks.0.mlp.0": (192, 48),
            "blocks.0.mlp.3": (32, 192), "blocks.0.dim_change": (32, 48), "output_layer.0": (32,),
            "output_layer.1": (1, 32)}
    head, data = {"__metadata__": {"high": "critical"}}, b""
    for key, shape in [*front.items(), *(("backbone." + k, s) for k, s in back.items())]:
        for last, dims in ("weight", shape), ("bias", shape[:1]):
            n = dims[0] * (dims[1] if len(dims) > 1 else 1)
            head[f"{key}.{last}"] = {"dtype": "F32", "shape": dims,
                                     "data_offsets": [len(data), len(data) + 4 * n]}
            data += struct.pack(f"<{n}f", *(rng.uniform(-0.3, 0.3) for _ in range(n)))
    text = json.dumps(head).encode()
    open(f"{sys.argv[1]}/{name}.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)

router("hidden", {"hidden_states_projection": (48, 64)})
router("logits", {"logits_projection": (64, 100), "combined_projection": (48, 128)})
router("both", {"logits_projection": (64, 100), "combined_projection": (48, 192)})
numbers("hidden", 64 * 64)
numbers("embedding", 300 * 64, 4)
rows = [sorted((rng.uniform(-4, 4) for _ in range(100)), reverse=True) for _ in range(64)]
open(sys.argv[1] + "/logits.f32", "wb").write(b"".join(struct.pack("<100f", *row) for row in rows))
open(sys.argv[1] + "/tokens.u32", "wb").write(struct.pack("<64I", *(rng.randrange(300) for _ in rows)))
END
    score_r2r() { # STATUS NAME OPTIONS...
        status=$1 router=$r2r/$2.safetensors
        shift 2
        routes "$status" score --router "$router" --hidden "$r2r/hidden.f32" -o "$dir/y.f32" "$@"
    }
    set -- --logits "$r2r/logits.f32" --ids "$r2r/tokens.u32"
    score_r2r 2 both "$@"                              # no embedding
    score_r2r 2 hidden --logits "$r2r/logits.f32"      # which is not read
    score_r2r 3 both "$@" --embedding /dev/null
    grep -q '/dev/null: expected rows of 256 bytes, found 0' "$dir/err" || fail "$(cat "$dir/err")"
    head -c 2560 "$r2r/embedding.f32" >"$dir/few"
    score_r2r 3 both "$@" --embedding "$dir/few" # ids beyond it
    says 'tokens.u32: expected ids below 10, found '
    # Fewer rows in one file: no score is printed.
    head -c $((32 * 256)) "$r2r/hidden.f32" >"$dir/few"
    routes 3 score --router "$r2r/both.safetensors" --hidden "$dir/few" "$@" --embedding "$r2r/embedding.f32"
    says 'logits.f32: expected 32 rows, as in .*few, found 64'
    head -c 255 "$r2r/tokens.u32" >"$dir/tokens"
    score_r2r 3 both --logits "$r2r/logits.f32" --ids "$dir/tokens" --embedding "$r2r/embedding.f32"
    [ "$(od -An -tf4 "$dir/y.f32" | tr -d ' ')" = 0.5 ] || fail "scores of rows that are not whole were written"
    # Rows of all logits, 300 here: the largest 100 of each are read, as if they had been picked.
    all=$r2r/embedding.f32
    od -An -v -to1 -w4 "$all" >"$dir/b"
    od -An -v -tf4 -w4 "$all" | paste - "$dir/b" | awk '{ print int((NR - 1) / 300) "\t" $0 }' |
        sort -s -t "$(printf '\t')" -k 1,1n -k 2,2gr | awk 'seen[$1]++ < 100' | cut -f 3 |
        sed 's/ *\([0-7][0-7]*\)/\\\1/g' | while read -r bytes; do
        printf "$bytes"
    done >"$dir/largest.f32"
    score_r2r 0 logits --logits "$all"
    mv "$dir/y.f32" "$dir/of_all"
    score_r2r 0 logits --logits "$dir/largest.f32"
    same "$dir/of_all" "$dir/y.f32"
    score_r2r 0 logits --logits "$r2r/logits.f32"
    cmp -s "$dir/of_all" "$dir/y.f32" && fail "logits are not read"
    head -c 25600 "$all" >"$dir/unsorted.f32"
    score_r2r 3 logits --logits "$dir/unsorted.f32"
    says 'expected rows of 100 logits in descending order, found '
    head -c 25604 "$all" >"$dir/unsorted.f32"
    score_r2r 3 logits --logits "$dir/unsorted.f32"
    says 'expected 64 rows of 100 logits or more, found 25604 bytes'
    score_r2r 0 both "$@" --embedding "$all"
    mv "$dir/y.f32" "$dir/of_all"
    { tail -c +257 "$all" && head -c 256 "$all"; } >"$dir/shifted"
    score_r2r 0 both "$@" --embedding "$dir/shifted"
    cmp -s "$dir/of_all" "$dir/y.f32" && fail "the embedding is not read"
else
    skip "no $python"
fi

exit 0
