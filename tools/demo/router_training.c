#include "tools/demo/router_training.h"

#include "kernels/sys/base.h"
#include "router/learn/sample_files.h"
#include "tools/cli/setup.h"
#include "tools/demo/world.h"
#include "tools/learn/collecting.h"

/* A busy machine must not end minutes of work; the server is in this process and does not hang. */
enum { TIMEOUT_MS = 600000 };

void router_training_defaults(struct router_training_options *o)
{
    *o = (struct router_training_options){ .world = WORLD_SEED,
                                           .questions = 1000,
                                           .tap = TAP_FINAL };
}

int router_training_collect(struct samples *out, struct sample_meta *meta,
                            const struct router_training_options *o, struct err *err)
{
    const struct collecting_options c = {
        .task = { .name = "milli", .stream = TASK_TRAIN, .seed = 1, .world = o->world },
        .labels = COLLECT_DIVERGENT,
        .tap = o->tap,
        .questions = o->questions,
        .max_tokens = SIZE_MAX,
        .rollouts = SAMPLE_FILES_NO_LIMIT,
        .round = 1,
        .quiet = o->quiet
    };
    if (!o->questions)
        return err_set(err, ERR_ARG, "--questions: expected at least 1");
    if (!engine_options.kv) /* as the routers of the demo were made */
        engine_options.kv = kvcache_name(KVCACHE_F32);
    /* Only the stand-in of this process gives the same samples everywhere, so no server that the
     * environment names is asked. */
    cloud_option_values.url = "";
    cloud_option_values.model = o->cloud;
    cloud_option_values.tokens = 0; /* as many as collecting prefers */
    cloud_option_values.timeout_ms = TIMEOUT_MS;
    return collecting_samples(out, meta, &c, err);
}
