#include "tools/lab/eval/eval_journal_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/atomic_file.h"
#include "kernels/sys/base.h"

#define JOURNAL_FORM (JSON_COMPACT | JSON_REAL_PRECISION(9))

enum { KEY = 160 };

/* What a journal begins with. */
static const char BEGINNING[] = "{\"settings\":{";

static int journal_io(const struct eval_journal *j, struct err *err)
{
    return err_set(err, ERR_IO, "%s: %s", j->path, strerror(errno ? errno : EIO));
}

/* Read the next line into j->json. False: there is none that is whole, and *rc is OK, or an error.
 */
static bool journal_next(struct eval_journal *j, int *rc, struct err *err)
{
    json_error_t why;
    char *text = NULL;
    size_t room = 0;
    *rc = OK;
    json_decref(j->json);
    j->json = NULL;
    errno = 0;
    ssize_t n = getline(&text, &room, j->f);
    bool whole = n > 0 && text[n - 1] == '\n';
    j->line += whole;
    if (whole)
        j->json = json_loadb(text, (size_t)n, 0, &why); /* json_is_object takes it twice */
    if (ferror(j->f))
        *rc = journal_io(j, err);
    else if (whole && !json_is_object(j->json))
        *rc = err_set(err, ERR_FORMAT, "%s: line %zu: expected an object, found %s", j->path,
                      j->line, j->json ? "another value" : why.text);
    free(text);
    return whole && *rc == OK;
}

/* Cut off what follows the last newline. A file of one unfinished line is cut only if it begins as
 * a journal does; any other is someone's text. */
static int journal_cut(const struct eval_journal *j, struct err *err)
{
    off_t end = 0, at = 0;
    bool ours = true;
    for (int c; (c = getc(j->f)) != EOF; at++) {
        ours = ours && (at >= (off_t)sizeof(BEGINNING) - 1 || c == BEGINNING[at]);
        if (c == '\n')
            end = at + 1;
    }
    if (!ours && !end && !ferror(j->f))
        return err_set(err, ERR_FORMAT,
                       "%s: line 1: expected the answers of `mizzle eval`, found another text",
                       j->path);
    if (ferror(j->f) || (at > end && ftruncate(fileno(j->f), end) != 0) ||
        fseeko(j->f, 0, SEEK_SET) != 0)
        return journal_io(j, err);
    return OK;
}

int eval_journal_append(struct eval_journal *j, json_t *object, struct err *err)
{
    if (!object)
        return err_set(err, ERR_NOMEM, "%s: out of memory", j->path);
    errno = 0;
    off_t before = fseeko(j->f, 0, SEEK_END) == 0 ? ftello(j->f) : -1;
    bool fine = before >= 0 && json_dumpf(object, j->f, JOURNAL_FORM) == 0 &&
                putc('\n', j->f) != EOF && fflush(j->f) == 0;
    json_decref(object);
    if (fine)
        return OK;
    int rc = journal_io(j, err);
    bool cut = before >= 0 && ftruncate(fileno(j->f), before) == 0;
    (void)cut; /* if it fails, the next run cuts the torn line off */
    return rc;
}

/* Return a value as it is read after it was written: reals lose digits. NULL: no memory. */
static json_t *journal_as_written(const json_t *value)
{
    char *text = json_dumps(value, JOURNAL_FORM);
    json_t *same = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    return same;
}

/* Compare the settings of the file, in j->json, with these; those of parts differ in their place.
 */
static int journal_check_settings(const struct eval_journal *j, json_t *settings, bool part,
                                  struct err *err)
{
    const json_t *have = json_object_get(j->json, "settings");
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
        bool other = !strcmp(key, "on") || /* the machine, whose bits are the same */
                     (part && (!strcmp(key, "first") || !strcmp(key, "count")));
        if (other || json_equal(found, want))
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

/* Let `all`, what answers were made with, say "several" (of a number null) where `on` is another;
 * it began at the date of the first. False: nothing changes. */
static bool journal_combine(json_t *all, const json_t *on)
{
    const char *key;
    json_t *one;
    bool changes = false;
    json_object_foreach((json_t *)(size_t)on, key, one)
    {
        const json_t *have = json_object_get(all, key);
        json_t *mixed = json_is_string(one) ? json_string("several") : json_null();
        if (strcmp(key, "date") && !json_equal(one, have) && !json_equal(mixed, have))
            changes = json_object_set(all, key, mixed) == 0;
        json_decref(mixed);
    }
    return changes;
}

/* Write the key of a line. threshold: not of an answer. */
static void journal_key(char out[KEY], bool threshold, const char *policy, size_t point,
                        size_t item)
{
    snprintf(out, KEY, "%c %zu %zu %s", threshold ? 't' : 'a', point, item, policy);
}

/* True when two lines hold the same answer; it may have taken another time. */
static bool journal_same(const json_t *a, const json_t *b)
{
    static const char *const fields[] = { "text", "trace", "right", "hash" };
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        const json_t *has = json_object_get(a, fields[i]), *of = json_object_get(b, fields[i]);
        bool older = !has && !strcmp(fields[i], "hash"); /* it was written without them */
        if (of && !older && !json_equal(has, of))
            return false;
    }
    return true;
}

/* Keep all lines after the first one, but for answers that lack tokens. ordered: an answer depends
 * on those before it, so the file is cut before the first one of these. */
static int journal_keep_lines(struct eval_journal *j, bool ordered, struct err *err)
{
    int rc;
    for (off_t at = ftello(j->f); journal_next(j, &rc, err); at = ftello(j->f)) {
        char key[KEY];
        const json_t *on = json_object_get(j->json, "on");
        if (on) {
            journal_combine(json_object_get(j->settings, "on"), on);
            continue;
        }
        const char *policy = NULL, *calibrated = NULL;
        json_int_t point, item = 0, missing = 0;
        if (json_unpack(j->json, "{s?s, s?s, s:I, s?I, s?I}", "policy", &policy, "calibrated",
                        &calibrated, "point", &point, "item", &item, "missing", &missing) != 0 ||
            !policy == !calibrated)
            return err_set(err, ERR_FORMAT, "%s: line %zu: expected an answer or a threshold",
                           j->path, j->line);
        if (ordered && missing)
            return ftruncate(fileno(j->f), at) == 0 ? OK : journal_io(j, err);
        if (missing)
            continue;
        json_t *threshold = json_object_get(j->json, "threshold");
        journal_key(key, calibrated, policy ? policy : calibrated, (size_t)point, (size_t)item);
        const json_t *before = json_object_get(j->lines, key);
        if (before && policy && !journal_same(before, j->json))
            return err_set(err, ERR_ARG, "%s: line %zu: item %lld: expected the answer of %s",
                           j->path, j->line, (long long)item,
                           json_string_value(json_object_get(before, "where")));
        if (before && calibrated && !json_equal(json_object_get(before, "threshold"), threshold))
            return err_set(err, ERR_ARG,
                           "%s: line %zu: threshold of policy %s: expected %.9g, found %.9g",
                           j->path, j->line, calibrated,
                           json_number_value(json_object_get(before, "threshold")),
                           json_number_value(threshold));
        json_t *where = json_sprintf("%s: line %zu", j->path, j->line);
        if (json_object_set_new(j->json, "where", where) != 0 ||
            json_object_set(j->lines, key, j->json) != 0)
            return err_set(err, ERR_NOMEM, "%s: out of memory", j->path);
    }
    return rc;
}

/* Make a journal without lines. */
static int journal_begin(struct eval_journal **out, struct err *err)
{
    struct eval_journal *j = *out = calloc(1, sizeof(*j));
    if (j && (j->lines = json_object()))
        return OK;
    return err_set(err, ERR_NOMEM, "eval: out of memory");
}

/* Close it after an error, else leave it open. */
static int journal_opened(struct eval_journal **j, int rc)
{
    if (rc == OK)
        return OK;
    eval_journal_close(*j);
    *j = NULL;
    return rc;
}

/* Read what is there, and note it if this process is another one than those before it. */
static int journal_resume(struct eval_journal *j, bool ordered, struct err *err)
{
    int rc = journal_check_settings(j, j->settings, false, err);
    if (rc != OK)
        return rc;
    json_t *own = json_incref(json_object_get(j->settings, "on"));
    json_object_set(j->settings, "on", json_object_get(json_object_get(j->json, "settings"), "on"));
    rc = journal_keep_lines(j, ordered, err);
    if (rc == OK && journal_combine(json_object_get(j->settings, "on"), own))
        rc = eval_journal_append(j, json_pack("{s:O}", "on", own), err);
    json_decref(own);
    return rc;
}

/* Open the file to append to it. */
static int journal_write(struct eval_journal *j, struct err *err)
{
    char name[ATOMIC_FILE_NAME];
    struct stat st;
    int rc = atomic_file_target(name, j->path, err);
    if (rc != OK)
        return rc;
    int fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    j->f = fd < 0 ? NULL : fdopen(fd, "r+");
    if (!j->f || fstat(fd, &st) != 0)
        return journal_io(j, err);
    return S_ISREG(st.st_mode) ? atomic_file_owned(j->path, &st, true, err) : OK;
}

int eval_journal_open(struct eval_journal **out, const char *path, const json_t *settings,
                      bool ordered, struct err *err)
{
    int rc = journal_begin(out, err);
    struct eval_journal *j = *out;
    if (rc != OK)
        return journal_opened(out, rc);
    j->path = path;
    j->settings = journal_as_written(settings);
    rc = j->settings ? journal_write(j, err) : err_set(err, ERR_NOMEM, "%s: out of memory", path);
    if (rc == OK)
        rc = journal_cut(j, err);
    if (rc == OK && journal_next(j, &rc, err)) {
        rc = journal_resume(j, ordered, err);
    } else if (rc == OK) {
        rc = eval_journal_append(j, json_pack("{s:O}", "settings", settings), err);
    }
    return journal_opened(out, rc);
}

void eval_journal_close(struct eval_journal *j)
{
    if (!j)
        return;
    if (j->f)
        fclose(j->f);
    json_decref(j->json);
    json_decref(j->settings);
    json_decref(j->lines);
    free(j->trace);
    free(j);
}

/* Open a part, check its settings against those of the first, and keep its lines. */
static int journal_add_part(struct eval_journal *j, const char *path, struct err *err)
{
    int rc;
    if (j->f)
        fclose(j->f);
    j->path = path;
    j->line = 0;
    j->f = fopen(path, "r");
    if (!j->f)
        return journal_io(j, err);
    if (!journal_next(j, &rc, err))
        return rc == OK ? err_set(err, ERR_FORMAT, "%s: expected settings, found none", path) : rc;
    json_t *own = json_object_get(j->json, "settings");
    if (!j->settings)
        j->settings = json_incref(own);
    rc = journal_check_settings(j, j->settings, true, err);
    if (rc != OK)
        return rc;
    journal_combine(json_object_get(j->settings, "on"), json_object_get(own, "on"));
    return journal_keep_lines(j, false, err);
}

int eval_journal_merge(struct eval_journal **out, const char *const *paths, size_t n,
                       struct err *err)
{
    int rc = journal_begin(out, err);
    for (size_t i = 0; rc == OK && i < n; i++)
        rc = journal_add_part(*out, paths[i], err);
    return journal_opened(out, rc);
}

const json_t *eval_journal_settings(const struct eval_journal *j)
{
    return j->settings;
}

int eval_journal_items(struct eval_items *out, const struct eval_journal *j, struct err *err)
{
    size_t bytes, most = json_object_size(j->lines);
    const char *key;
    json_t *line;
    json_int_t item, subject, point;
    const char *policy, *same = NULL;
    if (size_mul(&bytes, most + 1, sizeof(*out->subject))) {
        out->at = malloc(bytes);
        out->subject = malloc(bytes);
    }
    if (!out->at || !out->subject)
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    json_object_foreach(j->lines, key, line)
    {
        if (json_unpack(line, "{s:s, s:I, s:I, s:I}", "policy", &policy, "point", &point, "item",
                        &item, "subject", &subject) != 0)
            continue;
        same = same ? same : policy;
        if (point || strcmp(same, policy) != 0)
            continue;
        size_t at = out->n++;
        for (; at && out->at[at - 1] > (size_t)item; at--) { /* it was asked again, at the end */
            out->at[at] = out->at[at - 1];
            out->subject[at] = out->subject[at - 1];
        }
        out->at[at] = (size_t)item;
        out->subject[at] = (uint64_t)subject;
    }
    return out->n ? OK : err_set(err, ERR_FORMAT, "%s: expected answers, found none", j->path);
}

bool eval_journal_find(struct eval_journal *j, const struct eval_journal_key *key, bool threshold)
{
    char text[KEY];
    journal_key(text, threshold, key->policy, key->point, key->item);
    j->read = json_object_get(j->lines, text);
    return j->read;
}
