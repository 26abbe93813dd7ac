/* t_task_data.c - the tasks on the published files: how many items, which prompts, which answers.
 * Skipped without the data. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/sha256.h"
#include "tests/tools/eval/task_help.h"

static const char *folder;

static struct task *data_open(const char *name, const char *file, enum task_form form)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    return open_with(
        &(struct task_options){ .name = name, .data = path, .form = form, .stream = TASK_TEST });
}

/* Opening reads every item, and chat's prompts are citer's. arc has 3 to 5 choices. */
static void counts(void)
{
    static const struct {
        const char *name, *file;
        size_t items;
    } files[] = {
        { "csqa", "csqa/dev_rand_split.jsonl", 1221 },
        { "csqa", "csqa/citer/test.jsonl", 1197 },
        { "csqa", "csqa/citer/train_mlp.json", 2049 },
        { "arc", "arc/ARC-Challenge-Dev.jsonl", 294 },
        { "arc", "arc/ARC-Challenge-Test.jsonl", 1150 },
        { "gsm8k", "gsm8k/test.json", 1319 },
    };
    size_t least = 9, most = 0;
    for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++)
        for (int form = TASK_CITER; form <= TASK_CHAT; form++) {
            struct task *t = data_open(files[f].name, files[f].file, (enum task_form)form);
            CHECK(task_size(t) == files[f].items && strlen(task_digest(t)) == 64);
            for (size_t i = 0; form == TASK_CITER && i < task_size(t); i++) {
                struct task_item item;
                get(&item, t, i);
                CHECK(*item.prompt && *item.key && *item.subject);
                if (!strcmp(files[f].name, "arc")) {
                    least = item.nchoices < least ? item.nchoices : least;
                    most = item.nchoices > most ? item.nchoices : most;
                }
            }
            task_close(t);
        }
    CHECK(least == 3 && most == 5);
}

static void test_prompts(void)
{
    struct task *t = data_open("csqa", "csqa/citer/test.jsonl", TASK_CITER);
    struct sha256 s;
    unsigned char hash[SHA256_BYTES];
    char hex[SHA256_HEX];
    sha256_begin(&s);
    for (size_t i = 0; i < task_size(t); i++) {
        struct task_item item;
        get(&item, t, i);
        CHECK(!item.gold);
        sha256_add(&s, item.prompt, strlen(item.prompt) + 1);
    }
    sha256_end(hash, &s);
    sha256_text(hex, hash);
    CHECK(!strcmp(hex, "736ffd0929457e1885c7d178441b9b7622777e50037443299a243b40b52586a2"));
    task_close(t);
}

/* Copy the csqa training file without its prompts, and open it. */
static struct task *training_without_prompts(void)
{
    char path[512], line[8192];
    struct task *t;
    struct err err = { "" };
    snprintf(path, sizeof(path), "%s/csqa/citer/train_mlp.json", folder);
    FILE *f = fopen(path, "r"), *copy = fopen(in_scratch("copy.jsonl"), "w");
    CHECK(f && copy);
    while (fgets(line, sizeof(line), f)) {
        json_t *o = json_loads(line, 0, NULL);
        CHECK(o && json_object_del(o, "prompt") == 0 && json_dumpf(o, copy, JSON_COMPACT) == 0);
        CHECK(fputs("\n", copy) >= 0);
        json_decref(o);
    }
    CHECK(fclose(copy) == 0 && fclose(f) == 0);
    const struct task_options o = { .name = "csqa", .data = in_scratch("copy.jsonl") };
    CHECK(task_open(&t, &o, &err) == OK);
    return t;
}

/* True when a stored training prompt is the test form with a blank line more after the choices and
 * before the last line. */
static bool blank_lines_more(const char *stored, const char *made)
{
    char both[4096];
    const char *a = strstr(made, "Please format"), *b = strstr(made, "Answer and Reasoning:");
    CHECK(a && b && a < b);
    snprintf(both, sizeof(both), "%.*s\n%.*s\n%s", (int)(a - made), made, (int)(b - a), a, b);
    return !strcmp(stored, both);
}

/* The stored prompts and the solutions of CITER's training files. */
static void training(void)
{
    struct task *t = data_open("csqa", "csqa/citer/train_mlp.json", TASK_CITER);
    struct task *made = training_without_prompts();
    size_t same = 0, right = 0;
    for (size_t i = 0; i < task_size(t); i++) {
        struct task_item item, other;
        get(&item, t, i);
        get(&other, made, i);
        same += blank_lines_more(item.prompt, other.prompt);
        CHECK(item.gold && item.gold[0] == ' ');
        right += task_right(t, &item, item.gold);
    }
    CHECK(task_size(t) == 2049 && same == 2049 && right == 2049);
    task_close(made);
    task_close(t);
    t = data_open("gsm8k", "gsm8k/train_mlp.json", TASK_CITER);
    right = 0;
    for (size_t i = 0; i < task_size(t); i++) {
        struct task_item item;
        get(&item, t, i);
        right += task_right(t, &item, item.gold) && !task_right(t, &item, item.prompt);
    }
    CHECK(task_size(t) == 1869 && right == 1869);
    task_close(t);
}

/* Every solution of GSM8K has an integer for an answer. The prompt that is made is that of CITER's
 * tests, which asks for the box in other words than the stored ones. */
static void solutions(void)
{
    struct task *t = data_open("gsm8k", "gsm8k/test.json", TASK_CITER);
    struct task *train = data_open("gsm8k", "gsm8k/train_mlp.json", TASK_CITER);
    struct task_item item, stored;
    size_t integers = 0;
    char answer[TASK_ANSWER];
    for (size_t i = 0; i < task_size(t); i++) {
        get(&item, t, i);
        CHECK(task_extract(answer, t, &item, item.gold) && !strcmp(answer, item.key));
        size_t sign = answer[0] == '-';
        integers += answer[sign] && !answer[sign + strspn(answer + sign, "0123456789")];
    }
    CHECK(integers == 1319);
    get(&item, t, 0);
    get(&stored, train, 0);
    CHECK(!strncmp(item.prompt, stored.prompt, 100) && stored.prompt[100] == ',');
    const char *rest = strstr(item.prompt, "LaTeX command \\boxed{} to display it in a box.\n");
    CHECK(rest ==
          item.prompt + 100 + strlen(", and the final answer should be enclosed using the "));
    CHECK(!strcmp(strrchr(item.prompt, '\n'), strrchr(stored.prompt, '\n')));
    task_close(t);
    task_close(train);
}

int main(void)
{
    const char *data = getenv("MIZZLE_TESTDATA");
    folder = data ? data : "../shared/data";
    char path[512];
    snprintf(path, sizeof(path), "%s/csqa/citer/test.jsonl", folder);
    if (access(path, R_OK) != 0)
        SKIP("no %s (MIZZLE_TESTDATA)", path);
    counts();
    test_prompts();
    training();
    solutions();
    return 0;
}
