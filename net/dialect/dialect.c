#include "net/dialect/dialect.h"

#include <string.h>

#include "kernels/sys/base.h"
#include "net/http/json_input.h"

const struct dialect *dialect_of(enum cloud_api api)
{
    return api == CLOUD_LLAMACPP ? &dialect_llamacpp
           : api == CLOUD_SGLANG ? &dialect_sglang
                                 : &dialect_openai;
}

/* Read one id of a reply; the error names the field and what was found. */
static int one_id(uint32_t *out, const json_t *v, const char *field, const struct ask *a,
                  struct err *err)
{
    if (json_input_id(out, v, a->vocab))
        return OK;
    if (json_is_integer(v))
        return err_set(err, ERR_NET, "%s: expected an id below %zu, found %lld", field, a->vocab,
                       (long long)json_integer_value(v));
    return err_set(err, ERR_NET, "%s: expected a whole number below %zu, found %s", field, a->vocab,
                   json_is_real(v) ? "a fraction" : json_input_type(v));
}

/* Report that `ids` is no list. */
static int no_list(const json_t *ids, const char *field, struct err *err)
{
    return err_set(err, ERR_NET, "%s: expected a list of token ids, found %s", field,
                   json_input_type(ids));
}

/* Report a reply with more ids than were requested. */
static int too_many(size_t found, const char *field, const struct ask *a, struct err *err)
{
    return err_set(err, ERR_NET, "%s: expected %zu token id%s, found %zu", field, a->want,
                   a->want == 1 ? "" : "s", found);
}

/* True when ids[0 .. front) equals the end of the prompt. */
static bool prompt_in_front(const json_t *ids, size_t front, const struct ask *a)
{
    if (front > a->n)
        return false;
    for (size_t i = 0; i < front; i++) {
        uint32_t id;
        if (!json_input_id(&id, json_array_get(ids, i), a->vocab) || id != a->ids[a->n - front + i])
            return false;
    }
    return true;
}

int dialect_ids(struct reply *out, const json_t *ids, size_t made, const char *field,
                const struct ask *a, struct err *err)
{
    struct reply r = { .ended = true };
    size_t count = json_array_size(ids);
    if (!json_is_array(ids))
        return no_list(ids, field, err);
    if (!count)
        return err_set(err, ERR_NET, "%s: expected %zu token id%s, found none", field, a->want,
                       a->want == 1 ? "" : "s");
    if (!made || made > count)
        made = count;
    if (made > a->want || !prompt_in_front(ids, count - made, a))
        return too_many(count, field, a, err);
    for (; r.n < made; r.n++) {
        int rc = one_id(&r.ids[r.n], json_array_get(ids, count - made + r.n), field, a, err);
        if (rc)
            return rc;
    }
    *out = r;
    return OK;
}

int dialect_append(struct reply *io, const json_t *ids, const char *field, const struct ask *a,
                   struct err *err)
{
    size_t count = json_array_size(ids);
    if (!json_is_array(ids))
        return no_list(ids, field, err);
    if (count > a->want - io->n)
        return too_many(io->n + count, field, a, err);
    for (size_t i = 0; i < count; i++) {
        int rc = one_id(&io->ids[io->n], json_array_get(ids, i), field, a, err);
        if (rc)
            return rc;
        io->n++;
    }
    return OK;
}

int dialect_choice(const json_t **choice, const json_t *root, struct err *err)
{
    const json_t *choices = json_object_get(root, "choices"), *at;
    size_t n = json_array_size(choices), i = 0;
    *choice = NULL;
    for (; i < n && json_is_object(at = json_array_get(choices, i)); i++) {
        bool ours = !json_integer_value(json_object_get(at, "index"));
        if (ours && *choice)
            break;
        *choice = ours ? at : *choice;
    }
    if (n && i == n)
        return OK;
    return err_set(err, ERR_NET, "choices: expected a list with one of index 0, found %s of %zu",
                   json_input_type(choices), n);
}

int dialect_text_alone(const char *why, struct err *err)
{
    return err_set(err, ERR_REMOTE,
                   "the server answers in text without token ids (%s); it cannot be used", why);
}

int dialect_reason(const json_t *reason, struct err *err)
{
    char line[40];
    const char *s = json_string_value(reason);
    if (!s || strcmp(s, "stop") == 0 || strcmp(s, "length") == 0)
        return OK;
    json_input_line(line, sizeof(line), s, strlen(s));
    return err_set(err, ERR_NET, "the server ended the request: finish_reason \"%s\"", line);
}

const char *dialect_message(const json_t *root)
{
    const json_t *error = json_object_get(root, "error");
    const char *s = json_string_value(json_object_get(error, "message"));
    if (!s)
        s = json_string_value(error);
    if (!s)
        s = json_string_value(json_object_get(root, "message"));
    if (!s)
        s = json_string_value(json_object_get(root, "detail"));
    return s;
}
