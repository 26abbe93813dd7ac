/* routing_router.c - finding the router of a model, and opening it for an engine. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/fingerprint.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/router.h"
#include "router/routing.h"
#include "weights/find.h"

/* Write dir/WHAT.safetensors or FILE.WHAT.safetensors; false if there is no such file. */
static bool routing_beside(char out[ROUTING_PATH], const char *path, size_t n, char between,
                           const char *what)
{
    int len = snprintf(out, ROUTING_PATH, "%.*s%c%s.safetensors", (int)n, path, between, what);
    return len > 0 && len < ROUTING_PATH && access(out, F_OK) == 0;
}

/* Find a router in the folder of those that are known by the model's fingerprint. */
static bool routing_known(char out[ROUTING_PATH], const char *folder, const struct engine *e,
                          const char *what)
{
    char name[ROUTING_PATH];
    if (!folder || !e)
        return false;
    int len = snprintf(name, sizeof(name), "%s/%016" PRIx64, folder,
                       model_fingerprint(e->model, e->tokenizer));
    return len < ROUTING_PATH && routing_beside(out, name, (size_t)len, '.', what);
}

bool routing_find_router(char out[ROUTING_PATH], const struct routing_options *o,
                         const struct engine *e, enum policy p)
{
    char path[FIND_PATH], repository[FIND_PATH];
    struct stat st;
    unsigned number, count;
    const char *what = p == POLICY_CONTEXT || p == POLICY_COMBINED ? policy_name(p) : "router";
    if (find_model(path, o->engine.model, NULL) != OK)
        return false;
    size_t n = strlen(path);
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (!folder && !find_shard(path, &n, &number, &count) && n > 5 &&
        strcmp(path + n - 5, ".gguf") == 0)
        n -= 5;
    return routing_beside(out, path, n, folder ? '/' : '.', what) ||
           (find_repository(repository, path) &&
            routing_beside(out, repository, strlen(repository), '/', what)) ||
           routing_known(out, o->routers, e, what);
}

/* Check a router that is open, and give it the engine's threads. */
static int routing_fit_router(struct router *r, const struct engine *e, const char *path,
                              struct err *note, struct err *err)
{
    note->msg[0] = '\0';
    const struct router_about *a = router_about(r);
    size_t hidden = e->model->config.hidden;
    uint64_t model = a->has_model ? model_fingerprint(e->model, e->tokenizer) : 0;
    if (a->has_model && a->model != model)
        return err_set(err, ERR_FORMAT,
                       "%s: model: expected %s (%016" PRIx64 "), which runs here, found %s "
                       "(%016" PRIx64 ")",
                       path, e->name, model, a->name, a->model);
    size_t reads = router_dim(r) - router_extra(r);
    if (router_logits(r) > tokenizer_size(e->tokenizer))
        return err_set(err, ERR_FORMAT,
                       "%s: logits: expected at most %zu, as the model has, found %zu", path,
                       tokenizer_size(e->tokenizer), router_logits(r));
    if (reads && reads != hidden)
        return err_set(err, ERR_FORMAT,
                       "%s: hidden size: expected %zu, as the model has, found %zu", path, hidden,
                       reads);
    if (a->weights[0] && e->weights && strcmp(a->weights, e->weights) != 0)
        err_set(note, OK, "%s was calibrated with weights of type %s, and the model has %s", path,
                a->weights, e->weights);
    router_threads(r, e->pool);
    return OK;
}

int routing_router(struct router **out, const struct engine *e, const char *path, struct err *note,
                   struct err *err)
{
    int rc = router_open(out, path, &e->kernels, err);
    if (rc == OK)
        rc = routing_fit_router(*out, e, path, note, err);
    if (rc != OK) {
        router_close(*out);
        *out = NULL;
    }
    return rc;
}
