#!/usr/bin/python3
"""plots.py - draw tables as SVG, in one style.

Usage: plots.py TABLE.csv --y COL (--x COL | --bars COL) [options] -o FILE.svg
       plots.py --roofline KERNELS.csv -o FILE.svg    of `mizzle bench kernels -o csv`
       plots.py --caches LIMITS.csv -o FILE.svg       of `mizzle bench limits -o csv`

Lines over x, one for each value of --by, joined in the order of x; an empty field interrupts one.
With --bars, a bar for each row. TABLE may be - for standard input.

Style: the title is the finding; labels stand at the lines; colours are those of Okabe and Ito
(jfly.uni-koeln.de/color), with a mark for each; at most eight lines. The description in the SVG
holds what is drawn, as CSV: pictures are compared by it, since their bytes depend on matplotlib.
Rooflines: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", 2009.
"""
import argparse
import csv
import io
import math
import re
import sys
import textwrap
from collections import Counter, namedtuple

from need import Refused, end, need

need("numpy", "matplotlib")
import matplotlib
import numpy as np
from matplotlib import pyplot as plt

COLOURS = "#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #000000 #8C6D1F".split()
MARKS, SERIES = "os^XDPv*", 8
WIDTH, LETTER, APART, GREY = 8.0, 0.078, 15, "#666666"  # inches, inches, points

Series = namedtuple("Series", "label x y low high names", defaults=(None, None, None))
Axes = namedtuple("Axes", "title note x y", defaults=("", "", "", ""))

matplotlib.use("Agg")
plt.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "mizzle", "font.size": 10,
    "font.sans-serif": ["DejaVu Sans", "Arial"], "axes.grid": True,
    "grid.color": "#dddddd", "axes.spines.top": False, "axes.spines.right": False,
    "axes.axisbelow": True, "lines.markersize": 5, "lines.linewidth": 1.6})


def number(row, column):
    text = row[column]
    try:
        value = float(text) if text else math.nan
    except ValueError:
        value = math.inf
    if math.isinf(value) or text.strip().lower() == "nan":
        raise Refused(1, f"{column}: expected a number, found {text}")
    return value


def read(path, *columns):
    """Return the rows of a table that has these columns."""
    try:
        file = sys.stdin if path == "-" else open(path, encoding="utf-8-sig", newline="")
        reader = csv.DictReader(file, strict=True)
        rows = list(reader)
    except (csv.Error, UnicodeDecodeError) as e:
        raise Refused(1, f"{path}: {e}")
    if not rows:
        raise Refused(1, f"{path}: expected a header and rows, found none")
    for i, row in enumerate(rows, 1):
        if None in row or None in row.values():
            raise Refused(1, f"{path}: row {i}: expected {len(reader.fieldnames)} fields")
    for column in columns:
        if column not in rows[0]:
            raise Refused(1, f"{path}: expected a column {column}, found {','.join(rows[0])}")
    return rows


def series(rows, by, x, y, interval=(), names=None, most=SERIES):
    """Return a Series for each value of column `by`, in the order of x; without x that of rows."""
    groups = {}
    for i, row in enumerate(rows):
        values = [number(row, c) for c in (*((x,) if x else ()), y, *interval)]
        values = values if x else [float(i)] + values
        if not math.isnan(values[0]):
            groups.setdefault(row[by] if by else "", []).append(
                (*values, *[math.nan] * (4 - len(values)), row[names] if names else ""))
    if len(groups) > most:
        raise Refused(1, f"expected at most {most} series, found {len(groups)}")
    made = []
    for label, points in groups.items():
        *columns, text = zip(*sorted(points, key=lambda p: p[0]))
        made.append(Series(label, *map(np.array, columns), text))
    if not any(np.isfinite(s.y).any() for s in made):
        raise Refused(1, "no point is left to draw")
    return made


def data(all_series, guides=()):
    """Return what is drawn as CSV."""
    lines = ["series,x,y,low,high"]
    for s in all_series:
        for i in range(len(s.x)):
            x = s.names[i] if s.names and s.names[i] else f"{s.x[i]:.6g}"
            values = [a[i] if a is not None else math.nan for a in (s.y, s.low, s.high)]
            values = ["" if math.isnan(v) else f"{v:.6g}" for v in values]
            lines.append(",".join([s.label, x, *values]))
    return "\n".join(lines + [f"{label},,{y:.6g},," for y, label in guides])


def small(svg):
    """Return an SVG of matplotlib in half of its bytes, with hundredths of a point."""
    head, end, body = svg.partition("</metadata>")
    body = re.sub(r"(\.\d\d)\d+", r"\1", re.sub(r' transform="rotate\(-0 [^"]*"', "", body))
    body = re.sub(r"\n\s*", "\n", re.sub(r"\n(?=L |z|\")", " ", body))
    return head + end + classes(body)


def classes(body):
    """Name each style that stands several times once, in the sheet that matplotlib begins."""
    styles = [x for x, n in Counter(re.findall(r'style="([^"]*)"', body)).items() if n > 1]
    for i, style in enumerate(styles):
        body = body.replace(f'style="{style}"', f'class="s{i}"')
    sheet = "".join(f".s{i}{{{style}}}" for i, style in enumerate(styles))
    return body.replace("</style>", sheet + "</style>", 1)


def save(figure, path, title, drawn):
    made = io.StringIO()
    figure.savefig(made, format="svg",
                   metadata={"Date": None, "Title": title, "Description": drawn})
    plt.close(figure)
    with open(path if path != "-" else 1, "w", encoding="utf-8", closefd=path != "-") as out:
        out.write(small(made.getvalue()))


def frame(height, right, text):
    """Return figure and axes below title and note; right: inches for labels."""
    room = WIDTH - 0.3
    title = textwrap.wrap(text.title, int(room / 0.1))
    note = textwrap.wrap(text.note, int(room / LETTER))
    top = 0.2 + 0.24 * len(title) + 0.2 * len(note) + 0.1
    figure, ax = plt.subplots(figsize=(WIDTH, height + top))
    full = height + top
    figure.text(0.15 / WIDTH, 1 - 0.12 / full, "\n".join(title), va="top", fontsize=12,
                weight="bold", linespacing=1.25)
    figure.text(0.15 / WIDTH, 1 - (0.16 + 0.24 * len(title)) / full, "\n".join(note), va="top",
                color=GREY, linespacing=1.25)
    figure.subplots_adjust(left=0.8 / WIDTH, right=1 - right / WIDTH, bottom=0.6 / full,
                           top=1 - top / full)
    ax.set(xlabel=text.x, ylabel=text.y)
    return figure, ax


def label_ends(ax, ends):
    """Write each (label, x, y, colour) at the right of its end, without overlap, and lead to it."""
    ax.get_xlim(), ax.get_ylim()  # which sets them
    scale = ax.figure.dpi / 72
    at = sorted((ax.transData.transform((x, y))[1] / scale, label, x, y, colour)
                for label, x, y, colour in ends if label)
    box = ax.get_window_extent()
    places, top = [], box.y1 / scale
    for y, *_ in at:
        places.append(max(y, places[-1] + APART) if places else y)
    for i in range(len(places) - 1, -1, -1):  # down again, from the top
        above = places[i + 1] - APART if i + 1 < len(places) else top
        places[i] = min(places[i], above)
    for place, (y, label, x, value, colour) in zip(places, at):
        edge = box.x1 / scale - ax.transData.transform((x, value))[0] / scale
        leads = abs(place - y) > 3 or edge > 20
        ax.annotate(label, (x, value), (edge + 8, place - y), textcoords="offset points",
                    va="center", color=colour, annotation_clip=False,
                    arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.5, "shrinkB": 4,
                                "relpos": (0, 0.5)} if leads else None)


def room_for(labels):
    return 0.35 + LETTER * min(max(map(len, labels), default=0), 40)


def draw_lines(ax, all_series, line=True, guides=()):
    """Draw series and guides, and return the ends where their labels stand."""
    ends = []
    for i, s in enumerate(all_series):
        colour, there = COLOURS[i % SERIES], np.isfinite(s.y)
        if not there.any():
            continue
        ax.plot(s.x, s.y, linestyle="-" if line else "none", color=colour,
                marker=MARKS[(i + i // SERIES) % SERIES])
        if s.low is not None and np.isfinite(s.low).any():
            if line:
                ax.fill_between(s.x, s.low, s.high, color=colour, alpha=0.12, linewidth=0)
            else:
                off = np.clip([s.y - s.low, s.high - s.y], 0, None)
                ax.errorbar(s.x, s.y, off, fmt="none", ecolor=colour, elinewidth=1, capsize=3)
        last = np.flatnonzero(there)[-1]
        ends.append((s.label, s.x[last], s.y[last], colour))
    x = np.concatenate([s.x for s in all_series])
    for y, label in guides:
        ax.plot((x.min(), x.max()), (y, y), color=GREY, linestyle="--", linewidth=1)
        ends.append((label, x.max(), y, GREY))
    return ends


def draw(path, text, all_series, line=True, guides=(), log=False):
    """Draw lines, or dots, over x."""
    labels = [s.label for s in all_series] + [label for _, label in guides]
    figure, ax = frame(4.2, room_for(labels), text)
    if log:
        ax.set(xscale="log", yscale="log")
    ends = draw_lines(ax, all_series, line, guides=guides)
    label_ends(ax, ends)
    save(figure, path, text.title, data(all_series, guides))


def draw_bars(path, text, all_series):
    """Draw a bar from 0 for each point, in groups."""
    left = LETTER * max(len(name) for s in all_series for name in s.names) + 0.3
    at, marks = 0.0, []
    rows = sum(len(s.names) for s in all_series) + sum(0.9 for s in all_series if s.label)
    figure, ax = frame(0.32 * rows + 0.9, 0.6, text)
    figure.subplots_adjust(left=min(left, 4) / WIDTH)
    for i, s in enumerate(all_series):
        if s.label:
            ax.text(0, at + 0.15, s.label, weight="bold", color=COLOURS[i % SERIES], va="center",
                    transform=ax.get_yaxis_transform())
            at += 0.9
        for k, name in enumerate(s.names):
            marks.append((at, name))
            if np.isfinite(s.y[k]):
                end = np.nanmax([s.y[k], s.high[k], 0])
                ax.barh(at, s.y[k], 0.7, color=COLOURS[i % SERIES])
                ax.annotate(f"{s.y[k]:.4g}", (end, at), (4, 0), textcoords="offset points",
                            va="center", fontsize=9)
            if np.isfinite((s.low[k], s.high[k])).all():
                ax.plot((s.low[k], s.high[k]), (at, at), color="black", linewidth=1, marker="|")
            at += 1
    ax.set(ylim=(at - 0.4, -0.6), ylabel="", xlabel=text.y)
    ax.set_yticks(*zip(*marks))
    ax.grid(False, axis="y")
    ax.axvline(0, color="black", linewidth=0.8)
    save(figure, path, text.title, data(all_series))


def roofline(path, rows):
    """Draw speed over operations per byte for each operation, below the roofs of what was read and
    of each set's arithmetic."""
    ops = list(dict.fromkeys(r["op"] for r in rows if r["gop_s"] and r["gb_s"]))
    if not ops:
        raise Refused(1, "expected an operation that multiplies, found none")
    figure, all_axes = plt.subplots(len(ops), 1, figsize=(WIDTH, 4.6 * len(ops)), squeeze=False,
                                    gridspec_kw={"right": 0.72, "hspace": 0.45})
    drawn = []
    for ax, op in zip(all_axes[:, 0], ops):
        of = [dict(r, x=str(number(r, "gop_s") / number(r, "gb_s"))) for r in rows
              if r["op"] == op and r["gop_s"] and r["gb_s"]]
        sets = series(of, "isa", "x", "gop_s", names="shape")
        x = np.concatenate([s.x for s in sets])
        span = np.array((x.min() / 2, x.max() * 2))
        best = max(of, key=lambda r: number(r, "gop_s"))
        peaks = {r["isa"]: number(r, "peak_gop_s") for r in of if r["peak_gop_s"]}
        top = max(peaks.values(), default=8 * number(best, "gop_s"))
        ax.set(xscale="log", yscale="log", xlabel="operations per byte", ylabel="speed, GOP/s")
        ends = draw_lines(ax, sets, line=False)
        for level, read_gb_s in {r["level"]: number(r, "read_gb_s") for r in of}.items():
            at = np.clip((span[0], top / read_gb_s, span[1]), *span)
            ax.plot(at, np.minimum(at * read_gb_s, top), color=GREY, linewidth=1)
            ax.annotate(f"{level} {read_gb_s:.3g} GB/s", (span[0], span[0] * read_gb_s), (2, 4),
                        textcoords="offset points", fontsize=8, color=GREY)
        for i, s in enumerate(sets):
            if s.label in peaks:
                ax.axhline(peaks[s.label], color=COLOURS[i], linestyle="--", linewidth=0.8)
        label_ends(ax, ends)
        doubtful = sum(bool(r.get("doubtful")) for r in of)
        title = f"{op} is fastest with {best['isa']}: {number(best, 'gop_s'):.3g} GOP/s"
        ax.set_title(title + (f" ({doubtful} rows doubtful)" if doubtful else ""), loc="left")
        drawn.append(f"{title}\n{data(sets)}")
    save(figure, path, "Rooflines", "\n".join(drawn))


def caches(path, rows):
    """Draw the rate over working sets that are read again and again."""
    of = [dict(r, mib=str(number(r, "bytes") / 2 ** 20)) for r in rows if "again" in r["limit"]]
    threads = {"1 thread": "one_thread", f"{rows[0]['n_threads']} threads": "all_threads"}
    both = [series(of, None, "mib", column)[0]._replace(label=label)
            for label, column in list(threads.items())[:1 if rows[0]["n_threads"] == "1" else 2]]
    doubts = sorted({r["doubtful"] for r in of} - {""})
    draw(path, Axes("Where the caches end" + " (doubtful)" * bool(doubts),
                    "The threads share the working set. " + "; ".join(doubts),
                    "working set, MiB", "read, GB/s"), both, log=True)


def guide(text):
    y, equals, label = text.partition("=")
    try:
        if equals and math.isfinite(float(y)):
            return float(y), label
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"expected Y=LABEL, found {text}")


def main():
    parser = argparse.ArgumentParser(description="Draw a table as SVG.")
    parser.add_argument("table", metavar="TABLE.csv")
    parser.add_argument("--x", metavar="COL", help="take x from this column")
    parser.add_argument("--y", metavar="COL", help="take y from this column")
    parser.add_argument("--bars", metavar="COL", help="draw bars with these labels")
    parser.add_argument("--by", metavar="COL", help="one line, or group of bars, for each value")
    parser.add_argument("--dots", action="store_true", help="do not join the points")
    parser.add_argument("--interval", default="", metavar="LOW,HIGH", help="a band or error bars")
    parser.add_argument("--guide", type=guide, action="append", default=[], metavar="Y=LABEL",
                        help="a dashed line at Y")
    parser.add_argument("--title", metavar="TEXT", help="the finding (default: column y)")
    parser.add_argument("--note", default="", metavar="TEXT", help="what stands below the title")
    parser.add_argument("--roofline", action="store_true", help="TABLE is of bench kernels")
    parser.add_argument("--caches", action="store_true", help="TABLE is of bench limits")
    parser.add_argument("-o", "--output", default="-", metavar="FILE.svg")
    o = parser.parse_args()
    if o.roofline:
        return roofline(o.output, read(o.table, "op", "isa", "gop_s", "gb_s", "read_gb_s",
                                       "peak_gop_s", "level"))
    if o.caches:
        return caches(o.output, read(o.table, "limit", "n_threads", "one_thread", "all_threads",
                                     "bytes", "doubtful"))
    interval = o.interval.split(",") if o.interval else []
    if not o.y or bool(o.x) == bool(o.bars) or o.bars and (o.dots or o.guide):
        parser.error("expected --y and --x, or --y and --bars without --dots and --guide")
    if len(interval) not in (0, 2):
        parser.error(f"--interval: expected LOW,HIGH, found {o.interval}")
    rows = read(o.table, *filter(None, (o.x, o.y, o.bars, o.by, *interval)))
    most = SERIES if o.x and not o.dots else len(rows)  # a dot or bar has its label beside it
    all_series = series(rows, o.by, o.x, o.y, interval, o.bars, most)
    text = Axes(o.title or o.y, o.note, o.x or "", o.y)
    if o.bars:
        draw_bars(o.output, text, all_series)
    else:
        draw(o.output, text, all_series, not o.dots, o.guide)


if __name__ == "__main__":
    end(main)
