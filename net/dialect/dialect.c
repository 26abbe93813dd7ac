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

/* True when ids[0 .. front) equals the end of the prompt, and what follows the answer so far. */
static bool goes_on(const json_t *ids, size_t front, const struct reply *r, const struct ask *a)
{
    if (front > a->n)
        return false;
    for (size_t i = 0; i < front + r->n; i++) {
        uint32_t id, want = i < front ? a->ids[a->n - front + i] : r->ids[i - front];
        if (!json_input_id(&id, json_array_get(ids, i), a->vocab) || id != want)
            return false;
    }
    return true;
}

int dialect_ids(struct reply *io, const json_t *ids, size_t made, const char *field,
                const struct ask *a, struct err *err)
{
    struct reply r = *io;
    size_t count = json_array_size(ids), news = made ? made - r.n : count;
    if (!json_is_array(ids))
        return err_set(err, ERR_NET, "%s: expected a list of token ids, found %s", field,
                       json_input_type(ids));
    if (made && made <= r.n)
        return OK;
    if (!a->stream && count < news) /* it also counts what it does not give */
        news = count;
    if (news > a->want - r.n)
        return err_set(err, ERR_NET, "%s: expected %zu token id%s, found %zu", field, a->want,
                       a->want == 1 ? "" : "s", r.n + news);
    size_t known = count - news; /* all that is known is in front, or nothing */
    if (count < news || (known && (known < r.n || !goes_on(ids, known - r.n, &r, a))))
        return err_set(err, ERR_NET, "%s: expected %zu new id%s after those before, found %zu",
                       field, news, news == 1 ? "" : "s", count);
    for (size_t i = known; i < count; i++) {
        int rc = one_id(&r.ids[r.n], json_array_get(ids, i), field, a, err);
        if (rc)
            return rc;
        r.n++;
    }
    *io = r;
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
    s = s ? s : json_string_value(error);
    s = s ? s : json_string_value(json_object_get(root, "message"));
    return s ? s : json_string_value(json_object_get(root, "detail"));
}
