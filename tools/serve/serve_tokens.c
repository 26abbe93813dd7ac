/* serve_tokens.c - the tokenizer, in the forms of vLLM and llama.cpp. */
#include <stdio.h>
#include <stdlib.h>

#include "model/text/tokenizer.h"
#include "tools/cli/json_report.h"
#include "tools/serve/serve_choice.h"
#include "tools/serve/serve_field.h"
#include "tools/serve/serve_exchange.h"

enum {
    TEXT_MAX = 1 << 20, /* bytes of a text, as a body has it; at most three tokens each */
    READING = 100,      /* bytes that the parser or the encoder needs for a byte, with the answer */
    DECODING = 40       /* and to print one as JSON, twice: a control character takes six */
};

/* Return the text of a special token, or null. */
static json_t *serve_tokens_special(const struct tokenizer *t, bool found, uint32_t id)
{
    return found ? serve_choice_token(t, id, false) : json_null();
}

void serve_tokens_info(struct serve_exchange *x)
{
    const struct tokenizer *t = x->s->engine.tokenizer;
    uint32_t eos = 0, pad = 0, bos = 0;
    bool has_bos = tokenizer_bos(t, &bos);
    bool has_eos = tokenizer_eos(t, &eos), has_pad = tokenizer_special(t, "<|endoftext|>", &pad);
    serve_routes_json(x, 200,
                      json_pack("{s:s,s:o,s:o,s:o,s:s?,s:I,s:I}", "tokenizer_class",
                                "Qwen2Tokenizer", "eos_token",
                                serve_tokens_special(t, has_eos, eos), "pad_token",
                                serve_tokens_special(t, has_pad, pad), "bos_token",
                                serve_tokens_special(t, has_bos, bos), "chat_template",
                                tokenizer_template(t), "vocab_size", (json_int_t)tokenizer_size(t),
                                "max_model_len", (json_int_t)x->s->context));
}

/* Encode prompt, content or messages. */
static bool serve_tokens_read(struct serve_exchange *x, bool *llamacpp, struct serve_error *e)
{
    const json_t *in = x->in;
    struct serve_ask *a = &x->ask;
    const json_t *text = serve_field_get(in, "prompt"), *content = serve_field_get(in, "content");
    bool special = true;
    if (!json_is_object(in))
        return serve_error_set(e, 400, "invalid_json", NULL, "expected a JSON object as the body");
    if (serve_field_get(in, "messages"))
        return serve_prompt_chat(a, x->s, in, e);
    *llamacpp = !text && content;
    text = text ? text : content;
    bool bos = !*llamacpp; /* as the two servers do */
    if (!json_is_string(text))
        return serve_field_wrong(e, *llamacpp ? "content" : "prompt", "a text", text);
    if (!serve_field_flag(&special, in, "parse_special", e) ||
        !serve_field_flag(&bos, in, *llamacpp ? "add_special" : "add_special_tokens", e))
        return false;
    struct serve_prompt *p = serve_prompt_add(a);
    if (p && (bos ? tokenizer_encode : tokenizer_encode_part)(
                 x->s->engine.tokenizer, &p->ids, &p->n, json_string_value(text),
                 json_string_length(text), special, NULL) == OK)
        return true;
    if (p)
        p->ids = NULL;
    return serve_error_of(e, ERR_NOMEM, NULL);
}

/* Make sure of room for n bytes of text. False: the request is refused. */
static bool serve_tokens_fits(struct serve_exchange *x, const char *param, size_t n, size_t each)
{
    struct serve_error e;
    if (n <= TEXT_MAX && serve_routes_hold(x, n * each))
        return true;
    serve_error_set(&e, 400, "invalid_value", param,
                    "%s: expected at most %d bytes of text, found %zu", param ? param : "the body",
                    TEXT_MAX, n);
    if (n <= TEXT_MAX)
        serve_routes_refuse_busy(x);
    else
        serve_routes_refuse(x, &e);
    return false;
}

/* Append the answer, without JSON in between, which takes ten times its memory. */
static bool serve_tokens_print(struct buf *out, const struct serve_exchange *x, bool llamacpp)
{
    const struct serve_prompt *p = &x->ask.prompts[0];
    char head[100];
    snprintf(head, sizeof(head), "{\"count\":%zu,\"max_model_len\":%zu,\"tokens\":", p->n,
             x->s->context);
    return buf_str(out, llamacpp ? "{\"tokens\":" : head) && buf_ids(out, p->ids, p->n) &&
           buf_str(out, llamacpp ? "}" : ",\"token_strs\":null}");
}

bool serve_tokens_room(struct serve_exchange *x)
{
    return serve_tokens_fits(x, NULL, server_body(x->r)->n, READING);
}

void serve_tokens_encode(struct serve_exchange *x)
{
    struct serve_error e = { 0 };
    struct buf out = { 0 };
    bool llamacpp = false;
    bool fine = serve_tokens_read(x, &llamacpp, &e);
    serve_routes_read(x);
    if (!fine)
        serve_routes_refuse(x, &e);
    else if (serve_tokens_print(&out, x, llamacpp))
        serve_routes_send(x, 200, "application/json", &out, NULL);
    buf_free(&out);
    serve_request_free(&x->ask); /* a client may take its time to read */
}

void serve_tokens_decode(struct serve_exchange *x)
{
    const struct tokenizer *t = x->s->engine.tokenizer;
    const json_t *list = json_object_get(x->in, "tokens");
    struct serve_error e = { 0 };
    struct buf raw = { 0 };
    uint32_t *ids = NULL;
    size_t n = 0, len, all = 0;
    bool fine = json_is_array(list) ? serve_prompt_ids(&ids, &n, x->s, list, "tokens", &e)
                                    : serve_field_wrong(&e, "tokens", "a list of ids", list);
    serve_routes_read(x);
    for (size_t i = 0; i < n && fine; i++, all += len)
        tokenizer_bytes(t, ids[i], &len);
    if (fine && !serve_tokens_fits(x, "tokens", all, DECODING)) {
        free(ids);
        return;
    }
    for (size_t i = 0; i < n && fine; i++) {
        const char *p = tokenizer_bytes(t, ids[i], &len);
        fine = buf_add(&raw, p, len) || serve_error_of(&e, ERR_NOMEM, NULL);
    }
    free(ids);
    if (fine) {
        json_t *text = json_report_text(raw.p, raw.n);
        const char *field = x->route->field;
        serve_routes_json(x, 200,
                          field ? json_pack("{s:o}", field, text)
                                : json_pack("{s:O,s:o}", "prompt", text, "content", text));
    } else {
        serve_routes_refuse(x, &e);
    }
    buf_free(&raw);
}
