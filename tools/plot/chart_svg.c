/* chart_svg.c - the parts that all pictures have: styles, escaped text, title, marks. */
#include <string.h>

#include "kernels/sys/text.h"
#include "tools/plot/chart_internal.h"

enum { TITLE = 80, NOTE_SIZE = 13 }; /* TITLE: characters in a line of the title */

/* Class s0 to s6 sets the colour of a series. Blue and black are lighter on a dark background. */
static const char styles[] =
    "<style>"
    "text{font-family:sans-serif;font-size:13px;fill:#222}"
    ".title{font-size:17px;font-weight:bold}.note{fill:#555}"
    ".paper{fill:#fff}.grid{stroke:#ddd}.axis{stroke:#777}"
    ".line{fill:none;stroke:currentColor;stroke-width:2}"
    ".dash{fill:none;stroke:currentColor;stroke-width:1.4;stroke-dasharray:5 4}"
    ".lead{stroke:currentColor;stroke-width:.8;opacity:.7}"
    ".band{fill:currentColor;opacity:.16}.fill{fill:currentColor}"
    ".mark{fill:currentColor;stroke:currentColor;stroke-width:1.8}"
    ".open{fill:none;stroke:currentColor;stroke-width:1.8}"
    ".s0{color:#0072b2}.s1{color:#d55e00}.s2{color:#009e73}.s3{color:#cc79a7}"
    ".s4{color:#e69f00}.s5{color:#56b4e9}.s6{color:#000}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.note{fill:#aaa}.paper{fill:#16181d}"
    ".grid{stroke:#33373e}.axis{stroke:#999}.s0{color:#2b8fd6}.s5{color:#8fd0f5}.s6{color:#fff}}"
    "</style>\n";

void chart_text(FILE *f, const char *text)
{
    for (size_t n = strlen(text), step; n; text += step, n -= step) {
        uint32_t c;
        char bytes[4];
        step = text_decode(&c, text, n, NULL);
        if (c == '&')
            fputs("&amp;", f);
        else if (c == '<')
            fputs("&lt;", f);
        else if (c == '>')
            fputs("&gt;", f);
        else if (c == '"')
            fputs("&quot;", f);
        else if (!text_harmless(c) || c == 0xfffe || c == 0xffff) /* XML holds no such character */
            fputc(' ', f);
        else
            fwrite(bytes, 1, text_encode(bytes, c), f);
    }
}

double chart_text_width(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return 7.2 * (double)n;
}

/* Write one line of the title or the note. */
static void chart_head_line(FILE *f, const char *class, double y, const char *text, size_t n)
{
    char line[512];
    n = n < sizeof(line) ? n : sizeof(line) - 1;
    memcpy(line, text, n);
    line[n] = '\0';
    fprintf(f, "<text class=\"%s\" x=\"%d\" y=\"%.0f\">", class, CHART_HEAD, y);
    chart_text(f, line);
    fputs("</text>\n", f);
}

/* Return the length of the title's first line. */
static size_t chart_title_break(const char *title)
{
    size_t n = strlen(title), at = TITLE;
    if (n <= TITLE)
        return n;
    while (at && title[at] != ' ')
        at--;
    return at ? at : n;
}

void chart_begin(FILE *f, const char *title, double height)
{
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "viewBox=\"0 0 %d %.0f\" role=\"img\">\n<title>",
            CHART_WIDTH, height, CHART_WIDTH, height);
    chart_text(f, title);
    fprintf(f, "</title>\n%s<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n", styles);
}

double chart_head(FILE *f, double y, const char *title, const char *note)
{
    size_t all = strlen(title), first = chart_title_break(title);
    double line = y + CHART_HEAD + NOTE_SIZE;
    y += CHART_HEAD + 2 + CHART_LINE * (1 + (first < all) + (note != NULL));
    if (!f)
        return y;
    chart_head_line(f, "title", line, title, first);
    if (first < all)
        chart_head_line(f, "title", line += CHART_LINE, title + first + 1, all - first - 1);
    if (note)
        chart_head_line(f, "note", line + CHART_LINE, note, strlen(note));
    return y;
}

void chart_end(FILE *f)
{
    fputs("</svg>\n", f);
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
    fprintf(f, "<path class=\"%s\" d=\"M%.1f %.1f%s\"", marks[m].class, x, y, marks[m].path);
    if (!note) {
        fputs("/>\n", f);
        return;
    }
    fputs("><title>", f);
    chart_text(f, note);
    fputs("</title></path>\n", f);
}
