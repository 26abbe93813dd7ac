#include "model/text/jinja.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/chat.h"
#include "model/text/jinja_internal.h"

void jinja_fail(struct jinja *j, const char *why)
{
    if (j->failed)
        return;
    j->failed = why;
    j->at = j->ntokens ? j->ntokens - 1 : 0;
}

void jinja_work(struct jinja *j, size_t steps)
{
    j->steps += steps;
    if (j->steps > JINJA_STEPS)
        jinja_fail(j, "it takes too long");
}

void *jinja_take(struct jinja *j, size_t n)
{
    n = (n + 7) / 8 * 8;
    if (j->failed || n > JINJA_MEMORY - j->used) {
        jinja_fail(j, "it takes too much memory");
        return NULL;
    }
    j->used += n;
    return j->memory + j->used - n;
}

bool jinja_is(struct str s, const char *text)
{
    return s.n == strlen(text) && !memcmp(s.p, text, s.n);
}

static void jinja_print(struct jinja *j, struct str s)
{
    if (s.n > JINJA_OUTPUT - j->nout) {
        jinja_fail(j, "it renders too much");
        return;
    }
    if (s.n)
        memcpy(j->out + j->nout, s.p, s.n);
    j->nout += s.n;
}

/* Set a variable of the innermost loop, or of the template outside of loops. */
static void jinja_set(struct jinja *j, struct str name, struct jinja_value v)
{
    size_t i = j->scope;
    while (i < j->nvariables &&
           !(j->variables[i].name.n == name.n && !memcmp(j->variables[i].name.p, name.p, name.n)))
        i++;
    if (i == JINJA_VARIABLES) {
        jinja_fail(j, "it has too many variables");
        return;
    }
    j->variables[i].name = name;
    j->variables[i].value = v;
    j->nvariables += i == j->nvariables;
}

/* Take the beginning of a tag and its name. */
static struct str jinja_tag(struct jinja *j)
{
    jinja_work(j, 1);
    if (j->at + 1 < j->ntokens)
        j->at++;
    return jinja_name(j);
}

/* True if the tag that is next has one of these names. */
static bool jinja_tag_is(const struct jinja *j, const char *const *names)
{
    const struct jinja_token *t = &j->tokens[j->at];
    for (; t->type == JINJA_TAG && *names; names++)
        if (t[1].type == JINJA_NAME && jinja_is(t[1].s, *names))
            return true;
    return false;
}

static const char *const jinja_begins[] = { "if", "for", "macro", NULL };
static const char *const jinja_ends[] = { "endif", "endfor", "endmacro", NULL };
static const char *const jinja_parts[] = { "elif", "else", "endif", "endfor", "endmacro", NULL };

/* Go on to the tag that ends this part of a block, without evaluating anything. */
static void jinja_skip(struct jinja *j)
{
    size_t depth = 0;
    for (; j->tokens[j->at].type != JINJA_END; j->at++) {
        jinja_work(j, 1);
        if (j->failed || (!depth && jinja_tag_is(j, jinja_parts)))
            return;
        depth += jinja_tag_is(j, jinja_begins);
        depth -= jinja_tag_is(j, jinja_ends);
    }
}

static void jinja_block(struct jinja *j);

static void jinja_if(struct jinja *j)
{
    bool done = false, otherwise = false;
    while (!j->failed) {
        struct jinja_value v = jinja_bool(true);
        if (!otherwise) {
            j->dry += done;
            v = jinja_expression(j);
            j->dry -= done;
        }
        jinja_close(j);
        if (!done && jinja_true(&v)) {
            done = true;
            jinja_block(j);
        } else {
            jinja_skip(j);
        }
        struct str name = jinja_tag(j);
        if (jinja_is(name, "endif")) {
            jinja_close(j);
            return;
        }
        if (otherwise || !(jinja_is(name, "elif") || jinja_is(name, "else")))
            jinja_fail(j, "the syntax is wrong or not known");
        otherwise = jinja_is(name, "else");
    }
}

static void jinja_end(struct jinja *j, const char *name)
{
    if (!jinja_is(jinja_tag(j), name))
        jinja_fail(j, "the syntax is wrong or not known");
    jinja_close(j);
}

/* Each turn of a loop begins without the variables that the one before has set. */
static void jinja_for(struct jinja *j)
{
    struct str name = jinja_name(j);
    struct jinja_loop *loop = jinja_take(j, sizeof(*loop));
    jinja_expect(j, "in");
    struct jinja_value list = jinja_or(j);
    jinja_close(j);
    if (list.kind != JINJA_LIST && list.kind != JINJA_UNDEFINED)
        jinja_fail(j, "a loop over what is no list");
    if (j->failed)
        return;
    size_t body = j->at, scope = j->scope, before = j->nvariables;
    loop->list = list;
    if (!list.n)
        jinja_skip(j);
    for (size_t i = 0; i < list.n && !j->failed; i++) {
        j->at = body;
        j->scope = j->nvariables = before;
        loop->at = i;
        jinja_set(j, name, list.items[i]);
        jinja_set(j, (struct str){ "loop", 4 },
                  (struct jinja_value){ .kind = JINJA_LOOP, .loop = loop });
        jinja_block(j);
    }
    j->scope = scope;
    j->nvariables = before;
    jinja_end(j, "endfor");
}

static void jinja_assign(struct jinja *j)
{
    struct str name = jinja_name(j), entry = { "", 0 };
    if (jinja_next(j, "."))
        entry = jinja_name(j);
    jinja_expect(j, "=");
    struct jinja_value v = jinja_expression(j);
    jinja_close(j);
    if (j->failed)
        return;
    if (!entry.n) {
        jinja_set(j, name, v);
        return;
    }
    for (size_t i = j->nvariables; i > 0; i--)
        if (j->variables[i - 1].name.n == name.n &&
            !memcmp(j->variables[i - 1].name.p, name.p, name.n)) {
            if (j->variables[i - 1].value.kind == JINJA_MAP)
                jinja_put(j, j->variables[i - 1].value.map, entry, v);
            else
                jinja_fail(j, "an attribute of what is no namespace is set");
            return;
        }
    jinja_fail(j, "an attribute of what is not defined is set");
}

/* A macro is skipped: calling one is not known. */
static void jinja_macro(struct jinja *j)
{
    while (!j->failed && j->tokens[j->at].type != JINJA_CLOSE && j->at + 1 < j->ntokens)
        j->at++;
    jinja_close(j);
    jinja_skip(j);
    jinja_end(j, "endmacro");
}

static void jinja_statement(struct jinja *j)
{
    struct str name = jinja_tag(j);
    if (jinja_is(name, "if"))
        jinja_if(j);
    else if (jinja_is(name, "for"))
        jinja_for(j);
    else if (jinja_is(name, "set"))
        jinja_assign(j);
    else if (jinja_is(name, "macro"))
        jinja_macro(j);
    else
        jinja_fail(j, "a tag is not known");
}

/* Render up to the tag that ends this part of a block, or to the end of the template. */
static void jinja_block(struct jinja *j)
{
    if (++j->depth > JINJA_DEPTH)
        jinja_fail(j, "too much is nested");
    while (!j->failed && j->tokens[j->at].type != JINJA_END && !jinja_tag_is(j, jinja_parts)) {
        const struct jinja_token *t = &j->tokens[j->at];
        jinja_work(j, 1);
        j->where = t->s.p;
        if (t->type == JINJA_TAG) {
            jinja_statement(j);
            continue;
        }
        if (!j->failed)
            j->at++;
        if (t->type == JINJA_TEXT) {
            jinja_print(j, t->s);
        } else {
            struct jinja_value v = jinja_expression(j);
            jinja_close(j);
            if (!j->failed)
                jinja_print(j, jinja_text(j, &v));
        }
    }
    j->depth--;
}

/* Set the variables that transformers gives to a template. */
static void jinja_prepare(struct jinja *j, const struct chat_message *m, size_t n,
                          enum jinja_flag thinking)
{
    static const char *const absent[] = { "tools", "documents" };
    struct jinja_value *items = jinja_take(j, n * sizeof(*items));
    for (size_t i = 0; items && i < n; i++) {
        struct jinja_map *map = jinja_take(j, sizeof(*map));
        if (!map)
            return;
        jinja_put(j, map, (struct str){ "role", 4 }, jinja_str(m[i].role, strlen(m[i].role)));
        jinja_put(j, map, (struct str){ "content", 7 }, jinja_str(m[i].text, m[i].n));
        items[i] = (struct jinja_value){ .kind = JINJA_MAP, .map = map };
    }
    for (size_t i = 0; i < 2; i++)
        jinja_set(j, (struct str){ absent[i], strlen(absent[i]) },
                  (struct jinja_value){ .kind = JINJA_NONE });
    jinja_set(j, (struct str){ "messages", 8 },
              (struct jinja_value){ .kind = JINJA_LIST, .items = items, .n = n });
    jinja_set(j, (struct str){ "add_generation_prompt", 21 }, jinja_bool(true));
    if (thinking != JINJA_UNSET)
        jinja_set(j, (struct str){ "enable_thinking", 15 }, jinja_bool(thinking == JINJA_TRUE));
}

int jinja_render(char **out, const char *template, size_t n, const struct chat_message *messages,
                 size_t count, enum jinja_flag thinking, struct err *err)
{
    struct jinja *j = calloc(1, sizeof(*j) + JINJA_MEMORY + JINJA_OUTPUT + 1);
    size_t line = 1;
    *out = NULL;
    if (!j)
        return err_set(err, ERR_NOMEM, "chat template: out of memory");
    j->template = j->where = template;
    j->length = n;
    j->memory = (char *)(j + 1);
    j->out = j->memory + JINJA_MEMORY;
    if (n > JINJA_TEMPLATE)
        jinja_fail(j, "it is too large");
    jinja_prepare(j, messages, count, thinking);
    if (!j->failed)
        jinja_tokens(j);
    if (!j->failed) {
        jinja_block(j);
        if (j->tokens[j->at].type != JINJA_END)
            jinja_fail(j, "the syntax is wrong or not known");
    }
    for (const char *p = j->template; j->failed && p < j->where; p++)
        line += *p == '\n';
    int rc = j->failed ? err_set(err, ERR_FORMAT, "line %zu: %s", line, j->failed) : OK;
    if (rc == OK && !(*out = malloc(j->nout + 1)))
        rc = err_set(err, ERR_NOMEM, "chat template: out of memory");
    if (rc == OK) {
        memcpy(*out, j->out, j->nout);
        (*out)[j->nout] = '\0';
    }
    free(j);
    return rc;
}
