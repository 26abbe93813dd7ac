/* items.h - the answers of `mizzle eval` as lines of comma-separated values, without their texts,
 * from which tools/lab/study/figures.py computes every figure again without a model.
 *
 * Of the columns, form and pair are cut short; a pair is the fingerprints of both models (of a
 * server that says none, its model's name); an item without an id has its number; group is the hash
 * of its subject; policy is its label without the ending of a file, and without a file that is
 * named as the policy; share is the target, or empty; run is the number of the training from 1;
 * read is how many ids the cloud reads that its prefix cache does not hold (asked_work.prefilled);
 * hash is that of struct asked, or empty; settings is a hash of all that answers of this policy
 * depend on beside the question: the settings of a journal but for its part, its list of policies,
 * names, version and machine, and the router. */
#ifndef TOOLS_LAB_EVAL_ITEMS_H
#define TOOLS_LAB_EVAL_ITEMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/sha256.h"
#include "tools/cli/output_file.h"
#include "tools/lab/eval/eval_result.h"

struct err;
struct eval_origin;

enum { ITEMS_OF = 176, ITEMS_WORD = 64 }; /* bytes of task,form,pair and of other fields */

struct items_file { /* that is written */
    struct output_file out;
    const struct eval_list *list; /* of the policies */
    char of[ITEMS_OF];            /* task,form,pair */
    char settings[SHA256_HEX];    /* digest, without the router */
};

/* Begin a file with what all answers of a run share; list is borrowed. settings is that of a
 * journal. The caller closes f->out. ERR_IO, ERR_NOMEM. */
int items_open(struct items_file *f, const char *path, const json_t *settings,
               const struct eval_origin *origin, const struct eval_list *list, struct err *err);
/* Add an answer to item number `item`, by the training of *r that is running. */
void items_write(struct items_file *f, const struct eval_result *r, size_t item, uint64_t subject,
                 const struct asked *one);

#endif
