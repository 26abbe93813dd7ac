/* local_cloud.h - a large model in this process as a port (cloud_port.h): no deadline. Its texts
 * are written together (texts.h), in turns with those of the small model, so that a pass of either
 * has all threads. As many are kept as texts_fit says for 2,048 positions; one takes the memory of
 * its own length, up to 32,768, so keys and values of longer ones may take more than an eighth of
 * the machine's memory. */
#ifndef ROUTER_LOCAL_CLOUD_H
#define ROUTER_LOCAL_CLOUD_H

#include <stdint.h>

#include "net/cloud_port.h"
#include "router/texts/texts.h"

struct engine;
struct err;
struct local_cloud;
struct routing_options;

/* Load the model that o->cloud_model names, for an edge whose tokens are to be the same as far as
 * both have them, and make its port, whose arg is the struct local_cloud. quota, which may be NULL,
 * gets back what a refused call was charged; *stop, which may be NULL, interrupts take; both are
 * borrowed. ERR_FORMAT if an id means something else; errors of engine_open and texts_open. */
int local_cloud_open(struct cloud_port *out, const struct engine *edge,
                     const struct routing_options *o, struct quota *quota, const _Atomic int *stop,
                     struct err *err);
/* Return the turn that the texts of the edge take, too. */
struct turn *local_cloud_turn(struct local_cloud *l);
/* Return the model's texts, for who wants more of it than a cloud gives. */
struct texts *local_cloud_texts(const struct local_cloud *l);

enum { LOCAL_CLOUD_NAME = 128 };
/* Write the name under which a model is served: "dir/cloud.gguf" gives "cloud". */
void local_cloud_name(char out[LOCAL_CLOUD_NAME], const char *path);

#endif
