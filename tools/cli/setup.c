#include "tools/cli/setup.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/cpu.h"
#include "kernels/openblas.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "kernels/sys/wipe.h"
#include "tools/cli/cloud_link.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/stand_in/stand_in.h"
#include "weights/atomic_file.h"
#include "weights/weights.h"

enum { PATH_SIZE = 4096, MAX_AHEAD = 64 };

_Atomic int interrupted;

static void on_interrupt(int number)
{
    if (!atomic_exchange(&interrupted, 1))
        return;
    part_abandon_all();
    signal(number, SIG_DFL);
    raise(number);
}

void setup_catch_interrupts(void)
{
    /* Not restarted, so that a wait for input ends. */
    struct sigaction act = { .sa_handler = on_interrupt };
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
}

static int engine_load(struct engine *e, const char *path, bool need_tokenizer, struct err *err)
{
    struct weights *w = NULL;
    struct progress *progress = progress_begin(path);
    int rc = weights_open(&w, path, err);
    if (rc == OK && tokenizer_open(&e->tokenizer, w, err) != OK) {
        e->tokenizer = NULL;
        if (need_tokenizer)
            rc = ERR_FORMAT;
    }
    if (rc == OK)
        rc = model_open(&e->model, w, &e->kernels, e->pool, err);
    weights_close(w);
    progress_end(progress);
    if (rc == OK && e->tokenizer && tokenizer_size(e->tokenizer) > model_config(e->model)->vocab)
        rc = err_set(err, ERR_FORMAT, "%s: vocabulary: expected at most %zu ids, found %zu", path,
                     model_config(e->model)->vocab, tokenizer_size(e->tokenizer));
    return rc;
}

void engine_blas_hint(void)
{
    const char *core = openblas_hint(cpu_detect());
    if (core)
        fprintf(stderr,
                "mizzle: OpenBLAS takes this processor for an old one and is slow; with "
                "OPENBLAS_CORETYPE=%s in the environment it is not\n",
                core);
}

int engine_kernels(struct kernels *out, struct err *err)
{
    const char *isa = engine_options.isa ? engine_options.isa : getenv("MIZZLE_ISA");
    int rc = kernels_pick(out, isa && *isa ? isa : NULL, cpu_detect(), err);
    if (rc == OK && (out->needs & CPU_BLAS))
        engine_blas_hint();
    return rc;
}

int engine_open(struct engine *e, const char *path, bool need_tokenizer, struct err *err)
{
    memset(e, 0, sizeof(*e));
    if (!path)
        path = engine_options.model ? engine_options.model : demo_files_path("edge-0.5.gguf");
    if (!path)
        return err_set(err, ERR_IO,
                       "the demo pair is not there (weights/milli): name a model with -m");
    int rc = engine_kernels(&e->kernels, err);
    if (rc == OK)
        rc = pool_open(&e->pool, engine_options.threads, err);
    if (rc == OK)
        rc = engine_load(e, path, need_tokenizer, err);
    if (rc != OK)
        engine_close(e);
    return rc;
}

int engine_kv(enum kvcache *out, enum kvcache otherwise, struct err *err)
{
    *out = otherwise;
    if (engine_options.kv && !kvcache_parse(out, engine_options.kv))
        return err_set(err, ERR_ARG, "--kv: expected f32, f16 or q8, found %s", engine_options.kv);
    return OK;
}

void engine_close(struct engine *e)
{
    if (e->tokenizer)
        tokenizer_close(e->tokenizer);
    model_close(e->model);
    pool_close(e->pool);
    memset(e, 0, sizeof(*e));
}

/* FILE.gguf has FILE.router.safetensors beside it, a folder router.safetensors in it. */
static bool router_beside(char out[PATH_SIZE], const char *model)
{
    struct stat st;
    size_t n = strlen(model);
    int len;
    if (stat(model, &st) == 0 && S_ISDIR(st.st_mode)) {
        len = snprintf(out, PATH_SIZE, "%s/router.safetensors", model);
    } else {
        if (n > 5 && strcmp(model + n - 5, ".gguf") == 0)
            n -= 5;
        len = snprintf(out, PATH_SIZE, "%.*s.router.safetensors", (int)n, model);
    }
    return len > 0 && len < PATH_SIZE && access(out, F_OK) == 0;
}

/* The router, the policy and its threshold. */
static int open_policy(struct routing *r, const struct engine *e, const char *model,
                       struct err *err)
{
    char beside[PATH_SIZE];
    const char *path = route_options.router;
    bool named = route_options.policy != NULL;
    if (named && !policy_parse(&r->policy, route_options.policy))
        return err_set(err, ERR_ARG,
                       "--policy: expected mlp, entropy, max-prob, margin, random, always or "
                       "never, found %s",
                       route_options.policy);
    if (!isnan(route_options.threshold) &&
        (route_options.threshold < 0 || route_options.threshold > 1))
        return err_set(err, ERR_ARG, "--threshold: expected 0 to 1, found %g",
                       (double)route_options.threshold);
    if (!path && router_beside(beside, model))
        path = beside;
    if (path && (!named || r->policy == POLICY_MLP)) {
        int rc = router_open(&r->router, path, &e->kernels, err);
        if (rc != OK)
            return rc;
        router_threads(r->router, e->pool);
        if (router_dim(r->router) != model_config(e->model)->hidden)
            return err_set(err, ERR_FORMAT,
                           "%s: hidden size: expected %zu, as the model has, "
                           "found %zu",
                           path, model_config(e->model)->hidden, router_dim(r->router));
    }
    if (!named)
        r->policy = r->router ? POLICY_MLP : POLICY_NEVER;
    if (r->policy == POLICY_MLP && !r->router)
        return err_set(err, ERR_ARG, "policy mlp: no router beside %s: name one with --router",
                       model);
    if (route_options.ahead > MAX_AHEAD)
        return err_set(err, ERR_ARG, "--ahead: expected 0 to %d, found %zu", MAX_AHEAD,
                       route_options.ahead);
    r->ahead = route_options.ahead;
    r->gate.max_wasted = route_options.max_wasted;
    r->threshold = route_options.threshold;
    if (isnan(r->threshold) &&
        !(r->policy == POLICY_MLP && router_threshold(r->router, &r->threshold)))
        r->threshold = 0.5f;
    return OK;
}

/* url NULL: a replay. Where the dialect must be asked for, the answer is waited for; a server that
 * is down is asked again when a token is wanted, as often as the breaker lets one through. */
static int connect_cloud(struct routing *r, const struct engine *e, const char *url,
                         struct err *err)
{
    char *key;
    struct cloud_options o;
    int rc = cloud_link_options(&o, &key, url, e->tokenizer, r->server || !url, err);
    bool needed = r->required || keep_wants_model(&r->keep), asks = o.api == CLOUD_AUTO;
    uint64_t start = os_now_ns();
    o.answers = r->keep.answers;
    o.background = true;
    if (rc == OK)
        rc = cloud_open(&r->cloud, &o, err);
    if (rc == OK && (needed || asks))
        rc = cloud_ready(r->cloud, err);
    r->start_ms = (double)(os_now_ns() - start) / 1e6;
    wipe_text(key);
    if (rc == ERR_NET && r->cloud && !needed) {
        fprintf(stderr, "mizzle: no answer from the cloud yet: %s\n", err->msg);
        breaker_result(&r->gate.breaker, false);
        r->gate.fault = *err;
        rc = OK;
    }
    if (rc == OK)
        cloud_link_notes(r->cloud);
    if (rc == OK && keep_wants_model(&r->keep))
        rc = keep_price(&r->keep, cloud_model(r->cloud), err);
    if (rc == OK)
        cloud_port_cloud(&r->port, r->cloud);
    if ((rc != ERR_NET && rc != ERR_REMOTE) || r->required)
        return rc;
    fprintf(stderr, "mizzle: cloud off: %s\n", err->msg);
    cloud_close(r->cloud);
    r->cloud = NULL;
    return OK;
}

static int open_cloud(struct routing *r, const struct engine *e, struct err *err)
{
    const char *url =
        cloud_option_values.url ? cloud_option_values.url : getenv("MIZZLE_CLOUD_URL");
    bool off = strcmp(cloud_option_values.mode, "off") == 0;
    r->required = strcmp(cloud_option_values.mode, "required") == 0;
    if (!off && !r->required && strcmp(cloud_option_values.mode, "auto") != 0)
        return err_set(err, ERR_ARG, "--cloud: expected auto, off or required, found %s",
                       cloud_option_values.mode);
    bool always = r->policy == POLICY_ALWAYS, has_url = keep_replays(&r->keep) || (url && *url);
    if (off)
        return always ? err_set(err, ERR_NET, "policy always: the cloud is off") : OK;
    if (!has_url && engine_options.model) {
        if (r->required || always)
            return err_set(err, ERR_NET, "there is no cloud: name one with --cloud-url");
        if (r->policy != POLICY_NEVER || !route_options.policy)
            fprintf(stderr, "mizzle: cloud off: no --cloud-url\n");
        return OK;
    }
    if (r->policy == POLICY_NEVER && !r->required) {
        if (!route_options.policy)
            fprintf(stderr, "mizzle: cloud off: no router beside the model, and no --policy\n");
        return OK;
    }
    if (has_url)
        return connect_cloud(r, e, keep_replays(&r->keep) ? NULL : url, err);
    const struct stand_in_options o = { .isa = engine_options.isa,
                                        .threads = engine_options.threads };
    int rc = stand_in_open(&r->server, &o, err);
    return rc == OK ? connect_cloud(r, e, stand_in_url(r->server), err) : rc;
}

int routing_open(struct routing *r, const struct engine *e, struct err *err)
{
    memset(r, 0, sizeof(*r));
    const char *model =
        engine_options.model ? engine_options.model : demo_files_path("edge-0.5.gguf");
    int rc = open_policy(r, e, model ? model : "the model", err);
    if (rc == OK)
        rc = keep_open(&r->keep, e->tokenizer, err);
    r->gate.caps = &r->keep.caps;
    r->gate.spans = r->keep.spans;
    if (rc == OK)
        rc = open_cloud(r, e, err);
    if (rc != OK)
        routing_close(r, NULL);
    return rc;
}

const struct cloud_port *routing_teller(const struct routing *r)
{
    return r->cloud ? &r->port : NULL;
}

int routing_close(struct routing *r, struct err *err)
{
    if (r->cloud)
        cloud_link_notes(r->cloud); /* what came up in the background */
    cloud_close(r->cloud);
    int rc = keep_close(&r->keep, err);
    stand_in_close(r->server);
    router_close(r->router);
    memset(r, 0, sizeof(*r));
    return rc;
}
