/* request.h - handles one request from its first byte to its last: body, key, question, answer. */
#ifndef TOOLS_STAND_IN_REQUEST_H
#define TOOLS_STAND_IN_REQUEST_H

#include <microhttpd.h>

#include "tools/stand_in/paths.h"
#include "tools/stand_in/chance.h"
#include "tools/stand_in/fault.h"
#include "tools/stand_in/waiting.h"
#include "tools/stand_in/deadlines.h"

/* What all requests share. */
struct stand_in_service {
    struct stand_in_paths api;
    struct stand_in_waiting hold;
    struct stand_in_deadlines watch;
    struct stand_in_chance *draw;
    struct stand_in_net net;
    struct stand_in_faults faults;
    char *key;              /* required of every request but the open routes; NULL: none */
    pthread_mutex_t parser; /* serializes large bodies, because parsed JSON takes far more memory */
};

/* Callbacks of libmicrohttpd, with one thread per connection; arg is a struct stand_in_service. */
enum MHD_Result stand_in_request_handle(void *arg, struct MHD_Connection *c, const char *path,
                                        const char *method, const char *version, const char *data,
                                        size_t *n, void **state);
void stand_in_request_done(void *arg, struct MHD_Connection *c, void **state,
                           enum MHD_RequestTerminationCode why);

#endif
