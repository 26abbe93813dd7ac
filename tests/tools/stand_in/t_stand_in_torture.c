/* Asks the stand-in server, in every dialect and under every fault that edits an answer, while the
 * n-th allocation fails, jansson's included, for every n: the result is an error or no answer,
 * without crash or leak. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tests/support/torture.h"
#include "tests/tools/torture_path.h"
#include "tools/lab/stand_in/stand_in.h"

/* Requests, and the status of their answers, by enum cloud_api. */
static const struct {
    enum cloud_api server;
    int status;
    const char *path, *body;
} requests[] = {
    { CLOUD_OPENAI, 200, "/v1/completions",
      "{\"prompt\":[1,2,3],\"max_tokens\":3,\"return_token_ids\":true,\"stream_options\":"
      "{\"include_usage\":true}}" },
    { CLOUD_SGLANG, 200, "/v1/completions", "{\"prompt\":\"Hello\",\"max_tokens\":3}" },
    { CLOUD_SGLANG, 200, "/generate",
      "{\"input_ids\":[1,2,3],\"rid\":\"r\",\"sampling_params\":{\"max_new_tokens\":3}}" },
    { CLOUD_LLAMACPP, 200, "/completion",
      "{\"prompt\":[1,2,3],\"n_predict\":3,\"return_tokens\":true}" },
    { CLOUD_SGLANG, 200, "/generate", "{\"input_ids\":[1,2,999],\"stream\":true}" },
    { CLOUD_OPENAI, 400, "/v1/completions", "{\"prompt\":[1,2,999],\"max_tokens\":3}" },
    { CLOUD_LLAMACPP, 400, "/completion", "{\"prompt\":[1,2,999],\"n_predict\":3}" },
    { CLOUD_AUTO, 200, "/v1/models", NULL },
    { CLOUD_AUTO, 200, "/props", NULL },
    { CLOUD_AUTO, 200, "/slots", NULL },
    { CLOUD_AUTO, 200, "/model_info", NULL },
    { CLOUD_AUTO, 200, "/server_info", NULL },
    { CLOUD_AUTO, 200, "/version", NULL },
    { CLOUD_AUTO, 200, "/tokenize", "{\"content\":\"Hi\"}" },
    { CLOUD_AUTO, 200, "/detokenize", "{\"tokens\":[72,105]}" },
};

static void test_requests(const char *model)
{
    for (unsigned api = CLOUD_AUTO; api <= CLOUD_SGLANG; api++) {
        const struct stand_in_options o = { .model = model,
                                            .threads = 1,
                                            .server = (enum cloud_api)api };
        struct stand_in *s;
        CHECK(stand_in_open(&s, &o, NULL) == OK);
        for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
            if (requests[i].server == (enum cloud_api)api)
                torture_path(stand_in_port(s), requests[i].path, requests[i].body,
                             requests[i].status);
        stand_in_close(s);
    }
}

/* Replies of each dialect at the end of a text. */
static const char *const replies[] = {
    ("{\"choices\":[{\"index\":0,\"text\":\"Hi\",\"finish_reason\":\"stop\",\"token_ids\":[72,105,"
     "256]"
     "}],\"model\":\"m\",\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":3}}"),
    ("{\"text\":\"Hi\",\"output_ids\":[72,105,256],\"meta_info\":{\"finish_reason\":{\"type\":"
     "\"stop\"},"
     "\"prompt_tokens\":3,\"completion_tokens\":3}}"),
    ("{\"content\":\"Hi\",\"tokens\":[72,105,256],\"stop_type\":\"eos\",\"tokens_evaluated\":3,"
     "\"tokens_predicted\":3}"),
};

/* Let a fault edit them. */
static void test_fault(const struct stand_in_fault *f)
{
    static const uint32_t prompt[] = { 1, 2, 3 };
    const struct stand_in_facts at = { prompt, 3, TINY_VOCAB };
    for (size_t i = 0; i < 3; i++) {
        long n = 1;
        bool fine;
        do {
            struct buf text = { 0 };
            torture_begin(n++);
            fine = buf_str(&text, replies[i]) && stand_in_fault_edit(&text, f, &at, true);
            bool same = text.n == strlen(replies[i]) && !memcmp(text.p, replies[i], text.n);
            CHECK_MSG(!fine || !same, "%s: nothing is edited: %s", f->name, replies[i]);
            buf_free(&text);
            CHECK(torture_live() == 0);
        } while (torture_end());
        CHECK_MSG(fine, "%s", f->name);
    }
}

int main(void)
{
    const char *model = tiny_make();
    json_set_alloc_funcs(malloc, free);
    json_object_seed(1);
    for (const struct stand_in_fault *f = stand_in_fault_table; f->name; f++)
        if (stand_in_fault_edits_json(f) || stand_in_fault_edits_text(f))
            test_fault(f);
    test_requests(model);
    return 0;
}
