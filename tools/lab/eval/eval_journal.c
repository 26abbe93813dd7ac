#include "tools/lab/eval/eval_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/atomic_file.h"
#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "router/texts/texts.h"
#include "tools/cli/json_report.h"
#include "tools/lab/eval/base64.h"

struct eval_journal {
    const char *path; /* borrowed */
    FILE *f;
    size_t line;   /* lines read */
    json_t *lines; /* by key */
    json_t *on;    /* where this process runs, if it continues and has not said so; or NULL */
};

#define JOURNAL_FORM (JSON_COMPACT | JSON_REAL_PRECISION(9))

enum { KEY = 160 };

/* What a journal begins with. */
static const char BEGINNING[] = "{\"settings\":{";

static int journal_io(const struct eval_journal *j, struct err *err)
{
    return err_set(err, ERR_IO, "%s: %s", j->path, strerror(errno ? errno : EIO));
}

/* Write an object as one line, whole or not at all. Takes over the reference to `object`, which may
 * be NULL. */
static int journal_append(struct eval_journal *j, json_t *object, struct err *err)
{
    if (!object)
        return err_set(err, ERR_NOMEM, "%s: out of memory", j->path);
    errno = 0;
    off_t before = fseeko(j->f, 0, SEEK_END) == 0 ? ftello(j->f) : -1;
    bool fine = before >= 0;
    if (fine && j->on)
        fine = json_dumpf(j->on, j->f, JOURNAL_FORM) == 0 && putc('\n', j->f) != EOF;
    fine = fine && json_dumpf(object, j->f, JOURNAL_FORM) == 0 && putc('\n', j->f) != EOF &&
           fflush(j->f) == 0;
    json_decref(object);
    if (fine) {
        json_decref(j->on);
        j->on = NULL;
        return OK;
    }
    int rc = journal_io(j, err);
    bool cut = before >= 0 && ftruncate(fileno(j->f), before) == 0;
    (void)cut; /* if it fails, the next run cuts the torn line off */
    return rc;
}

/* Compare the settings of the file's first line with these. */
static int journal_check_settings(const struct eval_journal *j, const json_t *line,
                                  json_t *settings, struct err *err)
{
    const json_t *have = json_object_get(line, "settings");
    const char *key;
    json_t *want;
    if (!json_is_object(have))
        return err_set(err, ERR_FORMAT,
                       "%s: line 1: field settings: expected an object, as in the answers of "
                       "`mizzle eval`, found %s",
                       j->path, have ? "another value" : "none");
    json_object_foreach(settings, key, want)
    {
        const json_t *found = json_object_get(have, key);
        if (!strcmp(key, "on") || json_equal(found, want)) /* the bits of a machine are the same */
            continue;
        char *a = json_dumps(want, JSON_ENCODE_ANY), *b = json_dumps(found, JSON_ENCODE_ANY);
        int rc = err_set(err, ERR_ARG,
                         "%s: its answers were made with other settings: %s: expected %s, found %s",
                         j->path, key, a ? a : "?", b ? b : "none");
        free(a);
        free(b);
        return rc;
    }
    return OK;
}

/* What of an answer has which name and type in a line: X(type, name, member). */
#define JOURNAL_FIELDS(X)                        \
    X(boolean, right, right)                     \
    X(boolean, citer, citer)                     \
    X(boolean, truncated, truncated)             \
    X(boolean, left_out, left_out)               \
    X(number, ms, stats.total_ms)                \
    X(number, ttft_ms, stats.ttft_ms)            \
    X(number, edge_ms, stats.edge_ms)            \
    X(integer, tokens, stats.tokens)             \
    X(integer, cloud, stats.cloud)               \
    X(integer, fallback, stats.fallback)         \
    X(integer, prompt, stats.prompt_tokens)      \
    X(integer, memo, stats.memo)                 \
    X(integer, store, stats.store)               \
    X(integer, calls, work.calls)                \
    X(integer, prefilled, work.prefilled)        \
    X(integer, cached, work.cached)              \
    X(integer, decoded, work.decoded)            \
    X(integer, bytes_up, stats.traffic.bytes_up) \
    X(integer, bytes_down, stats.traffic.bytes_down)
#define FROM_boolean  json_is_true
#define FROM_number   json_number_value
#define FROM_integer  (size_t) json_integer_value
#define TO_boolean    json_boolean
#define TO_number     json_real
#define TO_integer(v) json_integer((json_int_t)(v))

/* Set *out to the answer of a line, which has its id. False: a field is missing. */
static bool journal_answer(struct asked *out, json_t *line)
{
    const char *answer = "", *hash = "";
    const json_t *value;
    *out = (struct asked){ 0 };
    bool fine = json_unpack(line, "{s:s, s:s, s?s}", "answer", &answer, "id", &out->id, "hash",
                            &hash) == 0 &&
                strlen(answer) < sizeof(out->answer);
    if (!fine)
        return false;
    out->hash = strtoull(hash, NULL, 16);
    memcpy(out->answer, answer, strlen(answer) + 1);
#define X(type, name, member)             \
    value = json_object_get(line, #name); \
    fine = fine && json_is_##type(value); \
    out->member = FROM_##type(value);
    JOURNAL_FIELDS(X)
#undef X
    return fine;
}

/* Write the key of a line. threshold: not of an answer. */
static void journal_key(char out[KEY], bool threshold, const char *policy, size_t point,
                        size_t item)
{
    snprintf(out, KEY, "%c %zu %zu %s", threshold ? 't' : 'a', point, item, policy);
}

/* Keep a line after the first one. */
static int journal_keep(struct eval_journal *j, json_t *line, struct err *err)
{
    char key[KEY];
    struct asked one;
    const char *policy = NULL, *calibrated = NULL;
    json_int_t point, item = 0, missing = 0;
    if (json_object_get(line, "on"))
        return OK;
    bool fine = json_unpack(line, "{s?s, s?s, s:I, s?I, s?I}", "policy", &policy, "calibrated",
                            &calibrated, "point", &point, "item", &item, "missing", &missing) == 0;
    if (fine && missing)
        return OK;
    fine =
        fine && !policy != !calibrated &&
        (policy ? journal_answer(&one, line) : json_is_number(json_object_get(line, "threshold")));
    if (!fine)
        return err_set(err, ERR_FORMAT,
                       "%s: line %zu: expected the fields of an answer or of a threshold", j->path,
                       j->line);
    journal_key(key, calibrated, policy ? policy : calibrated, (size_t)point, (size_t)item);
    if (json_object_set(j->lines, key, line) != 0)
        return err_set(err, ERR_NOMEM, "%s: out of memory", j->path);
    return OK;
}

/* Read a whole line, text[n]. */
static int journal_line(struct eval_journal *j, const char *text, size_t n, json_t *settings,
                        struct err *err)
{
    json_error_t why;
    json_t *line = json_loadb(text, n, 0, &why); /* json_is_object takes it twice */
    int rc = OK;
    j->line++;
    if (!json_is_object(line))
        rc = err_set(err, ERR_FORMAT, "%s: line %zu: expected an object, found %s", j->path,
                     j->line, line ? "another value" : why.text);
    else
        rc = j->line == 1 ? journal_check_settings(j, line, settings, err)
                          : journal_keep(j, line, err);
    json_decref(line);
    return rc;
}

/* Read what is there, and cut off what follows the last newline. A file of one unfinished line is
 * cut only if it begins as a journal does; any other is someone's text. */
static int journal_read(struct eval_journal *j, json_t *settings, struct err *err)
{
    char *text = NULL;
    size_t room = 0;
    off_t end = 0;
    bool torn = false;
    int rc = OK;
    errno = 0;
    for (ssize_t n; rc == OK && !torn && (n = getline(&text, &room, j->f)) > 0;) {
        size_t begins = (size_t)n < sizeof(BEGINNING) - 1 ? (size_t)n : sizeof(BEGINNING) - 1;
        torn = text[n - 1] != '\n';
        if (torn && !end && memcmp(text, BEGINNING, begins) != 0)
            rc = err_set(err, ERR_FORMAT,
                         "%s: line 1: expected the answers of `mizzle eval`, found another text",
                         j->path);
        else if (!torn)
            rc = journal_line(j, text, (size_t)n, settings, err);
        end += torn ? 0 : n;
    }
    if (rc == OK && (ferror(j->f) || (torn && ftruncate(fileno(j->f), end) != 0)))
        rc = journal_io(j, err);
    free(text);
    return rc;
}

/* Open the file to append to it. */
static int journal_open(struct eval_journal *j, struct err *err)
{
    char name[ATOMIC_FILE_NAME];
    struct stat st;
    int rc = atomic_file_target(name, j->path, err);
    if (rc != OK)
        return rc;
    /* Do not wait for the other end of a FIFO. */
    int fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
    j->f = fd < 0 ? NULL : fdopen(fd, "r+");
    if (!j->f || fstat(fd, &st) != 0)
        return journal_io(j, err);
    if (!S_ISREG(st.st_mode)) /* what was written could not be read again */
        return err_set(err, ERR_IO, "%s: expected a regular file", j->path);
    return atomic_file_owned(j->path, &st, true, err);
}

int eval_journal_open(struct eval_journal **out, const char *path, json_t *settings,
                      struct err *err)
{
    struct eval_journal *j = *out = calloc(1, sizeof(*j));
    if (!j)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    j->path = path;
    j->lines = json_object();
    int rc = j->lines ? journal_open(j, err) : err_set(err, ERR_NOMEM, "%s: out of memory", path);
    if (rc == OK)
        rc = journal_read(j, settings, err);
    if (rc == OK && !j->line)
        rc = journal_append(j, json_pack("{s:O}", "settings", settings), err);
    else if (rc == OK)
        j->on = json_pack("{s:O}", "on", json_object_get(settings, "on"));
    if (rc != OK) {
        eval_journal_close(j);
        *out = NULL;
    }
    return rc;
}

void eval_journal_close(struct eval_journal *j)
{
    if (!j)
        return;
    if (j->f)
        fclose(j->f);
    json_decref(j->on);
    json_decref(j->lines);
    free(j);
}

/* Return the line of an answer or, with `threshold`, of a threshold; NULL if there is none. */
static json_t *journal_find(const struct eval_journal *j, const struct eval_result *r, size_t item,
                            bool threshold)
{
    char text[KEY];
    journal_key(text, threshold, r->entry->label, r->point, item);
    return j ? json_object_get(j->lines, text) : NULL;
}

bool eval_journal_has(const struct eval_journal *j, const struct eval_result *r, size_t item)
{
    return journal_find(j, r, item, false);
}

bool eval_journal_read(const struct eval_journal *j, const struct eval_result *r, size_t item,
                       struct asked *out)
{
    json_t *line = journal_find(j, r, item, false);
    return line && journal_answer(out, line);
}

bool eval_journal_read_threshold(const struct eval_journal *j, struct eval_result *r)
{
    const json_t *line = journal_find(j, r, 0, true);
    if (!line)
        return false;
    r->threshold = (float)json_number_value(json_object_get(line, "threshold"));
    r->tie = (float)json_number_value(json_object_get(line, "tie"));
    return true;
}

/* How a token of the trace is written: by its source, and whether the small model would have
 * written the same. */
enum { EDGE = '.', FELL_BACK = 'f', CONFIRMED = '=', CORRECTED = '#', UNKNOWN = '?' };

/* Add the scores of the tokens to a line, if there are any: base64 of 16-bit numbers, high byte
 * first, from 0 to 65534 for a score of 1. 65535: this token has none. */
static void journal_add_scores(json_t **line, const struct asked *one)
{
    char *text = NULL;
    size_t n = 0;
    bool any = false;
    FILE *f = open_memstream(&text, &n);
    unsigned char *both = calloc(one->stats.tokens + 1, 2);
    for (size_t i = 0; both && i < one->stats.tokens; i++) {
        double s = (double)one->scores[i];
        unsigned v = isnan(s) ? 65535 : (unsigned)(fmin(fmax(s, 0), 1) * 65534 + 0.5);
        any = any || !isnan(s);
        both[2 * i] = (unsigned char)(v >> 8);
        both[2 * i + 1] = (unsigned char)v;
    }
    if (f && any)
        base64_write(f, both, 2 * one->stats.tokens);
    bool fine = f && fclose(f) == 0 && both;
    if (!fine || any)
        json_report_set(line, "scores", fine ? json_string(text) : NULL);
    free(both);
    free(text);
}

/* Add the trace to a line. */
static void journal_add_trace(json_t **line, const struct asked *one)
{
    char *t = calloc(1, one->stats.tokens + 1);
    json_t *us = json_array();
    for (size_t i = 0; t && i < one->stats.tokens; i++) {
        const struct decode_token *k = &one->trace[i].t;
        t[i] = k->source == SOURCE_EDGE       ? EDGE
               : k->source == SOURCE_FALLBACK ? FELL_BACK
               : !k->has_edge                 ? UNKNOWN
               : k->edge_id == k->id          ? CONFIRMED
                                              : CORRECTED;
        json_report_add(&us, json_integer((json_int_t)(k->ms * 1000 + 0.5)));
    }
    json_report_set(line, "trace", t ? json_string(t) : NULL);
    json_report_set(line, "us", us);
    free(t);
}

/* Return the text as a string; one that is not UTF-8 as a harmless line. */
static json_t *journal_text(const char *text)
{
    if (text_valid(text, strlen(text)))
        return json_string(text);
    char *line = strdup(text);
    if (line)
        text_line(line);
    json_t *out = json_string(line);
    free(line);
    return out;
}

int eval_journal_write(struct eval_journal *j, const struct eval_result *r, size_t item,
                       const struct asked *one, struct err *err)
{
    json_t *line =
        json_pack("{s:s, s:o, s:I, s:I, s:s, s:I, s:s, s:o}", "policy", r->entry->label, "share",
                  json_report_real(r->target), "point", (json_int_t)r->point, "item",
                  (json_int_t)item, "id", one->id, "subject", (json_int_t)one->subject, "answer",
                  one->answer, "text", journal_text(one->left_out ? "" : one->text));
#define X(type, name, member) json_report_set(&line, #name, TO_##type(one->member));
    JOURNAL_FIELDS(X)
#undef X
    if (one->hash)
        json_report_set(&line, "hash", json_sprintf("%016" PRIx64, one->hash));
    journal_add_trace(&line, one);
    journal_add_scores(&line, one);
    return journal_append(j, line, err);
}

int eval_journal_write_threshold(struct eval_journal *j, const struct eval_result *r,
                                 struct err *err)
{
    json_t *line = json_pack("{s:s, s:o, s:I, s:f, s:f}", "calibrated", r->entry->label, "share",
                             json_report_real(r->target), "point", (json_int_t)r->point,
                             "threshold", (double)r->threshold, "tie", (double)r->tie);
    return journal_append(j, line, err);
}
