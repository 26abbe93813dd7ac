#!/bin/sh
# tests/lab/t_answers.py: the journals that 0.5.1 has written (journals-0.5.1.tar.xz; index.txt has their
# options) give the rows of threshold.csv, tasks.csv, ways.csv, network.csv and paper.csv again.
. tests/support/shell.sh
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import numpy' 2>/dev/null || skip "no numpy for $python"
OPENBLAS_NUM_THREADS=1 "$python" -B tests/lab/t_answers.py >"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
