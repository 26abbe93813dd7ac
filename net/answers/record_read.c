#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "net/http/json_input.h"
#include "net/answers/record_internal.h"

enum { CRC_TAIL = 18 }; /* ,"crc":"01234567"} */
static const uint64_t most_bytes = UINT64_C(1) << 30;

/* Report a field that is not what it should be. */
static int record_read_bad(const struct record *r, size_t number, const char *field,
                           const char *want, const json_t *v, struct err *err)
{
    return err_set(err, ERR_FORMAT, "%s: line %zu: %s: expected %s, found %s", r->path, number,
                   field, want, json_input_type(v));
}

/* Read 16 hexadecimal digits. */
static bool parse_hex64(uint64_t *out, const json_t *v)
{
    char text[PREFIX_KEY_TEXT] = "0000000000000000";
    struct prefix_key k;
    if (json_string_length(v) != 16)
        return false;
    memcpy(text + 16, json_string_value(v), 17);
    if (!prefix_key_parse(&k, text, 32))
        return false;
    *out = k.lo;
    return true;
}

/* Read the first line, which names the server. */
static int read_first(struct record *r, const json_t *root, struct err *err)
{
    const json_t *version = json_object_get(root, "mizzle_record");
    const json_t *model = json_object_get(root, "model"), *api = json_object_get(root, "api");
    const json_t *print = json_object_get(root, "tokenizer");
    uint64_t tokenizer;
    if (!json_is_integer(version) || json_integer_value(version) != 1)
        return record_read_bad(r, 1, "mizzle_record", "1", version, err);
    if (!json_is_string(model) || strlen(json_string_value(model)) != json_string_length(model))
        return record_read_bad(r, 1, "model", "a string", model, err);
    if (!json_is_string(api) || strlen(json_string_value(api)) != json_string_length(api))
        return record_read_bad(r, 1, "api", "a string", api, err);
    if (!parse_hex64(&tokenizer, print))
        return record_read_bad(r, 1, "tokenizer", "16 hexadecimal digits", print, err);
    return record_name(r, json_string_value(model), json_string_value(api), tokenizer, err);
}

/* Read the fault's kind and message into e. */
static int read_fault(struct record_entry *e, const struct record *r, const json_t *root,
                      size_t number, struct err *err)
{
    const json_t *fault = json_object_get(root, "fault"), *why = json_object_get(root, "message");
    const char *name = json_string_value(fault);
    char line[RECORD_MESSAGE];
    size_t i = 0;
    while (i < 3 && (!name || strcmp(name, record_faults[i].name) != 0))
        i++;
    if (i == 3)
        return record_read_bad(r, number, "fault", "net, remote or text", fault, err);
    if (!json_is_string(why))
        return record_read_bad(r, number, "message", "a string", why, err);
    json_input_line(line, sizeof(line), json_string_value(why), json_string_length(why));
    e->fault = (signed char)record_faults[i].code;
    e->message = malloc(strlen(line) + 1);
    if (!e->message)
        return err_set(err, ERR_NOMEM, "%s: out of memory", r->path);
    memcpy(e->message, line, strlen(line) + 1);
    return OK;
}

/* Read the line of one prefix. */
static int record_read_read_answer(struct record *r, const json_t *root, size_t number,
                                   struct err *err)
{
    struct record_entry e = { .fault = OK, .from = ORIGIN_CALL };
    const json_t *hash = json_object_get(root, "hash"), *from = json_object_get(root, "from");
    const json_t *id = json_object_get(root, "id");
    const char *name = json_string_value(from);
    if (!json_is_string(hash) ||
        !prefix_key_parse(&e.key, json_string_value(hash), json_string_length(hash)))
        return record_read_bad(r, number, "hash", "32 hexadecimal digits", hash, err);
    while (e.from <= ORIGIN_AUDIT && (!name || strcmp(name, record_origins[e.from]) != 0))
        e.from++;
    if (e.from > ORIGIN_AUDIT)
        return record_read_bad(r, number, "from", "call, memo, store or audit", from, err);
    if (e.from == ORIGIN_AUDIT) {
        const json_t *nth = json_object_get(root, "nth");
        if (!json_input_id(&e.nth, nth, (size_t)UINT32_MAX) || !e.nth)
            return record_read_bad(r, number, "nth", "a number from 1 on", nth, err);
        e.key = record_audit_key(&e.key, e.nth);
    }
    if (json_object_get(root, "fault")) {
        int rc = read_fault(&e, r, root, number, err);
        if (rc != OK)
            return rc;
    } else if (!json_input_id(&e.id, id, (size_t)UINT32_MAX)) {
        return record_read_bad(r, number, "id", "a token id", id, err);
    }
    if (record_keep(r, &e))
        return OK;
    free(e.message);
    return err_set(err, ERR_NOMEM, "%s: out of memory", r->path);
}

/* Read one line without its LF: checksum first, then JSON. */
static int read_line(struct record *r, const char *p, size_t n, size_t number, struct err *err)
{
    char crc[9];
    json_t *root;
    struct err low;
    if (n <= CRC_TAIL || memcmp(p + n - CRC_TAIL, ",\"crc\":\"", 8) != 0 ||
        memcmp(p + n - 2, "\"}", 2) != 0)
        return err_set(err, ERR_FORMAT, "%s: line %zu: expected a checksum at its end", r->path,
                       number);
    record_crc(crc, p, n - CRC_TAIL);
    if (memcmp(p + n - 10, crc, 8) != 0)
        return err_set(err, ERR_FORMAT, "%s: line %zu: checksum: expected %s, found %.8s", r->path,
                       number, crc, p + n - 10);
    if (json_input_parse(&root, p, n, &low) != OK)
        return err_set(err, ERR_FORMAT, "%s: line %zu: %s", r->path, number, low.msg);
    int rc = number == 1 ? read_first(r, root, err) : record_read_read_answer(r, root, number, err);
    json_decref(root);
    return rc;
}

/* Read all whole lines of p[n]; *used is their length. */
static int read_lines(struct record *r, const char *p, size_t n, size_t *used, size_t *number,
                      struct err *err)
{
    const char *end;
    *used = 0;
    while ((end = memchr(p + *used, '\n', n - *used)) != NULL) {
        size_t len = (size_t)(end - p) - *used;
        int rc = read_line(r, p + *used, len, ++*number, err);
        if (rc != OK)
            return rc;
        *used += len + 1;
    }
    return OK;
}

/* Refuse a file that begins otherwise: it is not a recording. */
static int check_begin(const struct record *r, const char *p, size_t n, struct err *err)
{
    size_t most = strlen(record_begin);
    return memcmp(p, record_begin, n < most ? n : most) == 0
               ? OK
               : err_set(err, ERR_FORMAT, "%s: expected a recording, found other bytes", r->path);
}

int record_read(struct record *r, int fd, uint64_t *whole, uint64_t *size, struct err *err)
{
    char bytes[4 * RECORD_LINE];
    struct stat st;
    size_t have = 0, number = 0;
    *whole = *size = 0;
    if (fstat(fd, &st))
        return err_set(err, ERR_IO, "%s: %s", r->path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_ARG, "%s: expected a regular file", r->path);
    if (st.st_size < 0 || (uint64_t)st.st_size > most_bytes)
        return err_set(err, ERR_FORMAT, "%s: expected at most %llu bytes, found %llu", r->path,
                       (unsigned long long)most_bytes, (unsigned long long)st.st_size);
    while (*size < most_bytes) {
        size_t used;
        ssize_t got = pread(fd, bytes + have, sizeof(bytes) - have, (off_t)(*whole + have));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set(err, ERR_IO, "%s: %s", r->path, strerror(errno));
        if (!got)
            break;
        have += (size_t)got;
        int rc = *whole ? OK : check_begin(r, bytes, have, err);
        if (rc == OK)
            rc = read_lines(r, bytes, have, &used, &number, err);
        if (rc != OK)
            return rc;
        have -= used;
        memmove(bytes, bytes + used, have);
        *whole += used;
        *size = *whole + have;
        if (have > RECORD_LINE)
            return err_set(err, ERR_FORMAT, "%s: line %zu: expected at most %d bytes", r->path,
                           number + 1, RECORD_LINE);
    }
    return OK;
}
