#include "kernels/base.h"
#include "net/dialect.h"
#include "net/jsonin.h"

const struct dialect *dialect_of(enum cloud_api api)
{
    return api == CLOUD_LLAMACPP ? &dialect_llamacpp : &dialect_openai;
}

/* True where ids[0 .. count-1) equals the end of the prompt. */
static bool prompt_in_front(const json_t *ids, size_t count, const struct ask *a)
{
    if (count - 1 > a->n)
        return false;
    for (size_t i = 0; i + 1 < count; i++) {
        uint32_t id;
        if (!jsonin_id(&id, json_array_get(ids, i), a->vocab) ||
            id != a->ids[a->n - (count - 1) + i])
            return false;
    }
    return true;
}

int dialect_one_id(uint32_t *out, const json_t *ids, size_t generated, const char *field,
                   const struct ask *a, struct err *err)
{
    if (!json_is_array(ids))
        return err_set(err, ERR_NET, "%s: expected a list of token ids, found %s", field,
                       jsonin_type(ids));
    size_t count = json_array_size(ids);
    if (!count)
        return err_set(err, ERR_NET, "%s: expected 1 token id, found none", field);
    if (count > 1 && (generated != 1 || !prompt_in_front(ids, count, a)))
        return err_set(err, ERR_NET, "%s: expected 1 token id, found %zu", field, count);
    const json_t *last = json_array_get(ids, count - 1);
    if (jsonin_id(out, last, a->vocab))
        return OK;
    if (json_is_integer(last))
        return err_set(err, ERR_NET, "%s: expected an id below %zu, found %lld", field, a->vocab,
                       (long long)json_integer_value(last));
    return err_set(err, ERR_NET, "%s: expected a whole number below %zu, found %s", field, a->vocab,
                   json_is_real(last) ? "a fraction" : jsonin_type(last));
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
