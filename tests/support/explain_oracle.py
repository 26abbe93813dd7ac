"""explain_oracle.py ORACLE_DIR vocabulary MODEL_DIR
    Give a random model a vocabulary of 256 bytes and two special tokens.
explain_oracle.py ORACLE_DIR check MODEL_DIR EXPLAIN.json LOGITS.f32
    Compute in float64 what `mizzle explain --json` shows of its positions, and compare: norms of
    the residual stream and of what is added to it, attention rows and their sum over the span, lens
    and top. LOGITS are those that `mizzle logits` writes for the ids of the positions.
The reference's file reader is used; the forward pass is written anew here, with all that it lets
nobody see."""
import json
import sys
import numpy as np

sys.path.insert(0, sys.argv[1])
import qwen2_np

USED = 258  # ids of the vocabulary that are in use
TOLERANCE = 1e-5


def write_vocabulary(folder):
    letters, following = {}, 256
    for byte in range(256):
        plain = 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or byte >= 0xAE
        letters[chr(byte if plain else following)] = byte
        following += not plain
    special = {
        "256": {"content": "<|im_end|>", "special": True},
        "257": {"content": "<|endoftext|>", "special": True},
    }
    about = {
        "added_tokens_decoder": special,
        "eos_token": "<|endoftext|>",
        "tokenizer_class": "Qwen2Tokenizer",
    }
    with open(folder + "/vocab.json", "w") as f:
        json.dump(letters, f)
    with open(folder + "/merges.txt", "w") as f:
        f.write("#version: 0.2\n")
    with open(folder + "/tokenizer_config.json", "w") as f:
        json.dump(about, f)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def silu(x):
    return x / (1 + np.exp(-x))


class Model:
    def __init__(self, folder):
        self.c, weights = qwen2_np.load(folder)
        self.w = {name: value.astype(np.float64) for name, value in weights.items()}

    def norm(self, x, name):
        mean = (x * x).mean(-1, keepdims=True)
        return x / np.sqrt(mean + self.c["rms_norm_eps"]) * self.w[name]

    def rotate(self, x):  # [tokens][heads][dim]
        n, _, dim = x.shape
        angle = np.outer(np.arange(n), self.c["rope_theta"] ** (-np.arange(0, dim, 2) / dim))
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        a, b = x[..., : dim // 2], x[..., dim // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def heads(self, x, layer, name, count):
        y = x @ self.w[f"{layer}.self_attn.{name}_proj.weight"].T
        y = (y + self.w.get(f"{layer}.self_attn.{name}_proj.bias", 0)).reshape(len(x), count, -1)
        weight = f"{layer}.self_attn.{name}_norm.weight"
        return self.norm(y, weight) if weight in self.w else y

    def lens(self, x):
        tied = self.c["tie_word_embeddings"]
        head = self.w["model.embed_tokens.weight" if tied else "lm_head.weight"]
        return softmax((self.norm(x, "model.norm.weight") @ head.T)[:, :USED])

    def layers(self, ids):
        """Yield, for each layer, the stream and what is added, attention [head][row][position],
        and the lens."""
        x = self.w["model.embed_tokens.weight"][ids]
        heads, kv = self.c["num_attention_heads"], self.c["num_key_value_heads"]
        unseen = np.triu(np.ones((len(ids), len(ids)), bool), 1)
        for number in range(self.c["num_hidden_layers"]):
            layer = f"model.layers.{number}"
            y = self.norm(x, layer + ".input_layernorm.weight")
            q = self.rotate(self.heads(y, layer, "q", heads))
            k = self.rotate(self.heads(y, layer, "k", kv)).repeat(heads // kv, 1)
            v = self.heads(y, layer, "v", kv).repeat(heads // kv, 1)
            scores = np.einsum("thd,shd->hts", q, k) / np.sqrt(q.shape[-1])
            looks = softmax(np.where(unseen, -np.inf, scores))
            out = np.einsum("hts,shd->thd", looks, v)
            attention = out.reshape(len(ids), -1) @ self.w[layer + ".self_attn.o_proj.weight"].T
            middle = x + attention
            y = self.norm(middle, layer + ".post_attention_layernorm.weight")
            gate = silu(y @ self.w[layer + ".mlp.gate_proj.weight"].T)
            up = y @ self.w[layer + ".mlp.up_proj.weight"].T
            mlp = (gate * up) @ self.w[layer + ".mlp.down_proj.weight"].T
            norms = dict(zip(("in", "attention", "middle", "mlp", "out"),
                             (np.linalg.norm(s, axis=-1)
                              for s in (x, attention, middle, mlp, middle + mlp))))
            x = middle + mlp
            yield norms, looks, self.lens(x)


class Differences:
    def __init__(self):
        self.worst = {}

    def add(self, what, got, want):
        self.worst[what] = max(self.worst.get(what, 0), abs(got - want))


def compare_guesses(d, what, guesses, p):
    """Each guess has its probability, and none that is left out is likelier."""
    for g in guesses:
        d.add(what, g["p"], p[g["id"]])
    listed = [p[g["id"]] for g in guesses]
    best = np.sort(p)[::-1][: len(guesses)]
    d.add(what, float(np.abs(np.array(listed) - best).max()), 0)


def compare_row(d, row, want, pos, whole):
    """A whole row has all weights of 0.1 % and more, any other the three largest."""
    assert len(row["weights"]) == len(row["at"])
    for p, weight in zip(row["at"], row["weights"]):
        d.add("attention", weight, want[p])
    d.add("sum of a row", sum(row["weights"]) + row["rest"], 1)
    left = np.delete(want[: pos + 1], row["at"])
    assert not whole or left.size == 0 or left.max() < 0.001 + TOLERANCE
    if not whole:
        three = np.sort(want[: pos + 1])[::-1][:3]
        d.add("attention", float(np.abs(want[row["at"]] - three).max()), 0)


def check(folder, path, logits):
    with open(path) as f:
        document = json.load(f)
    positions = document["positions"]
    ids = [t["id"] for t in document["tokens"]][: len(positions)]
    logits = np.fromfile(logits, "<f4").reshape(len(ids), -1)[:, :USED].astype(np.float64)
    model, d = Model(folder), Differences()
    whole = range(document["whole"]["layers"][0], document["whole"]["layers"][1] + 1)
    for number, (norms, looks, lens) in enumerate(model.layers(ids)):
        for pos, position in enumerate(positions):
            layer = position["layers"][number]
            for name, want in norms.items():
                d.add("norms", layer[name] / want[pos], 1)
            compare_guesses(d, "lens", layer["lens"], lens[pos])
            for head, row in enumerate(layer["heads"]):
                compare_row(d, row, looks[head][pos], pos, number in whole)
                d.add("span", row["span"], looks[head][pos][document["span"]["at"]].sum())
    text = "".join(t["piece"] for t in document["tokens"])
    named = text.index(document["span"]["text"])
    assert document["span"]["at"] == list(range(named, named + len(document["span"]["text"])))
    for pos, position in enumerate(positions):
        compare_guesses(d, "top", position["top"], lens[pos])
        compare_guesses(d, "logits", position["top"], softmax(logits[pos]))
        compare_guesses(d, "logits", position["layers"][-1]["lens"], softmax(logits[pos]))
    print(", ".join(f"{what} {value:.1g}" for what, value in d.worst.items()))
    limits = {"attention": 2e-5, "sum of a row": 1e-6, "logits": 1e-7}
    return all(value < limits.get(what, TOLERANCE) for what, value in d.worst.items())


if sys.argv[2] == "vocabulary":
    write_vocabulary(sys.argv[3])
else:
    sys.exit(0 if check(*sys.argv[3:]) else 1)
