/* setup.h - turns the shared options into the library's, and opens what several commands need.
 *
 * These functions read the values of shared_options.h and the environment. They set err and return
 * the library's codes; notes for the user are printed to stderr. */
#ifndef TOOLS_CLI_SETUP_H
#define TOOLS_CLI_SETUP_H

#include <stdbool.h>

#include "kernels/kv.h"
#include "tools/cli/shared_options.h"

struct engine;
struct err;
struct kernels;
struct mizzle;
struct progress;

/* Install the handlers of all signals; main calls this once. A closed pipe and an exceeded file
 * size limit become errors of the write. SIGHUP, SIGINT and SIGTERM, unless they are ignored or
 * caught below, delete unfinished files and end the process. If another process truncates a mapped
 * file, the process ends with one line on stderr and status 3. */
void setup_signals(void);
/* Set to SIGINT or SIGTERM by it after setup_catch_interrupts. A second signal deletes unfinished
 * files, ends the marks of what is pasted if `pasting`, and ends the process at once. */
extern _Atomic int interrupted, pasting;
void setup_catch_interrupts(void);
/* Make an interrupt, or one that has come, stop m too, until this is called with NULL. */
void setup_stop_on_interrupt(struct mizzle *m);
/* Show progress while something is opened, and let an interrupt end the process at once: there is
 * nothing yet that would have to end in order. */
struct progress *setup_open_begin(const char *doing, const char *what);
void setup_open_end(struct progress *p);

/* Take the place of the policies position and slot out of --policy, which it ends; of eval's list,
 * too. ERR_ARG if it is missing or, for slot, a number. */
int setup_check_policy(struct err *err);
/* Fill *o from all shared options and their environment variables; without -m, the model is the
 * demo's small one. ERR_IO if there is no -m and no demo pair. */
int setup_options(struct routing_options *o, struct err *err);
/* Let a model of this process answer if no server is named and a cloud may be needed: the one that
 * --cloud-model names, else for the demo pair its own, which is put into o->cloud_model. Errors of
 * find_model. */
int setup_large_model(struct routing_options *o, struct err *err);

/* Call engine_open with setup_options. While a long load lasts, a terminal shows progress. */
int setup_engine(struct engine *e, bool need_tokenizer, struct err *err);
/* Return the kernel set of --isa, else of MIZZLE_ISA; NULL if there is neither. */
const char *setup_isa(void);
/* Return the server of --cloud-url, else of MIZZLE_CLOUD_URL; NULL if there is neither. */
const char *setup_cloud_url(void);
/* Select the kernels that --isa names, else MIZZLE_ISA, else the fastest exact ones. ERR_ARG. */
int setup_kernels(struct kernels *out, struct err *err);
/* Print a note of the library with the option names as they are typed in this command. */
void setup_print_typed(const struct err *note);
/* Print a hint if k uses OpenBLAS and OpenBLAS mistakes the processor for an older one. */
void setup_blas_hint(const struct kernels *k);
/* Set *out to the type that --kv names, else to `otherwise`. ERR_ARG. */
int setup_kv(enum kvcache *out, enum kvcache otherwise, struct err *err);

#endif
