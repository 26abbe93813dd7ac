# oracle.sh - the reference in numpy: $ORACLE, its folder, and $PYTHON; says SKIP without them.
ORACLE=${MIZZLE_ORACLE:-../shared/oracle}
PYTHON=${PYTHON:-/usr/bin/python3}
[ -e "$ORACLE/qwen2_np.py" ] || skip "no oracle at $ORACLE"
"$PYTHON" -c 'import numpy' 2>/dev/null || skip "no numpy for $PYTHON"
export PYTHONDONTWRITEBYTECODE=1
