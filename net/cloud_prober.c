/* cloud_prober.c - runs the probe, in its own thread or in cloud_open, and then sends or ends the
 * calls that wait for its result. */
#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/answers/answers.h"
#include "net/cloud_internal.h"

/* Answers are kept under the name of this server. */
int cloud_prober_name(struct cloud *c, struct err *err)
{
    if (!c->o.answers)
        return OK;
    return answers_server(c->o.answers, c->model ? c->model : c->base,
                          cloud_api_name(c->dialect->api), err);
}

int cloud_prober_ask(struct cloud *c, struct err *why)
{
    int rc = probe_run(c, why);
    if (rc == OK)
        rc = cloud_prober_name(c, why);
    bool passing = rc == ERR_NET || rc == ERR_STOP || rc == ERR_NOMEM;
    wire_lock(c->wire);
    c->failed = rc;
    c->why = *why;
    c->state = rc == OK ? CLOUD_READY : passing ? CLOUD_FAILED : CLOUD_REFUSED;
    if (c->state == CLOUD_FAILED)
        cloud_charge(c);
    else
        cloud_unpark(c, rc, why);
    wire_tell(c->wire);
    wire_unlock(c->wire);
    return rc;
}

static void *cloud_prober(void *arg)
{
    struct cloud *c = arg;
    struct err why = { "" };
    cloud_prober_ask(c, &why);
    return NULL;
}

bool cloud_wake_prober(struct cloud *c)
{
    if (c->prober_runs)
        pthread_join(c->prober, NULL); /* it has ended or is about to end */
    c->state = CLOUD_PROBING;
    c->prober_runs = pthread_create(&c->prober, NULL, cloud_prober, c) == 0;
    if (!c->prober_runs)
        c->state = CLOUD_ASLEEP;
    return c->prober_runs;
}

int cloud_wait_ready(struct cloud *c, struct err *err)
{
    if (c->state == CLOUD_ASLEEP && !cloud_wake_prober(c))
        return cloud_no_memory(err);
    uint64_t start = os_now_ns();
    while (c->state == CLOUD_PROBING)
        wire_wait(c->wire);
    c->ns += os_now_ns() - start;
    return c->state == CLOUD_READY ? OK : err_set(err, c->failed, "%s", c->why.msg);
}

/* Restart the deadline of each parked call, as if it had been made now. */
void cloud_probe_again(struct cloud *c)
{
    uint64_t deadline = os_now_ns() + c->timeout_ns;
    for (struct cloud_call *call = c->calls; call; call = call->next)
        if (call->parked)
            call->wire->deadline = deadline;
    if (!cloud_wake_prober(c))
        cloud_unpark(c, ERR_NOMEM, &(struct err){ "cloud: no thread can be started" });
}

void cloud_charged(struct cloud_call *call, bool committed)
{
    struct cloud *c = call->cloud;
    if (c->failing != call)
        return;
    c->failing = NULL;
    if (!committed) {
        cloud_charge(c);
        return;
    }
    c->state = CLOUD_ASLEEP;
    if (cloud_call_oldest(c))
        cloud_probe_again(c);
}
