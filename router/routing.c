#include "router/routing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "kernels/sys/wipe.h"
#include "model/text/tokenizer.h"
#include "net/answers/answers.h"
#include "net/answers/answers_port.h"
#include "net/cloud.h"
#include "router/local_cloud.h"
#include "router/policy.h"
#include "router/private.h"
#include "router/router.h"

enum { DAY_MS = 86400000, MAX_ANSWERS = 65536 };

const struct routing_options routing_defaults = {
    .threshold = (double)NAN,
    .ahead = 1,
    .cloud_tokens = 1,
    .max_cloud_tokens = UINT64_MAX,
    .max_cloud_input = UINT64_MAX,
};

/* A router that asks for this many times the share that it was calibrated for is away from its
 * task.
 */
static const float WILD = 3;

/* Add a line for routing_note. */
static void routing_add_note(struct routing *r, const char *what, const char *why)
{
    if (r->unsaid < sizeof(r->notes) / sizeof(r->notes[0]))
        err_set(&r->notes[r->unsaid++], OK, "%s%s", what, why);
}

/* Return the share to which the router is held; 0: none, another threshold than its own, or a
 * policy that has none. */
static float routing_hold(const struct routing *r, const struct routing_options *o)
{
    const struct router_about *about = router_about(r->router);
    enum policy p = r->how.policy;
    bool own = !o->policy || policy_reads_router(p);
    own = own && isnan(o->threshold) && !(o->max_routed > 0);
    return own && about->has_share ? WILD * about->share : 0;
}

/* Open the router of the policy; if none is named, the router that is there decides on it. */
static int routing_open_router(struct routing *r, const struct engine *e,
                               const struct routing_options *o, struct err *err)
{
    char beside[ROUTING_PATH];
    struct err note;
    const char *path = o->router;
    if (o->on_score && (path || (o->policy && r->how.policy != POLICY_MLP)))
        return err_set(err, ERR_ARG, "on_score: expected policy mlp and no router, found %s",
                       path ? path : o->policy);
    if (o->on_score) {
        r->how.policy = POLICY_MLP;
        return router_make_own(&r->router, o->on_score, o->score_arg, &e->kernels, err);
    }
    if (!path && routing_find_router(beside, o, e, o->policy ? r->how.policy : POLICY_MLP))
        path = beside;
    if (path && (!o->policy || policy_reads_router(r->how.policy))) {
        int rc = routing_router(&r->router, e, path, &note, err);
        if (rc != OK)
            return rc;
        if (note.msg[0])
            routing_add_note(r, "", note.msg);
        if (!o->router && o->routers && !strncmp(path, o->routers, strlen(o->routers))) {
            struct err limit = { "" };
            if (routing_hold(r, o) > 0)
                err_set(&limit, OK,
                        "; it routes at most %.3g %% of a text and 2 tokens (max_routed)",
                        100 * (double)routing_hold(r, o));
            err_set(&note, OK, "router %s, which this model's fingerprint names: %s, learnt %s%s",
                    path, router_name(r->router), router_about(r->router)->task, limit.msg);
            routing_add_note(r, "", note.msg);
        }
        enum router_kind kind = router_kind(r->router);
        if (!o->policy) /* the one that reads it */
            for (r->how.policy = POLICY_MLP; policy_router(r->how.policy) != kind;)
                r->how.policy++;
        else if (kind != policy_router(r->how.policy))
            return err_set(err, ERR_ARG, "policy %s: %s: expected a %s, found a %s", o->policy,
                           path, router_kind_name(policy_router(r->how.policy)),
                           router_kind_name(kind));
    } else if (!o->policy) {
        r->how.policy = POLICY_NEVER;
    } else if (policy_reads_router(r->how.policy)) {
        return err_set(err, ERR_ARG, "policy %s: no router beside %s, and none was named",
                       o->policy, o->engine.model);
    }
    return OK;
}

const char *routing_scorer(const struct routing *r)
{
    bool own = r->how.policy == POLICY_MLP && r->router;
    return own ? router_name(r->router) : policy_name(r->how.policy);
}

/* Keep the place of policy position; eval has that policy beside another one. */
static int routing_set_place(struct routing *r, const char *place, struct err *err)
{
    size_t range[2];
    if (place ? !*place : r->how.policy == POLICY_POSITION)
        return err_set(err, ERR_ARG, "place: expected a number or a text, found none");
    if (place && policy_place(range, place) && range[0] > range[1])
        return err_set(err, ERR_ARG, "place: expected N-M with N at most M, found %s", place);
    if (place && !(r->place = strdup(place)))
        return err_set(err, ERR_NOMEM, "place: out of memory");
    return OK;
}

/* Choose the policy, open its router, and set the thresholds. */
static int routing_open_policy(struct routing *r, const struct engine *e,
                               const struct routing_options *o, struct err *err)
{
    if (o->policy && !policy_parse(&r->how.policy, o->policy))
        return err_set(err, ERR_ARG, "policy: expected " POLICY_NAMES "found %s", o->policy);
    if (o->threshold < 0 || o->threshold > 1)
        return err_set(err, ERR_ARG, "threshold: expected 0 to 1, found %g", o->threshold);
    if (o->ahead > 1)
        return err_set(err, ERR_ARG, "ahead: expected 0 or 1, found %zu", o->ahead);
    if (!(o->max_routed >= 0 && o->max_routed <= 1))
        return err_set(err, ERR_ARG, "max_routed: expected 0 to 1, found %g", o->max_routed);
    int rc = routing_set_place(r, o->place, err);
    if (rc == OK)
        rc = routing_open_router(r, e, o, err);
    if (rc != OK)
        return rc;
    r->how.ahead = o->ahead;
    r->how.call_tokens = o->cloud_tokens;
    r->how.threshold = (float)o->threshold;
    bool own = r->router && policy_reads_router(r->how.policy);
    bool calibrated =
        isnan(r->how.threshold) && own && router_threshold(r->router, &r->how.threshold);
    if (isnan(r->how.threshold))
        r->how.threshold = 0.5f;
    r->how.max_routed = (float)o->max_routed;
    r->holds_router = calibrated && routing_hold(r, o) > 0;
    if (r->holds_router)
        r->how.max_routed = routing_hold(r, o);
    return OK;
}

/* Open the answers in memory and, if one is named, in a file. */
static int routing_open_answers(struct routing *r, const struct routing_options *o,
                                const struct tokenizer *t, struct err *err)
{
    if (o->answers_limit > MAX_ANSWERS)
        return err_set(err, ERR_ARG, "answers_limit: expected 1 to %d MiB, found %zu", MAX_ANSWERS,
                       o->answers_limit);
    if (o->answers_limit && !o->answers)
        return err_set(err, ERR_ARG, "answers_limit: expected answers, a file; found none");
    if (o->offline && !o->answers)
        return err_set(err, ERR_ARG, "offline: expected answers, a file; found none");
    const struct answers_options c = { .file = o->answers,
                                       .limit = (uint64_t)o->answers_limit << 20,
                                       .offline = o->offline,
                                       .tokenizer = tokenizer_fingerprint(t),
                                       .vocab = tokenizer_size(t) };
    return answers_open(&r->answers, &c, err);
}

/* Callback of the cloud client: cut a text as the small model does. */
static int routing_encode(void *arg, uint32_t **ids, size_t *count, const char *text, size_t n,
                          struct err *err)
{
    return tokenizer_encode_part(arg, ids, count, text, n, true, err);
}

/* True when the cloud is a model of this process. */
static bool routing_is_local(const struct routing_options *o)
{
    return !o->offline && !(o->cloud_url && *o->cloud_url) && o->cloud_model && *o->cloud_model;
}

static unsigned routing_at_most_a_day(size_t ms)
{
    return ms < DAY_MS ? (unsigned)ms : DAY_MS;
}

/* Copy the API key from the options, or read it from its file or from the environment. */
static int routing_read_key(char **key, const struct routing_options *o, struct err *note,
                            struct err *err)
{
    note->msg[0] = '\0';
    if (o->offline || routing_is_local(o) ||
        !(o->cloud_key || o->cloud_key_file || o->cloud_key_env))
        return OK;
    return api_key_read(key, o->cloud_key, o->cloud_key_file, o->cloud_url, o->cloud_proxy, note,
                        err);
}

int routing_cloud_options(struct cloud_options *out, char **key, const struct routing_options *o,
                          const struct tokenizer *t, const _Atomic int *stop, struct err *note,
                          struct err *err)
{
    *key = NULL;
    *out = (struct cloud_options){
        .url = o->cloud_url,
        .model = o->cloud_model,
        .ca = o->cloud_ca,
        .proxy = o->cloud_proxy,
        .timeout_ms = routing_at_most_a_day(o->cloud_timeout),
        .vocab = t ? tokenizer_size(t) : UINT32_MAX,
        .stop = stop,
        .tokens = o->cloud_tokens,
        .encode = t ? routing_encode : NULL,
        .encode_arg = (void *)(size_t)t,
    };
    if (!cloud_api_parse(&out->api, o->cloud_api ? o->cloud_api : "auto"))
        return err_set(err, ERR_ARG,
                       "cloud_api: expected auto, openai, sglang or llamacpp, found %s",
                       o->cloud_api);
    if (!o->cloud_tokens || o->cloud_tokens > CLOUD_MAX_TOKENS)
        return err_set(err, ERR_ARG, "cloud_tokens: expected 1 to %d, found %zu", CLOUD_MAX_TOKENS,
                       o->cloud_tokens);
    /* If the dialect is given, nothing must be known of the server before the first call. */
    out->background = out->api != CLOUD_AUTO;
    int rc = routing_read_key(key, o, note, err);
    out->key = *key;
    return rc;
}

/* Open the client of a server and reach it, if something must be known of it. One that does not
 * answer is asked again by the first routed token, unless it is required, and one that refuses is
 * as if it had refused a token. The breaker counts calls for tokens alone. */
static int routing_open_server(struct routing *r, struct cloud_options *c, struct err *err)
{
    /* With a limit it is not left to the clock what the probe takes of it. */
    bool waits = r->how.cloud_required || c->api == CLOUD_AUTO || r->gate.quota;
    c->found = answers_found;
    c->found_arg = r->answers;
    c->background = true;
    c->quota = r->gate.quota;
    int rc = cloud_open(&r->cloud, c, err);
    if (rc == OK && waits)
        rc = cloud_ready(r->cloud, err);
    if (!r->cloud || r->how.cloud_required || (rc != ERR_NET && rc != ERR_REMOTE))
        return rc;
    routing_add_note(r, rc == ERR_NET ? "no answer from the cloud yet: " : "cloud off: ", err->msg);
    r->gate.refused = rc == ERR_REMOTE; /* a server may ask it again later */
    r->gate.lost = true;
    r->gate.fault = *err;
    return OK;
}

/* Name the answers that are all there is: by o->cloud_model, which may be the name of a server's
 * model, or a model of this machine. */
static int routing_go_offline(struct routing *r, const struct routing_options *o, struct err *err)
{
    char name[LOCAL_CLOUD_NAME];
    int rc = answers_server(r->answers, o->cloud_model, err);
    if (rc != ERR_FORMAT || !o->cloud_model)
        return rc;
    local_cloud_name(name, o->cloud_model);
    return answers_server(r->answers, name, err);
}

/* Open what answers, with the kept answers in front of it. Without the cloud, if that is not
 * required, leave a note and go on. */
static int routing_connect_cloud(struct routing *r, const struct engine *e,
                                 const struct routing_options *o, const _Atomic int *stop,
                                 struct err *err)
{
    struct cloud_port behind = { 0 };
    struct cloud_options c;
    struct err note;
    char *key;
    uint64_t start = os_now_ns();
    int rc = routing_cloud_options(&c, &key, o, e->tokenizer, stop, &note, err);
    if (note.msg[0])
        routing_add_note(r, "", note.msg);
    if (rc != OK) {
        /* nothing is open */
    } else if (o->offline) {
        rc = routing_go_offline(r, o, err);
    } else if (routing_is_local(o)) {
        rc = local_cloud_open(&behind, e, o, r->gate.quota, stop, err);
        r->local = behind.arg;
        r->turn = r->local ? local_cloud_turn(r->local) : NULL;
        const struct cloud_info i = rc == OK ? behind.info(behind.arg) : (struct cloud_info){ 0 };
        rc = rc == OK ? answers_found(r->answers, i.model, i.says, err) : rc;
    } else {
        rc = routing_open_server(r, &c, err);
        if (r->cloud)
            cloud_port(&behind, r->cloud);
    }
    wipe_text(key);
    r->start_ms = (double)(os_now_ns() - start) / 1e6;
    if (rc == OK)
        rc = answers_port(&r->port, r->answers, behind.arg ? &behind : NULL, err);
    if (rc == OK)
        return OK;
    if (behind.close)
        behind.close(behind.arg);
    r->cloud = NULL;
    r->local = NULL;
    r->turn = NULL;
    if ((rc != ERR_NET && rc != ERR_REMOTE) || r->how.cloud_required)
        return rc;
    routing_add_note(r, "cloud off: ", err->msg);
    return OK;
}

/* Decide from mode, policy and URL whether there is a cloud, and open it. */
static int routing_open_cloud(struct routing *r, const struct engine *e,
                              const struct routing_options *o, const _Atomic int *stop,
                              struct err *err)
{
    const char *mode = o->cloud ? o->cloud : "auto";
    bool off = strcmp(mode, "off") == 0;
    const char *needs = r->how.policy == POLICY_ALWAYS ? "policy always" : NULL;
    char *base = NULL;
    int rc = o->cloud_url && *o->cloud_url ? cloud_url_check(&base, o->cloud_url, err) : OK;
    free(base);
    if (rc != OK) /* even if it would not be called */
        return rc;
    r->how.cloud_required = strcmp(mode, "required") == 0;
    if (!off && !r->how.cloud_required && strcmp(mode, "auto") != 0)
        return err_set(err, ERR_ARG, "cloud: expected auto, off or required, found %s", mode);
    if (off)
        return needs ? err_set(err, ERR_NET, "%s: the cloud is off", needs) : OK;
    if (!o->offline && !(o->cloud_url && *o->cloud_url) && !routing_is_local(o)) {
        if (r->how.cloud_required || needs)
            return err_set(err, ERR_NET, "there is no cloud: name one with cloud_url");
        if (r->how.policy == POLICY_NEVER)
            return OK;
        bool asked = o->policy || o->router;
        r->how.policy = asked ? r->how.policy : POLICY_NEVER;
        routing_add_note(r, "cloud off: ", asked ? "no cloud_url" : "no cloud_url, no cloud_model");
        return OK;
    }
    if (r->how.policy != POLICY_NEVER || r->how.cloud_required || needs)
        return routing_connect_cloud(r, e, o, stop, err);
    if (!o->policy)
        routing_add_note(r, "cloud off: ",
                         "no router beside the model, and no policy; --policy entropy needs none");
    return OK;
}

/* Read where drafts come from. */
static int routing_read_drafts(struct routing *r, const struct routing_options *o, struct err *err)
{
    const char *usual = o->cloud_tokens > 1 ? "both" : "lookup";
    if (!draft_parse(&r->how.drafts, o->draft ? o->draft : usual))
        return err_set(err, ERR_ARG, "draft: expected off, lookup, cloud or both, found %s",
                       o->draft);
    return OK;
}

int routing_open(struct routing *r, const struct engine *e, const struct routing_options *o,
                 const _Atomic int *stop, struct err *err)
{
    struct err own = { "" };
    memset(r, 0, sizeof(*r));
    err = err ? err : &own;
    int rc = routing_open_policy(r, e, o, err);
    if (rc == OK)
        rc = routing_read_drafts(r, o, err);
    if (rc == OK)
        rc = private_open(&r->patterns, o->private_file, NULL, e->tokenizer, err);
    if (rc == OK)
        rc = routing_open_answers(r, o, e->tokenizer, err);
    r->quota = (struct quota){ .tokens = o->max_cloud_tokens, .input = o->max_cloud_input };
    r->gate.quota = quota_limits(&r->quota) && !o->offline ? &r->quota : NULL;
    r->gate.patterns = r->patterns;
    r->how.gate = &r->gate;
    r->how.place = r->place;
    r->how.draft_max = DRAFT_DEFAULT;
    if (rc == OK)
        rc = routing_open_cloud(r, e, o, stop, err);
    if (rc != OK)
        routing_close(r);
    return rc;
}

void routing_close(struct routing *r)
{
    if (r->port.close)
        r->port.close(r->port.arg);
    answers_close(r->answers);
    private_close(r->patterns);
    router_close(r->router);
    free(r->place);
    memset(r, 0, sizeof(*r));
}

const struct cloud_port *routing_port(const struct routing *r)
{
    return r->port.ask ? &r->port : NULL;
}

bool routing_note(struct routing *r, struct err *note)
{
    if ((r->answers && answers_note(r->answers, note)) || (r->cloud && cloud_note(r->cloud, note)))
        return true;
    if (!r->unsaid)
        return false;
    *note = r->notes[0];
    r->notes[0] = r->notes[--r->unsaid];
    return true;
}
