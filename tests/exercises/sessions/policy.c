/* policy.c - session 7: a policy of one's own, tried on questions of the demo world.
 *
 * Usage: policy QUESTIONS THRESHOLD... prints, for each threshold, how many answers are right and
 * which share of their tokens came from the cloud. The library does the rest (router/mizzle.h). */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "router/mizzle.h"

enum { ANSWER = 96, ROOM = 4096 }; /* longest answer, in tokens and in bytes */

/* How sure it is, from 0 to 1, that the small model's next token may stand. This is max-prob: the
 * probability of the likeliest token. Write yours in its place. */
static float score(void *arg, const struct mizzle_state *state)
{
    (void)arg;
    double sum = 0;
    for (size_t i = 0; i < state->n_logits; i++)
        sum += exp((double)state->logits[i] - (double)state->logits[state->id]);
    return (float)(1 / sum);
}

/* Append a token's piece to the answer. */
static bool append(void *arg, const struct mizzle_token *token)
{
    char *text = arg;
    if (strlen(text) + token->piece_size < ROOM)
        strcat(text, token->piece);
    return true;
}

/* True if both texts end with the same answer, as in "The answer is (A)." */
static bool agree(const char *text, const char *want)
{
    static const char mark[] = "answer is (";
    const char *a = strstr(text, mark), *b = strstr(want, mark);
    return a && b && strncmp(a, b, strcspn(b, ")") + 1) == 0;
}

static int try(double threshold, size_t questions)
{
    struct mizzle *m;
    struct mizzle_options o;
    struct mizzle_error e = { .size = sizeof(e) };
    struct mizzle_stats stats = { .size = sizeof(stats) };
    size_t right = 0, tokens = 0, cloud = 0;
    char line[ROOM];
    mizzle_options_init(&o, sizeof(o));
    o.model = "weights/milli/edge-0.5.gguf";
    o.cloud_model = "weights/milli/cloud.gguf";
    o.max_tokens = ANSWER;
    o.threshold = threshold;
    o.on_score = score;
    FILE *file = fopen("weights/milli/questions.jsonl", "r");
    int code = file ? mizzle_open(&m, &o, &e) : MIZZLE_IO;
    for (size_t i = 0; code == MIZZLE_OK && i < questions && fgets(line, sizeof(line), file); i++) {
        json_t *item = json_loads(line, 0, NULL);
        const char *answer = json_string_value(json_object_get(item, "answer"));
        struct mizzle_prompt p = { .size = sizeof(p) };
        char text[ROOM] = "";
        p.text = json_string_value(json_object_get(item, "prompt"));
        code = mizzle_generate(m, &p, append, text, &stats, &e);
        right += answer && agree(text, answer);
        tokens += stats.tokens;
        cloud += stats.cloud;
        json_decref(item);
    }
    if (code != MIZZLE_OK)
        return fprintf(stderr, "policy: %s\n", file ? e.message : "run it in the project's root"),
               1;
    printf("%g,%zu,%.4f\n", threshold, right, (double)cloud / (double)tokens);
    fclose(file);
    return mizzle_close(m);
}

int main(int argc, char **argv)
{
    int code = argc < 3;
    puts("threshold,right,routed");
    for (int i = 2; i < argc && !code; i++)
        code = try(strtod(argv[i], NULL), strtoul(argv[1], NULL, 10));
    return code;
}
