/* t_task.c - items, prompts in their forms, and what is taken for the answer. Needs no data.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/sha256.h"
#include "model/text/chat.h"
#include "model/text/tokenizer.h"
#include "tests/support/tiny.h"
#include "tests/tools/eval/task_help.h"
#include "tools/lab/demo/world.h"

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

static void csqa_items(void)
{
    struct task *t = open_text("csqa", csqa, TASK_CITER);
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
    CHECK(!task_right(t, &item, " (b) or (a)") && task_right(t, &item, "a"));
    CHECK(task_right_citer(t, &item, "(a)") && !task_right_citer(t, &item, "a"));
    char found[TASK_ANSWER]; /* t_extract.c has the rule */
    CHECK(task_extract(found, t, &item, "see (EKGs), so (b).") && !strcmp(found, "B"));
    CHECK(!task_extract(found, t, &item, ""));
    task_close(t);
}

/* As many choices as there are letters. */
static void many_items(void)
{
    char text[4096] = "{\"question\":{\"stem\":\"Which?\",\"choices\":[";
    for (int i = 0; i < 26; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "%s{\"label\":\"%c\",\"text\":\"x%c\"}", i ? "," : "", 'A' + i, 'A' + i);
    strcat(text, "]},\"answerKey\":\"Z\"}");
    struct task *t = open_text("csqa", text, TASK_CITER);
    struct task_item item;
    get(&item, t, 0);
    CHECK(item.nchoices == 26 && strstr(item.prompt, "\nJ. xJ\n"));
    CHECK(task_right(t, &item, "it is (Z)") && !task_right(t, &item, "it is (J)"));
    task_close(t);
}

static void arc_items(void)
{
    struct task *t = open_text("arc", arc, TASK_CITER);
    struct task_item item;
    get(&item, t, 0);
    CHECK(task_size(t) == 1 && item.nchoices == 3 && !strcmp(item.key, "3"));
    CHECK(!strncmp(item.prompt, "Question: Which?\nChoices:\n1. one\n2. a second", 44));
    CHECK(!strcmp(item.subject, "Which?") && task_right(t, &item, "it is (3)"));
    task_close(t);
}

static void gsm8k_items(void)
{
    struct task *t = open_text("gsm8k", gsm8k, TASK_CHAT);
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
    CHECK(task_right(t, &item, "\\boxed{4000}") && !task_right_citer(t, &item, "\\boxed{4000}"));
    CHECK(task_right_citer(t, &item, "\\boxed{4,000}") && !task_right_citer(t, &item, "4,000"));
    char found[TASK_ANSWER];
    CHECK(task_extract(found, t, &item, "\\boxed{\\text{40,000}}") && !strcmp(found, "40000"));
    get(&item, t, 1);
    CHECK(!strcmp(item.subject, "two"));
    CHECK(!strcmp(item.key, "1005") && !strcmp(item.gold, " So 5.\n#### 1,005"));
    get(&item, t, 2);
    CHECK(!strcmp(item.key, "6") && !strcmp(item.subject, "Own \\boxed{} "));
    CHECK(!strcmp(item.prompt, item.subject) && !strcmp(item.gold, " \\boxed{6}"));
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
    struct task *t = open_text("csqa", csqa, form);
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
        write_file(file, "{\"added_tokens_decoder\":{\"256\":{\"content\":\"<|im_end|>\"},\"257\":"
                         "{\"content\":\"<|im_start|>\"}}}");
    }
}

int main(void)
{
    csqa_items();
    many_items();
    arc_items();
    gsm8k_items();
    milli();
    encoding();
    return 0;
}
