#include "router/prompt_cache.h"

#include <string.h>
#include <sys/stat.h>

#include "model/fingerprint.h"
#include "model/session.h"
#include "model/session_file.h"
#include "weights/atomic_file.h"

/* Check that a file that cannot be found can be created. One that exists may be of use even if it
 * cannot be replaced. */
static int prompt_cache_check(const char *path, struct err *err)
{
    struct stat st;
    struct atomic_file file;
    if (stat(path, &st) == 0)
        return OK;
    int rc = atomic_file_open_private(&file, path, err);
    return rc == OK ? atomic_file_close(&file, false, err) : rc;
}

int prompt_cache_load(struct prompt_cache *c, size_t *cached, struct session *s, const char *path,
                      const uint32_t *ids, size_t n, struct pool *pool, struct err *err)
{
    struct err why = { "" };
    size_t shared = 0, held = 0;
    const uint32_t *have = session_ids(s);
    *cached = 0;
    int rc = *path ? prompt_cache_check(path, err)
                   : err_set(err, ERR_ARG, "prompt cache: expected a file, found \"\"");
    if (rc != OK)
        return rc;
    if (!c->knows_weights)
        c->weights = model_exact_fingerprint(session_model(s), pool);
    c->knows_weights = true;
    while (held < session_length(s) && held < n && have[held] == ids[held])
        held++;
    rc = session_file_load(&shared, s, path, c->weights, ids, n, &why);
    if (rc == ERR_ARG)
        return err_set(err, rc, "%s", why.msg);
    if (rc != OK)
        err_set(&c->unused, rc, "%s; evaluating the prompt and replacing it", why.msg);
    c->outdated = shared < n;
    if (shared > held)
        *cached = shared < n ? shared : n - 1;
    return OK;
}

void prompt_cache_save(struct prompt_cache *c, const struct session *s, const char *path,
                       const uint32_t *ids, size_t n)
{
    struct err why = { "" };
    if (!c->outdated || session_length(s) < n || memcmp(session_ids(s), ids, n * sizeof(*ids)) != 0)
        return;
    int rc = session_file_save(s, n, path, c->weights, &why);
    if (rc != OK)
        err_set(&c->unkept, rc, "prompt cache not written: %s", why.msg);
    c->outdated = rc != OK;
}

bool prompt_cache_note(struct prompt_cache *c, struct err *note)
{
    struct err *next = c->unused.msg[0] ? &c->unused : &c->unkept;
    if (!next->msg[0])
        return false;
    *note = *next;
    next->msg[0] = '\0';
    return true;
}
