"""import_router.py - turn a router of CITER, R2R or llama-route into one of Mizzle, and back.

Usage: import_router.py IN OUT.safetensors [bf16 | q8_0]
       import_router.py IN.safetensors OUT.rmlp

IN is CITER's .pth or R2R's .pt (both need PyTorch, and no code of theirs runs), llama-route's RMLP
(router/README.md), or safetensors. bf16 and q8_0 store R2R's matrices in fewer bytes.
"""

import json
import sys
from pathlib import Path

import numpy as np

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<i2", "I8": "|i1",
         "U8": "|u1", "I32": "<i4", "U32": "<u4"}
NAMES = {np.dtype(text): name for name, text in TYPES.items()}
CLASSES = ["HiddenStatesTokenLMHeadLogitsClassifier", "HiddenStatesTokenLMHeadClassifier",
           "HiddenStatesLogitsClassifier", "HiddenStatesClassifier", "LogitsClassifier"]


def load(path):
    """Return the tensors of a PyTorch file, BF16 as its bits, and the dict around them or {}."""
    try:
        import torch
        root = inner = torch.load(path, map_location="cpu", weights_only=True)
    except ImportError:
        sys.exit(f"{path}: expected PyTorch in {sys.executable}, found none")
    except Exception:  # torch has no class for what a damaged file makes it raise
        sys.exit(f"{path}: expected a state_dict that torch.load(weights_only=True) reads, found "
                 "none; save a whole module as torch.save(model.state_dict(), FILE)")
    for name in ["state_dict", "model_state_dict", "model"] * 4:
        if isinstance(inner, dict) and isinstance(inner.get(name), dict):
            inner = inner[name]
    tensors = {str(name).removeprefix("module."): t.contiguous() for name, t in dict(inner).items()
               if isinstance(t, torch.Tensor) and t.is_floating_point()}
    return {name: (t.view(torch.int16) if t.dtype == torch.bfloat16 else t).numpy()
            for name, t in tensors.items()}, {} if inner is root else root


def network(*layers):
    return {f"router.{k}": x.astype("<f4") for k, x in zip(("w1", "b1", "w2", "b2"), layers)}


def fold(path, tensors):
    """Return CITER's layers as two: computed in double, in their order, and rounded once."""
    def take(name, *shape):
        x = tensors.get(name, np.zeros(()))
        if x.ndim != len(shape) or any(n and n != f for n, f in zip(shape, x.shape)):
            sys.exit(f"{path}: tensor {name}: expected {shape} (0: any), found {x.shape or 'none'}")
        return ((x.astype("<u4") << 16).view("<f4") if x.dtype == "<i2" else x).astype("<f8")

    w0 = take("mlp.0.weight", 0, 0)
    b0, gamma, beta, mean, var = (take("mlp." + name, len(w0)) for name in (
        "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var"))
    w4 = take("mlp.4.weight", 0, len(w0))
    b4, w6 = take("mlp.4.bias", len(w4)), take("linear.weight", 1, len(w4))
    if not (var >= 0).all():
        sys.exit(f"{path}: tensor mlp.1.running_var: expected no negative value, found {var.min()}")
    s = gamma / np.sqrt(var + 1e-5)
    w2, b2 = sum(w6[0][:, None] * w4), sum(w6[0] * b4, take("linear.bias", 1))
    return network(s[:, None] * w0, s * (b0 - mean) + beta, w2[None], b2)


def about(path, tensors, root):
    """Return R2R's metadata. Layer norms prove a softmax of the logits, which alone have none."""
    args, common = root.get("init_args", {}), root.get("common_args", {})
    kind, said = root.get("model_type"), args.get("normalize_input")
    if kind not in [None, *CLASSES]:
        sys.exit(f"{path}: model_type: expected one of {', '.join(CLASSES)}, found {kind}")
    norms = "layer_norm.weight" in tensors or "layer_norm_hidden_states.weight" in tensors
    alone = not {"hidden_states_projection.weight", "combined_projection.weight"} & set(tensors)
    softmax = bool(said) if alone else norms
    if bool(said) != softmax if "normalize_input" in args else alone and not kind:
        want = "True or False" if alone else f"{norms} with{'' if norms else 'out'} layer norms"
        sys.exit(f"{path}: init_args.normalize_input: expected {want}, found {said}")
    meta = {"high": "critical"} | ({"softmax": "1"} if softmax else {})
    if "threshold" in common:  # a value as high or higher goes to the cloud
        t = common["threshold"]
        if not isinstance(t, (int, float)) or not 0 <= t <= 1:
            sys.exit(f"{path}: common_args.threshold: expected a number of 0 to 1, found {t}")
        meta["threshold"] = f"{min(np.nextafter(np.float32(1 - t), np.float32(2)), 1):.9g}"
    return meta


def read(path):
    """Return tensors and metadata of a file of any form."""
    data = Path(path).read_bytes()
    if data[:4] == b"RMLP":
        version, dim, n = np.frombuffer(data[:16].ljust(16, b"\0"), "<i4")[1:].tolist()
        if version != 1 or min(dim, n) < 1 or len(data) != 16 + 4 * (n * (dim + 2) + 1):
            sys.exit(f"{path}: expected RMLP of version 1, found version {version}, n_embd {dim}, "
                     f"n_hidden {n} and {len(data)} bytes")
        w1, b1, w2, b2 = np.split(np.frombuffer(data[16:], "<f4"), np.cumsum([n * dim, n, n]))
        return network(w1.reshape(n, dim), b1, w2[None], b2), {"tap": "final", "high": "critical"}
    if data[8:9] == b"{":
        size = 8 + int.from_bytes(data[:8], "little")
        head = json.loads(data[8:size])
        meta = head.pop("__metadata__", {})
        return {name: np.frombuffer(data[size:][slice(*t["data_offsets"])], TYPES[t["dtype"]])
                .reshape(t["shape"]) for name, t in head.items()}, meta
    tensors, root = load(path)
    r2r = "backbone.input_projection.weight" in tensors
    return (tensors, about(path, tensors, root)) if r2r else (fold(path, tensors), {"tap": "final"})


def narrow(name, x, kind):
    """Return a matrix of F32 as BF16, or as I8 and a scale for each 32 values, if it can be."""
    if x.ndim != 2 or x.dtype != "<f4" or kind == "q8_0" and (len(x) == 1 or x.shape[1] % 32):
        return {name: x}
    if kind == "bf16":
        return {name: (x.view("<u4") + 0x7FFF + (x.view("<u4") >> 16 & 1) >> 16).astype("<i2")}
    groups = x.reshape(len(x), -1, 32)
    d = np.abs(groups).max(2, keepdims=True) / np.float32(127)
    v = groups * np.divide(1, d, where=d != 0, out=np.zeros_like(d))
    v = np.trunc(v) + np.sign(v) * (np.abs(v - np.trunc(v)) >= 0.5)  # halves away from zero
    return {name: v.astype("|i1").reshape(x.shape), name + "_scale": d[:, :, 0].astype("<f2")}


def write(path, tensors, meta):
    head, at = {"__metadata__": meta}, 0
    for name, x in tensors.items():
        begin, at = at, at + x.nbytes
        head[name] = {"dtype": NAMES[x.dtype], "shape": x.shape, "data_offsets": [begin, at]}
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    parts = [len(text).to_bytes(8, "little"), text, *tensors.values()]
    if path.endswith(".rmlp"):
        w1, b1, w2, b2 = (tensors["router." + name] for name in ("w1", "b1", "w2", "b2"))
        if len(tensors) > 4 or len(w2) > 1 or meta.get("tap", "final") != "final":
            sys.exit(f"{path}: expected one network of head mlp that reads the final state alone")
        sign = np.float32(1 if meta.get("high") == "critical" else -1)
        parts = [b"RMLP", np.array([1, *w1.shape[::-1]], "<i4"), w1, b1, sign * w2, sign * b2]
    Path(path + ".new").write_bytes(b"".join(map(bytes, parts)))
    Path(path + ".new").replace(path)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or not sys.argv[2].endswith((".safetensors", ".rmlp")) or \
            sys.argv[3:] not in ([], ["bf16"], ["q8_0"]):
        sys.exit(__doc__)
    try:
        tensors, meta = read(sys.argv[1])
        for name in list(tensors) if sys.argv[3:] else []:
            tensors |= narrow(name, tensors.pop(name), sys.argv[3])
        write(sys.argv[2], tensors, meta)
    except OSError as e:
        sys.exit(f"{e.filename}: {e.strerror}")
    except (KeyError, TypeError, ValueError) as e:
        sys.exit(f"{sys.argv[1]}: expected a router, found {e!r}")
