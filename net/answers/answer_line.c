#include "net/answers/answer_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "kernels/sys/base.h"
#include "net/http/json_input.h"

enum { CRC_TAIL = 18 /* ,"crc":"01234567"} */, LAST = 8 };

static const char *const origins[] = { NULL, "call", "memo", "store" };
static const char *const faults[] = { "net", "remote", "text" };
static const int fault_codes[] = { ERR_NET, ERR_REMOTE, ERR_TEXT };

void answer_line_set_server(struct answer_server *s, const char *model, const char *api,
                            uint64_t tokenizer)
{
    json_input_line(s->model, sizeof(s->model), model, strlen(model));
    json_input_line(s->api, sizeof(s->api), api, strlen(api));
    s->tokenizer = tokenizer;
}

/* Append text as a JSON string. It is one harmless line, so only quotes and backslashes need
 * escaping. */
static size_t add_string(char *to, const char *text)
{
    size_t n = 0;
    to[n++] = '"';
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            to[n++] = '\\';
        to[n++] = *text;
    }
    to[n++] = '"';
    return n;
}

/* End a line of n bytes with its checksum. */
static size_t add_crc(char *line, size_t n)
{
    char end[CRC_TAIL + 2];
    int k = snprintf(end, sizeof(end), ",\"crc\":\"%08x\"}\n",
                     (unsigned)crc32_z(0, (const Bytef *)line, n));
    memcpy(line + n, end, (size_t)k);
    return n + (size_t)k;
}

size_t answer_line_store(char line[ANSWER_LINE])
{
    return add_crc(line, (size_t)snprintf(line, ANSWER_LINE, "{\"mizzle_answers\":2"));
}

size_t answer_line_server(char line[ANSWER_LINE], const struct answer_server *s)
{
    size_t n = (size_t)snprintf(line, ANSWER_LINE, "{\"mizzle_answers\":2,\"model\":");
    n += add_string(line + n, s->model);
    n += (size_t)snprintf(line + n, ANSWER_LINE - n, ",\"api\":");
    n += add_string(line + n, s->api);
    n += (size_t)snprintf(line + n, ANSWER_LINE - n, ",\"tokenizer\":\"%016llx\"",
                          (unsigned long long)s->tokenizer);
    return add_crc(line, n);
}

size_t answer_line_stored(char line[ANSWER_LINE_STORED], const struct prefix_key *k, uint32_t id)
{
    char hash[PREFIX_KEY_TEXT];
    prefix_key_text(hash, k);
    return add_crc(line, (size_t)snprintf(line, ANSWER_LINE_STORED, "{\"hash\":\"%s\",\"id\":%u",
                                          hash, (unsigned)id));
}

size_t answer_line_recorded(char line[ANSWER_LINE], const struct answer *a,
                            const struct prefix_key *k, const uint32_t *ids, size_t n)
{
    char hash[PREFIX_KEY_TEXT];
    prefix_key_text(hash, k);
    size_t at =
        (size_t)snprintf(line, ANSWER_LINE, "{\"n\":%zu,\"hash\":\"%s\",\"last\":[", n, hash);
    for (size_t i = n < LAST ? 0 : n - LAST; i < n; i++)
        at += (size_t)snprintf(line + at, ANSWER_LINE - at, "%u%s", (unsigned)ids[i],
                               i + 1 < n ? "," : "");
    at += (size_t)snprintf(line + at, ANSWER_LINE - at, "],\"from\":\"%s\"", origins[a->from]);
    if (!a->fault)
        return add_crc(line, at + (size_t)snprintf(line + at, ANSWER_LINE - at, ",\"id\":%u",
                                                   (unsigned)a->id));
    size_t i = 0;
    while (fault_codes[i] != a->fault)
        i++;
    at +=
        (size_t)snprintf(line + at, ANSWER_LINE - at, ",\"fault\":\"%s\",\"message\":", faults[i]);
    return add_crc(line, at + add_string(line + at, a->message));
}

/* Report a member that is not what it should be. */
static int bad_member(const char *name, const char *want, const json_t *v, struct err *err)
{
    return err_set(err, ERR_FORMAT, "%s: expected %s, found %s", name, want, json_input_type(v));
}

/* Return the index of the string v among names[n], of which the first `from` do not count; n: it is
 * none of them. */
static size_t name_index(const json_t *v, const char *const *names, size_t from, size_t n)
{
    const char *name = json_string_value(v);
    size_t i = from;
    while (i < n && (!name || strcmp(name, names[i]) != 0))
        i++;
    return i;
}

/* Check the checksum of p[n] and parse it. */
static int parse_line(json_t **root, const char *p, size_t n, struct err *err)
{
    char crc[9];
    if (n > ANSWER_LINE)
        return err_set(err, ERR_FORMAT, "expected at most %d bytes", ANSWER_LINE);
    if (n <= CRC_TAIL || memcmp(p + n - CRC_TAIL, ",\"crc\":\"", 8) != 0 ||
        memcmp(p + n - 2, "\"}", 2) != 0)
        return err_set(err, ERR_FORMAT, "expected a checksum at its end");
    snprintf(crc, sizeof(crc), "%08x", (unsigned)crc32_z(0, (const Bytef *)p, n - CRC_TAIL));
    if (memcmp(p + n - 10, crc, 8) != 0)
        return err_set(err, ERR_FORMAT, "checksum: expected %s, found %.8s", crc, p + n - 10);
    return json_input_parse(root, p, n, err);
}

int answer_line_read_server(struct answer_server *out, const char *p, size_t n, struct err *err)
{
    json_t *root;
    struct prefix_key k;
    char hex[PREFIX_KEY_TEXT] = "0000000000000000";
    int rc = parse_line(&root, p, n, err);
    if (rc != OK)
        return rc;
    const json_t *model = json_object_get(root, "model"), *api = json_object_get(root, "api");
    const json_t *print = json_object_get(root, "tokenizer");
    bool known = json_string_length(print) == 16;
    if (known)
        memcpy(hex + 16, json_string_value(print), 17);
    if (!json_is_string(model))
        rc = bad_member("model", "a string", model, err);
    else if (!json_is_string(api))
        rc = bad_member("api", "a string", api, err);
    else if (!known || !prefix_key_parse(&k, hex, 32))
        rc = bad_member("tokenizer", "16 hexadecimal digits", print, err);
    else
        answer_line_set_server(out, json_string_value(model), json_string_value(api), k.lo);
    json_decref(root);
    return rc;
}

/* Read the fault's kind and message. */
static int read_fault(struct answer *a, const json_t *root, struct err *err)
{
    const json_t *fault = json_object_get(root, "fault"), *why = json_object_get(root, "message");
    size_t i = name_index(fault, faults, 0, 3);
    if (i == 3)
        return bad_member("fault", "net, remote or text", fault, err);
    if (!json_is_string(why))
        return bad_member("message", "a string", why, err);
    a->fault = fault_codes[i];
    a->message = malloc(ANSWER_MESSAGE);
    if (!a->message)
        return err_set(err, ERR_NOMEM, "out of memory");
    json_input_line(a->message, ANSWER_MESSAGE, json_string_value(why), json_string_length(why));
    return OK;
}

/* Read the members of an answer. */
static int read_answer(struct answer *a, const json_t *root, bool recorded, struct err *err)
{
    const json_t *hash = json_object_get(root, "hash"), *from = json_object_get(root, "from");
    const json_t *id = json_object_get(root, "id");
    if (!json_is_string(hash) ||
        !prefix_key_parse(&a->key, json_string_value(hash), json_string_length(hash)))
        return bad_member("hash", "32 hexadecimal digits", hash, err);
    a->from = recorded ? (enum origin)name_index(from, origins, ORIGIN_CALL, ORIGIN_STORE + 1)
                       : ORIGIN_STORE;
    if (a->from > ORIGIN_STORE)
        return bad_member("from", "call, memo or store", from, err);
    if (recorded && json_object_get(root, "fault"))
        return read_fault(a, root, err);
    return json_input_id(&a->id, id, (size_t)UINT32_MAX) ? OK
                                                         : bad_member("id", "a token id", id, err);
}

int answer_line_read(struct answer *out, const char *p, size_t n, bool recorded, struct err *err)
{
    json_t *root;
    *out = (struct answer){ .fault = OK };
    int rc = parse_line(&root, p, n, err);
    if (rc != OK)
        return rc;
    rc = read_answer(out, root, recorded, err);
    json_decref(root);
    return rc;
}
