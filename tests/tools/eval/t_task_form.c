/* t_task_form.c - in which form a question is put, that of the model or one's own, and where an
 * answer ends. Needs no data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/sha256.h"
#include "model/text/chat.h"
#include "model/text/tokenizer.h"
#include "tests/support/chat_bytes.h"
#include "tests/support/torture.h"
#include "tests/tools/eval/task_help.h"

static const char path[] = "build/t_task_form.jsonl", own[] = "build/t_task_form.txt";

static const char csqa[] =
    "{\"question\":{\"question_concept\":\"door\",\"stem\":\"Which?\",\"choices\":[{\"label\":"
    "\"A\","
    "\"text\":\"x\"},{\"label\":\"B\",\"text\":\"y z\"},{\"label\":\"C\",\"text\":\"w\"}]},"
    "\"answerKey\":\"B\"}\n";
static const char gsm8k[] = "{\"question\":\"P?\",\"answer\":\"So 4.\\n#### 4\"}\n";

/* Without a form it is chat for a template that is known or named, and else citer, which *why
 * explains. A form that was given stays, and so does the one prompt of milli. */
static void settling(void)
{
    static const char known[] =
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
        "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
        "{{ '<|im_start|>assistant\n' }}{% endif %}";
    static const struct {
        const char *template;
        size_t marks;
        const char *named;
        enum task_form form;
        const char *why;
    } models[] = {
        { known, 4, NULL, TASK_CHAT, "" },
        { NULL, 4, NULL, TASK_CITER, "the model has no chat template" },
        { NULL, 4, "chatml", TASK_CHAT, "" },
        { "{{ messages }}", 4, NULL, TASK_CITER, "found another" },
        { NULL, 0, NULL, TASK_CITER, "<|im_start|>" },
    };
    const struct task_options questions = { .name = "milli", .world = 1, .form = TASK_DEFAULT };
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct tokenizer *tok = chat_bytes_open(models[i].template, models[i].marks);
        struct task *t = open_text("csqa", csqa, TASK_DEFAULT), *given, *milli;
        struct chat *c;
        struct err err = { "" };
        CHECK(chat_open(&c, tok, models[i].named, NULL, &err) == OK);
        CHECK(task_settle(t, c, &err) == !*models[i].why && strstr(err.msg, models[i].why));
        CHECK(task_form(t) == models[i].form);
        CHECK(!strcmp(task_form_name(t), models[i].form == TASK_CHAT ? "chat" : "citer"));
        given = open_text("csqa", csqa, TASK_CITER);
        CHECK(task_settle(given, c, &err) && !strcmp(task_form_name(given), "citer"));
        CHECK(task_open(&milli, &questions, &err) == OK && task_settle(milli, c, &err));
        CHECK(!strcmp(task_form_name(milli), "citer") && !task_stops(milli));
        task_close(milli);
        task_close(given);
        task_close(t);
        chat_close(c);
        tokenizer_close(tok);
    }
}

/* What a model goes on to after its answer is no part of it. */
static void stopping(void)
{
    static const struct {
        const char *task;
        enum task_form form;
        const char *text, *cut;
    } rows[] = {
        { "csqa", TASK_CITER, "So (A).\nQuestion: Q\nQuestion:", "So (A)." },
        { "csqa", TASK_CITER, "The Question: (A)\n\n", "The Question: (A)\n\n" },
        { "csqa", TASK_CHAT, "So.\nQuestion: Q", "So.\nQuestion: Q" },
        { "gsm8k", TASK_CITER, "4</s>\nQuestion: 7", "4</s>" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *file = strcmp(rows[i].task, "gsm8k") ? csqa : gsm8k;
        struct task *t = open_text(rows[i].task, file, rows[i].form);
        char text[64];
        snprintf(text, sizeof(text), "%s", rows[i].text);
        task_cut(t, text);
        CHECK(!strcmp(text, rows[i].cut));
        CHECK(!task_stops(t) == (rows[i].form == TASK_CHAT));
        task_close(t);
    }
}

/* Check the prompt of item i. */
static void prompts(struct task *t, size_t i, const char *want)
{
    struct task_item item;
    struct err err;
    CHECK(task_item(&item, t, i, &err) == OK);
    CHECK_MSG(!strcmp(item.prompt, want), "%s", item.prompt);
}

/* As plain@FILE it is the whole prompt, whatever template the model has; it ends at an empty line
 * if the form has one. */
static void plain_form(struct task_options *o, const struct tokenizer *tok)
{
    struct chat *c;
    struct task_item item;
    struct err err = { "" };
    static const struct {
        const char *form, *want;
    } forms[] = {
        { "{question}\n{choices}", "So.\n\nQ" },
        { "{question}\n\n{choices}\nA:", "So.\n\nQ" },
        { "q\nA: a\n\n{question}\n{choices}\nA:", "So." },
    };
    CHECK(chat_open(&c, tok, "chatml", NULL, &err) == OK);
    CHECK(task_form_parse(o, "plain@build/t_task_form.txt", &err) == OK && !strcmp(o->own, own));
    for (size_t i = 0; i < 3; i++) {
        char text[] = "So.\n\nQ\nQuestion: R";
        uint32_t *ids;
        size_t n;
        write_file(own, forms[i].form);
        struct task *t = open_with(o);
        CHECK(task_settle(t, c, &err) && !strncmp(task_form_name(t), "plain @", 7));
        CHECK(task_item(&item, t, 0, &err) == OK);
        CHECK(task_encode(&ids, &n, t, &item, tok, c, &err) == OK && n == strlen(item.prompt));
        task_cut(t, text);
        CHECK(!strcmp(text, forms[i].want));
        free(ids);
        task_close(t);
    }
    chat_close(c);
    o->form = TASK_DEFAULT;
}

/* What cannot be a form of one's own. */
static void bad_forms(void)
{
    struct task_options o = { .data = path, .own = own, .form = TASK_DEFAULT };
    struct err err = { "" };
    o.name = "gsm8k";
    write_file(path, gsm8k);
    refused(&o, ERR_FORMAT, "form.txt: {choices}: expected none in a form for gsm8k");
    write_file(own, "Q: {question}\r\n");
    struct task *t = open_with(&o);
    prompts(t, 0, "Q: P?");
    task_close(t);
    write_file(path, "{\"prompt\":\"p\",\"answerKey\":\"1\"}");
    refused(&o, ERR_FORMAT, "jsonl: line 1: problem: expected a string");
    o.name = "csqa";
    write_file(path, csqa);
    refused(&o, ERR_FORMAT, "form.txt: {choices}: expected it in a form for csqa");
    write_file(own, "{Question} {choices}");
    refused(&o, ERR_FORMAT, "form.txt: {question}: expected it in a form for csqa");
    write_file(own, "");
    refused(&o, ERR_FORMAT, "form.txt: {question}: expected");
    write_file(own, "\xff{question}{choices}");
    refused(&o, ERR_FORMAT, "form.txt: expected a text in UTF-8");
    unlink(own);
    refused(&o, ERR_IO, "form.txt: No such file");
    o.name = "milli";
    o.data = NULL;
    refused(&o, ERR_ARG, "expected --task csqa, arc or gsm8k, found milli");
    CHECK(task_form_parse(&o, "@", &err) == ERR_ARG && strstr(err.msg, "or plain@FILE, found @"));
    CHECK(task_form_parse(&o, "plain@", &err) == ERR_ARG && strstr(err.msg, "found plain@"));
}

/* A form of one's own is known by what is in it, and other braces are text. */
static void own_form(void)
{
    static const char form[] = "{Q} {{question}\n{choices}\n\nSay \\boxed{} of {labels}: {\n\n";
    struct task_options o = { .data = path };
    struct err err = { "" };
    char hex[SHA256_HEX], name[TASK_FORM];
    CHECK(task_form_parse(&o, "@build/t_task_form.txt", &err) == OK && !strcmp(o.own, own));
    o.name = "csqa";
    write_file(path, csqa);
    write_file(own, form);
    sha256_hex(hex, form, sizeof(form) - 1);
    struct task *t = open_with(&o);
    prompts(t, 0, "{Q} {Which?\nA. x\nB. y z\nC. w\n\nSay \\boxed{} of A, B or C: {\n");
    struct tokenizer *tok = chat_bytes_open(NULL, 2);
    for (int chats = 0; chats < 2; chats++) {
        struct chat *c;
        uint32_t *ids;
        size_t n;
        struct task_item item;
        CHECK(chat_open(&c, tok, chats ? "chatml" : NULL, NULL, &err) == OK);
        CHECK(task_settle(t, c, &err) == chats && task_item(&item, t, 0, &err) == OK);
        CHECK(chats || strstr(err.msg, "as it stands: the model has no chat template"));
        CHECK(task_encode(&ids, &n, t, &item, tok, c, &err) == OK);
        CHECK(!task_stops(t) == (chats == 1));
        CHECK((ids[0] == 256) == chats && n == strlen(item.prompt) + (chats ? 19 : 0));
        snprintf(name, sizeof(name), "%s @%s", chats ? "chat" : "plain", hex);
        CHECK(!strcmp(task_form_name(t), name));
        free(ids);
        chat_close(c);
        task_close(t);
        t = open_with(&o);
    }
    task_close(t);
    plain_form(&o, tok);
    tokenizer_close(tok);
}

/* Open a task from options, and close it: for torture_each. */
static int open_once(const void *options)
{
    struct task *t;
    struct err err = { "" };
    int rc = task_open(&t, options, &err);
    CHECK((rc == OK) == (t != NULL));
    task_close(t);
    return rc;
}

/* Without memory, opening fails and leaks nothing, whichever allocation it was. */
static void memory(void)
{
    const struct task_options o = {
        .name = "csqa", .data = path, .own = own, .form = TASK_DEFAULT
    };
    write_file(own, "{question} {choices}");
    write_file(path, csqa);
    torture_each(open_once, &o);
}

int main(void)
{
    settling();
    stopping();
    own_form();
    bad_forms();
    memory();
    unlink(path);
    unlink(own);
    return 0;
}
