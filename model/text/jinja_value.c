/* jinja_value.c - values of a template, and what can be done with them. */
#include <stdio.h>
#include <string.h>

#include "model/text/jinja_internal.h"

bool jinja_true(const struct jinja_value *v)
{
    switch (v->kind) {
    case JINJA_BOOL:
    case JINJA_INT:
        return v->i != 0;
    case JINJA_STR:
        return v->s.n != 0;
    case JINJA_LIST:
        return v->n != 0;
    case JINJA_MAP:
        return v->map->n != 0;
    default:
        return v->kind == JINJA_LOOP;
    }
}

struct jinja_value jinja_str(const char *p, size_t n)
{
    return (struct jinja_value){ .kind = JINJA_STR, .s = { p, n } };
}

struct jinja_value jinja_bool(bool b)
{
    return (struct jinja_value){ .kind = JINJA_BOOL, .i = b };
}

struct jinja_value jinja_int(int64_t i)
{
    return (struct jinja_value){ .kind = JINJA_INT, .i = i };
}

struct str jinja_text(struct jinja *j, const struct jinja_value *v)
{
    char number[24];
    if (v->kind == JINJA_STR)
        return v->s;
    if (v->kind == JINJA_NONE)
        return (struct str){ "None", 4 };
    if (v->kind == JINJA_BOOL)
        return v->i ? (struct str){ "True", 4 } : (struct str){ "False", 5 };
    if (v->kind == JINJA_INT) {
        size_t n = (size_t)snprintf(number, sizeof(number), "%lld", (long long)v->i);
        char *p = jinja_take(j, n);
        if (p)
            memcpy(p, number, n);
        return (struct str){ p, p ? n : 0 };
    }
    if (v->kind != JINJA_UNDEFINED)
        jinja_fail(j, "a list or a mapping is used as text");
    return (struct str){ "", 0 };
}

struct jinja_value jinja_get(const struct jinja_map *m, struct str name)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->names[i].n == name.n && !memcmp(m->names[i].p, name.p, name.n))
            return m->values[i];
    return (struct jinja_value){ .kind = JINJA_UNDEFINED };
}

void jinja_put(struct jinja *j, struct jinja_map *m, struct str name, struct jinja_value v)
{
    size_t i = 0;
    while (i < m->n &&
           !(name.n && m->names[i].n == name.n && !memcmp(m->names[i].p, name.p, name.n)))
        i++;
    if (i == JINJA_ENTRIES) {
        jinja_fail(j, "a mapping or a call is too large");
        return;
    }
    m->names[i] = name;
    m->values[i] = v;
    m->n += i == m->n;
}

/* Return two texts as one. */
static struct jinja_value jinja_value_join(struct jinja *j, struct str a, struct str b)
{
    char *p = jinja_take(j, a.n + b.n);
    if (!p)
        return jinja_str("", 0);
    if (a.n)
        memcpy(p, a.p, a.n);
    if (b.n)
        memcpy(p + a.n, b.p, b.n);
    return jinja_str(p, a.n + b.n);
}

/* Compare two values; what takes long is counted, and lists are compared only with themselves. */
static bool jinja_value_equal(struct jinja *j, const struct jinja_value *a,
                              const struct jinja_value *b)
{
    bool numbers = (a->kind == JINJA_INT || a->kind == JINJA_BOOL) &&
                   (b->kind == JINJA_INT || b->kind == JINJA_BOOL);
    if (a->kind != b->kind)
        return numbers && a->i == b->i;
    if (a->kind == JINJA_STR && a->s.n == b->s.n) {
        jinja_work(j, a->s.n / 8);
        return !a->s.n || !memcmp(a->s.p, b->s.p, a->s.n);
    }
    if (a->kind != JINJA_LIST && a->kind != JINJA_MAP)
        return a->kind != JINJA_STR && a->i == b->i;
    if (a->items != b->items || a->map != b->map)
        jinja_fail(j, "lists or mappings are compared");
    return true;
}

struct jinja_value jinja_operate(struct jinja *j, struct str sign, const struct jinja_value *a,
                                 const struct jinja_value *b)
{
    int64_t i = 0;
    bool numbers = a->kind == JINJA_INT && b->kind == JINJA_INT;
    if (jinja_is(sign, "=="))
        return jinja_bool(jinja_value_equal(j, a, b));
    if (jinja_is(sign, "!="))
        return jinja_bool(!jinja_value_equal(j, a, b));
    if (jinja_is(sign, "~"))
        return jinja_value_join(j, jinja_text(j, a), jinja_text(j, b));
    if (jinja_is(sign, "+") && a->kind == JINJA_STR && b->kind == JINJA_STR)
        return jinja_value_join(j, a->s, b->s);
    if (numbers && sign.p[0] == '<')
        return jinja_bool(sign.n == 2 ? a->i <= b->i : a->i < b->i);
    if (numbers && sign.p[0] == '>')
        return jinja_bool(sign.n == 2 ? a->i >= b->i : a->i > b->i);
    if (numbers && jinja_is(sign, "+") && !__builtin_add_overflow(a->i, b->i, &i))
        return jinja_int(i);
    if (numbers && jinja_is(sign, "-") && !__builtin_sub_overflow(a->i, b->i, &i))
        return jinja_int(i);
    if (numbers && jinja_is(sign, "%") && a->i >= 0 && b->i > 0)
        return jinja_int(a->i % b->i);
    jinja_fail(j, "an operator does not suit its values");
    return (struct jinja_value){ .kind = JINJA_UNDEFINED };
}

/* Return where `what` begins in s, from the start or from the end; s.n + 1 if nowhere. */
static size_t jinja_value_find(struct jinja *j, struct str s, struct str what)
{
    jinja_work(j, s.n);
    for (size_t i = 0; i + what.n <= s.n && !j->failed; i++) {
        if (what.n && s.p[i] != what.p[0])
            continue;
        jinja_work(j, what.n);
        if (!what.n || !memcmp(s.p + i, what.p, what.n))
            return i;
    }
    return s.n + 1;
}

bool jinja_contains(struct jinja *j, const struct jinja_value *all, const struct jinja_value *one)
{
    if (all->kind == JINJA_STR && one->kind == JINJA_STR)
        return jinja_value_find(j, all->s, one->s) <= all->s.n;
    if (all->kind == JINJA_MAP && one->kind == JINJA_STR)
        return jinja_get(all->map, one->s).kind != JINJA_UNDEFINED;
    if (all->kind != JINJA_LIST)
        jinja_fail(j, "`in` does not suit its values");
    jinja_work(j, all->n);
    for (size_t i = 0; i < all->n; i++)
        if (jinja_value_equal(j, &all->items[i], one))
            return true;
    return false;
}

/* Return s without the characters of `set` at its start, its end or both. */
static struct jinja_value jinja_value_strip(struct jinja *j, struct str s, struct str set,
                                            bool left, bool right)
{
    for (; left && s.n && memchr(set.p, s.p[0], set.n) && !j->failed; s.p++, s.n--)
        jinja_work(j, set.n);
    for (; right && s.n && memchr(set.p, s.p[s.n - 1], set.n) && !j->failed; s.n--)
        jinja_work(j, set.n);
    return jinja_str(s.p, s.n);
}

static const struct str jinja_value_blanks = { " \t\n\r\v\f", 6 };

struct jinja_value jinja_filter(struct jinja *j, struct str name, const struct jinja_value *v,
                                const struct jinja_map *args)
{
    bool length = jinja_is(name, "length") || jinja_is(name, "count");
    if (length && v->kind == JINJA_LIST)
        return jinja_int((int64_t)v->n);
    if (length && v->kind == JINJA_MAP)
        return jinja_int((int64_t)v->map->n);
    if (length && v->kind == JINJA_STR) { /* characters, so no bytes that continue one */
        int64_t n = 0;
        jinja_work(j, v->s.n);
        for (size_t i = 0; i < v->s.n; i++)
            n += ((unsigned char)v->s.p[i] & 0xc0) != 0x80;
        return jinja_int(n);
    }
    if (jinja_is(name, "trim") && !args->n) {
        return jinja_value_strip(j, jinja_text(j, v), jinja_value_blanks, true, true);
    }
    if (jinja_is(name, "string")) {
        struct str s = jinja_text(j, v);
        return jinja_str(s.p, s.n);
    }
    if (jinja_is(name, "safe"))
        return *v;
    if (jinja_is(name, "default") && args->n == 1)
        return v->kind == JINJA_UNDEFINED ? args->values[0] : *v;
    jinja_fail(j, "a filter is not known");
    return *v;
}

bool jinja_test(struct jinja *j, struct str name, const struct jinja_value *v)
{
    static const struct {
        const char *name;
        unsigned kinds;
    } tests[] = {
        { "defined", ~(1u << JINJA_UNDEFINED) },
        { "undefined", 1u << JINJA_UNDEFINED },
        { "none", 1u << JINJA_NONE },
        { "string", 1u << JINJA_STR },
        { "mapping", 1u << JINJA_MAP },
        { "boolean", 1u << JINJA_BOOL },
        { "number", 1u << JINJA_INT | 1u << JINJA_BOOL },
        { "sequence", 1u << JINJA_STR | 1u << JINJA_LIST | 1u << JINJA_MAP },
        { "iterable",
          1u << JINJA_STR | 1u << JINJA_LIST | 1u << JINJA_MAP | 1u << JINJA_UNDEFINED },
        { "true", 1u << JINJA_BOOL },
        { "false", 1u << JINJA_BOOL },
    };
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        if (jinja_is(name, tests[i].name)) {
            bool fits = tests[i].kinds >> v->kind & 1;
            return name.p[0] == 't' ? fits && v->i : name.p[0] == 'f' ? fits && !v->i : fits;
        }
    jinja_fail(j, "a test is not known");
    return false;
}

static struct jinja_value jinja_value_loop(struct jinja *j, const struct jinja_loop *l,
                                           struct str name)
{
    int64_t at = (int64_t)l->at, n = (int64_t)l->list.n;
    if (jinja_is(name, "index0"))
        return jinja_int(at);
    if (jinja_is(name, "index"))
        return jinja_int(at + 1);
    if (jinja_is(name, "first"))
        return jinja_bool(at == 0);
    if (jinja_is(name, "last"))
        return jinja_bool(at + 1 == n);
    if (jinja_is(name, "length"))
        return jinja_int(n);
    if (jinja_is(name, "revindex0"))
        return jinja_int(n - 1 - at);
    if (jinja_is(name, "revindex"))
        return jinja_int(n - at);
    if (jinja_is(name, "previtem") && at > 0)
        return l->list.items[at - 1];
    if (jinja_is(name, "nextitem") && at + 1 < n)
        return l->list.items[at + 1];
    if (!jinja_is(name, "previtem") && !jinja_is(name, "nextitem"))
        jinja_fail(j, "an attribute of loop is not known");
    return (struct jinja_value){ .kind = JINJA_UNDEFINED };
}

struct jinja_value jinja_attribute(struct jinja *j, const struct jinja_value *v, struct str name)
{
    if (v->kind == JINJA_MAP)
        return jinja_get(v->map, name);
    if (v->kind == JINJA_LOOP)
        return jinja_value_loop(j, v->loop, name);
    if (v->kind == JINJA_UNDEFINED)
        jinja_fail(j, "an attribute of what is not defined");
    return (struct jinja_value){ .kind = JINJA_UNDEFINED };
}

/* Return the parts of s between separators. */
static struct jinja_value jinja_value_split(struct jinja *j, struct str s, struct str sep)
{
    size_t n = 1, at;
    for (struct str left = s; (at = jinja_value_find(j, left, sep)) <= left.n && !j->failed; n++)
        left = (struct str){ left.p + at + sep.n, left.n - at - sep.n };
    struct jinja_value *items = jinja_take(j, n * sizeof(*items));
    if (!items)
        return (struct jinja_value){ .kind = JINJA_UNDEFINED };
    for (size_t i = 0; i < n; i++) {
        at = jinja_value_find(j, s, sep);
        items[i] = jinja_str(s.p, at <= s.n ? at : s.n);
        if (at <= s.n)
            s = (struct str){ s.p + at + sep.n, s.n - at - sep.n };
    }
    return (struct jinja_value){ .kind = JINJA_LIST, .items = items, .n = n };
}

struct jinja_value jinja_method(struct jinja *j, const struct jinja_value *v, struct str name,
                                const struct jinja_map *args)
{
    bool strips = jinja_is(name, "strip"), ends = jinja_is(name, "endswith");
    struct str s = v->s, with = args->n ? args->values[0].s : jinja_value_blanks;
    if (v->kind != JINJA_STR || args->n > 1 || (args->n && args->values[0].kind != JINJA_STR)) {
        jinja_fail(j, "a method does not suit its values");
        return *v;
    }
    if (strips || jinja_is(name, "lstrip") || jinja_is(name, "rstrip"))
        return jinja_value_strip(j, s, with, strips || name.p[0] == 'l',
                                 strips || name.p[0] == 'r');
    if (args->n && (ends || jinja_is(name, "startswith"))) {
        jinja_work(j, with.n);
        return jinja_bool(with.n <= s.n &&
                          (!with.n || !memcmp(s.p + (ends ? s.n - with.n : 0), with.p, with.n)));
    }
    if (with.n && args->n && jinja_is(name, "split"))
        return jinja_value_split(j, s, with);
    jinja_fail(j, "a method is not known");
    return *v;
}

struct jinja_value jinja_index(struct jinja *j, const struct jinja_value *v,
                               const struct jinja_value *at)
{
    if (at->kind == JINJA_STR)
        return jinja_attribute(j, v, at->s);
    if (v->kind != JINJA_LIST || at->kind != JINJA_INT)
        jinja_fail(j, "an index does not suit its value");
    int64_t i = at->i < 0 ? at->i + (int64_t)v->n : at->i;
    if (j->failed || i < 0 || (uint64_t)i >= v->n)
        return (struct jinja_value){ .kind = JINJA_UNDEFINED };
    return v->items[i];
}

/* Return a bound of a slice, from low to high, as Python does. */
static int64_t jinja_value_bound(const struct jinja_value *v, int64_t otherwise, int64_t n,
                                 int64_t low, int64_t high)
{
    if (v->kind != JINJA_INT)
        return otherwise;
    int64_t i = v->i < 0 ? v->i + n : v->i;
    return i < low ? low : i > high ? high : i;
}

struct jinja_value jinja_slice(struct jinja *j, const struct jinja_value *v,
                               const struct jinja_value bounds[3])
{
    int64_t n = (int64_t)v->n, step = bounds[2].kind == JINJA_INT ? bounds[2].i : 1;
    if (v->kind != JINJA_LIST || (step != 1 && step != -1)) {
        jinja_fail(j, "a slice does not suit its value");
        return *v;
    }
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    int64_t from = jinja_value_bound(&bounds[0], step > 0 ? 0 : n - 1, n, low, high);
    int64_t to = jinja_value_bound(&bounds[1], step > 0 ? n : -1, n, low, high);
    struct jinja_value list = { .kind = JINJA_LIST };
    list.items = jinja_take(j, (size_t)n * sizeof(*list.items));
    for (int64_t i = from; list.items && (step > 0 ? i < to : i > to); i += step)
        list.items[list.n++] = v->items[i];
    return list;
}
