"""gguf_oracle.py ORACLE_DIR MODEL.gguf logits IDS LOGITS.f32
gguf_oracle.py ORACLE_DIR MODEL.gguf ppl IDS
Compare the engine's logits with the float64 reference on the dequantised weights of a GGUF file of
Qwen2, or print the reference's perplexity of a text of ids, all of it in one window.

The file is read here in plain numpy, from the format's description and without the project's own
reader. The error is that of the hidden states' rounding to int8 in quantised products; it is given
as the root of the mean square difference over the root of the mean square logit, both without
their mean over a row, which the softmax ignores."""
import math
import struct
import sys
import numpy as np

sys.path.insert(0, sys.argv[1])
import qwen2_np

SCALARS = {0: "B", 1: "b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "?", 10: "<Q", 11: "<q", 12: "<d"}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def scalar(self, form):
        value = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def text(self):
        n = self.scalar("<Q")
        self.at += n
        return bytes(self.data[self.at - n:self.at]).decode("utf-8", "replace")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind != 9:
            return self.scalar(SCALARS[kind])
        of, n = self.scalar("<I"), self.scalar("<Q")
        return [self.value(of) for _ in range(n)]


def halves(blocks, at):
    """The f16 at byte `at` of each block, as a column."""
    return blocks[:, at:at + 2].copy().view("<f2").astype(np.float64)


def f32(raw):
    return raw.view("<f4").astype(np.float64)


def q8_0(raw):
    b = raw.reshape(-1, 34)
    return halves(b, 0) * b[:, 2:].view("i1")


def q5_0(raw):
    b = raw.reshape(-1, 22)
    high = (b[:, 2:6].copy().view("<u4") >> np.arange(32, dtype="u4")) & 1
    low = np.concatenate([b[:, 6:] & 15, b[:, 6:] >> 4], 1)
    return halves(b, 0) * ((low | high << 4).astype(np.float64) - 16)


def q4_k(raw):
    b = raw.reshape(-1, 144)
    s = b[:, 4:16]
    scale = np.concatenate([s[:, :4] & 63, s[:, 8:] & 15 | s[:, :4] >> 6 << 4], 1)
    least = np.concatenate([s[:, 4:8] & 63, s[:, 8:] >> 4 | s[:, 4:8] >> 6 << 4], 1)
    q = b[:, 16:].reshape(-1, 4, 32)
    q = np.stack([q & 15, q >> 4], 2).reshape(-1, 8, 32)
    return (halves(b, 0) * scale)[:, :, None] * q - (halves(b, 2) * least)[:, :, None]


def q6_k(raw):
    b = raw.reshape(-1, 210)
    low, high = b[:, :128].reshape(-1, 2, 2, 32), b[:, 128:192].reshape(-1, 2, 1, 32)
    low = np.stack([low & 15, low >> 4], 2).reshape(-1, 2, 4, 32)
    q = (low | (high >> np.arange(0, 8, 2, dtype="u1")[:, None] & 3) << 4).astype(np.float64) - 32
    scale = halves(b, 208) * b[:, 192:208].view("i1")
    return q.reshape(-1, 16, 16) * scale[:, :, None]


TYPES = {0: (f32, 1, 4), 6: (q5_0, 32, 22), 8: (q8_0, 32, 34), 12: (q4_k, 256, 144), 14: (q6_k, 256, 210)}
NAMES = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
         "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj", "token_embd": "embed_tokens", "output_norm": "norm"}


class Weights(dict):
    """Tensors by their Hugging Face names, dequantised when they are read."""

    def __getitem__(self, name):
        raw, kind, shape = super().__getitem__(name)
        return TYPES[kind][0](raw).reshape(shape)


def load(path):
    r = Reader(np.memmap(path, "u1", "r"))
    magic, version, tensors, keys = (r.scalar(f) for f in ("<I", "<I", "<Q", "<Q"))
    assert magic == 0x46554747 and version == 3, "expected GGUF version 3"
    meta = {}
    for _ in range(keys):
        name = r.text()
        meta[name] = r.value(r.scalar("<I"))
    heads = []
    for _ in range(tensors):
        name = r.text()
        shape = [r.scalar("<Q") for _ in range(r.scalar("<I"))][::-1]
        heads.append((name, shape, r.scalar("<I"), r.scalar("<Q")))
    align = meta.get("general.alignment", 32)
    base = (r.at + align - 1) // align * align
    weights = Weights()
    for name, shape, kind, at in heads:
        _, of, size = TYPES[kind]
        raw = r.data[base + at:base + at + math.prod(shape) // of * size]
        part = name.split(".")
        if part[0] == "blk":
            to = f"model.layers.{part[1]}.{NAMES[part[2]]}.{part[3]}"
        else:
            to = "lm_head.weight" if part[0] == "output" else f"model.{NAMES[part[0]]}.{part[1]}"
        weights[to] = (raw, kind, shape)
    q = lambda key: meta["qwen2." + key]
    config = {"hidden_size": q("embedding_length"), "num_hidden_layers": q("block_count"),
              "num_attention_heads": q("attention.head_count"),
              "num_key_value_heads": q("attention.head_count_kv"), "rope_theta": q("rope.freq_base"),
              "rms_norm_eps": q("attention.layer_norm_rms_epsilon"),
              "tie_word_embeddings": "lm_head.weight" not in weights}
    return config, weights


def perplexity(logits, ids):
    z = logits[:-1] - logits[:-1].max(-1, keepdims=True)
    return math.exp(np.mean(np.log(np.exp(z).sum(-1)) - z[np.arange(len(ids) - 1), ids[1:]]))


def main():
    config, weights = load(sys.argv[2])
    ids = [int(i) for i in sys.argv[4].split(",")]
    logits = qwen2_np.forward(config, weights, ids)[0]
    if sys.argv[3] == "ppl":
        print("%.6f" % perplexity(logits, ids))
        return
    got = np.fromfile(sys.argv[5], "<f4").reshape(logits.shape).astype(np.float64)
    got -= got.mean(-1, keepdims=True)
    logits -= logits.mean(-1, keepdims=True)
    error = math.sqrt(np.mean((got - logits) ** 2) / np.mean(logits ** 2))
    same = np.mean(got.argmax(-1) == logits.argmax(-1))
    print("relative error %.6f, the same token first %.4f" % (error, same))


main()
