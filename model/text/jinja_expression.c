/* jinja_expression.c - reads and evaluates expressions at once, in Jinja's order of operators. */
#include <string.h>

#include "model/text/jinja_internal.h"

static const struct jinja_value jinja_undefined = { .kind = JINJA_UNDEFINED };

/* Return the next token. */
static const struct jinja_token *jinja_peek(const struct jinja *j)
{
    return &j->tokens[j->at];
}

/* Go to the next token, unless this is the last. */
static void jinja_advance(struct jinja *j)
{
    jinja_work(j, 1);
    j->where = jinja_peek(j)->s.p;
    if (j->at + 1 < j->ntokens)
        j->at++;
}

bool jinja_at(const struct jinja *j, const char *text)
{
    const struct jinja_token *t = jinja_peek(j);
    return (t->type == JINJA_NAME || t->type == JINJA_SIGN) && jinja_is(t->s, text);
}

bool jinja_next(struct jinja *j, const char *text)
{
    bool found = jinja_at(j, text);
    if (found)
        jinja_advance(j);
    return found;
}

void jinja_expect(struct jinja *j, const char *text)
{
    if (!jinja_next(j, text))
        jinja_fail(j, "the syntax is wrong or not known");
}

void jinja_close(struct jinja *j)
{
    if (jinja_peek(j)->type != JINJA_CLOSE)
        jinja_fail(j, "the syntax is wrong or not known");
    jinja_advance(j);
}

struct str jinja_name(struct jinja *j)
{
    struct str s = jinja_peek(j)->s;
    if (jinja_peek(j)->type != JINJA_NAME)
        jinja_fail(j, "the syntax is wrong or not known");
    jinja_advance(j);
    return s;
}

/* Return the text of a string token. */
static struct jinja_value jinja_unescape(struct jinja *j, struct str s)
{
    static const char escapes[] = "n\nt\tr\r\\\\''\"\"";
    char *p = s.n && memchr(s.p, '\\', s.n) ? jinja_take(j, s.n) : NULL;
    size_t n = 0;
    if (!p)
        return jinja_str(s.p, s.n);
    for (size_t i = 0; i < s.n; i++) {
        const char *e = escapes;
        if (s.p[i] != '\\') {
            p[n++] = s.p[i];
            continue;
        }
        i++; /* the string goes on, because a quote behind the backslash would not have ended it */
        while (*e && *e != s.p[i])
            e += 2;
        if (!*e)
            jinja_fail(j, "an escape is not known");
        p[n++] = *e ? e[1] : ' ';
    }
    return jinja_str(p, n);
}

/* Read the arguments of a call, behind its parenthesis. */
static void jinja_arguments(struct jinja *j, struct jinja_map *args)
{
    args->n = 0;
    while (!j->failed && !jinja_next(j, ")")) {
        struct str name = { "", 0 };
        const struct jinja_token *t = jinja_peek(j);
        if (t->type == JINJA_NAME && jinja_is(t[1].s, "=") && t[1].type == JINJA_SIGN) {
            name = jinja_name(j);
            jinja_advance(j);
        }
        jinja_put(j, args, name, jinja_expression(j));
        if (!jinja_at(j, ")"))
            jinja_expect(j, ",");
    }
}

/* Call a function by its name. */
static struct jinja_value jinja_call(struct jinja *j, struct str name)
{
    struct jinja_map unused, *args = j->dry ? &unused : jinja_take(j, sizeof(*args));
    if (!args)
        return jinja_undefined;
    jinja_arguments(j, args);
    if (j->dry || j->failed)
        return jinja_undefined;
    if (jinja_is(name, "namespace"))
        return (struct jinja_value){ .kind = JINJA_MAP, .map = args };
    jinja_fail(j, jinja_is(name, "raise_exception") ? "the template refuses the conversation"
                                                    : "a function is not known");
    return jinja_undefined;
}

/* Return the value of a name. */
static struct jinja_value jinja_variable(struct jinja *j, struct str name)
{
    static const char *const truths[] = { "false", "False", "true", "True" };
    for (size_t i = 0; i < 4; i++)
        if (jinja_is(name, truths[i]))
            return jinja_bool(i > 1);
    if (jinja_is(name, "none") || jinja_is(name, "None"))
        return (struct jinja_value){ .kind = JINJA_NONE };
    for (size_t i = j->nvariables; i > 0; i--) {
        struct str s = j->variables[i - 1].name;
        if (s.n == name.n && !memcmp(s.p, name.p, s.n))
            return j->variables[i - 1].value;
    }
    return jinja_undefined;
}

static struct jinja_value jinja_list(struct jinja *j)
{
    struct jinja_value list = { .kind = JINJA_LIST };
    list.items = jinja_take(j, JINJA_ENTRIES * sizeof(*list.items));
    while (!j->failed && !jinja_next(j, "]")) {
        struct jinja_value v = jinja_expression(j);
        if (list.n == JINJA_ENTRIES)
            jinja_fail(j, "a list is too long");
        else if (list.items)
            list.items[list.n++] = v;
        if (!jinja_at(j, "]"))
            jinja_expect(j, ",");
    }
    return list;
}

static struct jinja_value jinja_primary(struct jinja *j)
{
    const struct jinja_token *t = jinja_peek(j);
    struct jinja_value v = jinja_undefined;
    if (t->type == JINJA_STRING) {
        jinja_advance(j);
        return jinja_unescape(j, t->s);
    }
    if (t->type == JINJA_INTEGER) {
        int64_t i = 0;
        jinja_advance(j);
        for (size_t k = 0; k < t->s.n; k++)
            i = i < 100000000 ? i * 10 + (t->s.p[k] - '0') : i;
        return jinja_int(i);
    }
    if (t->type == JINJA_NAME) {
        struct str name = jinja_name(j);
        return jinja_next(j, "(") ? jinja_call(j, name) : jinja_variable(j, name);
    }
    if (jinja_next(j, "(")) {
        v = jinja_expression(j);
        jinja_expect(j, ")");
        return v;
    }
    if (jinja_next(j, "["))
        return jinja_list(j);
    jinja_fail(j, "the syntax is wrong or not known");
    return v;
}

/* Read an index or a slice behind its bracket and apply it. */
static struct jinja_value jinja_subscript(struct jinja *j, const struct jinja_value *v)
{
    struct jinja_value bounds[3] = { { .kind = JINJA_UNDEFINED } };
    size_t colons = 0;
    while (!j->failed && !jinja_next(j, "]")) {
        if (jinja_next(j, ":")) {
            if (++colons > 2)
                jinja_fail(j, "the syntax is wrong or not known");
            continue;
        }
        bounds[colons] = jinja_expression(j);
        if (!jinja_at(j, ":") && !jinja_at(j, "]"))
            jinja_fail(j, "the syntax is wrong or not known");
    }
    if (j->dry || j->failed)
        return jinja_undefined;
    return colons ? jinja_slice(j, v, bounds) : jinja_index(j, v, &bounds[0]);
}

/* Read an attribute or a method behind its dot and apply it. */
static struct jinja_value jinja_member(struct jinja *j, const struct jinja_value *v)
{
    struct str name = jinja_name(j);
    struct jinja_map args;
    if (!jinja_next(j, "("))
        return j->dry || j->failed ? jinja_undefined : jinja_attribute(j, v, name);
    jinja_arguments(j, &args);
    return j->dry || j->failed ? jinja_undefined : jinja_method(j, v, name, &args);
}

/* Read a filter behind its bar and apply it. */
static struct jinja_value jinja_filtered(struct jinja *j, const struct jinja_value *v)
{
    struct str name = jinja_name(j);
    struct jinja_map args = { .n = 0 };
    if (jinja_next(j, "("))
        jinja_arguments(j, &args);
    return j->dry || j->failed ? jinja_undefined : jinja_filter(j, name, v, &args);
}

/* A value with what is behind it: attributes, indices, filters, tests. */
static struct jinja_value jinja_unary(struct jinja *j)
{
    if (jinja_next(j, "-")) {
        if (++j->depth > JINJA_DEPTH)
            jinja_fail(j, "too much is nested");
        struct jinja_value zero = jinja_int(0), v = j->failed ? zero : jinja_unary(j);
        j->depth--;
        return j->dry || j->failed ? jinja_undefined
                                   : jinja_operate(j, (struct str){ "-", 1 }, &zero, &v);
    }
    struct jinja_value v = jinja_primary(j);
    while (!j->failed) {
        if (jinja_next(j, ".")) {
            v = jinja_member(j, &v);
        } else if (jinja_next(j, "[")) {
            v = jinja_subscript(j, &v);
        } else if (jinja_next(j, "|")) {
            v = jinja_filtered(j, &v);
        } else if (jinja_next(j, "is")) {
            bool not = jinja_next(j, "not");
            struct str name = jinja_name(j);
            v = j->dry || j->failed ? jinja_undefined : jinja_bool(jinja_test(j, name, &v) != not );
        } else {
            break;
        }
    }
    return v;
}

/* Operators of two values by how tightly they bind; a level is a list that ends with NULL. */
static const char *const jinja_levels[][7] = {
    { "==", "!=", "<", "<=", ">", ">=", NULL }, { "+", "-", NULL }, { "~", NULL }, { "%", NULL }
};
enum { JINJA_LEVELS = sizeof(jinja_levels) / sizeof(jinja_levels[0]) };

static struct jinja_value jinja_binary(struct jinja *j, size_t level)
{
    struct jinja_value a = level + 1 < JINJA_LEVELS ? jinja_binary(j, level + 1) : jinja_unary(j);
    for (size_t count = 0; !j->failed; count++) {
        size_t i = 0;
        struct str sign = jinja_peek(j)->s;
        while (jinja_levels[level][i] && !jinja_at(j, jinja_levels[level][i]))
            i++;
        bool in = level == 0 && jinja_at(j, "in");
        bool not = level == 0 && jinja_at(j, "not") && jinja_is(jinja_peek(j)[1].s, "in");
        if (!jinja_levels[level][i] && !in && !not )
            break;
        if (level == 0 && count) /* `a < b < c` would be two comparisons */
            jinja_fail(j, "the syntax is wrong or not known");
        jinja_advance(j);
        if (not )
            jinja_advance(j);
        struct jinja_value b =
            level + 1 < JINJA_LEVELS ? jinja_binary(j, level + 1) : jinja_unary(j);
        if (j->dry || j->failed)
            a = jinja_undefined;
        else if (in || not )
            a = jinja_bool(jinja_contains(j, &b, &a) != not );
        else
            a = jinja_operate(j, sign, &a, &b);
    }
    return a;
}

static struct jinja_value jinja_not(struct jinja *j)
{
    size_t count = 0;
    while (jinja_next(j, "not"))
        count++;
    struct jinja_value v = jinja_binary(j, 0);
    return count ? jinja_bool(jinja_true(&v) != (count % 2 == 1)) : v;
}

/* The right side of `and` and `or` is evaluated only if it matters. */
static struct jinja_value jinja_and(struct jinja *j)
{
    struct jinja_value a = jinja_not(j);
    while (!j->failed && jinja_next(j, "and")) {
        bool skip = !jinja_true(&a);
        j->dry += skip;
        struct jinja_value b = jinja_not(j);
        j->dry -= skip;
        a = skip ? a : b;
    }
    return a;
}

struct jinja_value jinja_or(struct jinja *j)
{
    struct jinja_value a = jinja_and(j);
    while (!j->failed && jinja_next(j, "or")) {
        bool skip = jinja_true(&a);
        j->dry += skip;
        struct jinja_value b = jinja_and(j);
        j->dry -= skip;
        a = skip ? a : b;
    }
    return a;
}

/* Skip the tokens of `a` in `a if c else b`, to find c; false if there is no such `if`. */
static bool jinja_find_if(struct jinja *j)
{
    j->dry++;
    jinja_or(j);
    j->dry--;
    return jinja_next(j, "if");
}

struct jinja_value jinja_expression(struct jinja *j)
{
    size_t begin = j->at;
    if (++j->depth > JINJA_DEPTH)
        jinja_fail(j, "too much is nested");
    struct jinja_value v = jinja_undefined;
    if (!j->failed && !j->dry && jinja_find_if(j)) {
        struct jinja_value c = jinja_or(j);
        size_t behind = j->at;
        if (jinja_true(&c)) {
            j->at = begin;
            v = jinja_or(j);
            j->at = j->failed ? j->at : behind;
        }
        j->dry += jinja_true(&c);
        if (!j->failed && jinja_next(j, "else")) {
            struct jinja_value b = jinja_expression(j);
            v = jinja_true(&c) ? v : b;
        }
        j->dry -= jinja_true(&c);
    } else if (!j->failed) {
        j->at = begin;
        v = jinja_or(j);
        if (j->dry && jinja_next(j, "if")) {
            jinja_or(j);
            if (jinja_next(j, "else"))
                jinja_expression(j);
        }
    }
    j->depth--;
    return v;
}
