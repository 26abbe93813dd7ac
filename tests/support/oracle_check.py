"""oracle_check.py ORACLE_DIR MODEL_DIR IDS LOGITS.f32 HIDDEN.f32
Compare the engine's raw floats with the float64 reference: the largest difference is divided by the
largest value. The reference has plain RoPE only; a scaling in config.json is put into it
here, from the formulas of the YaRN paper (arXiv 2309.00071, sections 3.2 to 3.4)."""
import math
import sys
import numpy as np

sys.path.insert(0, sys.argv[1])
import qwen2_np


class Frequencies:
    """Stands for rope_theta, of which the reference computes no more than its powers."""

    def __init__(self, values):
        self.values = values

    def __pow__(self, exponents):
        return self.values


def stretch(config, weights):
    """Give config the frequencies of its scaling, and weights the magnitude of cosine and sine:
    queries and keys are multiplied by it, by their last step before RoPE."""
    scaling = config["rope_scaling"]
    dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    base, factor = config["rope_theta"], scaling["factor"]
    plain = base ** (-np.arange(0, dim, 2) / dim)
    if scaling.get("type", scaling.get("rope_type")) == "linear":
        config["rope_theta"] = Frequencies(plain / factor)
        return
    original = scaling.get("original_max_position_embeddings", config["max_position_embeddings"])

    def pair(turns):
        return dim / 2 * math.log(original / (2 * math.pi * turns), base)

    first = max(math.floor(pair(scaling.get("beta_fast", 32))), 0)
    last = min(math.ceil(pair(scaling.get("beta_slow", 1))), dim - 1)
    share = np.clip((np.arange(dim // 2) - first) / max(last - first, 0.001), 0, 1)
    config["rope_theta"] = Frequencies((1 - share) * plain + share * plain / factor)
    magnitude = scaling.get("attention_factor", 0.1 * math.log(factor) + 1)
    normed = any(name.endswith("q_norm.weight") for name in weights)
    for name in weights:
        for one in "qk":
            if f".{one}_norm." in name if normed else f".{one}_proj." in name:
                weights[name] = weights[name].astype(np.float64) * magnitude


config, weights = qwen2_np.load(sys.argv[2])
ids = [int(i) for i in sys.argv[3].split(",")]
if config.get("rope_scaling"):
    stretch(config, weights)
logits, final, _ = qwen2_np.forward(config, weights, ids)
worst = 0.0
for path, want in ((sys.argv[4], logits), (sys.argv[5], final)):
    got = np.fromfile(path, "<f4").reshape(want.shape)
    worst = max(worst, float(np.abs(got - want).max() / np.abs(want).max()))
print("worst relative difference %.2g" % worst)
sys.exit(0 if worst < 2e-4 else 1)
