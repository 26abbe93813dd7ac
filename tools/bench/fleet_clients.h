/* fleet_clients.h - a small fleet for real: clients in threads of this process, which call the
 * stand-in server over HTTP, against which the simulated fleet (clock/fleet_model.h) is checked.
 *
 * Each client follows the script of a simulated device (clock/fleet_device.h): it sleeps while its
 * small model would compute, and calls when the script says so. The server holds no model. It
 * computes in passes of up to `batch` calls, each of which takes as long as fleet_model.h says, and
 * spends that time asleep. So the two share the script and the length of a pass; queues, batches,
 * network and threads are real. */
#ifndef TOOLS_BENCH_FLEET_CLIENTS_H
#define TOOLS_BENCH_FLEET_CLIENTS_H

#include <stddef.h>

#include "tools/clock/fleet_model.h"

enum { FLEET_CLIENTS = 64, FLEET_CLIENTS_BATCH = 8 }; /* most clients; most calls in a pass */

/* Run n clients and set what they measured of *out: calls, answers, p50, p95, mean, answer_ms. They
 * are measured for `seconds` after a quarter of that time. 1 <= n <= FLEET_CLIENTS, the batch is 1
 * to FLEET_CLIENTS_BATCH, routed is below 1, latency_ms is whole; chunk and kv are ignored. ERR_NET
 * and other errors of the client; ERR_STOP if interrupted. */
int fleet_clients_run(struct fleet_load *out, const struct fleet_habits *h,
                      const struct fleet_server *s, size_t n, double seconds, struct err *err);

#endif
