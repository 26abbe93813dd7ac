#include <string.h>

#include "kernels/kv.h"
#include "kernels/sys/os.h"
#include "model/batch.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/session.h"
#include "model/text/chat.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/features.h"
#include "router/router.h"
#include "router/routing.h"
#include "tools/cli/demo_files.h"
#include "tools/info/info.h"

enum { CONTEXT_DEFAULT = 4096 }; /* of `mizzle run` */

struct str info_text(const struct weights *w, const char *key)
{
    struct str v = { "", 0 };
    weights_str(w, key, &v);
    return v;
}

bool info_is_router(struct info_router *f, const struct weights *w)
{
    const struct tensor *t = weights_find(w, "router.w1");
    const struct tensor *table = weights_find(w, "context.table");
    const struct tensor *last = weights_find(w, "router.w2");
    struct router_form form = { .members = 1 };
    *f = (struct info_router){ .tap = info_text(w, "tap") };
    if (!f->tap.n)
        f->tap = (struct str){ "final", 5 };
    if (t && t->ndim == 2) {
        f->features = table && t->shape[1] >= FEATURES ? FEATURES : 0;
        f->hidden = t->shape[1] - f->features;
        if (last && (last->ndim != 2 ||
                     !router_form_shape(&form, t->shape[0], last->shape[0], last->shape[1])))
            form = (struct router_form){ .members = 1 };
        f->members = form.members;
        f->width = t->shape[0] / form.members;
    } else {
        f->contexts = table && table->ndim == 2 ? table->shape[0] : 0;
    }
    f->name = router_head(f->hidden, f->features, form.gain);
    return f->width || f->contexts;
}

bool info_without_data(const struct weights *w)
{
    for (size_t i = 0; i < weights_ntensors(w); i++)
        if (weights_tensor(w, i)->bytes && !weights_tensor(w, i)->data)
            return true;
    return false;
}

/* Compute the memory of a text, as the functions that allocate it count. */
static int info_model_memory(struct info_model *m, const struct model *model, size_t context,
                             struct err *err)
{
    const struct model_config *c = &model->config;
    size_t batch = 0, session = 0;
    m->context = context                        ? context
                 : c->context < CONTEXT_DEFAULT ? c->context
                                                : (size_t)CONTEXT_DEFAULT;
    m->threads = os_cpus();
    int rc = model_check_context(c, m->context, err);
    if (rc == OK)
        rc = batch_size(&batch, c, m->threads, m->context, err);
    for (int i = 0; rc == OK && i < INFO_CACHES; i++)
        rc = session_size(&session, &m->cache[i], c, m->context, (enum kvcache)i, err);
    m->weights = model->bytes;
    m->work = batch + session - m->cache[INFO_CACHES - 1];
    m->runs = rc == OK;
    return rc;
}

/* Drop the path from the beginning of a line; the report names the file once. */
static void info_model_shorten(struct err *line, const char *path)
{
    size_t n = strlen(path);
    if (strncmp(line->msg, path, n) == 0 && strncmp(line->msg + n, ": ", 2) == 0)
        memmove(line->msg, line->msg + n + 2, strlen(line->msg + n + 2) + 1);
}

/* Find the form of chats. */
static int info_model_chat(struct info_model *m, const struct tokenizer *t)
{
    const char *template = tokenizer_template(t);
    struct chat *c;
    m->template = template ? strlen(template) : 0;
    int rc = chat_open(&c, t, NULL, NULL, &m->no_chat);
    if (rc == OK && chat_check(c, &m->no_chat) == OK) {
        m->chat = chat_form(c);
        m->no_chat.msg[0] = '\0';
    }
    chat_close(c);
    return rc;
}

/* Find the router that comes with a model. */
static void info_model_router(struct info_model *m, struct model *model, struct tokenizer *t,
                              const char *path)
{
    const struct routing_options o = { .engine = { .model = path },
                                       .routers = demo_files_path("../routers") };
    const struct engine e = { .model = model, .tokenizer = t };
    if (!routing_find_router(m->router, &o, &e, POLICY_MLP))
        m->router[0] = '\0';
}

int info_model_read(struct info_model *m, const struct weights *w, size_t context, struct err *err)
{
    struct model *model = NULL;
    struct tokenizer *t = NULL;
    struct info_router router;
    *m = (struct info_model){ .type = "" };
    if (strcmp(weights_format(w), "safetensors") == 0 || info_is_router(&router, w))
        return OK;
    m->is = true;
    m->type = model_file_type(w);
    int rc = tokenizer_open(&t, w, &m->no_text);
    if (rc == OK) {
        m->no_text.msg[0] = '\0';
        m->ids = tokenizer_size(t);
        rc = info_model_chat(m, t);
    }
    if (rc != ERR_NOMEM)
        rc = model_outline(&model, w, &m->no_model);
    if (rc == OK) {
        m->no_model.msg[0] = '\0';
        m->has_sign = !info_without_data(w);
        m->fingerprint = m->has_sign ? model_fingerprint(model, t) : 0;
        if (m->has_sign)
            info_model_router(m, model, t, weights_path(w));
        rc = info_model_memory(m, model, context, &m->no_model);
        if (rc != OK) /* what the file says needs too much */
            rc = context ? err_set(err, rc, "%s", m->no_model.msg) : OK;
    } else {
        rc = rc == ERR_NOMEM ? err_set(err, rc, "%s: out of memory", weights_path(w)) : OK;
    }
    info_model_shorten(&m->no_model, weights_path(w));
    info_model_shorten(&m->no_text, weights_path(w));
    model_close(model);
    tokenizer_close(t);
    return rc;
}
