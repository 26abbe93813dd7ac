#!/bin/sh
# tools/lab/import_router.py: llama-route's form there and back; where PyTorch is, CITER's and R2R's
# files, against PyTorch's and R2R's own numbers, and what it refuses.
. tests/support/shell.sh
python=${PYTHON:-/usr/bin/python3}

imports() { # STATUS ARGS...: a refusal is one line and writes nothing
    status=0 expected=$1
    shift
    OPENBLAS_NUM_THREADS=1 "$python" -B tools/lab/import_router.py "$@" >"$dir/out" 2>"$dir/err" || status=$?
    [ $status -eq "$expected" ] && [ ! -s "$dir/out" ] || fail "$*: status $status: $(cat "$dir/err")"
    [ $status -eq 0 ] || [ ! -e "$dir/never.safetensors" ] || fail "$*: something was written"
}

"$python" -c 'import numpy' 2>/dev/null || skip "no numpy for $python"

# Two inputs, one unit: relu(1 - 2 x0 + 4 x1), times 8, less 1.
floats() { "$python" -c 'import struct, sys; sys.stdout.buffer.write(struct.pack(
    "<%df" % (len(sys.argv) - 1), *map(float, sys.argv[1:])))' "$@"; }
{ printf 'RMLP\001\0\0\0\002\0\0\0\001\0\0\0' && floats -2 4 1 8 -1; } >"$dir/one.rmlp"
imports 0 "$dir/one.rmlp" "$dir/r.safetensors"
imports 0 "$dir/r.safetensors" "$dir/back.rmlp"
same "$dir/one.rmlp" "$dir/back.rmlp"
floats 0 0 0.5 0.25 1 0 >"$dir/x.f32" # 8 - 1, 8 - 1, -1
"$MIZZLE" router score --router "$dir/r.safetensors" --hidden "$dir/x.f32" --raw >"$dir/out" || fail "score"
awk '{ d = $1 - 1 / (1 + exp(NR < 3 ? -7 : 1)); if (d * d > 1e-13) exit 1 }
     END { exit NR != 3 }' "$dir/out" || fail "not sigmoid of 7, 7 and -1"
# A router whose high values are right tokens is turned around, and back when it is read.
ours=weights/milli/edge-0.5.router.safetensors
floats $(seq -2 0.03125 1.96875) >"$dir/x.f32"
imports 0 $ours "$dir/ours.rmlp"
imports 0 "$dir/ours.rmlp" "$dir/r.safetensors"
for file in $ours "$dir/r.safetensors"; do
    "$MIZZLE" router score --router $file --hidden "$dir/x.f32" || fail "score $file"
done | uniq -c | grep -q '^ *2 0\.[0-9]*$' || fail "$ours: another score after its way through RMLP"
head -c 30 "$dir/one.rmlp" >"$dir/short.rmlp"
imports 1 "$dir/short.rmlp" "$dir/never.safetensors"
says 'short.rmlp: expected RMLP of version 1, found version 1, n_embd 2, n_hidden 1 and 30 bytes'
imports 1 "$dir/none.rmlp" "$dir/never.safetensors"
says 'none.rmlp: No such file'
imports 1 "$dir/one.rmlp" "$dir/never.pt"
imports 1 weights/routers/0def79bf4c12df56.router.safetensors "$dir/never.rmlp"
says 'expected one network of head mlp that reads the final state alone'

[ -f "$data/pth/router_zip.pth" ] && [ -f "$data/r2r/hidden.pt" ] ||
    skip "no files of PyTorch in $data/pth and $data/r2r (set MIZZLE_TESTDATA)"
"$python" -c 'import torch' 2>/dev/null || skip "no PyTorch for $python: .pth and .pt were not tried"

# One process for all, since PyTorch starts slowly. What is said of a checkpoint is the third part.
cat >"$dir/all.py" <<'PY'
import os, runpy, sys, torch
data, dir = sys.argv[1:]

def run(path, out, *kind):
    sys.argv = ["import_router.py", path, f"{dir}/{out}", *kind]
    try:
        runpy.run_path("tools/lab/import_router.py", run_name="__main__")
        said = ""
    except SystemExit as e:
        said = str(e)
        assert not os.path.exists(sys.argv[2]) and not os.path.exists(sys.argv[2] + ".new"), path
    return said

for kind in ("zip", "legacy", "checkpoint", "dataparallel", "half", "bf16"):
    assert not run(f"{data}/pth/router_{kind}.pth", kind + ".safetensors")
for bad in ("evil_print", "router_fullmodule", "bad_central_offset", "bad_empty", "bad_pickle_byte",
            "bad_truncated_10", "bad_truncated_half"):
    said = run(f"{data}/pth/{bad}.pth", "never.safetensors")
    assert said.startswith(f"{data}/pth/{bad}.pth: expected a state_dict that torch.load(") and \
        said.endswith("save a whole module as torch.save(model.state_dict(), FILE)"), said
def rows(file, size):
    parts = open(f"{data}/r2r/{file}", "rb").read()
    return [parts[i:i + size] for i in range(0, len(parts), size)]

for name in ("hidden", "logits", "token_logits"):
    parts = [rows(name + ".hidden.f32", 256)] # 64 hidden states, 100 logits, 64 of the token
    if name != "hidden":
        parts.append(rows(name + ".logits.f32", 400))
    if name == "token_logits":
        all = rows(name + ".embedding.f32", 256)
        parts.append(all[int.from_bytes(i, "little")] for i in rows(name + ".token.u32", 4))
    open(f"{dir}/{name}.f32", "wb").write(b"".join(b"".join(row) for row in zip(*parts)))
    assert not run(f"{data}/r2r/{name}.pt", name + ".safetensors")
    for kind in ("bf16", "q8_0"):
        assert not run(f"{data}/r2r/{name}.pt", f"{name}.{kind}.safetensors", kind)

def alone(state):
    for name in [n for n in state if n.startswith("combined_projection")]:
        del state[name]

def norm(state):
    state["layer_norm_hidden_states.weight"] = torch.ones(64)

KEEP, DROP = "0.630000055", object() # what a threshold of 0.37 becomes; without an entry
for change, args, common, kind, want in (
        (norm, {}, {}, None, f'"softmax":"1","threshold":"{KEEP}"'),
        (alone, {"normalize_input": True}, {}, None, f'"softmax":"1","threshold":"{KEEP}"'),
        (alone, {}, {}, None, f'"threshold":"{KEEP}"'),
        (None, {}, {"threshold": 0.0}, None, '"threshold":"1"'),
        (None, {}, {"threshold": 1}, None, '"threshold":"1.40129846e-45"'),
        (None, {}, {}, "Other", "model_type: expected one of HiddenStatesTokenLMHeadLogitsClassifier, "),
        (None, {"normalize_input": True}, {}, None, "expected False without layer norms, found True"),
        (norm, {"normalize_input": False}, {}, None, "expected True with layer norms, found False"),
        (alone, {}, {}, DROP, "init_args.normalize_input: expected True or False, found None"),
        (None, {}, {"threshold": 2}, None, "common_args.threshold: expected a number of 0 to 1, found 2"),
        (None, {}, {"threshold": "x"}, None, "common_args.threshold: expected a number of 0 to 1, found x")):
    root = torch.load(f"{data}/r2r/logits.pt", weights_only=True)
    if change:
        change(root["state_dict"])
    root["init_args"] |= args
    root["common_args"] |= common
    if kind is DROP:
        del root["model_type"]
    elif kind:
        root["model_type"] = kind
    torch.save(root, f"{dir}/changed.pt")
    said = run(f"{dir}/changed.pt", "changed.safetensors")
    if not said:
        said = open(f"{dir}/changed.safetensors", "rb").read(200)[8:].decode().split("}")[0]
        want = '{"__metadata__":{"high":"critical",' + want
        os.remove(f"{dir}/changed.safetensors")
    assert want in said, (want, said)
PY
"$python" -B "$dir/all.py" "$data" "$dir" 2>"$dir/err" || fail all.py

score() { # NAME ARGS...: write 64 scores to y.f32
    router=$dir/$1.safetensors
    shift
    "$MIZZLE" router score --router "$router" -o "$dir/y.f32" "$@" >"$dir/out" 2>&1 ||
        fail "score $router: $(cat "$dir/out")"
}

# near FILE FROM TO: the largest difference of y.f32 from a file is in this range.
near() {
    od -An -v -tf4 -w4 "$dir/y.f32" >"$dir/a"
    od -An -v -tf4 -w4 "$1" >"$dir/b"
    paste "$dir/a" "$dir/b" | awk -v from="$2" -v to="$3" '
        { d = $1 - $2; if (d < 0) d = -d; if (d > m) m = d }
        END { if (NR != 64 || m < from || m >= to) { print NR " rows, off by " m; exit 1 } }' >"$dir/off" ||
        fail "$1: $(cat "$dir/off")"
}

for kind in zip legacy checkpoint dataparallel half bf16; do
    case $kind in
    half) within=0.001 ;;
    bf16) within=0.005 ;;
    *) within=0.00001 ;;
    esac
    score $kind --hidden "$data/pth/golden_x_f32_64x64.bin"
    near "$data/pth/golden_y_f32_64.bin" 0 $within
done
r2r=$data/r2r
for name in hidden logits token_logits; do
    set -- --raw --hidden "$dir/$name.f32"
    score $name "$@"
    near "$r2r/$name.score.f32" 0 0.00001
    for type in bf16 q8_0; do
        score $name.$type "$@"
        near "$r2r/$name.score.f32" 0.00001 0.05
    done
done
