#include "tools/cli/setup.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/pool.h"
#include "kernels/openblas.h"
#include "kernels/sys/cpu.h"
#include "model/text/chat.h"
#include "net/http/http.h"
#include "router/mizzle.h"
#include "router/policy.h"
#include "router/texts/texts.h"
#include "tools/command.h"
#include "tools/cli/demo_files.h"
#include "tools/cli/progress.h"
#include "kernels/sys/atomic_file.h"
#include "weights/find.h"
#include "weights/weights.h"

_Atomic int interrupted, pasting;

static _Atomic(struct mizzle *) stopped; /* the handle that an interrupt stops, or NULL */
static _Atomic int opening;              /* nothing is begun that a flag would let end in order */

void setup_stop_on_interrupt(struct mizzle *m)
{
    atomic_store(&stopped, m);
    if (interrupted)
        mizzle_stop(m);
}

/* Handle SIGINT and SIGTERM: the first one sets a flag, unless something is being opened, the
 * second one ends the process. */
static void setup_on_interrupt(int number)
{
    mizzle_stop(atomic_load(&stopped));
    if (!atomic_exchange(&interrupted, number) && !atomic_load(&opening))
        return;
    atomic_file_abandon_all();
    const char *end = pasting ? "\033[?2004l\n" : "\n"; /* ends the progress line */
    (void)!write(STDERR_FILENO, end, isatty(STDERR_FILENO) ? strlen(end) : 0);
    _exit(EXIT_INTERRUPTED);
}

/* Delete unfinished files, then end the process as the signal would have done. */
static void setup_on_end(int number)
{
    atomic_file_abandon_all();
    signal(number, SIG_DFL);
    raise(number);
}

/* Print the line in one write, so that it does not mix with other output. Async-signal-safe. */
static void setup_print_truncated(const char *path)
{
    static const char begin[] = "mizzle: ", end[] = ": another process cut it short\n";
    char line[600];
    size_t n = sizeof(begin) - 1;
    memcpy(line, begin, n);
    for (; *path && n < sizeof(line) - sizeof(end); path++)
        line[n++] = *path > 0 && *path < ' ' ? '?' : *path;
    memcpy(line + n, end, sizeof(end) - 1);
    (void)!write(STDERR_FILENO, line, n + sizeof(end) - 1);
}

/* Handle SIGBUS, which accesses to a truncated mapping raise. Calls only functions that are
 * async-signal-safe. */
static void setup_on_fault(int number, siginfo_t *info, void *context)
{
    static _Atomic bool ending;
    const char *path = weights_mapped(info->si_addr);
    (void)context;
    if (!path) { /* not a mapped file: the instruction faults again and ends the process */
        signal(number, SIG_DFL);
        return;
    }
    while (atomic_exchange(&ending, true)) /* another thread is ending the process */
        pause();
    atomic_file_abandon_all();
    setup_print_truncated(path);
    _exit(EXIT_BAD_FILE);
}

void setup_signals(void)
{
    static const int ends[] = { SIGHUP, SIGINT, SIGTERM };
    struct sigaction fault = { .sa_sigaction = setup_on_fault, .sa_flags = (int)SA_SIGINFO };
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct sigaction act = { .sa_handler = setup_on_end }, old;
        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(ends[i], &act, NULL);
    }
    sigaction(SIGBUS, &fault, NULL);
}

void setup_catch_interrupts(void)
{
    /* Interrupted calls do not restart, so a read from the terminal ends too. */
    struct sigaction act = { .sa_handler = setup_on_interrupt };
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
}

struct progress *setup_open_begin(const char *doing, const char *what)
{
    atomic_store(&opening, 1);
    return progress_begin(doing, what);
}

void setup_open_end(struct progress *p)
{
    progress_end(p);
    atomic_store(&opening, 0);
}

/* Return the value given by an option, else that of an environment variable; NULL if empty. */
static const char *setup_variable(const char *given, const char *name)
{
    const char *value = given ? given : getenv(name);
    return value && *value ? value : NULL;
}

const char *setup_isa(void)
{
    return setup_variable(shared_options.engine.isa, "MIZZLE_ISA");
}

const char *setup_cloud_url(void)
{
    return setup_variable(shared_options.cloud_url, "MIZZLE_CLOUD_URL");
}

int setup_options(struct routing_options *o, struct err *err)
{
    struct err why;
    *o = shared_options;
    o->engine.isa = setup_isa();
    o->routers = demo_files_path("../routers");
    o->cloud_url = setup_cloud_url();
    o->cloud_key_env = true;
    if (o->cloud_url && !strncmp(o->cloud_url, "https://", 8))
        o->cloud_ca = setup_variable(NULL, "SSL_CERT_FILE"); /* as OpenSSL's programs and curl do */
    if (o->cloud_ca && http_check_ca(o->cloud_ca, &why) != OK)
        return err_set(err, ERR_ARG, "SSL_CERT_FILE: %s", why.msg);
    if (o->engine.model || (o->engine.model = demo_files_path("edge-0.5.gguf")))
        return OK;
    return err_set(err, ERR_IO,
                   "no demo pair near this program, nor at MIZZLE_DEMO; name a model with -m");
}

/* Find the entry of a policy in a list such as "never,mlp=FILE,position=0-3"; NULL: there is none.
 */
static const char *setup_entry(const char *list, const char *policy)
{
    size_t n = strlen(policy);
    for (const char *p = list; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (!strncmp(p, policy, n) && (!p[n] || strchr(",=", p[n])))
            return p + n;
    }
    return NULL;
}

/* True if the list goes on behind a place N or N-M. */
static bool setup_goes_on(const char *place)
{
    char first[48];
    size_t range[2], n = strcspn(place, ",");
    snprintf(first, sizeof(first), "%.*s", (int)n, place);
    return place[n] && policy_place(range, first);
}

int setup_check_policy(struct err *err)
{
    const char *slot = setup_entry(shared_options.policy, "slot");
    const char *end = setup_entry(shared_options.policy, "position");
    size_t range[2];
    if (!slot && !end)
        return OK;
    end = end && *end == '=' ? end : slot;
    if (!end || *end != '=' || !end[1] || setup_goes_on(end + 1))
        return err_set(err, ERR_ARG,
                       "--policy: expected position=N, position=N-M, position=TEXT or slot=TEXT at "
                       "the end, found %s",
                       shared_options.policy);
    if (slot && policy_place(range, end + 1))
        return err_set(err, ERR_ARG, "--policy slot: expected a text, found %s", end + 1);
    shared_options.place = end + 1;
    *(char *)(size_t)end = '\0'; /* of an argument of the program, which may be written */
    return OK;
}

int setup_large_model(struct routing_options *o, struct err *err)
{
    bool required = strcmp(o->cloud, "required") == 0;
    bool never = o->policy && strcmp(o->policy, "never") == 0;
    bool demo = !shared_options.engine.model;
    if ((!o->cloud_model && !demo) || o->cloud_url || o->offline || (never && !required) ||
        strcmp(o->cloud, "off") == 0)
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

int setup_engine(struct engine *e, bool need_tokenizer, struct err *err)
{
    struct routing_options o;
    *e = (struct engine){ 0 };
    int rc = setup_options(&o, err);
    if (rc != OK)
        return rc;
    struct progress *progress = setup_open_begin("loading", o.engine.model);
    rc = engine_open(e, &o.engine, need_tokenizer, err);
    setup_open_end(progress);
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

void setup_print_typed(const struct err *note)
{
    struct err line;
    options_as_typed(&line, options_command, note->msg);
    fprintf(stderr, "mizzle: %s\n", line.msg);
}

void setup_blas_hint(const struct kernels *k)
{
    const char *core = k->needs & CPU_BLAS ? openblas_hint(cpu_detect()) : NULL;
    if (core)
        fprintf(stderr,
                "mizzle: OpenBLAS mistakes this processor for an older one and is slow; set "
                "OPENBLAS_CORETYPE=%s in the environment\n",
                core);
}

int setup_kv(enum kvcache *out, enum kvcache otherwise, struct err *err)
{
    return engine_kv(out, shared_options.engine.kv, otherwise, err);
}
