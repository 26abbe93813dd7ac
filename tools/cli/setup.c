#include "tools/cli/setup.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/cloud.h"
#include "tools/command.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/stand_in/stand_in.h"
#include "weights/atomic_file.h"

_Atomic int interrupted;

static _Atomic(struct mizzle *) stopped; /* by an interrupt, or NULL */

void setting_stops(void *unused, struct mizzle *m)
{
    (void)unused;
    atomic_store(&stopped, m);
}

static void on_interrupt(int number)
{
    mizzle_stop(atomic_load(&stopped));
    if (!atomic_exchange(&interrupted, 1))
        return;
    atomic_file_abandon_all();
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

static const char *setting_variable(const char *given, const char *name)
{
    const char *value = given ? given : getenv(name);
    return value && *value ? value : NULL;
}

/* What the library has for the options that every command shares. */
static void setting_machine(struct mizzle_options *o, const char *path)
{
    mizzle_options_init(o, sizeof(*o));
    o->model = path                   ? path
               : engine_options.model ? engine_options.model
                                      : demo_files_path("edge-0.5.gguf");
    o->threads = engine_options.threads;
    o->isa = setting_variable(engine_options.isa, "MIZZLE_ISA");
    o->kv = engine_options.kv;
}

static void setting_cloud(struct mizzle_options *o)
{
    o->router = route_options.router;
    o->policy = route_options.policy;
    o->threshold = (double)route_options.threshold;
    o->ahead = route_options.ahead;
    o->max_wasted_calls = route_options.max_wasted;
    o->cloud_url = setting_variable(cloud_option_values.url, "MIZZLE_CLOUD_URL");
    o->cloud = cloud_option_values.mode;
    o->cloud_api = cloud_option_values.api;
    o->cloud_model = cloud_option_values.model;
    o->cloud_key_file = cloud_option_values.key_file;
    o->cloud_key_env = 1;
    o->cloud_ca = cloud_option_values.ca;
    o->cloud_timeout = cloud_option_values.timeout_ms;
    o->cloud_tokens = cloud_option_values.tokens;
    o->hedge_ms = cloud_option_values.hedge_ms;
    o->compress = cloud_option_values.compress;
    o->cloud_slot = cloud_option_values.slot;
}

static void setting_keep(struct mizzle_options *o)
{
    o->max_cloud_tokens = keep_opts.max_tokens;
    o->max_upload_bytes = keep_opts.max_upload;
    o->cloud_budget = keep_opts.budget;
    o->cloud_price = keep_opts.price;
    o->private_from = keep_opts.from;
    o->private_to = keep_opts.to;
    o->private_file = keep_opts.patterns;
    o->cloud_store = keep_opts.store;
    o->store_limit = keep_opts.store_limit;
    o->record = keep_opts.record;
    o->replay = keep_opts.replay;
}

static int setting_check_model(const struct mizzle_options *o, struct err *err)
{
    if (o->model)
        return OK;
    return err_set(err, ERR_IO, "the demo pair is not there (weights/milli): name a model with -m");
}

int setting_options(struct mizzle_options *o, struct err *err)
{
    setting_machine(o, NULL);
    setting_cloud(o);
    setting_keep(o);
    if (!keep_opts.store_limit) /* which would be the default there */
        return err_set(err, ERR_ARG, "--store-limit: expected at least 1 MB, found 0");
    return setting_check_model(o, err);
}

int setting_stand_in(struct stand_in **out, struct mizzle_options *o, struct err *err)
{
    bool required = strcmp(o->cloud, "required") == 0;
    bool never = o->policy && strcmp(o->policy, "never") == 0;
    *out = NULL;
    if (engine_options.model || o->cloud_url || o->replay || (never && !required) ||
        strcmp(o->cloud, "off") == 0)
        return OK;
    const struct stand_in_options s = { .isa = engine_options.isa,
                                        .threads = engine_options.threads };
    int rc = stand_in_open(out, &s, err);
    if (rc != OK)
        return rc;
    o->cloud_url = stand_in_url(*out);
    o->cloud_key_file = NULL; /* our own server needs no key */
    o->cloud_key_env = 0;
    return OK;
}

int setting_engine(struct engine *e, const char *path, bool need_tokenizer, struct err *err)
{
    struct mizzle_options o;
    *e = (struct engine){ 0 };
    setting_machine(&o, path);
    int rc = setting_check_model(&o, err);
    if (rc != OK)
        return rc;
    struct progress *progress = progress_begin(o.model);
    rc = engine_open(e, &o, need_tokenizer, err);
    progress_end(progress);
    if (rc == OK)
        setting_blas_hint(&e->kernels);
    return rc;
}

int setting_kernels(struct kernels *out, struct err *err)
{
    int rc = engine_kernels(out, setting_variable(engine_options.isa, "MIZZLE_ISA"), err);
    if (rc == OK)
        setting_blas_hint(out);
    return rc;
}

static void setting_say(const struct err *note)
{
    fprintf(stderr, "mizzle: %s\n", note->msg);
}

void setting_blas_hint(const struct kernels *k)
{
    struct err note;
    if (engine_note(k, &note))
        setting_say(&note);
}

int setting_kv(enum kvcache *out, enum kvcache otherwise, struct err *err)
{
    return engine_kv(out, engine_options.kv, otherwise, err);
}

static void setting_notes(struct routing *r)
{
    struct err note, line;
    while (routing_note(r, &note)) {
        opt_words(&line, &cmd_eval, note.msg);
        setting_say(&line);
    }
}

int setting_routing(struct routing *r, struct stand_in **server, const struct engine *e,
                    struct err *err)
{
    struct mizzle_options o;
    *r = (struct routing){ 0 };
    *server = NULL;
    int rc = setting_options(&o, err);
    if (rc == OK)
        rc = setting_stand_in(server, &o, err);
    if (rc == OK)
        rc = routing_open(r, e, &o, &interrupted, err);
    if (rc == OK) {
        setting_notes(r);
        return OK;
    }
    stand_in_close(*server);
    *server = NULL;
    return rc;
}

int setting_routing_end(struct routing *r, struct stand_in *server, struct err *err)
{
    setting_notes(r); /* what came up in the background */
    int rc = routing_close(r, err);
    stand_in_close(server);
    return rc;
}

void setting_cloud_notes(struct cloud *c)
{
    struct err note;
    while (cloud_note(c, &note))
        setting_say(&note);
}
