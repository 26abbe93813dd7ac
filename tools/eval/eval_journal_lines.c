#include "tools/eval/eval_journal_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"

#define JOURNAL_FORM (JSON_COMPACT | JSON_REAL_PRECISION(9))

/* What a journal begins with. */
static const char BEGINNING[] = "{\"settings\":{";

static int lines_io(const struct eval_journal *j, struct err *err)
{
    return err_set(err, ERR_IO, "%s: %s", j->path, strerror(errno ? errno : EIO));
}

/* Read the next line into j->json. False: there is none that is whole, and *rc is OK, or an error.
 */
static bool lines_next(struct eval_journal *j, int *rc, struct err *err)
{
    json_error_t why;
    *rc = OK;
    json_decref(j->json);
    j->json = NULL;
    errno = 0;
    ssize_t n = getline(&j->text, &j->text_room, j->f);
    if (n < 0 || j->text[n - 1] != '\n') {
        *rc = ferror(j->f) ? lines_io(j, err) : OK;
        return false;
    }
    j->line++;
    j->json = json_loadb(j->text, (size_t)n, 0, &why);
    if (!json_is_object(j->json))
        *rc = err_set(err, ERR_FORMAT, "%s: line %zu: expected an object, found %s", j->path,
                      j->line, j->json ? "another value" : why.text);
    return *rc == OK;
}

/* Cut off what follows the last newline. A file of one unfinished line is cut only if it begins as
 * a journal does; any other is someone's text. */
static int lines_cut(const struct eval_journal *j, struct err *err)
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
        return lines_io(j, err);
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
    int rc = lines_io(j, err);
    bool cut = before >= 0 && ftruncate(fileno(j->f), before) == 0;
    (void)cut; /* if it fails, the next run cuts the torn line off */
    return rc;
}

/* Return a value as it is read after it was written: reals lose digits. NULL: no memory. */
static json_t *lines_as_written(const json_t *value)
{
    char *text = json_dumps(value, JOURNAL_FORM);
    json_t *same = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    return same;
}

/* Compare the settings of the file with those of this run, or of another part of it. */
static int lines_compare_settings(const struct eval_journal *j, json_t *settings, bool parts,
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
        bool other = !strcmp(key, "isa") || /* kernels says whether its bits are others */
                     (parts && (!strcmp(key, "first") || !strcmp(key, "count")));
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

static int lines_check_settings(const struct eval_journal *j, const json_t *settings,
                                struct err *err)
{
    json_t *want = lines_as_written(settings);
    int rc = want ? lines_compare_settings(j, want, false, err)
                  : err_set(err, ERR_NOMEM, "%s: out of memory", j->path);
    json_decref(want);
    return rc;
}

/* Order by key, then by place. */
static int lines_order(const void *a, const void *b)
{
    const struct journal_entry *x = a, *y = b;
    int by = strcmp(x->policy, y->policy);
    if (by)
        return by;
    const size_t p[] = { x->threshold, x->point, x->item, x->file, x->line };
    const size_t q[] = { y->threshold, y->point, y->item, y->file, y->line };
    for (size_t i = 0; i < sizeof(p) / sizeof(p[0]); i++)
        if (p[i] != q[i])
            return p[i] < q[i] ? -1 : 1;
    return 0;
}

/* Add the line read last to the entries. */
static int lines_add_entry(struct eval_journal *j, off_t at, struct err *err)
{
    const char *policy = json_string_value(json_object_get(j->json, "policy"));
    const char *calibrated = json_string_value(json_object_get(j->json, "calibrated"));
    const json_t *item = json_object_get(j->json, "item");
    const json_t *point = json_object_get(j->json, "point");
    if (!policy == !calibrated || !json_is_integer(point) || (policy && !json_is_integer(item)))
        return err_set(err, ERR_FORMAT, "%s: line %zu: expected an answer or a threshold", j->path,
                       j->line);
    if (j->n == j->room) {
        size_t bytes, more = j->room ? 2 * j->room : 256;
        void *grown =
            size_mul(&bytes, more, sizeof(*j->entries)) ? realloc(j->entries, bytes) : NULL;
        if (!grown)
            return err_set(err, ERR_NOMEM, "%s: out of memory", j->path);
        j->entries = grown;
        j->room = more;
    }
    struct journal_entry *e = &j->entries[j->n++];
    *e = (struct journal_entry){ .threshold = calibrated,
                                 .missing = json_integer_value(json_object_get(j->json, "missing")),
                                 .point = (size_t)json_integer_value(point),
                                 .item = (size_t)json_integer_value(item),
                                 .file = j->nfiles - 1,
                                 .line = j->line,
                                 .at = at };
    snprintf(e->policy, sizeof(e->policy), "%s", policy ? policy : calibrated);
    return OK;
}

/* Read all lines after the first one. ordered: an answer depends on those before it, so the file is
 * cut before the first one that lacks tokens. */
static int lines_read_entries(struct eval_journal *j, bool ordered, struct err *err)
{
    int rc;
    off_t at = ftello(j->f);
    while (lines_next(j, &rc, err)) {
        if (ordered && json_integer_value(json_object_get(j->json, "missing")))
            return ftruncate(fileno(j->f), at) == 0 ? OK : lines_io(j, err);
        rc = lines_add_entry(j, at, err);
        if (rc != OK)
            return rc;
        at = ftello(j->f);
    }
    return rc;
}

/* Open a file and read its first line: true in *found, and it is in j->json. */
static int lines_open_file(struct eval_journal *j, const char *path, bool writes, bool *found,
                           struct err *err)
{
    struct journal_file *more = realloc(j->files, (j->nfiles + 1) * sizeof(*more));
    if (!more)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    j->files = more;
    j->path = path;
    j->line = 0;
    errno = 0;
    j->f = fopen(path, writes ? "r+" : "r");
    if (!j->f && writes && errno == ENOENT)
        j->f = fopen(path, "w+x");
    if (!j->f)
        return lines_io(j, err);
    j->files[j->nfiles++] = (struct journal_file){ path, j->f };
    int rc = writes ? lines_cut(j, err) : OK;
    *found = rc == OK && lines_next(j, &rc, err);
    return rc;
}

int eval_journal_open(struct eval_journal **out, const char *path, const json_t *settings,
                      bool ordered, struct err *err)
{
    struct eval_journal *j = *out = calloc(1, sizeof(*j));
    bool found = false;
    if (!j)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    int rc = lines_open_file(j, path, true, &found, err);
    if (rc == OK && found)
        rc = lines_check_settings(j, settings, err);
    else if (rc == OK)
        rc = eval_journal_append(j, json_pack("{s:O}", "settings", settings), err);
    if (rc == OK && found)
        rc = lines_read_entries(j, ordered, err);
    if (rc != OK) {
        eval_journal_close(j);
        *out = NULL;
        return rc;
    }
    qsort(j->entries, j->n, sizeof(*j->entries), lines_order);
    return OK;
}

void eval_journal_close(struct eval_journal *j)
{
    if (!j)
        return;
    for (size_t i = 0; i < j->nfiles; i++)
        fclose(j->files[i].f);
    free(j->files);
    free(j->entries);
    json_decref(j->beginning);
    json_decref(j->json);
    free(j->text);
    free(j->trace);
    caps_end(&j->caps);
    free(j);
}

int eval_journal_find(struct eval_journal *j, const struct eval_journal_key *key, bool threshold,
                      bool *found, struct err *err)
{
    struct journal_entry want = {
        .threshold = threshold, .point = key->point, .item = key->item, .file = SIZE_MAX
    };
    size_t low = 0, high = j->n;
    snprintf(want.policy, sizeof(want.policy), "%s", key->policy);
    while (low < high) { /* the number of entries up to it */
        size_t mid = low + (high - low) / 2;
        if (lines_order(&j->entries[mid], &want) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    const struct journal_entry *e = low ? &j->entries[low - 1] : NULL;
    *found = e && !e->missing && !strcmp(e->policy, want.policy) && e->threshold == threshold &&
             e->point == key->point && e->item == key->item;
    if (!*found)
        return OK;
    j->path = j->files[e->file].path;
    j->f = j->files[e->file].f;
    j->line = e->line - 1;
    if (fseeko(j->f, e->at, SEEK_SET) != 0)
        return lines_io(j, err);
    int rc;
    if (!lines_next(j, &rc, err) && rc == OK)
        return err_set(err, ERR_FORMAT, "%s: line %zu: expected a line, found none", j->path,
                       e->line);
    return rc;
}
