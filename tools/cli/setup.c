#include "tools/cli/setup.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "model/text/chat.h"
#include "net/cloud.h"
#include "router/engine.h"
#include "router/texts/texts.h"
#include "tools/command.h"
#include "tools/cli/demo_files.h"
#include "tools/cli/progress.h"
#include "kernels/sys/atomic_file.h"
#include "weights/find.h"

/* Texts at once: the products of a pass gain little beyond EACH_THREAD rows for each thread. */
enum { EACH_THREAD = 8, PARALLEL_MOST = 32 };

_Atomic int interrupted;

static _Atomic(struct mizzle *) stopped; /* the handle that an interrupt stops, or NULL */

void setup_stop_on_interrupt(void *unused, struct mizzle *m)
{
    (void)unused;
    atomic_store(&stopped, m);
}

/* Handle SIGINT and SIGTERM: the first one sets a flag, the second one ends the process. */
static void setup_on_interrupt(int number)
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
    /* Interrupted calls do not restart, so a read from the terminal ends too. */
    struct sigaction act = { .sa_handler = setup_on_interrupt };
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
}

/* Return the value given by an option, else that of an environment variable; NULL if empty. */
static const char *setup_variable(const char *given, const char *name)
{
    const char *value = given ? given : getenv(name);
    return value && *value ? value : NULL;
}

const char *setup_isa(void)
{
    return setup_variable(engine_options.isa, "MIZZLE_ISA");
}

const char *setup_cloud_url(void)
{
    return setup_variable(cloud_option_values.url, "MIZZLE_CLOUD_URL");
}

/* Set the defaults, the model and the options of the machine. */
static void setup_machine(struct mizzle_options *o, const char *path)
{
    mizzle_options_init(o, sizeof(*o));
    o->model = path                   ? path
               : engine_options.model ? engine_options.model
                                      : demo_files_path("edge-0.5.gguf");
    o->threads = engine_options.threads;
    o->isa = setup_isa();
    o->kv = engine_options.kv;
    o->chat_template = chat_options.template;
    o->think = chat_options.think;
}

/* Set the options of the routing and of the cloud. */
static void setup_cloud(struct mizzle_options *o)
{
    o->router = route_options.router;
    o->routers = demo_files_path("../routers");
    o->policy = route_options.policy;
    o->threshold = (double)route_options.threshold;
    o->span = (double)route_options.span;
    o->place = route_options.place;
    o->max_routed = (double)route_options.max_routed;
    o->worth = (double)route_options.worth;
    o->ahead = route_options.ahead;
    o->draft = route_options.draft;
    o->audit = (double)route_options.audit;
    o->cloud_url = setup_cloud_url();
    o->cloud = cloud_option_values.mode;
    o->cloud_api = cloud_option_values.api;
    o->cloud_model = cloud_option_values.model;
    o->cloud_key_file = cloud_option_values.key_file;
    o->cloud_key_env = 1;
    o->cloud_ca = cloud_option_values.ca;
    o->cloud_timeout = cloud_option_values.timeout_ms;
    o->cloud_tokens = cloud_option_values.tokens;
}

/* Set the limits, the private spans and the files that keep answers. */
static void setup_limits(struct mizzle_options *o)
{
    o->max_cloud_tokens = cloud_limit_options.max_tokens;
    o->max_upload_bytes = cloud_limit_options.max_upload;
    o->cloud_budget = cloud_limit_options.budget;
    o->cloud_price = cloud_limit_options.price;
    o->private_file = cloud_limit_options.patterns;
    o->cloud_store = cloud_limit_options.store;
    o->store_limit = cloud_limit_options.store_limit;
    o->record = cloud_limit_options.record;
    o->replay = cloud_limit_options.replay;
}

static int setup_check_model(const struct mizzle_options *o, struct err *err)
{
    if (o->model)
        return OK;
    return err_set(err, ERR_IO, "the demo pair is not found (weights/milli); name a model with -m");
}

/* True if a policy is in a list, in which it may have a router: "mlp,price=FILE". */
static bool setup_has(const char *list, const char *policy)
{
    for (const char *p = list; p; p = strchr(p, ',')) {
        p += *p == ',';
        size_t n = strcspn(p, ",=");
        if (n == strlen(policy) && !strncmp(p, policy, n))
            return true;
    }
    return false;
}

int setup_check_policy(struct err *err)
{
    const char *policy = route_options.policy;
    const char *place = route_options.place;
    bool price = setup_has(policy, "price"), slot = setup_has(policy, "slot");
    bool placed = slot || setup_has(policy, "position");
    bool number = place && place[strspn(place, "0123456789")] == 0;
    if (placed != (place != NULL))
        return err_set(err, ERR_ARG, "--place: expected %s, found %s",
                       placed ? "a number or a text with --policy position, a text with slot"
                              : "--policy position, or slot of eval",
                       placed || !policy ? "none" : policy);
    if (slot && number)
        return err_set(err, ERR_ARG, "--place: expected a text with --policy slot, found %s",
                       *place ? place : "none");
    if (!policy || price == (route_options.worth > 0))
        return OK;
    return err_set(err, ERR_ARG, "--policy %s: expected %s", policy,
                   price ? "--worth, found none" : "no --worth, which policy price reads");
}

int setup_options(struct mizzle_options *o, struct err *err)
{
    setup_machine(o, NULL);
    setup_cloud(o);
    setup_limits(o);
    return setup_check_model(o, err);
}

int setup_large_model(struct mizzle_options *o, struct err *err)
{
    bool required = strcmp(o->cloud, "required") == 0;
    bool never = o->policy && strcmp(o->policy, "never") == 0;
    bool demo = !engine_options.model;
    if ((!o->cloud_model && !demo) || o->cloud_url || o->replay ||
        (never && !required && !(o->audit > 0)) || strcmp(o->cloud, "off") == 0)
        return OK;
    char path[FIND_PATH];
    struct err why;
    int rc = o->cloud_model ? find_model(path, o->cloud_model, &why) : OK;
    if (rc != OK)
        return err_set(err, rc, "--cloud-model (without --cloud-url): %s", why.msg);
    if (!o->cloud_model && !(o->cloud_model = demo_files_path("cloud.gguf")))
        return err_set(err, ERR_IO, "the demo pair's cloud model is not found (weights/milli)");
    return OK;
}

int setup_engine(struct engine *e, const char *path, bool need_tokenizer, struct err *err)
{
    struct mizzle_options o;
    *e = (struct engine){ 0 };
    setup_machine(&o, path);
    int rc = setup_check_model(&o, err);
    if (rc != OK)
        return rc;
    struct progress *progress = progress_begin("loading", o.model);
    rc = engine_open(e, &o, need_tokenizer, err);
    progress_end(progress);
    if (rc == OK)
        setup_blas_hint(&e->kernels);
    return rc;
}

int setup_kernels(struct kernels *out, struct err *err)
{
    int rc = engine_kernels(out, setup_isa(), err);
    if (rc == OK)
        setup_blas_hint(out);
    return rc;
}

/* Print a note of the library. */
static void setup_print(const struct err *note)
{
    fprintf(stderr, "mizzle: %s\n", note->msg);
}

/* Print a note with the option names as they are typed in this command. */
void setup_print_typed(const struct err *note)
{
    struct err line;
    options_as_typed(&line, options_command, note->msg);
    setup_print(&line);
}

void setup_blas_hint(const struct kernels *k)
{
    struct err note;
    if (engine_note(k, &note))
        setup_print(&note);
}

void setup_chat_note(const struct engine *e)
{
    static bool told;
    struct err note;
    if (!told && chat_note(e->chat, &note))
        setup_print_typed(&note);
    told = true;
}

int setup_parallel(size_t *out, const struct engine *e, size_t context, enum kvcache kv,
                   struct err *err)
{
    size_t fit, threads = e->pool ? pool_threads(e->pool) : 1;
    if (engine_options.parallel > TEXTS_SLOTS)
        return err_set(err, ERR_ARG, "--parallel: expected 1 to %d, found %zu", TEXTS_SLOTS,
                       engine_options.parallel);
    *out = engine_options.parallel;
    if (*out)
        return OK;
    int rc = texts_fit(&fit, e, context, kv, err);
    *out = threads * EACH_THREAD < PARALLEL_MOST ? threads * EACH_THREAD : PARALLEL_MOST;
    *out = fit < *out ? fit : *out;
    return rc;
}

int setup_kv(enum kvcache *out, enum kvcache otherwise, struct err *err)
{
    return engine_kv(out, engine_options.kv, otherwise, err);
}

void setup_cloud_notes(struct cloud *c)
{
    struct err note;
    while (cloud_note(c, &note))
        setup_print(&note);
}
