/* setup.h - the shared options as the library takes them, and what several subcommands open. */
#ifndef TOOLS_CLI_SETUP_H
#define TOOLS_CLI_SETUP_H

#include <stdbool.h>

#include "model/model.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "net/cloud.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "router/router.h"
#include "router/routing.h"
#include "tools/cli/shared_options.h"

struct stand_in;

/* Set by SIGINT or SIGTERM once setup_catch_interrupts was called; a second one deletes
 * unfinished files and ends the process at once. */
extern _Atomic int interrupted;
void setup_catch_interrupts(void);
/* An interrupt stops m as well; NULL: it no longer does. */
void setup_stop_on_interrupt(void *unused, struct mizzle *m);

/* All that engine_options, route_options, cloud_option_values and cloud_limit_options say, and
 * their environment variables; without -m the demo's edge model. ERR_ARG where a value is out of
 * bounds, ERR_IO where there is neither. */
int setup_options(struct mizzle_options *o, struct err *err);
/* Start the stand-in cloud, where the demo pair is to be used and wants one, and put its address
 * into *o; else *out is NULL. It must be closed after what uses it. Its own errors. */
int setup_stand_in(struct stand_in **out, struct mizzle_options *o, struct err *err);

/* engine_open as engine_options ask; path NULL: engine_options.model, else the demo's edge model.
 * Where the load takes long, progress is shown on a terminal. */
int setup_engine(struct engine *e, const char *path, bool need_tokenizer, struct err *err);
/* The kernels that --isa names, else MIZZLE_ISA, else the fastest exact ones. Where OpenBLAS is
 * among them, a hint on stderr if it takes the processor for an old one. ERR_ARG. */
int setup_kernels(struct kernels *out, struct err *err);
void setup_blas_hint(const struct kernels *k);
/* The type that --kv names, else `otherwise`. ERR_ARG. */
int setup_kv(enum kvcache *out, enum kvcache otherwise, struct err *err);

/* routing_open as all options ask, with the stand-in where it takes one; says on stderr what a
 * person should know. *r must stay where it is. */
int setup_routing(struct routing *r, struct stand_in **server, const struct engine *e,
                  struct err *err);
/* Closes both. ERR_IO where --record could not write all. */
int setup_routing_end(struct routing *r, struct stand_in *server, struct err *err);
/* Print what the client has to say. */
void setup_cloud_notes(struct cloud *c);

#endif
