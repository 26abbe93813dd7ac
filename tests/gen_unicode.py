#!/usr/bin/python3
"""Writes model/unicode_class_table.c, unicode_mark_table.c and unicode_pair_table.c from Python's own
unicodedata (Python 3.11: Unicode 14.0, the version of Debian 12). clang-format lays the lines out.

usage: tests/gen_unicode.py [CLANG_FORMAT]     from the repository's root

Unicode 14.0 is what Oniguruma 6.9.8 holds, the regex engine of Hugging Face's tokenizers up to 0.21.1.
"""
import subprocess
import sys
import unicodedata as u

WANT = "14.0.0"
HEAD = """/* %s - %s, Unicode %s.
 *
 * Made by tests/gen_unicode.py; do not edit. Data: the Unicode Character Database. */
#include "model/unicode_table.h"

"""
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(value):
    """[lo, hi, v] of runs of equal value(c), runs of 0 left out."""
    out = []
    for c in ALL:
        v = value(c)
        if v and out and out[-1][1] == c - 1 and out[-1][2] == v:
            out[-1][1] = c
        elif v:
            out.append([c, c, v])
    return out


def canonical(c):
    d = u.decomposition(chr(c))
    return [int(x, 16) for x in d.split()] if d and d[0] != "<" else []


def array(kind, name, rows):
    body = ",\n".join(", ".join(row) for row in rows)
    return "const struct %s %s[] = {\n%s\n};\nconst size_t %s_n = %d;\n\n" % (
        kind, name, body, name, len(rows))


def braces(row, decimals=()):
    return ["{ " + ", ".join(str(x) if i in decimals else "0x%x" % x for i, x in enumerate(row)) + " }"]


def write(name, what, text):
    path = "model/" + name
    with open(path, "w") as f:
        f.write(HEAD % (name, what, u.unidata_version) + text.rstrip("\n") + "\n")
    subprocess.run([sys.argv[1] if len(sys.argv) > 1 else "clang-format", "-i", path], check=True)


def main():
    if u.unidata_version != WANT:
        sys.exit("expected Unicode %s, found %s" % (WANT, u.unidata_version))
    letters = ranges(lambda c: u.category(chr(c))[0] == "L")
    numbers = ranges(lambda c: u.category(chr(c))[0] == "N")
    marks = ranges(lambda c: u.combining(chr(c)))
    hangul = range(0xAC00, 0xD7A4)
    maps = {c: canonical(c) for c in ALL if canonical(c) and c not in hangul}
    assert all(len(m) <= 2 and (len(m) == 1 or m[1] not in maps) for m in maps.values())
    singles = sorted((c, m[0]) for c, m in maps.items() if len(m) == 1)
    pairs = sorted((c, m[0], m[1]) for c, m in maps.items() if len(m) == 2)
    stays = [u.normalize("NFC", chr(c)) == chr(c) for c, a, b in pairs]
    seconds = {b for (c, a, b), s in zip(pairs, stays) if s}
    seconds |= set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    unsure = ranges(lambda c: bool(u.combining(chr(c))) or c in seconds
                    or u.normalize("NFC", chr(c)) != chr(c))
    order = sorted((i for i in range(len(pairs)) if stays[i]), key=lambda i: pairs[i][1:])

    write("unicode_class_table.c", "letters and numbers",
          array("unicode_range", "unicode_letters", [braces(r[:2]) for r in letters])
          + array("unicode_range", "unicode_numbers", [braces(r[:2]) for r in numbers]))
    write("unicode_mark_table.c", "combining classes, what NFC may change, single mappings",
          array("unicode_mark", "unicode_marks", [braces(r, (2,)) for r in marks])
          + array("unicode_range", "unicode_unsure", [braces(r[:2]) for r in unsure])
          + array("unicode_single", "unicode_singles", [braces(r) for r in singles]))
    write("unicode_pair_table.c", "canonical pairs, and their order for composition",
          array("unicode_pair", "unicode_pairs", [braces(p) for p in pairs])
          + "const uint16_t unicode_compose[] = {%s};\nconst size_t unicode_compose_n = %d;\n"
          % (", ".join(map(str, order)), len(order)))


main()
