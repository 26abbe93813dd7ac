/* chart_svg.c - the parts that all pictures have: styles, text, title, axis, marks. */
#include <string.h>

#include "kernels/sys/text.h"
#include "tools/lab/plot/chart_internal.h"

/* Characters in a line of the title and the note, and pixels between lines. */
enum { TITLE = 80, NOTE = 118, TITLE_LINE = 22, NOTE_LINE = 19, LINE_ROOM = 512 };

/* Class s0 to s6 sets the colour of a series. Blue and black are lighter on a dark background. */
static const char styles[] =
    "<style>"
    "text{font-family:sans-serif;font-size:13px;fill:#222}"
    ".title{font-size:17px;font-weight:bold}.note{fill:#555}"
    ".paper{fill:#fff}.grid{stroke:#ddd}.axis{stroke:#777}"
    ".line{fill:none;stroke:currentColor;stroke-width:2}"
    ".dash{fill:none;stroke:currentColor;stroke-width:1.4;stroke-dasharray:5 4}"
    ".lead{stroke:currentColor;stroke-width:.8;opacity:.7}"
    ".error{fill:none;stroke:currentColor;stroke-width:1.4}.ink{color:#222}"
    ".band{fill:currentColor;opacity:.16}.bar{fill:currentColor;opacity:.75}"
    ".doubtful{opacity:.35}"
    ".assumed{fill-opacity:.25;stroke:currentColor;stroke-dasharray:5 4}"
    ".mark{fill:currentColor;stroke:currentColor;stroke-width:1.8}"
    ".open{fill:none;stroke:currentColor;stroke-width:1.8}"
    ".s0{color:#0072b2}.s1{color:#d55e00}.s2{color:#009e73}.s3{color:#cc79a7}"
    ".s4{color:#e69f00}.s5{color:#56b4e9}.s6{color:#000}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.note{fill:#aaa}.paper{fill:#16181d}"
    ".grid{stroke:#33373e}.axis{stroke:#999}.ink{color:#ddd}"
    ".s0{color:#2b8fd6}.s5{color:#8fd0f5}.s6{color:#fff}}"
    "</style>\n";

/* Write text, escaped for elements and attributes. */
static void chart_escaped(FILE *f, const char *text)
{
    static const char special[] = "&<>\"";
    static const char *const names[] = { "&amp;", "&lt;", "&gt;", "&quot;" };
    for (size_t n = strlen(text), step; n; text += step, n -= step) {
        uint32_t c;
        char bytes[4];
        step = text_decode(&c, text, n, NULL);
        const char *at = memchr(special, *text, sizeof(special) - 1);
        if (at)
            fputs(names[at - special], f);
        else if (!text_harmless(c) || c == 0xfffe || c == 0xffff) /* XML holds no such character */
            fputc(' ', f);
        else
            fwrite(bytes, 1, text_encode(bytes, c), f);
    }
}

void chart_text(FILE *f, double x, double y, const char *anchor, const char *text)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    chart_escaped(f, text);
    fputs("</text>\n", f);
}

/* Write text in lines of at most `most` characters, the first one with its foot at y. Return the
 * foot of the line after the last; without a file, only this. */
static double chart_lines(FILE *f, double y, const char *class, const char *text, size_t most,
                          double step)
{
    do {
        char line[LINE_ROOM];
        size_t n = strlen(text), all = n;
        for (n = n < LINE_ROOM - 1 ? n : LINE_ROOM - 1; n > most && memchr(text, ' ', n);)
            while (text[--n] != ' ')
                ;
        memcpy(line, text, n);
        line[n] = '\0';
        if (f) {
            fprintf(f, "<text class=\"%s\" x=\"%d\" y=\"%.0f\">", class, CHART_HEAD, y);
            chart_escaped(f, line);
            fputs("</text>\n", f);
        }
        text += n + (n < all);
        y += step;
    } while (*text);
    return y;
}

double chart_head(FILE *f, double y, const char *title, const char *note)
{
    y = chart_lines(f, y + CHART_HEAD + CHART_GAP, "title", title, TITLE, TITLE_LINE);
    return (note ? chart_lines(f, y, "note", note, NOTE, NOTE_LINE) : y) - CHART_GAP;
}

void chart_begin(FILE *f, const char *title, double height)
{
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "viewBox=\"0 0 %d %.0f\" role=\"img\">\n<title>",
            CHART_WIDTH, height, CHART_WIDTH, height);
    chart_escaped(f, title);
    fprintf(f, "</title>\n%s<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n", styles);
}

void chart_across(FILE *f, const struct chart_scale *x, double top, double bottom,
                  const char *label)
{
    char number[32];
    for (size_t i = 0; i < x->n; i++) {
        double at = chart_at(x, x->ticks[i]);
        chart_tick(number, x->ticks[i]);
        fprintf(f, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", at, top, bottom);
        chart_text(f, at, bottom + 19, "middle", number);
    }
    fprintf(f, "<path class=\"axis\" fill=\"none\" d=\"M%.1f %.1fH%.1f\"/>\n", x->start, bottom,
            x->start + x->size);
    chart_text(f, x->start + x->size / 2, bottom + 43, "middle", label);
}

void chart_mark(FILE *f, size_t style, double x, double y, const char *note)
{
    static const struct {
        const char *class, *path;
    } marks[CHART_MARKS] = {
        { "mark", "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z" },           /* disc */
        { "mark", "m-3.5-3.5h7v7h-7z" },                            /* square */
        { "mark", "m0-4.5l4.5 8h-9z" },                             /* triangle */
        { "open", "m-4.5-4.5l9 9m0-9l-9 9" },                       /* cross */
        { "mark", "m0-5l5 5l-5 5l-5-5z" },                          /* diamond */
        { "open", "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z" }, /* ring */
        { "mark", "m0 4.5l4.5-8h-9z" },                             /* triangle, point down */
        { "open", "m-4-4h8v8h-8z" },                                /* frame */
    };
    size_t m = style % CHART_MARKS;
    const char *pale = note && strstr(note, "doubtful") ? " doubtful" : "";
    fprintf(f, "<path class=\"%s%s\" d=\"M%.1f %.1f%s\"", marks[m].class, pale, x, y,
            marks[m].path);
    if (!note) {
        fputs("/>\n", f);
        return;
    }
    fputs("><title>", f);
    chart_escaped(f, note);
    fputs("</title></path>\n", f);
}
