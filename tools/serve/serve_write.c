/* serve_write.c - answers with texts: asks for them, and sends them whole or as they are written.
 *
 * A request may ask for more texts than the queue takes, so they are asked for as room appears. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/sys/os.h"
#include "tools/cli/json_report.h"
#include "tools/serve/serve_choice.h"
#include "tools/serve/serve_exchange.h"

enum { SILENCE_MS = 10000, QUEUE_MS = 20 };

struct serve_writing {
    struct serve_exchange *x;
    struct serve_choice *choices; /* [n] */
    size_t n, asked;
    pthread_mutex_t lock; /* of the choices' texts, which serve_write_gone reads */
    uint64_t heard;       /* when the latest bytes were sent */
    int64_t created;
    char model[SERVE_NAME + 8];
    char id[40];
    bool done;
    struct serve_error error;
};

/* Callback of texts: there is more to tell. */
static void serve_write_news(void *r)
{
    server_wake(r);
}

/* Callback of the server: the client has gone. */
static void serve_write_gone(void *arg)
{
    struct serve_writing *w = arg;
    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < w->asked; i++)
        text_cancel(w->choices[i].text);
    pthread_mutex_unlock(&w->lock);
}

void serve_write_drop(struct serve_writing *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n; i++) {
        w->x->tokens += w->choices[i].view.stats.tokens;
        w->x->cloud += w->choices[i].view.stats.cloud;
        serve_choice_end(&w->choices[i]);
    }
    pthread_mutex_destroy(&w->lock);
    free(w->choices);
    free(w);
}

/* Ask for the next text. */
static int serve_write_ask_one(struct serve_writing *w, struct err *err)
{
    const struct serve_ask *a = &w->x->ask;
    struct serve_choice *c = &w->choices[w->asked];
    struct text_wish wish = a->wish;
    struct text *text;
    wish.prompt = c->prompt->ids;
    wish.n = c->prompt->n;
    wish.max = a->max;
    wish.sample.seed = c->seed;
    wish.news = serve_write_news;
    wish.news_arg = w->x->r;
    int rc = texts_ask(w->x->s->texts, &text, &wish, err);
    if (rc != OK)
        return rc;
    pthread_mutex_lock(&w->lock);
    c->text = text;
    w->asked++;
    pthread_mutex_unlock(&w->lock);
    return OK;
}

/* True if the next text may be asked for: there is a slot, or none of this request waits. So a
 * request has one place in the queue, like any other, and uses all slots that are left. */
static bool serve_write_may_ask(const struct serve_writing *w)
{
    struct texts_counts count = texts_count(w->x->s->texts);
    return !w->asked || count.busy + count.waiting < count.slots ||
           !text_look(w->choices[w->asked - 1].text).waiting;
}

/* Ask for as many texts as there is room for. False: w->error is set. */
static bool serve_write_ask(struct serve_writing *w)
{
    struct err err = { "" };
    int rc = OK;
    while (w->asked < w->n && rc == OK && serve_write_may_ask(w))
        rc = serve_write_ask_one(w, &err);
    if (rc == OK || (rc == ERR_NET && w->asked))
        return true;
    if (rc == ERR_NET)
        return serve_error_set(&w->error, 503, "queue_full", NULL,
                               "all places are taken: %zu texts in progress (--parallel) and %zu "
                               "in the queue (--max-queue)",
                               w->x->s->o.parallel, w->x->s->o.queue);
    serve_error_of(&w->error, rc, err.msg);
    if (rc == ERR_FORMAT) /* of the patterns, the only thing that is parsed there */
        serve_error_set(&w->error, 400, "invalid_value", "mizzle.private", "%s", err.msg);
    return false;
}

/* Look at all texts. False: w->error is set. */
static bool serve_write_look(struct serve_writing *w)
{
    for (size_t i = 0; i < w->asked; i++) {
        struct serve_choice *c = &w->choices[i];
        if (c->view.finished)
            continue;
        if (!serve_choice_look(c))
            return serve_error_of(&w->error, ERR_NOMEM, NULL);
        if (c->taken && c->view.tokens[c->taken - 1].at > w->x->at)
            w->x->at = c->view.tokens[c->taken - 1].at;
        if (c->view.finished && c->view.rc != OK)
            return serve_error_of(&w->error, c->view.rc, c->view.why);
    }
    return true;
}

/* Wait for news, or until it is time for a comment. False: nobody waits any more. */
static bool serve_write_wait(struct serve_writing *w, uint64_t until)
{
    uint64_t soon = os_now_ns() + QUEUE_MS * UINT64_C(1000000);
    return server_wait(w->x->r, w->asked < w->n && soon < until ? soon : until);
}

/* Return "usage". */
static json_t *serve_write_usage(const struct serve_writing *w)
{
    size_t prompt = 0, written = 0, cached = 0;
    for (size_t i = 0; i < w->n; i++) {
        bool first = i % w->x->ask.n == 0; /* choice of its prompt */
        prompt += first ? w->choices[i].prompt->n : 0;
        cached += first ? w->choices[i].view.cached : 0;
        written += w->choices[i].view.n;
    }
    return json_pack("{s:I,s:I,s:I,s:{s:I}}", "prompt_tokens", (json_int_t)prompt,
                     "completion_tokens", (json_int_t)written, "total_tokens",
                     (json_int_t)(prompt + written), "prompt_tokens_details", "cached_tokens",
                     (json_int_t)cached);
}

/* Return a reply or an event with these choices, or without; mizzle may be empty. */
static json_t *serve_write_object(const struct serve_writing *w, json_t *choices, json_t *mizzle)
{
    const struct serve_ask *a = &w->x->ask;
    const char *object = !a->chat    ? "text_completion"
                         : a->stream ? "chat.completion.chunk"
                                     : "chat.completion";
    json_t *out = json_pack("{s:s,s:s,s:I,s:s,s:s,s:o*}", "id", w->id, "object", object, "created",
                            (json_int_t)w->created, "model", w->model, "system_fingerprint",
                            w->x->s->fingerprint, "choices", choices);
    if (a->stream && !choices) { /* out of memory: clients expect them in every event */
        json_decref(out);
        out = NULL;
    }
    if (!mizzle || json_object_size(mizzle))
        json_report_set(&out, "mizzle", mizzle);
    else
        json_decref(mizzle);
    if (a->stream && a->usage)
        json_report_set(&out, "usage", json_null());
    return out;
}

/* Add the ids of the prompt to what opens the choice, if they are wanted. */
static void serve_write_prompt(json_t **choice, const struct serve_choice *c)
{
    if (c->ask->return_ids && !c->opened)
        json_report_set(choice, "prompt_token_ids", json_report_ids(c->prompt->ids, c->prompt->n));
}

/* Add the ids of the tokens that were not told, if they are wanted. */
static void serve_write_ids(json_t **choice, const struct serve_choice *c)
{
    size_t from = serve_choice_from(c);
    if (!c->ask->return_ids)
        return;
    serve_write_prompt(choice, c);
    json_report_set(choice, "token_ids",
                    json_report_ids(c->view.ids + c->prompt->n + from, c->taken - from));
}

/* Return what was not told of a choice: its text up to `ready` and all tokens; `last`: it ends. */
static json_t *serve_write_part(struct serve_choice *c, size_t ready, bool last)
{
    const struct serve_ask *a = c->ask;
    bool some = !a->stream || ready > c->shown || c->told < serve_choice_tokens(c);
    json_t *out = json_pack("{s:I}", "index", (json_int_t)c->index);
    json_t *text = json_report_text(ready > c->shown ? c->raw.p + c->shown : "", ready - c->shown);
    if (!a->chat)
        json_report_set(&out, "text", text);
    else if (a->stream)
        json_report_set(&out, "delta", some ? json_pack("{s:O}", "content", text) : json_object());
    else
        json_report_set(
            &out, "message",
            json_pack("{s:s,s:o,s:n}", "role", "assistant", "content", text, "refusal"));
    if (a->chat && a->stream)
        json_decref(text);
    json_report_set(&out, "logprobs",
                    !some || !a->logprobs ? json_null()
                    : a->chat             ? serve_logprobs_chat(c)
                                          : serve_logprobs_raw(c));
    json_report_set(&out, "finish_reason",
                    last ? json_string(c->view.ended ? "stop" : "length") : json_null());
    serve_write_ids(&out, c);
    return out;
}

/* Append the reply with all choices. Each is printed as soon as it is made, because the JSON of a
 * scored prompt takes far more memory than its text. */
static bool serve_write_all(struct serve_writing *w, struct buf *out)
{
    if (w->x->ask.form)
        return serve_routes_print(out, w->x->ask.form->whole(w->x, &w->choices[0]));
    json_t *mizzle = w->n == 1 ? serve_mizzle(&w->choices[0], 0, true) : json_object();
    json_t *head = serve_write_object(w, NULL, mizzle);
    json_report_set(&head, "usage", serve_write_usage(w));
    bool fine = serve_routes_print(out, head);
    out->n -= fine; /* the closing brace */
    fine = fine && buf_str(out, ",\"choices\":");
    for (size_t i = 0; i < w->n && fine; i++) {
        json_t *choice = serve_write_part(&w->choices[i], w->choices[i].raw.n, true);
        if (w->n > 1)
            json_report_set(&choice, "mizzle", serve_mizzle(&w->choices[i], 0, true));
        fine = buf_str(out, i ? "," : "[") && serve_routes_print(out, choice);
    }
    return fine && buf_str(out, "]}");
}

/* Send all texts once they are finished. */
static void serve_write_whole(struct serve_writing *w)
{
    size_t finished = 0;
    while (finished < w->n) {
        if (!serve_write_ask(w) || !serve_write_look(w)) {
            serve_routes_refuse(w->x, &w->error);
            return;
        }
        finished = 0;
        while (finished < w->asked && w->choices[finished].view.finished)
            finished++;
        if (finished < w->n && !serve_write_wait(w, UINT64_MAX))
            return;
    }
    struct serve_exchange *x = w->x;
    struct buf out = { 0 };
    bool fine = serve_write_all(w, &out);
    server_on_gone(x->r, NULL, NULL);
    serve_write_drop(w); /* a client may take its time to read */
    x->writing = NULL;
    if (fine)
        serve_routes_send(x, 200, "application/json", &out, NULL);
    buf_free(&out);
}

/* Append an event; the JSON is released. */
static bool serve_write_event(struct buf *out, json_t *json)
{
    bool begun = buf_str(out, "data: ");
    return serve_routes_print(out, json) && begun && buf_str(out, "\n\n");
}

/* Append an event of a choice. */
static bool serve_write_told(struct serve_writing *w, const struct serve_choice *c, struct buf *out,
                             json_t *choices, json_t *mizzle)
{
    if (json_object_size(mizzle) && w->n > 1)
        json_report_set(&mizzle, "index", json_integer((json_int_t)c->index));
    return serve_write_event(out, serve_write_object(w, choices, mizzle));
}

/* Append the event that opens a choice of a chat: who speaks. */
static bool serve_write_role(struct serve_writing *w, struct serve_choice *c, struct buf *out)
{
    json_t *choice = json_pack("{s:I,s:{s:s,s:s},s:n,s:n}", "index", (json_int_t)c->index, "delta",
                               "role", "assistant", "content", "", "logprobs", "finish_reason");
    serve_write_prompt(&choice, c);
    c->opened = true;
    return serve_write_told(w, c, out, json_pack("[o]", choice), json_object());
}

/* Append an event with the text up to `ready` and all tokens; with `last` it is the final one. */
static bool serve_write_delta(struct serve_writing *w, struct serve_choice *c, struct buf *out,
                              size_t ready, bool last)
{
    const struct serve_form *form = c->ask->form;
    size_t shown = c->shown;
    bool ends = last && c->view.rc == OK; /* of a text that failed, the error tells */
    if (form && c->told == c->taken)
        return true;
    json_t *mizzle = form ? NULL : serve_mizzle(c, serve_choice_from(c), last);
    json_t *choice = form ? NULL : serve_write_part(c, ready, ends);
    c->opened = true;
    c->shown = ready;
    c->told = serve_choice_tokens(c);
    if (form)
        return serve_write_event(
            out, form->event(w->x, c, ready ? c->raw.p + shown : "", ready - shown, ends));
    return serve_write_told(w, c, out, json_pack("[o]", choice), mizzle);
}

/* Append what is new of a choice. */
static bool serve_write_progress(struct serve_writing *w, struct serve_choice *c, struct buf *out)
{
    const struct serve_ask *a = &w->x->ask;
    bool finished = c->view.finished;
    if (c->closed || (a->echo && c->view.nscores < c->prompt->n && a->wish.score))
        return true;
    if (a->chat && !c->opened && !serve_write_role(w, c, out))
        return false;
    size_t ready = serve_choice_ready(c);
    bool tells = a->return_ids || a->logprobs || a->trace || a->plain;
    bool some = ready > c->shown || (tells && c->told < serve_choice_tokens(c));
    if (some && (a->chat || !finished) && !serve_write_delta(w, c, out, ready, false))
        return false;
    if (finished) {
        c->closed = true;
        return serve_write_delta(w, c, out, ready, true);
    }
    if (some || !a->events || c->view.nevents == c->events)
        return true;
    if (!c->opened) /* the first event has the ids of the prompt */
        return serve_write_delta(w, c, out, ready, false);
    return serve_write_told(w, c, out, json_array(), serve_mizzle(c, c->taken, false));
}

/* Append what ends the stream. */
static bool serve_write_done(struct serve_writing *w, struct buf *out)
{
    w->done = true;
    if (w->error.status)
        return serve_write_event(out, serve_error_json(&w->error));
    if (w->x->ask.form && w->x->ask.form->closing)
        return serve_write_event(out, w->x->ask.form->closing(w->x, &w->choices[0]));
    if (w->x->ask.usage) {
        json_t *last = serve_write_object(w, json_array(), json_object());
        json_report_set(&last, "usage", serve_write_usage(w));
        if (!serve_write_event(out, last))
            return false;
    }
    return buf_str(out, "data: [DONE]\n\n");
}

/* Append all that is new. False without memory. */
static bool serve_write_some(struct serve_writing *w, struct buf *out)
{
    bool fine = serve_write_ask(w) && serve_write_look(w);
    size_t closed = 0;
    for (size_t i = 0; i < w->asked; i++) {
        if (!serve_write_progress(w, &w->choices[i], out))
            return false;
        closed += w->choices[i].closed;
    }
    return fine && closed < w->n ? true : serve_write_done(w, out);
}

/* Wait until the large model alone has begun to write, for as long as clients await a head, so that
 * its failure has a status. False: the request is refused, or nobody waits any more. */
static bool serve_write_starts(struct serve_writing *w)
{
    uint64_t until = w->heard + SILENCE_MS * UINT64_C(1000000);
    for (;;) {
        if (!serve_write_ask(w) || !serve_write_look(w)) {
            serve_routes_refuse(w->x, &w->error);
            return false;
        }
        for (size_t i = 0; i < w->asked; i++)
            if (w->choices[i].view.n || w->choices[i].view.finished)
                return true;
        if (os_now_ns() >= until)
            return true;
        if (!serve_write_wait(w, until))
            return false;
    }
}

/* Callback of the server: append the next events, when there are some. */
static enum server_more serve_write_more(void *arg, struct buf *out)
{
    struct serve_writing *w = arg;
    while (!w->done) {
        if (server_closing(w->x->r) && server_gone(w->x->r)) { /* the last event is an error */
            serve_error_of(&w->error, ERR_STOP, NULL);
            return serve_write_done(w, out) ? SERVER_END : SERVER_BROKEN;
        }
        uint64_t until = w->heard + SILENCE_MS * UINT64_C(1000000);
        if (!serve_write_some(w, out))
            return SERVER_BROKEN;
        bool speak = os_now_ns() >= until || server_doubts(w->x->r);
        if (!out->n && speak && !buf_str(out, ": still at work\n\n"))
            return SERVER_BROKEN;
        if (out->n) {
            w->heard = os_now_ns();
            return w->done ? SERVER_END : SERVER_MORE;
        }
        if (!serve_write_wait(w, until) && !server_closing(w->x->r))
            return SERVER_BROKEN;
    }
    return SERVER_END;
}

/* Set up the choices. */
static bool serve_write_begin(struct serve_writing *w)
{
    struct serve_exchange *x = w->x;
    const struct serve_ask *a = &x->ask;
    uint64_t seed = a->wish.sample.seed;
    if (a->draws) /* so that it is exact in JavaScript as well */
        seed = (x->s->salt ^ server_number(x->r) * UINT64_C(0x9e3779b97f4a7c15)) >> 16;
    w->choices = calloc(a->nprompts * a->n, sizeof(*w->choices));
    if (!w->choices)
        return false;
    w->n = a->nprompts * a->n;
    for (size_t i = 0; i < w->n; i++) {
        w->choices[i] = (struct serve_choice){ .ask = a,
                                               .tokenizer = x->s->engine.tokenizer,
                                               .prompt = &a->prompts[i / a->n],
                                               .index = i,
                                               .seed = seed + i % a->n,
                                               .begun = x->begun };
        if (!serve_choice_begin(&w->choices[i]))
            return false;
    }
    return true;
}

/* Make sure that there is room for the answer. False: the request is refused. */
static bool serve_write_has_room(struct serve_exchange *x)
{
    struct serve_error e;
    double bytes = serve_request_memory(&x->ask, x->s);
    if (bytes <= SERVE_ANSWERS && serve_routes_hold(x, (size_t)bytes))
        return true;
    if (bytes <= SERVE_ANSWERS) {
        serve_routes_refuse_busy(x);
        return false;
    }
    serve_error_set(&e, 400, "invalid_value", x->ask.n > 1 ? "n" : "prompt",
                    "the answer could take %.0f MiB, expected at most %d: ask for fewer texts, "
                    "tokens or logprobs at a time",
                    bytes / (1 << 20), SERVE_ANSWERS >> 20);
    serve_routes_refuse(x, &e);
    return false;
}

void serve_write(struct serve_exchange *x)
{
    bool chat = strcmp(server_path(x->r), "/v1/chat/completions") == 0;
    struct serve_error e = { 0 };
    bool fine = serve_request_read(&x->ask, x->s, x->in, chat, &e);
    serve_routes_read(x);
    if (fine)
        serve_write_texts(x);
    else
        serve_routes_refuse(x, &e);
}

void serve_write_texts(struct serve_exchange *x)
{
    struct serve_writing *w = serve_write_has_room(x) ? calloc(1, sizeof(*w)) : NULL;
    if (!w)
        return;
    x->writing = w;
    w->x = x;
    pthread_mutex_init(&w->lock, NULL);
    w->created = (int64_t)time(NULL);
    w->heard = os_now_ns();
    serve_info_name(w->model, x->s, x->ask.wish.model);
    snprintf(w->id, sizeof(w->id), "%s-%016llx", x->ask.chat ? "chatcmpl" : "cmpl",
             (unsigned long long)server_number(x->r));
    if (!serve_write_begin(w) || !serve_write_ask(w)) {
        if (!w->error.status)
            serve_error_of(&w->error, ERR_NOMEM, NULL);
        serve_routes_refuse(x, &w->error);
        return;
    }
    server_on_gone(x->r, serve_write_gone, w);
    if (!x->ask.stream)
        serve_write_whole(w);
    else if (x->ask.wish.model != TEXT_CLOUD || serve_write_starts(w))
        serve_routes_stream(x, serve_write_more, w);
}
