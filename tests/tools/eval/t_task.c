/* t_task.c - items, prompts in their three forms, and what is taken for the answer. Needs no data.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/sha256.h"
#include "model/text/chat.h"
#include "model/text/tokenizer.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tests/support/torture.h"
#include "tools/demo/world.h"
#include "tools/tasks/task.h"

static const char path[] = "build/t_task.jsonl";

static const char csqa[] =
    "{\"id\":\"c1\",\"question\":{\"question_concept\":\"door\",\"stem\":\" Which \\u00e9? \","
    "\"choices\":[{\"label\":\"A\",\"text\":\"x\"},{\"label\":\"B\",\"text\":\"y z\"}]},"
    "\"answerKey\":\"B\"}\n"
    "{\"question\":\"Q2\",\"prompt\":\"Own:\\n\",\"cot\":\"Because (a).\",\"choices\":{\"label\":"
    "[\"A\",\"B\"],\"text\":[\"x\",\"x\"]},\"answerKey\":\"A\"}";
static const char arc[] =
    "{\"id\":\"a1\",\"question\":{\"stem\":\"Which?\",\"choices\":[{\"text\":\"one\",\"label\":"
    "\"1\"},"
    "{\"text\":\"a second choice that is so much longer than sixty-four bytes, ending in B\","
    "\"label\":\"2\"},{\"text\":\"a second choice that is so much longer than sixty-four bytes, "
    "ending in C\",\"label\":\"3\"}]},\"answerKey\":\"3\"}\r\n";
static const char gsm8k[] =
    "{\"problem\":\"P?\",\"solution\":\"2+2=4. The answer is \\\\boxed{4,000}.\"}\n"
    "{\"question\":\"P2?\",\"group\":\"two\",\"answer\":\"So 5.\\n#### 1,005\"}\n"
    "{\"prompt\":\"Own \\\\boxed{} \",\"cot\":\"\\\\boxed{6}\",\"answerKey\":\"6\"}\n";

static struct task *open_form(const char *name, const char *text, enum task_form form)
{
    struct task *t = NULL;
    struct err err = { "" };
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
    const struct task_options o = { .name = name, .data = path, .form = form };
    int rc = task_open(&t, &o, &err);
    if (rc != OK)
        fprintf(stderr, "%s\n", err.msg);
    CHECK(rc == OK && !strcmp(task_name(t), name) && task_form(t) == form);
    unlink(path);
    return t;
}

static void get(struct task_item *out, struct task *t, size_t i)
{
    struct err err = { "" };
    CHECK(task_item(out, t, i, &err) == OK);
}

static void csqa_items(void)
{
    struct task *t = open_form("csqa", csqa, TASK_CITER);
    struct task_item item;
    char hex[SHA256_HEX];
    sha256_hex(hex, csqa, sizeof(csqa) - 1);
    CHECK(task_size(t) == 2 && !strcmp(task_digest(t), hex));
    get(&item, t, 0);
    CHECK(
        !strcmp(item.prompt,
                "Question:  Which \xc3\xa9? \nChoices:\nA. x\nB. y z\nPlease format your response "
                "in the following way:\n[Explanation]. Therefore, the answer is answer (label).\n"
                "Ensure the final sentence includes the answer followed by the label in "
                "parentheses.\nAnswer and Reasoning:"));
    CHECK(!strcmp(item.id, "c1") && !strcmp(item.key, "B") && !item.gold);
    CHECK(!strcmp(item.subject, "door") && item.nchoices == 2);
    CHECK(!strcmp(item.labels[1], "B") && !strcmp(item.choices[1], "y z"));
    get(&item, t, 1);
    CHECK(!strcmp(item.prompt, "Own:\n") && !strcmp(item.gold, " Because (a).") && !*item.id);
    CHECK(!strcmp(item.subject, "Q2") && task_right(t, &item, item.gold));
    CHECK(!task_right(t, &item, " (b) (a)") && !task_right(t, &item, "a"));
    task_close(t);
    t = open_form("csqa", csqa, TASK_LM_EVAL);
    get(&item, t, 0);
    CHECK(!strcmp(item.prompt, "Question: Which \xc3\xa9?\nA. x\nB. y z\nAnswer:"));
    get(&item, t, 1);
    CHECK(!strcmp(item.prompt, "Question: Q2\nA. x\nB. x\nAnswer:"));
    CHECK(task_right(t, &item, " A\n\nQuestion: (B)"));
    task_close(t);
}

static void arc_items(void)
{
    struct task *t = open_form("arc", arc, TASK_CITER);
    struct task_item item;
    get(&item, t, 0);
    CHECK(task_size(t) == 1 && item.nchoices == 3 && !strcmp(item.key, "3"));
    CHECK(!strncmp(item.prompt, "Question: Which?\nChoices:\n1. one\n2. a second", 44));
    CHECK(!strcmp(item.subject, "Which?") && task_right(t, &item, "it is (3)"));
    task_close(t);
    t = open_form("arc", arc, TASK_LM_EVAL);
    get(&item, t, 0);
    CHECK(!strcmp(item.prompt, "Question: Which?\nAnswer:"));
    CHECK(task_right(t, &item,
                     " A second choice that is so much longer than sixty-four bytes, ending in C \n"
                     "Question:"));
    CHECK(!task_right(
        t, &item, " a second choice that is so much longer than sixty-four bytes, ending in B"));
    CHECK(!task_right(t, &item, " one") && !task_right(t, &item, ""));
    task_close(t);
}

static void gsm8k_items(void)
{
    struct task *t = open_form("gsm8k", gsm8k, TASK_CHAT);
    struct task_item item;
    get(&item, t, 0);
    CHECK(
        !strcmp(item.prompt,
                "Solve the following math problem step by step. Ensure all reasoning is shown "
                "clearly in LaTeX format, and the final answer should be enclosed using the LaTeX "
                "command \\boxed{} to display it in a box.\n"
                "Question: P?\nSolution: "));
    CHECK(!strcmp(item.key, "4000") && item.nchoices == 0 && !strcmp(item.subject, "P?"));
    CHECK(!strcmp(item.gold, " 2+2=4. The answer is \\boxed{4,000}."));
    get(&item, t, 1);
    CHECK(!strcmp(item.subject, "two"));
    CHECK(!strcmp(item.key, "1005") && !strcmp(item.gold, " So 5.\n#### 1,005"));
    get(&item, t, 2);
    CHECK(!strcmp(item.key, "6") && !strcmp(item.subject, "Own \\boxed{} "));
    CHECK(!strcmp(item.prompt, item.subject) && !strcmp(item.gold, " \\boxed{6}"));
    task_close(t);
    t = open_form("gsm8k",
                  "{\"question\":\"P2?\",\"group\":\"two\",\"answer\":\"So 5.\\n#### 1,005\"}\n",
                  TASK_LM_EVAL);
    get(&item, t, 0);
    CHECK(!strcmp(item.prompt, "Question: P2?\nAnswer:") && task_right(t, &item, item.gold));
    task_close(t);
}

static const struct {
    const char *task;
    enum task_form form;
    const char *text, *answer; /* NULL: none */
} answers[] = {
    { "csqa", TASK_CITER, "see (EKGs), so (b).", "EKGs" },
    { "csqa", TASK_CITER, "so (b). Not (c).", "B" },
    { "csqa", TASK_CITER, "an empty () and (d)", ") and (d" }, /* as the regular expression does */
    { "csqa", TASK_CITER, "a (line\nthat ends) and (c)", "C" },
    { "csqa", TASK_CITER, "B", NULL },
    { "csqa", TASK_CITER, "(b", NULL },
    { "csqa", TASK_CITER, "", NULL },
    { "csqa", TASK_CITER, "(1234567890123456789012345678901234567890123456789012345678901234567)",
      "123456789012345678901234567890123456789012345678901234567890123" },
    { "csqa", TASK_CITER,
      "(12345678901234567890123456789012345678901234567890123456789012\xc3\xa9)",
      "12345678901234567890123456789012345678901234567890123456789012" },
    { "csqa", TASK_CHAT, "see (EKGs) or (a), but it is (b).", "B" },
    { "csqa", TASK_CHAT, "(none)", "none" },
    { "csqa", TASK_LM_EVAL, " c", "C" },
    { "csqa", TASK_LM_EVAL, "\n(D) garage", "D" },
    { "csqa", TASK_LM_EVAL, " E. new york", "E" },
    { "csqa", TASK_LM_EVAL, " bank", NULL },
    { "csqa", TASK_LM_EVAL, "", NULL },
    { "arc", TASK_CITER, "therefore (2)", "2" },
    { "arc", TASK_LM_EVAL, " fog \nand rain", "fog" },
    { "arc", TASK_LM_EVAL, " \n", NULL },
    { "gsm8k", TASK_CITER, "\\boxed{40,000} or \\boxed{2}", "40000" },
    { "gsm8k", TASK_CITER, "\\boxed{} \\boxed{-3}", "-3" },
    { "gsm8k", TASK_CITER, "\\boxed{\\$18.50}", "18.5" },
    { "gsm8k", TASK_CITER, "\\boxed{18.00 \\text{ dollars}}", "18" },
    { "gsm8k", TASK_CITER, "\\boxed{25\\%}", "25" },
    { "gsm8k", TASK_CITER, "\\boxed{7.}", "7" },
    { "gsm8k", TASK_CITER, "\\boxed{\\frac{1}{2}}", "frac{1}{2}" },
    { "gsm8k", TASK_CITER, "\\boxed{1/2}", "1/2" },
    { "gsm8k", TASK_CITER, "\\boxed{100", NULL },
    { "gsm8k", TASK_CITER, "\\boxed{1} \\boxed{2", "1" },
    { "gsm8k", TASK_CITER, "\\boxed{\\boxed{3}", "3" },
    { "gsm8k", TASK_CITER, "} \\boxed{ \\boxed{} 4} \\boxed{5}", "boxed{}4" },
    { "gsm8k", TASK_CITER, "boxed{6} \\boxed{ $\\ } \\boxed{ {7} }", "{7}" },
    { "gsm8k", TASK_CITER, "18", NULL },
    { "gsm8k", TASK_LM_EVAL, "1 2\n#### 1,800.\n#### 5", "1800" },
    { "gsm8k", TASK_LM_EVAL, "It costs $5, then -$1,800.50.", "-1800.50" },
    { "gsm8k", TASK_LM_EVAL, "It is 4... 3. no", "3" },
    { "gsm8k", TASK_LM_EVAL, "It is 7", "7" },
    { "gsm8k", TASK_LM_EVAL, "It is -7\nQuestion: 8\n#### 9", "-7" },
    { "gsm8k", TASK_LM_EVAL, "none", NULL },
};

static void extraction(void)
{
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        const char *name = answers[i].task;
        const char *text = !strcmp(name, "csqa") ? csqa : !strcmp(name, "arc") ? arc : gsm8k;
        struct task *t = open_form(name,
                                   answers[i].form == TASK_LM_EVAL && text == gsm8k
                                       ? "{\"problem\":\"P\",\"answerKey\":\"1\"}"
                                       : text,
                                   answers[i].form);
        char found[TASK_ANSWER] = "";
        bool any = task_extract(found, t, answers[i].text);
        if (any != !!answers[i].answer || (any && strcmp(found, answers[i].answer) != 0))
            fprintf(stderr, "%s, row %zu: found %s\n", name, i, any ? found : "nothing");
        CHECK(any == !!answers[i].answer && (!any || !strcmp(found, answers[i].answer)));
        task_close(t);
    }
}

/* Time is linear in the text: 8 MB of marks that nothing closes would take an hour otherwise. */
static void many_marks(void)
{
    static const char mark[] = "\\boxed{";
    const size_t len = sizeof(mark) - 1, n = (8 << 20) / len;
    struct task *t = open_form("gsm8k", gsm8k, TASK_CITER);
    char found[TASK_ANSWER], *text = malloc(n * len + 1);
    CHECK(text);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * len, mark, len);
    text[n * len] = 0;
    CHECK(!task_extract(found, t, text));
    free(text);
    task_close(t);
}

/* The demo world's questions are those of eval, and its three streams have none in common. */
static void milli(void)
{
    struct task *t[3];
    struct world *w;
    struct err err = { "" };
    char prompts[3][WORLD_PROMPT];
    CHECK(world_open(&w, WORLD_SEED, &err) == OK);
    for (int s = TASK_TRAIN; s <= TASK_TEST; s++) {
        const struct task_options o = { .name = "milli",
                                        .stream = (enum task_stream)s,
                                        .seed = 7,
                                        .world = WORLD_SEED,
                                        .kind = "where",
                                        .wording = "chatty" };
        struct task_item item;
        CHECK(task_open(&t[s], &o, &err) == OK);
        CHECK(task_size(t[s]) == SIZE_MAX && !*task_digest(t[s]));
        get(&item, t[s], 5);
        snprintf(prompts[s], sizeof(prompts[s]), "%s", item.prompt);
        CHECK(item.key[0] >= 'A' && item.key[0] <= 'E' && !item.key[1] && item.nchoices == 0);
        CHECK(strstr(item.prompt, item.subject) && task_right(t[s], &item, item.gold));
        CHECK(!task_right(t[s], &item, item.prompt));
    }
    struct world_question q;
    world_question(&q, w, (struct world_filter){ WORLD_WHERE, WORLD_CHATTY }, world_test_stream(7),
                   5);
    CHECK(!strcmp(prompts[TASK_TEST], q.prompt));
    CHECK(strcmp(prompts[0], prompts[1]) && strcmp(prompts[1], prompts[2]) &&
          strcmp(prompts[0], prompts[2]));
    for (int s = TASK_TRAIN; s <= TASK_TEST; s++)
        task_close(t[s]);
    world_close(w);
}

/* Form chat goes through the model's template, the others do not. */
static void check_encoding(const struct tokenizer *tok, enum task_form form, bool marks)
{
    struct chat *c;
    struct task *t = open_form("csqa", csqa, form);
    struct task_item item;
    struct err err = { "" };
    uint32_t *ids, *chat;
    size_t n, m;
    get(&item, t, 1);
    CHECK(chat_open(&c, tok, NULL, NULL, &err) == OK);
    int rc = task_encode(&ids, &n, t, &item, tok, c, &err);
    if (form == TASK_CHAT && marks) {
        const struct chat_message message = { "user", "Own:\n", 5 };
        CHECK(rc == OK && chat_encode(c, &chat, &m, &message, 1, CHAT_THINK_AUTO, &err) == OK);
        CHECK(n == m && n > 20 && !memcmp(ids, chat, n * sizeof(*ids)));
        free(chat);
    } else if (form == TASK_CHAT) {
        CHECK(rc == ERR_FORMAT && strstr(err.msg, "im_start"));
    } else {
        CHECK(rc == OK && n == 5 && ids[0] == 'O' && ids[4] == '\n');
    }
    if (rc == OK)
        free(ids);
    chat_close(c);
    task_close(t);
}

/* The model of tiny.h has a token for each byte, and no marks of a chat until it gets them. */
static void encoding(void)
{
    const char *folder = tiny_make();
    char file[128];
    for (int marks = 0; marks < 2; marks++) {
        struct tokenizer *tok;
        struct err err = { "" };
        CHECK(tokenizer_open_path(&tok, folder, &err) == OK);
        check_encoding(tok, TASK_CITER, marks);
        check_encoding(tok, TASK_CHAT, marks);
        tokenizer_close(tok);
        snprintf(file, sizeof(file), "%s/tokenizer_config.json", folder);
        FILE *f = fopen(file, "w");
        CHECK(f && fputs("{\"added_tokens_decoder\":{\"256\":{\"content\":\"<|im_end|>\"},\"257\":"
                         "{\"content\":\"<|im_start|>\"}}}",
                         f) >= 0);
        CHECK(fclose(f) == 0);
    }
    tiny_remove();
}

/* Without memory, opening fails and leaks nothing, whichever allocation it was. */
static void memory(void)
{
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(csqa, f) >= 0 && fclose(f) == 0);
    const struct task_options o = { .name = "csqa", .data = path };
    bool reached = true;
    for (long n = 1; reached; n++) {
        struct task *t;
        struct err err = { "" };
        torture_begin(n);
        int rc = task_open(&t, &o, &err);
        if (rc == OK)
            task_close(t);
        reached = torture_end();
        CHECK(torture_live() == 0 && (rc == OK ? !reached : rc == ERR_NOMEM && !t));
    }
    unlink(path);
}

int main(void)
{
    csqa_items();
    arc_items();
    gsm8k_items();
    extraction();
    many_marks();
    milli();
    encoding();
    memory();
    return 0;
}
