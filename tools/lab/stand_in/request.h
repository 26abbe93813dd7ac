/* request.h - handles one request: head, question, answer. */
#ifndef TOOLS_LAB_STAND_IN_REQUEST_H
#define TOOLS_LAB_STAND_IN_REQUEST_H

#include <pthread.h>

#include "net/server/server.h"
#include "router/local_cloud.h"
#include "tools/lab/stand_in/chance.h"
#include "tools/lab/stand_in/fault.h"
#include "tools/lab/stand_in/paths.h"

/* A running server. */
struct stand_in {
    struct server *server;
    char name[LOCAL_CLOUD_NAME];
    struct stand_in_paths api;
    struct stand_in_chance *draw;
    struct stand_in_net net; /* guarded by line */
    pthread_mutex_t line;
    struct stand_in_faults faults;
};

/* Set the callbacks of the server; o->arg becomes s. */
void stand_in_request_serve(struct server_options *o, struct stand_in *s);

#endif
