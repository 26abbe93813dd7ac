/* chart_names.c - places the names of points where nothing else is written. */
#include <math.h>

#include "tools/plot/chart_internal.h"

/* Pixels: height of a name, steps of the search, and from where on a line leads to the point. */
enum { NAME_HEIGHT = 12, RING = 5, RINGS = 48, LEAD_FROM = 14, SIDES = 16, FIRST_RING = 2 };
static const double NAME_LETTER = 6.2, STEP = 3;

double chart_name_width(const char *name)
{
    return chart_text_width(name) * (NAME_LETTER / 7.2);
}

bool chart_boxes_meet(const struct chart_box *a, const struct chart_box *b)
{
    return a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h && b->y < a->y + a->h;
}

static bool chart_box_has(const struct chart_box *b, double x, double y)
{
    return x > b->x && x < b->x + b->w && y > b->y && y < b->y + b->h;
}

static double chart_distance(double x, double y)
{
    return sqrt(x * x + y * y);
}

/* Return the end of the line that leads from the point (x, y) to a box: its nearest point. */
static void chart_lead_end(const struct chart_box *b, double *x, double *y)
{
    *x = *x < b->x ? b->x : *x > b->x + b->w ? b->x + b->w : *x;
    *y = *y < b->y ? b->y : *y > b->y + b->h ? b->y + b->h : *y;
}

/* True if the line that leads from the point of `name` to its box crosses another box. */
static bool chart_lead_crosses(const struct chart_name *name, const struct chart_box *other)
{
    double x = name->x, y = name->y;
    chart_lead_end(&name->box, &x, &y);
    double length = chart_distance(x - name->x, y - name->y);
    for (double at = LEAD_FROM / 2.0; at < length; at += STEP)
        if (chart_box_has(other, name->x + (x - name->x) * at / length,
                          name->y + (y - name->y) * at / length))
            return true;
    return false;
}

/* True if the name can stand in its box: inside the area, on nothing that is taken, and no line,
 * its own or that of a name before, crosses a text or another mark. */
static bool chart_name_fits(const struct chart_name *names, size_t i, const struct chart_box *taken,
                            size_t ntaken, const struct chart_box *area)
{
    const struct chart_box *b = &names[i].box;
    if (b->x < area->x || b->y < area->y || b->x + b->w > area->x + area->w ||
        b->y + b->h > area->y + area->h)
        return false;
    for (size_t k = 0; k < ntaken; k++)
        if (chart_boxes_meet(b, &taken[k]) || (!chart_box_has(&taken[k], names[i].x, names[i].y) &&
                                               chart_lead_crosses(&names[i], &taken[k])))
            return false;
    for (size_t k = 0; k < i; k++)
        if (names[k].placed &&
            (chart_boxes_meet(b, &names[k].box) || chart_lead_crosses(&names[i], &names[k].box) ||
             chart_lead_crosses(&names[k], b)))
            return false;
    return true;
}

bool chart_name_lead(const struct chart_name *name, double *x, double *y)
{
    *x = name->x;
    *y = name->y;
    chart_lead_end(&name->box, x, y);
    return name->placed && chart_distance(*x - name->x, *y - name->y) > LEAD_FROM;
}

/* Set the box of a name in this direction from its point, `away` pixels from it at the nearest. */
static void chart_name_put(struct chart_name *name, double cosine, double sine, double away)
{
    double w = chart_name_width(name->text), h = NAME_HEIGHT;
    double x = name->x + cosine * (away + w / 2), y = name->y + sine * (away + h / 2);
    name->box = (struct chart_box){ x - w / 2, y - h / 2, w, h };
}

void chart_names_place(struct chart_name *names, size_t n, const struct chart_box *taken,
                       size_t ntaken, const struct chart_box *area)
{
    /* Right and left first, then below and above, then between: cosines of multiples of 22.5
     * degrees, as numbers, so that every machine draws the same picture. */
    static const double c[] = { 1, 0.92388, 0.707107, 0.382683, 0 };
    static const unsigned char order[SIDES] = {
        0, 8, 12, 4, 1, 15, 7, 9, 2, 14, 6, 10, 3, 13, 5, 11
    };
    for (size_t i = 0; i < n; i++) {
        names[i].placed = false;
        for (size_t k = 0; k < (size_t)RINGS * SIDES && !names[i].placed; k++) {
            size_t side = order[k % SIDES], quarter = side / 4, rest = side % 4;
            double across = quarter % 2 ? c[4 - rest] : c[rest];
            double along = quarter % 2 ? c[rest] : c[4 - rest];
            double cosine = quarter == 1 || quarter == 2 ? -across : across;
            double sine = quarter >= 2 ? along : -along;
            chart_name_put(&names[i], cosine, sine, RING * (double)(FIRST_RING + k / SIDES));
            names[i].placed = chart_name_fits(names, i, taken, ntaken, area);
        }
    }
}
