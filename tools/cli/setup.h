/* setup.h - what most subcommands need, opened from the shared options in one call. */
#ifndef TOOLS_CLI_SETUP_H
#define TOOLS_CLI_SETUP_H

#include <stdbool.h>

#include "kernels/kernels.h"
#include "model/model.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "net/cloud.h"
#include "router/gate.h"
#include "router/policy.h"
#include "router/router.h"
#include "tools/cli/keep.h"
#include "router/cloud_port.h"

struct stand_in;

/* The demo pair: found at $MIZZLE_DEMO, beside the program's sources (build/../weights/milli), or
 * installed (PREFIX/share/mizzle/milli). */
const char *
demo_files_path(const char *file); /* e.g. "edge-0.5.gguf"; static storage; NULL if not found */

/* argv[0], set by main: where the system does not tell the program's own path. */
extern const char *demo_files_program;

/* Set by SIGINT or SIGTERM once setup_catch_interrupts was called; a second one deletes
 * unfinished files and ends the process at once. */
extern _Atomic int interrupted;
void setup_catch_interrupts(void);

struct engine {
    struct kernels kernels;
    struct pool *pool;
    struct model *model;
    struct tokenizer *tokenizer; /* NULL if the file has none */
};

/* Kernels, pool, model and tokenizer as engine_options ask. path NULL: engine_options.model, else
 * the demo's edge model. Returns OK or an error code. Where the load takes long, progress is shown
 * on a terminal. */
int engine_open(struct engine *e, const char *path, bool need_tokenizer, struct err *err);
void engine_close(struct engine *e);
/* The kernels that --isa names, else MIZZLE_ISA, else the fastest exact ones. Where OpenBLAS is
 * among them, a hint on stderr if it takes the processor for an old one. ERR_ARG. */
int engine_kernels(struct kernels *out, struct err *err);
void engine_blas_hint(void);
/* The type that --kv names, else `otherwise`. ERR_ARG. */
int engine_kv(enum kvcache *out, enum kvcache otherwise, struct err *err);

/* The router, policy, threshold and cloud as route_options and cloud_option_values ask, for an open
 * engine; starts the stand-in cloud for the demo pair where no URL is given. Says once on stderr
 * what is off. */
struct routing {
    struct router *router; /* NULL unless found */
    enum policy policy;
    float threshold;
    struct cloud *cloud;    /* NULL: off */
    struct cloud_port port; /* of cloud */
    struct gate gate;       /* limits and breaker, over all answers */
    size_t ahead;           /* requests out at once */
    struct keep keep;       /* caches, caps, private spans */
    double start_ms;        /* waited for the cloud to answer */
    bool required;
    struct stand_in *server; /* the one this process started, or NULL */
};
/* r must stay where it is. */
int routing_open(struct routing *r, const struct engine *e, struct err *err);
/* ERR_IO where --record could not write all. */
int routing_close(struct routing *r, struct err *err);
/* What decode_run asks: r's teller, or NULL where the cloud is off. */
const struct cloud_port *routing_teller(const struct routing *r);

#endif
