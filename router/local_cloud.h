/* local_cloud.h - a large model in this process as a port (cloud_port.h), without a deadline. Its
 * texts are written together (texts.h). Both models take turns, so each pass has all threads. The
 * number of texts kept is texts_fit for 2,048 positions. Each text takes the memory of its own
 * length, up to 32,768 positions, so longer texts may take more than an eighth of the machine's
 * memory. */
#ifndef ROUTER_LOCAL_CLOUD_H
#define ROUTER_LOCAL_CLOUD_H

#include <stdint.h>

#include "net/cloud_port.h"
#include "router/texts/texts.h"

struct engine;
struct err;
struct local_cloud;
struct routing_options;

/* Load the model o->cloud_model and make its port, whose arg is the struct local_cloud. Ids that
 * both models have must mean the same token in the edge (else ERR_FORMAT). quota, which may be
 * NULL, gets back the charge of a refused call; *stop, which may be NULL, interrupts take. Both are
 * borrowed. Other errors: errors of engine_open and texts_open. */
int local_cloud_open(struct cloud_port *out, const struct engine *edge,
                     const struct routing_options *o, struct quota *quota, const _Atomic int *stop,
                     struct err *err);
/* Return the turn, which the edge's texts also take. */
struct turn *local_cloud_turn(struct local_cloud *l);
/* Return the model's texts, for callers that need more than a port gives. */
struct texts *local_cloud_texts(const struct local_cloud *l);

enum { LOCAL_CLOUD_NAME = 128 };
/* Write the served name of a model: "dir/cloud.gguf" gives "cloud". */
void local_cloud_name(char out[LOCAL_CLOUD_NAME], const char *path);

#endif
