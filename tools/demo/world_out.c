#include <string.h>

#include "tools/demo/world_internal.h"

void world_put_marked(struct world_out *t, const char *s, enum world_mark mark)
{
    size_t n = strlen(s);
    if (n >= t->cap - t->n)
        n = t->cap - t->n - 1;
    memcpy(t->p + t->n, s, n);
    for (size_t i = 0; t->learn && i < n; i++)
        t->learn[t->n + i] = t->learning;
    for (size_t i = 0; t->mark && i < n; i++)
        t->mark[t->n + i] = (unsigned char)mark;
    t->n += n;
    t->p[t->n] = 0;
}

void world_put(struct world_out *t, const char *s)
{
    world_put_marked(t, s, WORLD_FORM);
}

/* Write what one letter after % stands for. */
static void put_filled(struct world_out *t, char what, const struct world_fill *f,
                       enum world_mark mark)
{
    switch (what) {
    case 'a':
        world_put_marked(t, world_adjectives[world_draw_below(f->d, WORLD_ADJECTIVES)], WORLD_FREE);
        return;
    case 't':
        world_put_marked(t, world_narrators[world_draw_below(f->d, WORLD_NARRATORS)], WORLD_FREE);
        return;
    default:
        world_put_marked(t,
                         what == 'n'   ? f->name
                         : what == 'k' ? f->kind
                         : what == 's' ? f->plural
                         : what == 'p' ? f->place
                                       : f->key,
                         mark);
    }
}

void world_put_form(struct world_out *t, const char *form, const struct world_fill *f)
{
    enum world_mark mark = WORLD_FORM;
    for (; *form; form++) {
        if (*form == '[' || *form == ']') {
            t->learning = *form == '[';
        } else if (*form == '*' || *form == '~') {
            mark = *form == '*' ? f->mark : WORLD_IDLE;
        } else if (*form == '%') {
            put_filled(t, *++form, f, mark);
            mark = WORLD_FORM;
        } else {
            world_put(t, (char[]){ *form, 0 });
        }
    }
}
