"""oracle_check.py ORACLE_DIR MODEL_DIR IDS LOGITS.f32 HIDDEN.f32 TAP
Compare the engine's raw floats with the float64 reference: the largest difference is divided by the
largest value."""
import sys
import numpy as np

sys.path.insert(0, sys.argv[1])
import qwen2_np

config, weights = qwen2_np.load(sys.argv[2])
ids = [int(i) for i in sys.argv[3].split(",")]
logits, final, post = qwen2_np.forward(config, weights, ids)
want_hidden = final if sys.argv[6] == "final" else post
worst = 0.0
for path, want in ((sys.argv[4], logits), (sys.argv[5], want_hidden)):
    got = np.fromfile(path, "<f4").reshape(want.shape)
    worst = max(worst, float(np.abs(got - want).max() / np.abs(want).max()))
print("worst relative difference %.2g" % worst)
sys.exit(0 if worst < 2e-4 else 1)
