/* What the answers of the demo world are made of, read by edge-0.5 and the cloud in f32, question
 * by question with the right answer before them: which places there are, where the models differ,
 * and how well confidence tells. The figures are those of weights/milli/README.md and
 * constants.csv. A sanitizer sees the questions alone: the models read in t_eval. */
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/learn/measures.h"
#include "router/mizzle.h"
#include "router/policy.h"
#include "tests/support/files.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"
#include "tools/lab/demo/world.h"

enum { QUESTIONS = 1000, FEW = 200, CONTEXT = 512, MARKS = WORLD_FREE + 1, FACTS = 8000 };

static struct reader {
    struct engine engine;
    struct session *session;
    uint32_t best[CONTEXT]; /* what it foresees for each token of the latest text */
    float score[CONTEXT];   /* how sure it is */
} edge, cloud;

static struct world *world;
static size_t tokens[MARKS], all, differ, harmful, facts;
static float score[FACTS];
static unsigned char right[FACTS];

static void reader_open(struct reader *r, const char *path)
{
    const struct engine_options o = { .model = path };
    struct err err = { "" };
    CHECK(engine_open(&r->engine, &o, true, &err) == OK);
    CHECK(session_open(&r->session, r->engine.batch, CONTEXT, KVCACHE_F32, &err) == OK);
}

static void reader_close(struct reader *r)
{
    session_close(r->session);
    engine_close(&r->engine);
}

static void reader_read(struct reader *r, const uint32_t *ids, size_t n)
{
    const struct kernels *k = &r->engine.kernels;
    size_t size = tokenizer_size(r->engine.tokenizer), m;
    session_rewind(r->session, 0);
    for (size_t at = 0; at + 1 < n; at += m) {
        m = n - 1 - at < BATCH_ROWS ? n - 1 - at : BATCH_ROWS;
        CHECK(session_eval(r->session, ids + at, m, NULL, NULL) == OK);
        for (size_t i = 0; i < m; i++) {
            const float *logits = session_logits(r->session, m - 1 - i);
            r->best[at + i + 1] = (uint32_t)k->argmax_f32(logits, size);
            r->score[at + i + 1] = policy_score_logits(POLICY_MAX_PROB, logits, size, k);
        }
    }
}

static void count(size_t i, uint32_t id, unsigned mark)
{
    bool wrong = edge.best[i] != id;
    differ += edge.best[i] != cloud.best[i];
    harmful += wrong && (mark == WORLD_FACT || mark == WORLD_FORM) && cloud.best[i] == id;
    if (mark != WORLD_FACT && mark != WORLD_IDLE)
        return;
    CHECK(facts < FACTS);
    score[facts] = edge.score[i];
    right[facts++] = !wrong;
}

/* Count the tokens of the answers to the first n questions; read: let both models read them. */
static void questions(size_t n, enum world_wording wording, bool read)
{
    const struct tokenizer *tok = edge.engine.tokenizer;
    memset(tokens, 0, sizeof(tokens));
    all = 0;
    for (size_t i = 0; i < n; i++) {
        struct world_question q;
        uint32_t *ids = NULL, *answer = NULL, text[CONTEXT];
        size_t prompt, m, bytes = 0, len;
        world_question(&q, world, (struct world_filter){ WORLD_TOPICS, wording },
                       world_test_stream(1), i);
        CHECK(tokenizer_encode(tok, &ids, &prompt, q.prompt, strlen(q.prompt), false, NULL) == OK);
        CHECK(tokenizer_encode(tok, &answer, &m, q.answer, strlen(q.answer), false, NULL) == OK);
        CHECK(prompt + m <= CONTEXT);
        memcpy(text, ids, prompt * sizeof(*ids));
        memcpy(text + prompt, answer, m * sizeof(*ids));
        if (read) {
            reader_read(&edge, text, prompt + m);
            reader_read(&cloud, text, prompt + m);
        }
        for (size_t j = 0; j < m; j++) {
            bytes += tokenizer_bytes(tok, answer[j], &len) ? len : 0;
            tokens[q.mark[bytes - 1]]++;
            all++;
            if (read)
                count(prompt + j, answer[j], q.mark[bytes - 1]);
        }
        free(ids);
        free(answer);
    }
}

static double percent(size_t part)
{
    return 100 * (double)part / (double)all;
}

/* Print a sentence, which must stand in the page, wherever its lines end. */
static void says(const char *page, const char *sentence)
{
    static char text[65536];
    size_t n = slurp(page, text, sizeof(text) - 1);
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] == '\n' ? ' ' : text[i];
    text[n] = 0;
    puts(sentence);
    CHECK(strstr(text, sentence));
}

int main(void)
{
    static const char *const wordings[] = { "plain", "chatty", "story" };
    struct err err = { "" };
    char sentence[400];
    double auc = 0, pairs;
    serving_need_pair();
    reader_open(&edge, "weights/milli/edge-0.5.gguf");
    reader_open(&cloud, "weights/milli/cloud.gguf");
    CHECK(world_open(&world, WORLD_SEED, &err) == OK);
    questions(QUESTIONS, WORLD_WORDINGS, !SANITIZED);
    CHECK(SANITIZED || measures_auc(&auc, &pairs, score, right, NULL, facts, &err) == OK);
    snprintf(sentence, sizeof(sentence),
             "%.1f %% of the tokens are facts and %.1f %% are free choices. Both models differ on "
             "%.1f %% of the tokens. %.1f %% are errors that count",
             percent(tokens[WORLD_FACT] + tokens[WORLD_IDLE]), percent(tokens[WORLD_FREE]),
             percent(differ), percent(harmful));
    if (!SANITIZED)
        says("weights/milli/README.md", sentence);
    snprintf(sentence, sizeof(sentence), "tells right from wrong with an AUC of %.2f.", auc);
    if (!SANITIZED)
        says("weights/milli/README.md", sentence);
    for (size_t i = 0; i < WORLD_WORDINGS; i++) {
        questions(FEW, (enum world_wording)i, false);
        snprintf(sentence, sizeof(sentence), "free_%s,%.6f,", wordings[i],
                 percent(tokens[WORLD_FREE]) / 100);
        says("router/results/constants.csv", sentence);
    }
    world_close(world);
    reader_close(&edge);
    reader_close(&cloud);
    return 0;
}
