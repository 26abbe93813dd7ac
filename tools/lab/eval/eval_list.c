#include "tools/lab/eval/eval_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "router/router.h"
#include "router/routing.h"
#include "tools/cli/setup.h"

const char *eval_entry_policy(const struct eval_entry *e)
{
    return e->slot ? "slot" : e->query ? "query" : policy_name(e->policy);
}

bool eval_entry_scores(const struct eval_entry *e)
{
    return policy_scores(e->policy) && e->policy != POLICY_POSITION;
}

/* Return the name of a file without its folders. */
static const char *list_base(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

/* Parse one entry, NAME or NAME=FILE, which is cut there. */
static int list_parse_entry(struct eval_entry *e, char *text, struct err *err)
{
    char *equals = strchr(text, '=');
    *e = (struct eval_entry){ .file = equals ? equals + 1 : NULL };
    if (equals)
        *equals = 0;
    e->slot = !strcmp(text, "slot");
    e->query = !strcmp(text, "query");
    if (!policy_parse(&e->policy, e->slot ? "always" : e->query ? "mlp" : text))
        return err_set(err, ERR_ARG,
                       "--policy: expected " POLICY_NAMES "query, slot, found \"%.64s\"", text);
    bool reads = policy_reads_router(e->policy);
    if (e->file && (!reads || !*e->file))
        return err_set(err, ERR_ARG, "--policy: expected %s%s, found \"%s=%.64s\"", text,
                       reads ? "=FILE" : " without a file", text, e->file);
    snprintf(e->label, sizeof(e->label), "%s%s%s", text, e->file ? "=" : "",
             e->file ? list_base(e->file) : "");
    text_line(e->label);
    return OK;
}

/* Number the routers whose files have one name. */
static void list_tell_apart(struct eval_list *l)
{
    size_t last = l->n - 1, same = 1;
    const char *label = l->at[last].label;
    for (size_t i = 0; i < last; i++)
        same += l->at[last].file && l->at[i].file && l->at[i].policy == l->at[last].policy &&
                l->at[i].query == l->at[last].query &&
                !strcmp(list_base(l->at[i].file), list_base(l->at[last].file));
    if (same > 1)
        snprintf(l->at[last].label + strnlen(label, EVAL_LABEL - 5), 5, "#%zu", same % 100);
}

int eval_list_parse(struct eval_list *out, const char *text, struct err *err)
{
    *out = (struct eval_list){ .text = strdup(text) };
    int rc = out->text ? OK : err_set(err, ERR_NOMEM, "--policy: out of memory");
    for (char *p = out->text, *next; rc == OK && p; p = next) {
        next = strchr(p, ',');
        if (next)
            *next++ = 0;
        rc = out->n < EVAL_POLICIES
                 ? list_parse_entry(&out->at[out->n++], p, err)
                 : err_set(err, ERR_ARG, "--policy: expected at most %d names", EVAL_POLICIES);
        list_tell_apart(out);
    }
    if (rc != OK)
        eval_list_close(out);
    return rc;
}

/* Open the router of an entry, and note what it is. */
static int list_open_router(struct eval_entry *e, const struct engine *engine,
                            const struct routing_options *o, struct err *err)
{
    char beside[ROUTING_PATH];
    struct err note = { "" };
    const char *path = e->file;
    if (!path && routing_find_router(beside, o, engine, e->policy))
        path = beside;
    if (!path)
        return err_set(err, ERR_ARG, "policy %s: no router beside %s, and none was named", e->label,
                       o->engine.model);
    int rc = routing_router(&e->router, engine, path, &note, err);
    if (note.msg[0])
        setup_print_typed(&note);
    if (rc != OK)
        return rc;
    if (router_kind(e->router) != policy_router(e->policy))
        return err_set(err, ERR_ARG, "--policy: %s: expected a %s, found a %s", path,
                       router_kind_name(policy_router(e->policy)),
                       router_kind_name(router_kind(e->router)));
    const struct router_about *about = router_about(e->router);
    if (path == beside && o->routers && !strncmp(path, o->routers, strlen(o->routers))) {
        err_set(&note, OK, "router %s, which this model's fingerprint names: %s, learnt %s", path,
                router_name(e->router), about->task);
        setup_print_typed(&note);
    }
    snprintf(e->known.name, sizeof(e->known.name), "%.63s",
             e->file ? strchr(e->label, '=') + 1 : list_base(path));
    text_line(e->known.name);
    if (!sha256_file(e->known.sha256, path))
        e->known.sha256[0] = 0;
    if (about->has_model)
        snprintf(e->known.fingerprint, sizeof(e->known.fingerprint), "%016" PRIx64, about->model);
    return OK;
}

int eval_list_open(struct eval_list *l, const struct engine *engine, struct err *err)
{
    struct routing_options o;
    int rc = setup_options(&o, err);
    for (size_t i = 0; rc == OK && i < l->n; i++)
        if (policy_reads_router(l->at[i].policy))
            rc = list_open_router(&l->at[i], engine, &o, err);
    return rc;
}

json_t *eval_list_json(const struct eval_list *l)
{
    json_t *list = json_array();
    for (size_t i = 0; i < l->n; i++) {
        const struct eval_entry *e = &l->at[i];
        json_array_append_new(list, json_pack("{s:s, s:i, s:s, s:s, s:s}", "policy", e->label,
                                              "trainings", 1, "router", e->known.name,
                                              "router_sha256", e->known.sha256,
                                              "router_fingerprint", e->known.fingerprint));
    }
    return list;
}

void eval_list_close(struct eval_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        router_close(l->at[i].router);
    free(l->text);
    *l = (struct eval_list){ 0 };
}

bool eval_list_asks(const struct eval_list *l)
{
    bool asks = false;
    for (size_t i = 0; i < l->n; i++)
        asks = asks || l->at[i].policy != POLICY_NEVER;
    return asks;
}
