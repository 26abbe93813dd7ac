#include "tools/stand_in/fault_edits.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/http/gzip.h"
#include "tools/stand_in/fault.h"

enum { DEPTH = 100000, BOMB = 16 << 20, FRONT = 5 };

/* Return the object that holds the ids, and set *key to their key; NULL if the dialect sends
 * none. */
static json_t *stand_in_fault_edits_holder(json_t *reply, const struct stand_in_case *c,
                                           const char **key)
{
    static const char *const keys[] = { "token_ids", "token_ids", "output_ids", "tokens" };
    *key = keys[c->ask->form];
    if (c->ask->form == FORM_VLLM || c->ask->form == FORM_TEXT)
        reply = json_array_get(json_object_get(reply, "choices"), 0);
    return json_is_array(json_object_get(reply, *key)) ? reply : NULL;
}

/* Return the list of ids, or NULL if it is missing or empty. */
static json_t *ids_of(json_t *reply, const struct stand_in_case *c)
{
    const char *key;
    const json_t *at = stand_in_fault_edits_holder(reply, c, &key);
    json_t *list = json_object_get(at, key);
    return json_array_size(list) ? list : NULL;
}

/* Replace the last id by v. */
static bool stand_in_fault_edits_put(json_t *reply, const struct stand_in_case *c, json_t *v)
{
    json_t *list = ids_of(reply, c);
    if (list)
        return v && json_array_set_new(list, json_array_size(list) - 1, v) == 0;
    json_decref(v);
    return true;
}

bool stand_in_fault_edit_wrong_id(json_t **reply, const struct stand_in_case *c)
{
    json_t *list = ids_of(*reply, c);
    json_int_t was = json_integer_value(json_array_get(list, json_array_size(list) - 1));
    return stand_in_fault_edits_put(*reply, c,
                                    json_integer(was == (json_int_t)c->other ? was + 1 : c->other));
}

bool stand_in_fault_edit_out_of_vocab(json_t **reply, const struct stand_in_case *c)
{
    return stand_in_fault_edits_put(*reply, c, json_integer((json_int_t)c->vocab + 7));
}

bool stand_in_fault_edit_negative_id(json_t **reply, const struct stand_in_case *c)
{
    return stand_in_fault_edits_put(*reply, c, json_integer(-1));
}

bool stand_in_fault_edit_real_id(json_t **reply, const struct stand_in_case *c)
{
    return stand_in_fault_edits_put(*reply, c, json_real(42.5));
}

bool stand_in_fault_edit_string_id(json_t **reply, const struct stand_in_case *c)
{
    return stand_in_fault_edits_put(*reply, c, json_string("42"));
}

bool stand_in_fault_edit_huge_id(json_t **reply, const struct stand_in_case *c)
{
    return stand_in_fault_edits_put(*reply, c, json_integer(INT64_MAX));
}

bool stand_in_fault_edit_no_ids(json_t **reply, const struct stand_in_case *c)
{
    const char *key;
    json_t *at = stand_in_fault_edits_holder(*reply, c, &key);
    return !at || json_object_del(at, key) == 0;
}

bool stand_in_fault_edit_null_ids(json_t **reply, const struct stand_in_case *c)
{
    const char *key;
    json_t *at = stand_in_fault_edits_holder(*reply, c, &key);
    return !at || json_object_set_new(at, key, json_null()) == 0;
}

/* Set the reason for the end of the text, in the words of the dialect. */
static bool set_reason(json_t *reply, const struct stand_in_case *c, const char *why)
{
    if (c->ask->form == FORM_COMPLETION)
        return json_object_set_new(reply, "stop_type",
                                   json_string(strcmp(why, "stop") == 0 ? "eos" : "limit")) == 0;
    if (c->ask->form == FORM_GENERATE)
        return json_object_set_new(json_object_get(reply, "meta_info"), "finish_reason",
                                   json_pack("{s:s}", "type", why)) == 0;
    return json_object_set_new(json_array_get(json_object_get(reply, "choices"), 0),
                               "finish_reason", json_string(why)) == 0;
}

bool stand_in_fault_edit_empty_ids(json_t **reply, const struct stand_in_case *c)
{
    const char *key;
    json_t *at = stand_in_fault_edits_holder(*reply, c, &key);
    return !at ||
           (json_object_set_new(at, key, json_array()) == 0 && set_reason(*reply, c, "stop"));
}

/* True if this answer or event says that the text ended at end-of-text. */
static bool stand_in_fault_edits_stopped(const json_t *reply, const struct stand_in_case *c)
{
    const json_t *why;
    if (c->ask->form == FORM_COMPLETION)
        why = json_object_get(reply, "stop_type");
    else if (c->ask->form == FORM_GENERATE)
        why = json_object_get(json_object_get(json_object_get(reply, "meta_info"), "finish_reason"),
                              "type");
    else
        why =
            json_object_get(json_array_get(json_object_get(reply, "choices"), 0), "finish_reason");
    const char *word = json_string_value(why);
    return word && (strcmp(word, "stop") == 0 || strcmp(word, "eos") == 0);
}

bool stand_in_fault_edit_no_eos(json_t **reply, const struct stand_in_case *c)
{
    json_t *list = ids_of(*reply, c);
    return !list || !stand_in_fault_edits_stopped(*reply, c) ||
           json_array_remove(list, json_array_size(list) - 1) == 0;
}

bool stand_in_fault_edit_length(json_t **reply, const struct stand_in_case *c)
{
    return !stand_in_fault_edits_stopped(*reply, c) || set_reason(*reply, c, "length");
}

bool stand_in_fault_edit_prompt(json_t **reply, const struct stand_in_case *c)
{
    json_t *list = ids_of(*reply, c);
    size_t n = c->ask->n < FRONT ? c->ask->n : (size_t)FRONT;
    for (size_t i = 0; list && i < n; i++)
        if (json_array_insert_new(list, i, json_integer(c->ask->ids[c->ask->n - n + i])))
            return false;
    return true;
}

bool stand_in_fault_edit_too_many(json_t **reply, const struct stand_in_case *c)
{
    json_t *list = ids_of(*reply, c);
    for (int i = 0; list && i < 3; i++)
        if (json_array_append_new(list, json_integer(c->other)))
            return false;
    return true;
}

/* Return the object that holds the token count of the prompt or of the text, and set *key. */
static json_t *counter(json_t *reply, const struct stand_in_case *c, bool prompt, const char **key)
{
    *key = prompt ? "prompt_tokens" : "completion_tokens";
    if (c->ask->form == FORM_GENERATE)
        return json_object_get(reply, "meta_info");
    if (c->ask->form != FORM_COMPLETION)
        return json_object_get(reply, "usage");
    *key = prompt ? "tokens_evaluated" : "tokens_predicted";
    return reply;
}

/* Change a token count by `by`. */
static bool miscount(json_t *reply, const struct stand_in_case *c, bool prompt, json_int_t by)
{
    const char *key;
    json_t *at = counter(reply, c, prompt, &key);
    const json_t *v = json_object_get(at, key);
    return !v || json_object_set_new(at, key, json_integer(json_integer_value(v) + by)) == 0;
}

bool stand_in_fault_edit_count(json_t **reply, const struct stand_in_case *c)
{
    return miscount(*reply, c, false, 6);
}

bool stand_in_fault_edit_short_prompt(json_t **reply, const struct stand_in_case *c)
{
    return miscount(*reply, c, true, -1);
}

bool stand_in_fault_edit_abort(json_t **reply, const struct stand_in_case *c)
{
    const char *key;
    json_t *at = stand_in_fault_edits_holder(*reply, c, &key);
    return (!at || json_object_set_new(at, key, json_array()) == 0) &&
           set_reason(*reply, c, "abort");
}

bool stand_in_fault_edit_list(json_t **reply, const struct stand_in_case *c)
{
    json_t *list = json_pack("[o]", *reply);
    (void)c;
    *reply = list;
    return list != NULL;
}

bool stand_in_fault_edit_control(json_t **reply, const struct stand_in_case *c)
{
    json_t *at = *reply, *text = json_string("\x1b[2J\x1b]0;title\x07\xe2\x80\xaetxet");
    if (c->ask->form == FORM_VLLM || c->ask->form == FORM_TEXT)
        at = json_array_get(json_object_get(at, "choices"), 0);
    return json_object_set_new(at, c->ask->form == FORM_COMPLETION ? "content" : "text", text) == 0;
}

bool stand_in_fault_edit_model(json_t **reply, const struct stand_in_case *c)
{
    (void)c;
    return json_object_set_new(*reply, "model", json_string("another-model")) == 0;
}

/* Replace the text by front[n] or, if keep, put front before it; an object then loses its own
 * brace. */
static bool replace(struct buf *text, const char *front, size_t n, bool keep)
{
    struct buf made = { .max = text->max };
    bool fine = buf_add(&made, front, n) &&
                (!keep || buf_add(&made, text->p + (*front == '{'), text->n - (*front == '{')));
    buf_free(text);
    *text = made;
    return fine;
}

bool stand_in_fault_edit_bad_json(struct buf *text)
{
    text->n -= text->n < 3 ? text->n : 3;
    return true;
}

bool stand_in_fault_edit_nan(struct buf *text)
{
    static const char front[] = "{\"score\":NaN,";
    return replace(text, front, sizeof(front) - 1, true);
}

bool stand_in_fault_edit_infinity(struct buf *text)
{
    static const char front[] = "{\"score\":1e999,";
    return replace(text, front, sizeof(front) - 1, true);
}

bool stand_in_fault_edit_bad_utf8(struct buf *text)
{
    static const char front[] = "{\"note\":\"\xff\xfe\xc3\",";
    return replace(text, front, sizeof(front) - 1, true);
}

bool stand_in_fault_edit_nul(struct buf *text)
{
    static const char front[] = "{\0\"note\":\"\",";
    return replace(text, front, sizeof(front) - 1, true);
}

bool stand_in_fault_edit_bom(struct buf *text)
{
    static const char front[] = "\xef\xbb\xbf";
    return replace(text, front, sizeof(front) - 1, true);
}

bool stand_in_fault_edit_trailing(struct buf *text)
{
    return buf_str(text, "\n{\"more\":1}");
}

bool stand_in_fault_edit_deep(struct buf *text)
{
    text->n = 0;
    for (size_t i = 0; i < DEPTH; i++)
        if (!buf_str(text, "["))
            return false;
    return true;
}

bool stand_in_fault_edit_twice(struct buf *text)
{
    static const char front[] = "{\"tokens\":[0],\"output_ids\":[0],\"choices\":[],";
    return replace(text, front, sizeof(front) - 1, true);
}

/* Replace the text by p[n], compressed. */
static bool compress(struct buf *text, const char *p, size_t n)
{
    struct buf out = { .max = text->max };
    bool fine = gzip_add(&out, p, n);
    buf_free(text);
    *text = out;
    return fine;
}

bool stand_in_fault_edit_gzip(struct buf *text)
{
    return compress(text, text->p, text->n);
}

bool stand_in_fault_edit_bomb(struct buf *text)
{
    char *zeros = calloc(1, BOMB); /* only read, so the kernel backs it with one zero page */
    bool fine = zeros && compress(text, zeros, BOMB);
    free(zeros);
    return fine;
}
